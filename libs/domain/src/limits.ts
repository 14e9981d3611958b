import { z } from 'zod';
import { formatDecimal, formatNano, parseDecimal, parseNano } from './money.js';

export const metrics = [
  'requests',
  'tokens',
  'input_tokens',
  'output_tokens',
  'cost',
  'concurrency',
] as const;
export type Metric = (typeof metrics)[number];

export const slidingWindows = ['second', 'minute', 'hour'] as const;
export const calendarWindows = ['day', 'week', 'month', 'total'] as const;
export type SlidingWindow = (typeof slidingWindows)[number];
export type CalendarWindow = (typeof calendarWindows)[number];
export type Window = SlidingWindow | CalendarWindow;

export const limitModes = ['hard', 'soft', 'shadow'] as const;
/** `hard` refuses, `soft` admits, flags and alerts, `shadow` only counts what would have been refused. */
export type LimitMode = (typeof limitModes)[number];

export function isCalendarWindow(window: Window | null): window is CalendarWindow {
  return window !== null && (calendarWindows as readonly string[]).includes(window);
}

/** The largest amount: what a signed 64-bit integer holds with room to add one reservation. */
export const maxAmount = 9_000_000_000_000_000_000n;

/**
 * One limit on one scope. Amounts are integers in the metric's unit: requests, tokens, calls in flight,
 * nano-currency for cost. `null` is no own limit, `0n` blocks everything; the two are never mixed up.
 */
export type Limit = {
  readonly id: string;
  readonly metric: Metric;
  /** null for concurrency only. */
  readonly window: Window | null;
  readonly amount: bigint | null;
  /** One model alias, or null for all. */
  readonly model: string | null;
  readonly mode: LimitMode;
};

/** The JSON form of {@link Limit}: the amount as an integer text in the metric's unit. */
export const limitDocumentSchema = z.strictObject({
  id: z.uuid(),
  metric: z.enum(metrics),
  window: z.enum([...slidingWindows, ...calendarWindows]).nullable(),
  amount: z
    .string()
    .regex(/^\d{1,19}$/)
    .nullable(),
  model: z.string().min(1).nullable(),
  mode: z.enum(limitModes),
});
export type LimitDocument = z.infer<typeof limitDocumentSchema>;

export function limitFromDocument(document: LimitDocument): Limit {
  return { ...document, amount: document.amount === null ? null : BigInt(document.amount) };
}

export function limitToDocument(limit: Limit): LimitDocument {
  return { ...limit, amount: limit.amount === null ? null : limit.amount.toString() };
}

/**
 * Why a metric and window cannot go together, or null when they can.
 * Cost has calendar windows only: money is a budget, not a rate.
 */
export function windowFault(metric: Metric, window: Window | null): string | null {
  if (metric === 'concurrency') {
    return window === null ? null : 'a concurrency limit has no window: set window to null';
  }
  if (window === null) return `a limit on ${metric} needs a window`;
  if (metric === 'cost' && !isCalendarWindow(window)) {
    return 'a cost limit needs a calendar window: day, week, month or total';
  }
  if (metric !== 'requests' && window === 'second') {
    return 'a token limit needs a window of at least a minute';
  }
  return null;
}

/**
 * Reads an amount as a person or the API writes it: currency units with up to nine decimals for cost,
 * a whole number for all other metrics.
 *
 * @throws RangeError with the reason.
 */
export function parseAmount(metric: Metric, text: string): bigint {
  const amount = metric === 'cost' ? parseNano(text) : parseDecimal(text, 0);
  if (amount < 0n) throw new RangeError('must not be negative');
  if (amount > maxAmount) throw new RangeError('is larger than any limit can be');
  return amount;
}

/** The reverse of {@link parseAmount}; what one writes, the other reads back to the same integer. */
export function formatAmount(metric: Metric, amount: bigint): string {
  return metric === 'cost' ? formatNano(amount) : formatDecimal(amount, 0);
}
