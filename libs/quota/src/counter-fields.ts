import type { Metric, SlidingWindow } from '@weir/domain';
import { fromLimbs, limbsOf, packDoubles, unpackDoubles } from './limbs.js';

/** How the scripts number the metrics (lua/includes/calendar.lua). */
export const metricCodes = {
  requests: 1,
  tokens: 2,
  input_tokens: 3,
  output_tokens: 4,
  cost: 5,
  concurrency: 0,
} as const satisfies Record<Metric, number>;

/** Sliding windows are counted in `parts` sub-buckets of `widthMs`; finer is exacter and dearer. */
export const slidingShapes = {
  second: { widthMs: 100, parts: 10 },
  minute: { widthMs: 5_000, parts: 12 },
  hour: { widthMs: 300_000, parts: 12 },
} as const satisfies Record<SlidingWindow, { widthMs: number; parts: number }>;

export const versionField = 'v';

export function concurrencyField(model: string | null): string {
  return model === null ? 'c' : `c|${model}`;
}

/** The field of a calendar record: named by its period, so that no job ever resets one. */
export function calendarField(periodId: string, model: string | null): string {
  return model === null ? periodId : `${periodId}|${model}`;
}

export function slidingField(metric: Metric, window: SlidingWindow, model: string | null): string {
  return model === null ? `${metric}/${window}` : `${metric}/${window}|${model}`;
}

/** One scope, period and model. Amounts are settled + reserved; the reserved part of each stands beside it. */
export type CalendarRecord = {
  readonly requests: bigint;
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
  readonly costNano: bigint;
  readonly reservedRequests: bigint;
  readonly reservedInputTokens: bigint;
  readonly reservedOutputTokens: bigint;
  readonly reservedCostNano: bigint;
};

export const emptyCalendarRecord: CalendarRecord = Object.freeze({
  requests: 0n,
  inputTokens: 0n,
  outputTokens: 0n,
  costNano: 0n,
  reservedRequests: 0n,
  reservedInputTokens: 0n,
  reservedOutputTokens: 0n,
  reservedCostNano: 0n,
});

/** Layout: lua/includes/calendar.lua. */
export function readCalendarRecord(value: Buffer | null): CalendarRecord {
  if (value === null) return emptyCalendarRecord;
  const at = unpackDoubles(value, 0);
  const limbs = (index: number): bigint => fromLimbs(at[index] ?? 0, at[index + 1] ?? 0);
  return {
    requests: BigInt(at[0] ?? 0),
    reservedRequests: BigInt(at[1] ?? 0),
    inputTokens: limbs(2),
    outputTokens: limbs(4),
    costNano: limbs(6),
    reservedInputTokens: limbs(8),
    reservedOutputTokens: limbs(10),
    reservedCostNano: limbs(12),
  };
}

export function writeCalendarRecord(record: CalendarRecord): Buffer {
  return packDoubles([
    Number(record.requests),
    Number(record.reservedRequests),
    ...limbsOf(record.inputTokens),
    ...limbsOf(record.outputTokens),
    ...limbsOf(record.costNano),
    ...limbsOf(record.reservedInputTokens),
    ...limbsOf(record.reservedOutputTokens),
    ...limbsOf(record.reservedCostNano),
  ]);
}

/** Settled + reserved, and the reserved part, of one metric. */
export function metricOf(
  record: CalendarRecord,
  metric: Metric,
): { readonly taken: bigint; readonly reserved: bigint } {
  switch (metric) {
    case 'requests':
      return { taken: record.requests, reserved: record.reservedRequests };
    case 'tokens':
      return {
        taken: record.inputTokens + record.outputTokens,
        reserved: record.reservedInputTokens + record.reservedOutputTokens,
      };
    case 'input_tokens':
      return { taken: record.inputTokens, reserved: record.reservedInputTokens };
    case 'output_tokens':
      return { taken: record.outputTokens, reserved: record.reservedOutputTokens };
    case 'cost':
      return { taken: record.costNano, reserved: record.reservedCostNano };
    case 'concurrency':
      throw new RangeError('concurrency has no calendar record');
  }
}

/** What a sliding window counts at an instant. Layout and rules: lua/includes/ring.lua. */
export function readSlidingSum(value: Buffer | null, window: SlidingWindow, nowMs: number): number {
  if (value === null) return 0;
  const { widthMs, parts } = slidingShapes[window];
  const [, last = 0, , ...counts] = unpackDoubles(value, 0);
  const index = Math.floor(nowMs / widthMs);
  let sum = 0;
  for (let bucket = last - parts; bucket <= last; bucket += 1) {
    const expired = bucket < index - parts;
    if (!expired) sum += counts[bucket % (parts + 1)] ?? 0;
  }
  return sum;
}
