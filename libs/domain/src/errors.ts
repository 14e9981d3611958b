/** Every error code that a user can meet, with its HTTP status. The console and the gateway translate them (zh, en). */
export const errorCodes = {
  // Requests that cannot be served as sent.
  invalid_request: 400,
  impossible_request: 400,
  context_length_exceeded: 400,
  unauthenticated: 401,
  invalid_api_key: 401,
  forbidden: 403,
  csrf_failed: 403,
  model_not_allowed: 403,
  ip_not_allowed: 403,
  not_found: 404,
  model_not_found: 404,
  conflict: 409,
  version_conflict: 412,
  body_too_large: 413,
  unsupported_media_type: 415,
  validation_failed: 422,
  headers_too_large: 431,
  version_required: 428,
  // Limits.
  rate_limit_exceeded: 429,
  concurrency_exceeded: 429,
  insufficient_quota: 429,
  locked_out: 429,
  // Ours or the upstream's failures.
  internal: 500,
  upstream_error: 502,
  quota_unavailable: 503,
  unavailable: 503,
  price_missing: 503,
  upstream_timeout: 504,
} as const;
export type ErrorCode = keyof typeof errorCodes;

/** The one error type of all apps; one filter per app turns it into an answer. `details` is shown to the caller. */
export class WeirError extends Error {
  readonly httpStatus: number;

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.name = 'WeirError';
    this.httpStatus = errorCodes[code];
  }
}
