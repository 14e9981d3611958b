import { Catch, HttpException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { WeirError, type ErrorCode } from '@weir/domain';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from './logger.js';

/** Turns an error into the body that the app's callers expect. It must not show more than the error itself says. */
export type RenderError = (error: WeirError, requestId: string, url: string) => unknown;

/** The body of our own APIs, as `apiErrorSchema` in the domain has it. */
export const renderAdminError: RenderError = (error, requestId) => ({
  error: {
    code: error.code,
    message: error.message,
    details: error.details,
    requestId,
  },
});

const codeByStatus: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  412: 'version_conflict',
  413: 'body_too_large',
  415: 'unsupported_media_type',
  422: 'validation_failed',
  428: 'version_required',
  429: 'rate_limit_exceeded',
  431: 'headers_too_large',
  503: 'unavailable',
};

/**
 * The public face of anything thrown: a WeirError as it is; a 4xx of Nest or Fastify under our code for its status;
 * all else an `internal` that tells nothing about its cause.
 */
export function toWeirError(thrown: unknown): WeirError {
  if (thrown instanceof WeirError) return thrown;
  const status = statusOf(thrown);
  if (thrown instanceof Error && status !== undefined && status >= 400 && status < 500) {
    // A 4xx that we have no code for (405, 414 ...) is still the caller's to correct.
    const code = codeByStatus[status] ?? 'invalid_request';
    const details = retryAfterOf(thrown);
    return new WeirError(code, thrown.message, details, { cause: thrown });
  }
  if (status === 503)
    return new WeirError('unavailable', 'Try again later.', {}, { cause: thrown });
  if (isPoolExhausted(thrown)) {
    const details = { retry_after_seconds: 1 };
    return new WeirError('unavailable', 'Too much to do. Try again.', details, { cause: thrown });
  }
  return new WeirError(
    'internal',
    'Something went wrong here. The request id leads to the cause.',
    {},
    { cause: thrown },
  );
}

/** Each wraps the one below it: Prisma, its adapter, pg's pool. */
const causesMax = 5;
/** What pg-pool says, which gives it no code, and PostgreSQL's own "too_many_connections". */
const poolTimeout = 'timeout exceeded when trying to connect';
const tooManyConnections = '53300';

/** No connection to the database came free in time: nothing is wrong with the call. */
function isPoolExhausted(thrown: unknown): boolean {
  let error = thrown;
  for (let depth = 0; depth < causesMax && error instanceof Error; depth += 1) {
    if (error.message.includes(poolTimeout)) return true;
    if ('code' in error && error.code === tooManyConnections) return true;
    error = error.cause;
  }
  return false;
}

function statusOf(thrown: unknown): number | undefined {
  if (thrown instanceof HttpException) return thrown.getStatus();
  // Fastify's and its plugins' errors carry a numeric statusCode.
  if (!(thrown instanceof Error) || !('statusCode' in thrown)) return undefined;
  return typeof thrown.statusCode === 'number' ? thrown.statusCode : undefined;
}

function retryAfterOf(thrown: Error): Record<string, unknown> {
  const seconds: unknown = 'retryAfter' in thrown ? thrown.retryAfter : undefined;
  return typeof seconds === 'number' ? { retry_after_seconds: seconds } : {};
}

/** The one filter of an app: everything thrown becomes an answer; what is our fault is logged with its cause. */
@Catch()
export class WeirExceptionFilter implements ExceptionFilter {
  constructor(
    private readonly logger: Logger,
    private readonly render: RenderError = renderAdminError,
  ) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(thrown, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }

  /** Also for errors that Fastify meets before any Nest code runs. */
  answer(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const error = toWeirError(thrown);
    const requestId = request.id;
    const url = request.url;
    if (error.httpStatus >= 500) {
      const route = url.split('?', 1)[0];
      this.logger.error(
        {
          err: error.cause ?? error,
          code: error.code,
          request_id: requestId,
          method: request.method,
          route,
        },
        'request failed',
      );
    }
    if (reply.sent || reply.raw.headersSent) {
      // An answer that has begun cannot be taken back: cut it, so that the caller does not take it for whole.
      reply.raw.destroy();
      return;
    }
    const status = statusOf(thrown);
    const isPlain4xx =
      !(thrown instanceof WeirError) && status !== undefined && status >= 400 && status < 500;
    const retryAfter = error.details['retry_after_seconds'];
    if (typeof retryAfter === 'number')
      void reply.header('retry-after', Math.max(1, Math.ceil(retryAfter)));
    void reply
      .code(isPlain4xx ? status : error.httpStatus)
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(this.render(error, requestId, url)));
  }
}
