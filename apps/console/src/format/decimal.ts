import { formatDecimal, parseDecimal } from '@weir/domain';

/** Digits after the point that money carries from the ledger. */
const picoDigits = 12;

const group = (digits: string) => digits.replace(/\B(?=(\d{3})+$)/g, ',');

/** The sign that a currency is written with in front of an amount, such as `$` or `¥`; its code when it has none. */
export function currencySign(currency: string, language: string): string {
  const parts = new Intl.NumberFormat(language, {
    style: 'currency',
    currency,
    currencyDisplay: 'narrowSymbol',
  }).formatToParts(0);
  const sign = parts.find((part) => part.type === 'currency')?.value ?? currency;
  return sign.length > 2 ? `${sign} ` : sign;
}

/** `1234567` → `1,234,567`, of any length. */
export function groupedCount(text: string): string {
  const value = BigInt(text);
  return (value < 0n ? '-' : '') + group((value < 0n ? -value : value).toString());
}

/**
 * A money text rounded half up (away from zero) to a fixed number of decimals, grouped, without a currency sign.
 * No double is involved. What would round to nothing is written as `<0.0001`, never as zero.
 */
export function roundedMoney(text: string, decimals: number): { tiny: boolean; text: string } {
  const pico = parseDecimal(text, picoDigits);
  const magnitude = pico < 0n ? -pico : pico;
  const step = 10n ** BigInt(picoDigits - decimals);
  if (magnitude > 0n && magnitude < step) {
    return { tiny: true, text: formatDecimal(pico < 0n ? -1n : 1n, decimals, decimals) };
  }
  const rounded = (magnitude + step / 2n) / step;
  const [whole = '0', fraction] = formatDecimal(rounded, decimals, decimals).split('.');
  const sign = pico < 0n && rounded > 0n ? '-' : '';
  return { tiny: false, text: sign + group(whole) + (fraction ? `.${fraction}` : '') };
}

/** A money text grouped but otherwise exact, with at least `minDecimals`: limits, and totals that must equal a file's. */
export function exactMoney(text: string, minDecimals = 2): string {
  const [whole = '0', fraction = ''] = formatDecimal(
    parseDecimal(text, picoDigits),
    picoDigits,
    minDecimals,
  ).split('.');
  const sign = whole.startsWith('-') ? '-' : '';
  return `${sign}${group(whole.replace('-', ''))}.${fraction}`;
}

/** Decimal texts as integers of one scale, so that they can be added and compared. */
export function scaled(text: string): bigint {
  return parseDecimal(text, picoDigits);
}

/** The reverse of {@link scaled}. */
export function unscaled(value: bigint): string {
  return formatDecimal(value, picoDigits);
}

/**
 * `part` of `whole` in hundredths of a percent, rounded down, so that 100 % is shown only when it is reached.
 * null where there is nothing to divide by.
 */
export function basisPoints(part: bigint, whole: bigint): number | null {
  if (whole <= 0n) return null;
  const points = (part * 10_000n) / whole;
  return Number(points > 10_000_000n ? 10_000_000n : points < 0n ? 0n : points);
}

/** Basis points as a percentage with one decimal; a share that is not nothing is never shown as 0. */
export function percentText(points: number, isZero: boolean): string {
  if (points < 10) return isZero ? '0 %' : '<0.1 %';
  const tenths = Math.floor(points / 10);
  return `${Math.floor(tenths / 10)}.${tenths % 10} %`;
}

/** `1532000` → `1.5M`. For axes and headings; exact figures stand beside it. Rounded down. */
export function compactCount(text: string): string {
  const value = BigInt(text);
  const magnitude = value < 0n ? -value : value;
  for (const [unit, size] of [
    ['T', 10n ** 12n],
    ['B', 10n ** 9n],
    ['M', 10n ** 6n],
    ['k', 10n ** 3n],
  ] as const) {
    if (magnitude >= size) {
      const tenths = (magnitude * 10n) / size;
      const fraction = tenths % 10n === 0n || tenths >= 1000n ? '' : `.${tenths % 10n}`;
      return `${value < 0n ? '-' : ''}${tenths / 10n}${fraction}${unit}`;
    }
  }
  return value.toString();
}

/** Orders decimal texts by value, for sorting. */
export function compareText(a: string, b: string): number {
  const [x, y] = [scaled(a), scaled(b)];
  return x === y ? 0 : x < y ? -1 : 1;
}
