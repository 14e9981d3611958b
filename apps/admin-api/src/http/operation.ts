import {
  applyDecorators,
  createParamDecorator,
  Delete,
  Get,
  HttpCode,
  Patch,
  Post,
  SetMetadata,
  type ExecutionContext,
  type StreamableFile,
} from '@nestjs/common';
import { adminApi, isId, WeirError, type ApiRoute, type OperationId } from '@weir/domain';
import { validationError } from '@weir/platform';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Actor } from '../access/actor.js';
import { ifMatchVersion } from './if-match.js';

type Api = typeof adminApi;
type ParsedBy<Route, Part extends string> = Route extends { readonly [P in Part]: infer Schema }
  ? Schema extends z.ZodType
    ? z.output<Schema>
    : undefined
  : undefined;

/** What a handler gets: the request as the route table describes it, validated. */
export type CallOf<Id extends OperationId> = {
  /** null only for routes that need no sign-in. */
  readonly actor: Api[Id]['permission'] extends null ? null : Actor;
  readonly query: ParsedBy<Api[Id], 'query'>;
  readonly body: ParsedBy<Api[Id], 'body'>;
  /** The path's `{id}`, canonical; '' where the path has none. */
  readonly id: string;
  /** The version that `If-Match` named; 0 where the route takes none. */
  readonly version: number;
  readonly requestId: string;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
};

/** What a handler must answer; the schema's output shape. */
export type AnswerOf<Id extends OperationId> = Api[Id]['response'] extends z.ZodType
  ? z.output<Api[Id]['response']>
  : Api[Id]['response'] extends 'file'
    ? StreamableFile
    : void;

/** What the guard found out about the caller; set before any handler runs. */
export type AdminRequest = FastifyRequest & {
  weirActor?: Actor;
  weirSession?: { readonly sha256: string; readonly csrfToken: string };
};

export const operationMetadata = 'weir.operation';

/**
 * Makes a method the handler of one operation of the route table: path, method and status come from there, and the one
 * argument is the validated call.
 */
export function Operation<Id extends OperationId>(
  operationId: Id,
): (
  target: object,
  key: string,
  descriptor: TypedPropertyDescriptor<(call: CallOf<Id>) => Promise<AnswerOf<Id>>>,
) => void {
  const route: ApiRoute = adminApi[operationId];
  const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1');
  const method = { get: Get, post: Post, patch: Patch, delete: Delete }[route.method];
  const decorate = applyDecorators(
    SetMetadata(operationMetadata, operationId),
    method(path),
    HttpCode(route.status),
  );
  return (target, key, descriptor) => {
    ValidatedCall(operationId)(target, key, 0);
    decorate(target, key, descriptor);
  };
}

const ValidatedCall = createParamDecorator(
  (operationId: OperationId, context: ExecutionContext): unknown => {
    const http = context.switchToHttp();
    const request = http.getRequest<AdminRequest>();
    return readCall(adminApi[operationId], request, http.getResponse<FastifyReply>());
  },
);

function readCall(route: ApiRoute, request: AdminRequest, reply: FastifyReply): unknown {
  const { id } = (request.params ?? {}) as { id?: string };
  // An id that cannot exist is answered like one that does not.
  if (id !== undefined && !isId(id))
    throw new WeirError('not_found', 'There is nothing with this id.');
  const query = route.query === undefined ? undefined : parsed(route.query, request.query);
  if (route.query === undefined) refuseUnknownQuery(request.query);
  const body = route.body === undefined ? undefined : parsedBody(route.body, request);
  return {
    actor: request.weirActor ?? null,
    query,
    body,
    id: id ?? '',
    version: route.versioned === true ? ifMatchVersion(request.headers['if-match']) : 0,
    requestId: request.id,
    request,
    reply,
  };
}

function parsed(schema: z.ZodType, value: unknown): unknown {
  const result = schema.safeParse(value);
  if (!result.success) throw validationError(result.error.issues);
  return result.data;
}

/** Forms and texts are refused: a page elsewhere can send those without asking first. */
function parsedBody(schema: z.ZodType, request: FastifyRequest): unknown {
  const type = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    throw new WeirError('unsupported_media_type', 'Send the body as application/json.');
  }
  return parsed(schema, request.body);
}

function refuseUnknownQuery(query: unknown): void {
  const keys = Object.keys((query ?? {}) as object);
  if (keys.length === 0) return;
  throw validationError([
    { message: `unknown: ${keys.slice(0, 10).join(', ')}`, path: [keys[0] ?? ''] },
  ]);
}
