import { parseDecimal, formatDecimal } from '@weir/domain';
import type { PriceRow } from '../../api/types.js';

export type PriceState = 'current' | 'future' | 'past';

export function priceState({ from, to }: Pick<PriceRow, 'from' | 'to'>, nowMs: number): PriceState {
  if (Date.parse(from) > nowMs) return 'future';
  return to !== null && Date.parse(to) <= nowMs ? 'past' : 'current';
}

/** The version in force, or null. */
export function currentPrice(prices: readonly PriceRow[], nowMs: number): PriceRow | null {
  return prices.find((price) => priceState(price, nowMs) === 'current') ?? null;
}

/** A price per million tokens as the form takes it: up to six decimals. */
export function isPerMillion(text: string): boolean {
  return /^\d{1,12}(\.\d{1,6})?$/.test(text);
}

/** The call that a price is illustrated with. */
export const sampleCall = { inputTokens: 1_000n, outputTokens: 500n } as const;

/** Exact cost of {@link sampleCall} in currency units, or null while a price cannot be read. */
export function sampleCost(input: string, output: string): string | null {
  if (!isPerMillion(input) || !isPerMillion(output)) return null;
  // Six decimals of a price per million are pico per token.
  const pico =
    parseDecimal(input, 6) * sampleCall.inputTokens +
    parseDecimal(output, 6) * sampleCall.outputTokens;
  return formatDecimal(pico, 12, 2);
}

/** Whether a price is ten times the one before or more, or a tenth or less: then a slip of the point is likely. */
export function isFarOff(before: string | undefined, now: string): boolean {
  if (before === undefined || !isPerMillion(now)) return false;
  const [old, next] = [parseDecimal(before, 6), parseDecimal(now, 6)];
  if (old === 0n || next === 0n) return old !== next;
  return next >= old * 10n || next * 10n <= old;
}
