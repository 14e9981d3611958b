import type { BytePairEncoder } from './byte-pair-encoder.js';

/** Together about 6,000 characters: at most 6 ms for the costliest text, cold. */
const WINDOWS = 32;
const WINDOW_CHARS = 192;
/** Three standard errors above the mean, and a tenth more. */
const STANDARD_ERRORS = 3;
const MARGIN = 1.1;
/** No token is shorter than a byte, and no UTF-16 unit longer than three. */
const TOKENS_PER_CHAR_MAX = 3;

/**
 * Tokens of long texts from a stratified random sample, erring high: windows at places that a
 * sender cannot foresee, one per stratum, so that a dense part weighs what it is. Windows cut
 * words, which adds to the count. Bounded time, whatever the length.
 * @param random in [0, 1)
 */
export function estimateTokens(
  encoder: BytePairEncoder,
  texts: readonly string[],
  random: () => number,
): number {
  const chars = texts.reduce((sum, text) => sum + text.length, 0);
  if (chars === 0) return 0;
  const stratum = chars / WINDOWS;
  const rates: number[] = [];
  let textIndex = 0;
  let textStart = 0;
  for (let i = 0; i < WINDOWS; i++) {
    const room = Math.max(0, stratum - WINDOW_CHARS);
    const at = Math.min(chars - 1, Math.floor(stratum * i + room * random()));
    while (textStart + texts[textIndex]!.length <= at) textStart += texts[textIndex++]!.length;
    const from = at - textStart;
    const window = texts[textIndex]!.slice(from, from + WINDOW_CHARS);
    rates.push(encoder.count(window) / window.length);
  }
  const mean = rates.reduce((sum, rate) => sum + rate, 0) / WINDOWS;
  const variance = rates.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / (WINDOWS - 1);
  const rate = (mean + STANDARD_ERRORS * Math.sqrt(variance / WINDOWS)) * MARGIN;
  // Every text ends a token of its own.
  return Math.ceil(Math.min(rate, TOKENS_PER_CHAR_MAX) * chars) + texts.length;
}
