import { isCalendarWindow, type Limit, type Period, type PolicyScope } from '@weir/domain';
import { PeriodsAt } from './admission-plan.js';
import {
  calendarField,
  concurrencyField,
  metricOf,
  readCalendarRecord,
  readInFlight,
  readSlidingSum,
  slidingField,
} from './counter-fields.js';
import type { ShardKeys } from './keys.js';
import type { ScopeUsage } from './quota-engine.js';

export type PeekPlan = {
  readonly keys: readonly string[];
  /** Per scope: in-flight count, the month's record, then one field per limit. */
  readonly fields: readonly (readonly string[])[];
  readonly month: Period;
  /** Per scope and limit, the calendar period it counts in. */
  readonly periods: readonly (readonly (Period | null)[])[];
  readonly validFromMs: number;
  readonly validUntilMs: number;
};

export function planPeek(
  keys: ShardKeys,
  scopes: readonly PolicyScope[],
  timeZone: string,
  atMs: number,
): PeekPlan {
  const periods = new PeriodsAt(atMs, timeZone);
  const month = periods.at('month');
  const limitPeriods = scopes.map((scope) =>
    scope.limits.map(({ window }) => (isCalendarWindow(window) ? periods.at(window) : null)),
  );
  const fields = scopes.map((scope, index) => [
    concurrencyField(null),
    calendarField(month.id, null),
    ...scope.limits.map((limit, at) => fieldOf(limit, limitPeriods[index]?.[at] ?? null)),
  ]);
  return {
    keys: scopes.map((scope) => keys.scope(scope.id)),
    fields,
    month,
    periods: limitPeriods,
    ...periods.validity(),
  };
}

export function readPeek(
  plan: PeekPlan,
  scopes: readonly PolicyScope[],
  values: readonly (readonly (Buffer | null)[])[],
  nowMs: number,
): ScopeUsage[] {
  return scopes.map((scope, index) => {
    const [inFlight, monthValue, ...limitValues] = values[index] ?? [];
    const month = readCalendarRecord(monthValue ?? null);
    return {
      scopeId: scope.id,
      inFlight: readInFlight(inFlight ?? null),
      month: {
        periodId: plan.month.id,
        requests: month.requests,
        tokens: metricOf(month, 'tokens').used,
        inputTokens: month.inputTokens,
        outputTokens: month.outputTokens,
        costNano: month.costNano,
        reservedTokens: metricOf(month, 'tokens').reserved,
        reservedCostNano: month.reservedCostNano,
      },
      limits: scope.limits.map((limit, at) => ({
        limitId: limit.id,
        metric: limit.metric,
        window: limit.window,
        limit: limit.amount,
        ...countOf(limit, limitValues[at] ?? null, nowMs),
        resetsAtMs: plan.periods[index]?.[at]?.endsAt ?? null,
      })),
    };
  });
}

function fieldOf(limit: Limit, period: Period | null): string {
  if (limit.metric === 'concurrency') return concurrencyField(limit.model);
  if (period) return calendarField(period.id, limit.model);
  const { window } = limit;
  if (window === null || isCalendarWindow(window)) {
    throw new RangeError(`a limit on ${limit.metric} needs a window`);
  }
  return slidingField(limit.metric, window, limit.model);
}

function countOf(
  limit: Limit,
  value: Buffer | null,
  nowMs: number,
): { used: bigint; reserved: bigint } {
  const { window } = limit;
  if (limit.metric === 'concurrency') return { used: BigInt(readInFlight(value)), reserved: 0n };
  if (window === null || isCalendarWindow(window)) {
    return metricOf(readCalendarRecord(value), limit.metric);
  }
  // A sliding window does not tell reserved from settled: what was reserved in it counts as used.
  return { used: BigInt(readSlidingSum(value, window, nowMs)), reserved: 0n };
}
