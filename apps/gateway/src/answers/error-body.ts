import type { ErrorCode, WeirError } from '@weir/domain';
import type { Dialect } from '@weir/domain';
import { isJsonObject, type JsonObject } from '../request/json-body.js';

const openAiTypes: Partial<Record<ErrorCode, string>> = {
  rate_limit_exceeded: 'requests',
  concurrency_exceeded: 'requests',
  insufficient_quota: 'insufficient_quota',
};

const anthropicTypes: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  415: 'invalid_request_error',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  431: 'invalid_request_error',
  503: 'overloaded_error',
  504: 'timeout_error',
};

/** Which dialect a path's callers speak; unknown paths are answered in OpenAI's shape. */
export function dialectOfUrl(url: string): Dialect {
  return url.startsWith('/v1/messages') ? 'anthropic' : 'openai';
}

export type ErrorContext = {
  readonly requestId: string;
  /** The page that explains the errors, or undefined where there is none. */
  readonly docsUrl: string | undefined;
};

/** Our own part of an error: the request, what the error itself says, and where its code is explained. */
export function weirPart(error: WeirError, { requestId, docsUrl }: ErrorContext): JsonObject {
  const own = error.details['weir'];
  return {
    request_id: requestId,
    ...(isJsonObject(own) ? own : {}),
    ...(docsUrl === undefined ? {} : { doc: docOf(docsUrl, error.code) }),
  };
}

function docOf(docsUrl: string, code: ErrorCode): string {
  const url = new URL(docsUrl);
  url.hash = code;
  return url.href;
}

/**
 * An error as the callers of a route expect it. Our own part, `weir`, stands beside `error` for plain HTTP callers and
 * inside it as well, because the OpenAI SDKs keep nothing but `error`.
 */
export function errorBody(error: WeirError, dialect: Dialect, context: ErrorContext): JsonObject {
  const weir = weirPart(error, context);
  // What went wrong between the gateway and its store is for the log.
  const message =
    error.code === 'quota_unavailable' && 'script' in error.details
      ? 'The limits cannot be checked at the moment. Try again in a second.'
      : error.message;
  if (dialect === 'anthropic') {
    const type = anthropicTypes[error.httpStatus] ?? 'api_error';
    return {
      type: 'error',
      error: { type, message, code: error.code, weir },
      request_id: context.requestId,
      weir,
    };
  }
  const fallback = error.httpStatus >= 500 ? 'server_error' : 'invalid_request_error';
  const type = textDetail(error, 'type') ?? openAiTypes[error.code] ?? fallback;
  const code = textDetail(error, 'upstream_code') ?? error.code;
  return { error: { message, type, param: textDetail(error, 'param'), code, weir }, weir };
}

function textDetail(error: WeirError, field: string): string | null {
  const value = error.details[field];
  return typeof value === 'string' ? value : null;
}

/**
 * The providers of the Vercel AI SDK name themselves so. It repeats every 429, whatever the headers say, and knows 402 as
 * final (docs/adr/0042-an-exhausted-budget-is-402-for-who-repeats-every-429.md).
 */
const repeatsEvery429 = /(?:^|\s)ai-sdk\//;

/** The status that tells an error to a caller: an exhausted budget is final for each of them. */
export function errorStatus(error: WeirError, userAgent: string | undefined): number {
  const isFinal = error.code === 'insufficient_quota';
  return isFinal && repeatsEvery429.test(userAgent ?? '') ? 402 : error.httpStatus;
}

/** Headers that go with an error: when to come back, or not to. */
export function errorHeaders(error: WeirError): Record<string, string> {
  const headers: Record<string, string> = { 'content-type': 'application/json; charset=utf-8' };
  const extra = error.details['headers'];
  if (typeof extra === 'object' && extra !== null) {
    for (const [name, value] of Object.entries(extra)) headers[name] = String(value);
  }
  if (error.code === 'quota_unavailable' || error.code === 'unavailable') {
    headers['retry-after'] ??= '1';
  }
  if (error.httpStatus === 401) headers['www-authenticate'] = 'Bearer';
  return headers;
}
