import { isCalendarWindow, type Metric, type Window } from '@weir/domain';
import type { Remaining, Violation } from '@weir/quota';

const windowSeconds: Partial<Record<Window, number>> = { second: 1, minute: 60, hour: 3_600 };

/** Names are written out: put together for each call they would be new texts each time. */
const openAiRates = [
  {
    metric: 'requests',
    limit: 'x-ratelimit-limit-requests',
    remaining: 'x-ratelimit-remaining-requests',
    reset: 'x-ratelimit-reset-requests',
  },
  {
    metric: 'tokens',
    limit: 'x-ratelimit-limit-tokens',
    remaining: 'x-ratelimit-remaining-tokens',
    reset: 'x-ratelimit-reset-tokens',
  },
] as const;

const anthropicRates = (
  [
    ['requests', 'requests'],
    ['tokens', 'tokens'],
    ['input-tokens', 'input_tokens'],
    ['output-tokens', 'output_tokens'],
  ] as const
).map(([suffix, metric]) => ({
  metric,
  limit: `anthropic-ratelimit-${suffix}-limit`,
  remaining: `anthropic-ratelimit-${suffix}-remaining`,
  reset: `anthropic-ratelimit-${suffix}-reset`,
}));

/**
 * Adds `x-ratelimit-*` as OpenAI's, and the IETF's `RateLimit-Policy` and `RateLimit`
 * (draft-ietf-httpapi-ratelimit-headers), from the admit's own reply. Only sliding windows are rates; the tightest of the
 * path is shown, and none where the path has none.
 */
export function addLimitHeaders(
  headers: Record<string, string>,
  remaining: readonly Remaining[],
): void {
  let policies = '';
  let states = '';
  for (const names of openAiRates) {
    const { metric } = names;
    const tightest = tightestRate(remaining, metric);
    if (tightest === undefined) continue;
    const resetMs = tightest.resetMs ?? 0;
    const limit = tightest.limit.toString();
    const left = tightest.remaining.toString();
    headers[names.limit] = limit;
    headers[names.remaining] = left;
    headers[names.reset] = goDuration(resetMs);
    const separator = policies === '' ? '' : ', ';
    const seconds = windowSeconds[tightest.window ?? 'minute'] ?? 60;
    policies += `${separator}"${metric}";q=${limit};w=${seconds}`;
    states += `${separator}"${metric}";r=${left};t=${Math.ceil(resetMs / 1_000)}`;
  }
  if (policies === '') return;
  headers['ratelimit-policy'] = policies;
  headers['ratelimit'] = states;
}

/** The same for Anthropic's dialect, whose resets are instants. */
export function addAnthropicLimitHeaders(
  headers: Record<string, string>,
  remaining: readonly Remaining[],
  nowMs: number,
): void {
  for (const names of anthropicRates) {
    const tightest = tightestRate(remaining, names.metric);
    if (tightest === undefined) continue;
    const reset = new Date(nowMs + (tightest.resetMs ?? 0));
    headers[names.limit] = tightest.limit.toString();
    headers[names.remaining] = tightest.remaining.toString();
    headers[names.reset] = `${reset.toISOString().slice(0, 19)}Z`;
  }
}

/**
 * What is left of the limits that refused a call, for the same headers.
 *
 * @param retryAfterMs how long they have to be waited for.
 */
export function refusedRemaining(
  violations: readonly Violation[],
  retryAfterMs: number | null,
): Remaining[] {
  return violations.map(({ scope, limitId, metric, window, model, limit, used, reserved }) => {
    const left = limit - used - reserved;
    const remaining = left > 0n ? left : 0n;
    return { scope, limitId, metric, window, model, limit, remaining, resetMs: retryAfterMs };
  });
}

function tightestRate(remaining: readonly Remaining[], metric: Metric): Remaining | undefined {
  let tightest: Remaining | undefined;
  for (const each of remaining) {
    if (each.metric !== metric || each.window === null || isCalendarWindow(each.window)) continue;
    if (tightest === undefined || each.remaining < tightest.remaining) tightest = each;
  }
  return tightest;
}

/** Milliseconds as Go writes a duration: `120ms`, `6s`, `1m0.5s`, `1h0m0s`. */
export function goDuration(ms: number): string {
  if (ms <= 0) return '0s';
  if (ms < 1_000) return `${Math.ceil(ms)}ms`;
  const total = Math.ceil(ms);
  const hours = Math.floor(total / 3_600_000);
  const minutes = Math.floor((total % 3_600_000) / 60_000);
  const seconds = `${(total % 60_000) / 1_000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
