import { WeirError, type ErrorCode, type UpstreamDocument } from '@weir/domain';
import { isJsonObject, parseJsonObject, type JsonObject } from '../request/json-body.js';
import { UpstreamFailure } from './upstream-client.js';

/** Answers of an upstream that are the caller's to correct; all others are between us and the upstream. */
const passedStatuses: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_request',
  409: 'conflict',
  413: 'body_too_large',
  415: 'unsupported_media_type',
  422: 'validation_failed',
  429: 'rate_limit_exceeded',
};

export function parseErrorBody(bytes: Buffer): JsonObject | null {
  try {
    return parseJsonObject(bytes);
  } catch {
    // Proxies in front of upstreams answer in HTML: the status says what matters.
    return null;
  }
}

/** Whether another upstream may do better. */
export function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

/** An upstream's refusal in our words. The text of a 4xx is passed on: it says what is wrong with the request. */
export function upstreamRefusal(
  upstream: UpstreamDocument,
  status: number,
  retryAfter: string | string[] | undefined,
  body: JsonObject | null,
): WeirError {
  const error = isJsonObject(body?.['error']) ? body['error'] : null;
  const text = (field: string): string | null => {
    const value = error?.[field];
    return typeof value === 'string' ? value.slice(0, 2_000) : null;
  };
  const weir = { provider: upstream.name, upstream_status: status };
  const isOurAccount =
    text('code') === 'insufficient_quota' || text('type') === 'insufficient_quota';
  const code = isOurAccount ? undefined : passedStatuses[status];
  if (code === undefined) {
    const timedOut = status === 408 || status === 504;
    return new WeirError(
      timedOut ? 'upstream_timeout' : 'upstream_error',
      isOurAccount || status === 401 || status === 403
        ? `The provider "${upstream.name}" does not accept this installation's account. Ask your administrator.`
        : `The provider "${upstream.name}" failed (status ${status}). Try again later.`,
      { weir, ...(status < 500 && !timedOut ? { headers: { 'x-should-retry': 'false' } } : {}) },
    );
  }
  const seconds = typeof retryAfter === 'string' && /^\d{1,6}$/.test(retryAfter) ? retryAfter : '1';
  return new WeirError(
    code,
    text('message') ?? `The provider "${upstream.name}" refused the request (status ${status}).`,
    {
      weir,
      type: text('type'),
      param: text('param'),
      upstream_code: text('code'),
      ...(status === 429
        ? { headers: { 'retry-after': String(Math.max(1, Number(seconds))) } }
        : {}),
    },
  );
}

/** An upstream that did not answer, in our words. */
export function upstreamFailureError(
  upstream: UpstreamDocument,
  failure: UpstreamFailure,
): WeirError {
  return new WeirError(
    failure.timedOut ? 'upstream_timeout' : 'upstream_error',
    `${failure.message} Try again later.`,
    { weir: { provider: upstream.name } },
    { cause: failure.cause },
  );
}
