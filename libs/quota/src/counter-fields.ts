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

/** One scope, period and model: what is settled, and beside it what is reserved by open leases. */
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
    reservedRequests: BigInt(at[0] ?? 0),
    reservedInputTokens: limbs(1),
    reservedOutputTokens: limbs(3),
    reservedCostNano: limbs(5),
    requests: BigInt(at[7] ?? 0),
    inputTokens: limbs(8),
    outputTokens: limbs(10),
    costNano: limbs(12),
  };
}

export function writeCalendarRecord(record: CalendarRecord): Buffer {
  return packDoubles([
    Number(record.reservedRequests),
    ...limbsOf(record.reservedInputTokens),
    ...limbsOf(record.reservedOutputTokens),
    ...limbsOf(record.reservedCostNano),
    Number(record.requests),
    ...limbsOf(record.inputTokens),
    ...limbsOf(record.outputTokens),
    ...limbsOf(record.costNano),
  ]);
}

/** What is used (settled) and what is reserved of one metric. */
export function metricOf(
  record: CalendarRecord,
  metric: Metric,
): { readonly used: bigint; readonly reserved: bigint } {
  switch (metric) {
    case 'requests':
      return { used: record.requests, reserved: record.reservedRequests };
    case 'tokens':
      return {
        used: record.inputTokens + record.outputTokens,
        reserved: record.reservedInputTokens + record.reservedOutputTokens,
      };
    case 'input_tokens':
      return { used: record.inputTokens, reserved: record.reservedInputTokens };
    case 'output_tokens':
      return { used: record.outputTokens, reserved: record.reservedOutputTokens };
    case 'cost':
      return { used: record.costNano, reserved: record.reservedCostNano };
    case 'concurrency':
      throw new RangeError('concurrency has no calendar record');
  }
}

/** What a sliding window counts at an instant. Layout and rules: lua/includes/ring.lua. */
export function readSlidingSum(value: Buffer | null, window: SlidingWindow, nowMs: number): number {
  if (value === null) return 0;
  const { widthMs, parts } = slidingShapes[window];
  const oldest = Math.floor(nowMs / widthMs) - parts;
  let sum = 0;
  for (const [bucket, count] of readRing(value, window).counts) if (bucket >= oldest) sum += count;
  return sum;
}

/** A sliding window as it is stored: its total, and the count of each sub-bucket by number, newest first. */
export function readRing(
  value: Buffer,
  window: SlidingWindow,
): {
  readonly total: number;
  readonly counts: readonly (readonly [bucket: number, count: number])[];
} {
  const [total = 0, newest = 0, last = 0] = unpackDoubles(value, 0);
  const { parts } = slidingShapes[window];
  const bytes = (value.length - 32) / parts;
  const older = Array.from({ length: parts }, (_, place) => {
    const at = 32 + place * bytes;
    return bytes === 4 ? value.readUInt32LE(at) : value.readDoubleLE(at);
  });
  return {
    total,
    counts: [newest, ...older].map((count, place) => [last - place, count] as const),
  };
}

/** Calls in flight. Layout: lua/includes/slot.lua. */
export function readInFlight(value: Buffer | null): number {
  return value === null ? 0 : value.readDoubleLE(0);
}
