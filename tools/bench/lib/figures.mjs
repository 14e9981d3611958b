/**
 * The q-quantile by the nearest rank: a value that was measured, never one in between.
 *
 * @param {readonly number[]} values in any order, at least one
 * @param {number} q in (0, 1]
 */
export function quantile(values, q) {
  if (values.length === 0) throw new RangeError('no values were measured');
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)];
}

/** To a tenth, as milliseconds are reported. */
export function tenth(value) {
  return Math.round(value * 10) / 10;
}

/** Whole numbers with thousands separated, for people. */
export function grouped(value) {
  return Math.round(value).toLocaleString('en-US');
}

/** A stream of numbers in [0, 1) that is the same for the same seed (mulberry32). */
export function seededRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
