import { WeirError } from '@weir/domain';
import type { RateLimitPluginOptions } from '@fastify/rate-limit';

/** Route marker: the global limiter applies to these routes alone. */
export const signInRateLimited = { rateLimit: {} } as const;

/** At most so many sign-ins per address and minute; passwords are slow to check, so this also bounds the load. */
export function signInRateLimit(perMinute: number): RateLimitPluginOptions {
  return {
    global: false,
    max: perMinute,
    timeWindow: 60_000,
    // Addresses remembered at once.
    cache: 10_000,
    errorResponseBuilder: (_request, { ttl }) =>
      new WeirError('rate_limit_exceeded', 'Too many sign-ins from this address.', {
        retry_after_seconds: Math.max(1, Math.ceil(ttl / 1_000)),
      }),
  };
}
