/**
 * Money is integers from end to end: nano (1e-9) of the enterprise's currency for budgets and counters,
 * pico (1e-12) for exact costs, because a price per million tokens with six decimals is a whole number of pico per token.
 */
export const nanoPerUnit = 1_000_000_000n;
export const picoPerNano = 1_000n;
export const picoPerUnit = nanoPerUnit * picoPerNano;

/** Rounds up: a budget is never charged less than the cost. Costs are never negative here; adjustments may be. */
export function nanoFromPico(pico: bigint): bigint {
  const quotient = pico / picoPerNano;
  return pico > 0n && pico % picoPerNano !== 0n ? quotient + 1n : quotient;
}

/**
 * Reads a decimal such as `"12.5"` as an integer with `decimals` digits after the point.
 *
 * @throws RangeError with the reason when the text is not a plain decimal or has too many decimals.
 */
export function parseDecimal(text: string, decimals: number): bigint {
  const match = /^(-?)(\d{1,24})(?:\.(\d+))?$/.exec(text);
  if (!match) throw new RangeError('must be a plain decimal number such as 12.50');
  const [, sign, whole = '0', fraction = ''] = match;
  const significant = fraction.replace(/0+$/, '');
  if (significant.length > decimals) {
    throw new RangeError(`must have at most ${decimals} decimals`);
  }
  const value = BigInt(whole + significant.padEnd(decimals, '0'));
  return sign ? -value : value;
}

/** Writes an integer with `decimals` implied digits as a decimal, with at least `minDecimals` of them shown. */
export function formatDecimal(value: bigint, decimals: number, minDecimals = 0): string {
  const sign = value < 0n ? '-' : '';
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0');
  const whole = decimals === 0 ? digits : digits.slice(0, -decimals);
  const fraction = decimals === 0 ? '' : digits.slice(-decimals);
  const shown = fraction.replace(/0+$/, '').padEnd(minDecimals, '0');
  return shown === '' ? sign + whole : `${sign}${whole}.${shown}`;
}

/** Currency units as a decimal text → nano. Up to nine decimals. */
export const parseNano = (text: string): bigint => parseDecimal(text, 9);
/** Nano → currency units as a decimal text, at least two decimals. Exact. */
export const formatNano = (nano: bigint): string => formatDecimal(nano, 9, 2);
/** Pico → currency units as a decimal text, at least two decimals. Exact. */
export const formatPico = (pico: bigint): string => formatDecimal(pico, 12, 2);

/** Price per million tokens as a decimal text → pico per token. Up to six decimals, so that the result is whole. */
export const picoPerTokenFromPerMillion = (text: string): bigint => parseDecimal(text, 6);
/** The reverse of {@link picoPerTokenFromPerMillion}. */
export const perMillionFromPicoPerToken = (pico: bigint): string => formatDecimal(pico, 6, 2);
