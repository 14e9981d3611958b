import { isCalendarWindow, type Metric, type Window } from '@weir/domain';
import type { Remaining } from '@weir/quota';

const windowSeconds: Partial<Record<Window, number>> = { second: 1, minute: 60, hour: 3_600 };

/**
 * `x-ratelimit-*` as OpenAI's, and the IETF's `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers),
 * from the admit's own reply. Only sliding windows are rates; the tightest of the path is shown, and none where the path
 * has none.
 */
export function limitHeaders(remaining: readonly Remaining[]): Record<string, string> {
  const headers: Record<string, string> = {};
  const policies: string[] = [];
  const states: string[] = [];
  for (const [suffix, metric] of [
    ['requests', 'requests'],
    ['tokens', 'tokens'],
  ] as const) {
    const tightest = tightestRate(remaining, metric);
    if (tightest === undefined) continue;
    headers[`x-ratelimit-limit-${suffix}`] = tightest.limit.toString();
    headers[`x-ratelimit-remaining-${suffix}`] = tightest.remaining.toString();
    headers[`x-ratelimit-reset-${suffix}`] = goDuration(tightest.resetMs ?? 0);
    const seconds = windowSeconds[tightest.window ?? 'minute'] ?? 60;
    policies.push(`"${suffix}";q=${tightest.limit};w=${seconds}`);
    states.push(
      `"${suffix}";r=${tightest.remaining};t=${Math.ceil((tightest.resetMs ?? 0) / 1_000)}`,
    );
  }
  if (policies.length > 0) {
    headers['ratelimit-policy'] = policies.join(', ');
    headers['ratelimit'] = states.join(', ');
  }
  return headers;
}

/** The same for Anthropic's dialect, whose resets are instants. */
export function anthropicLimitHeaders(
  remaining: readonly Remaining[],
  nowMs: number,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [suffix, metric] of [
    ['requests', 'requests'],
    ['tokens', 'tokens'],
    ['input-tokens', 'input_tokens'],
    ['output-tokens', 'output_tokens'],
  ] as const) {
    const tightest = tightestRate(remaining, metric);
    if (tightest === undefined) continue;
    const reset = new Date(nowMs + (tightest.resetMs ?? 0));
    headers[`anthropic-ratelimit-${suffix}-limit`] = tightest.limit.toString();
    headers[`anthropic-ratelimit-${suffix}-remaining`] = tightest.remaining.toString();
    headers[`anthropic-ratelimit-${suffix}-reset`] = `${reset.toISOString().slice(0, 19)}Z`;
  }
  return headers;
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
