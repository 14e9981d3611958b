import { isCalendarWindow, type Limit } from '@weir/domain';
import type { AdmissionPlan, PlannedCheck } from './admission-plan.js';
import { fromLimbs } from './limbs.js';
import type { Remaining, Reservation, Violation } from './quota-engine.js';
import { slidingShapes } from './counter-fields.js';

/**
 * What a call refused for want of a slot is told to wait: slots come free when other calls end, which nobody can know.
 * The one retry-after that is a hint and not a promise.
 */
export const concurrencyRetryMs = 1_000;

/**
 * What a call asks of a limit: requests and slots by number, tokens, or nano-currency. Calendar budgets and sliding windows
 * may reserve different numbers of tokens.
 */
export function requestedOf(
  { metric, window }: Pick<Limit, 'metric' | 'window'>,
  asked: Reservation,
): bigint {
  const isBudget = isCalendarWindow(window);
  const input = isBudget ? asked.budgetInputTokens : asked.windowInputTokens;
  const output = isBudget ? asked.budgetOutputTokens : asked.windowOutputTokens;
  switch (metric) {
    case 'requests':
    case 'concurrency':
      return 1n;
    case 'tokens':
      return BigInt(input) + BigInt(output);
    case 'input_tokens':
      return BigInt(input);
    case 'output_tokens':
      return BigInt(output);
    case 'cost':
      return asked.costNano;
  }
}

/** A limit that a call would pass, as a violation. `taken` and `reserved` include the call itself. */
export function violationOf(
  check: PlannedCheck,
  asked: Reservation,
  taken: bigint,
  reserved: bigint,
  nowMs: number,
  waitMs: number | null,
): Violation {
  const { limit, kind, period } = check;
  const requested = requestedOf(limit, asked);
  const reservedBefore = kind === 'calendar' ? reserved - requested : 0n;
  const impossible = requested > limit.amount;
  let retryAfterMs: number | null = null;
  if (!impossible) {
    if (kind === 'calendar') {
      retryAfterMs = period?.endsAt == null ? null : Math.max(0, period.endsAt - nowMs);
    } else {
      retryAfterMs = kind === 'concurrency' ? concurrencyRetryMs : waitMs;
    }
  }
  // A limit of 0 blocks everything, also what would take nothing of it: no wait helps.
  if (limit.amount === 0n) retryAfterMs = null;
  return {
    scope: check.scopeRef,
    limitId: limit.id,
    metric: limit.metric,
    window: limit.window,
    model: limit.model,
    mode: limit.mode,
    limit: limit.amount,
    used: taken - requested - reservedBefore,
    reserved: reservedBefore,
    requested,
    resetsAtMs: period?.endsAt ?? null,
    retryAfterMs,
    impossible,
  };
}

/** The narrowest scope first; within a scope as the policy lists its limits. */
export function narrowestFirst(
  plan: Pick<AdmissionPlan, 'checks'>,
  numbered: readonly { readonly check: number; readonly violation: Violation }[],
): Violation[] {
  const depth = (index: number): number => plan.checks[index]?.scopeIndex ?? 0;
  return [...numbered]
    .sort((a, b) => depth(b.check) - depth(a.check) || a.check - b.check)
    .map(({ violation }) => violation);
}

/** The longest wait needed; null as soon as one limit does not yield by waiting. */
export function longestWait(violations: readonly Violation[]): number | null {
  let longest = 0;
  for (const { retryAfterMs } of violations) {
    if (retryAfterMs === null) return null;
    longest = Math.max(longest, retryAfterMs);
  }
  return longest;
}

export function remainingOf(check: PlannedCheck, taken: bigint, nowMs: number): Remaining {
  const { limit, period } = check;
  let resetMs: number | null = null;
  if (period !== null) {
    resetMs = period.endsAt === null ? null : Math.max(0, period.endsAt - nowMs);
  } else if (limit.window === 'second' || limit.window === 'minute' || limit.window === 'hour') {
    const { widthMs, parts } = slidingShapes[limit.window];
    // What was just taken leaves the window when its sub-bucket does.
    resetMs = taken === 0n ? 0 : (Math.floor(nowMs / widthMs) + parts + 1) * widthMs - nowMs;
  }
  return {
    scope: check.scopeRef,
    limitId: limit.id,
    metric: limit.metric,
    window: limit.window,
    model: limit.model,
    limit: limit.amount,
    remaining: taken >= limit.amount ? 0n : limit.amount - taken,
    resetMs,
  };
}

/** Reads the numbers that admit and extend give for the limits passed: six per limit. */
export function readPassed(
  plan: AdmissionPlan,
  asked: Reservation,
  numbers: readonly number[],
  from: number,
  count: number,
  nowMs: number,
): { check: number; violation: Violation }[] {
  const passed: { check: number; violation: Violation }[] = [];
  for (let at = from; at < from + count * 6; at += 6) {
    const [number = 0, high = 0, low = 0, reservedHigh = 0, reservedLow = 0, wait = -1] =
      numbers.slice(at, at + 6);
    const index = number - 1;
    const check = plan.checks[index];
    if (!check) throw new RangeError(`the script names a limit that the plan has not: ${number}`);
    passed.push({
      check: index,
      violation: violationOf(
        check,
        asked,
        fromLimbs(high, low),
        fromLimbs(reservedHigh, reservedLow),
        nowMs,
        wait < 0 ? null : wait,
      ),
    });
  }
  return passed;
}
