/**
 * Exact integers across the border to Lua, whose numbers are doubles: an amount is two limbs, high × 1e9 + low with
 * 0 ≤ low < 1e9 (see lua/includes/limbs.lua).
 */
const limb = 1_000_000_000;
const bigLimb = 1_000_000_000n;

const safeMax = BigInt(Number.MAX_SAFE_INTEGER);
/** With a high limb below this, both together are a safe integer. */
const safeHighEnd = Math.floor(Number.MAX_SAFE_INTEGER / limb);

export type Limbs = readonly [high: number, low: number];

export function limbsOf(amount: bigint): Limbs {
  // Nearly all amounts: arithmetic with big integers is many times slower.
  if (amount >= 0n && amount <= safeMax) return limbsOfCount(Number(amount));
  let high = amount / bigLimb;
  let low = amount % bigLimb;
  if (low < 0n) {
    high -= 1n;
    low += bigLimb;
  }
  return [Number(high), Number(low)];
}

/** For counts that are safe integers already. */
export function limbsOfCount(count: number): Limbs {
  const high = Math.floor(count / limb);
  return [high, count - high * limb];
}

export function fromLimbs(high: number, low: number): bigint {
  if (high >= 0 && high < safeHighEnd) return BigInt(high * limb + low);
  return BigInt(high) * bigLimb + BigInt(low);
}

/** Numbers as the scripts read them with `struct.unpack('<ddd…')`. */
export function packDoubles(numbers: readonly number[]): Buffer {
  const buffer = Buffer.allocUnsafe(numbers.length * 8);
  for (let index = 0; index < numbers.length; index += 1) {
    buffer.writeDoubleLE(numbers[index] ?? 0, index * 8);
  }
  return buffer;
}

/** Reads the doubles that follow the first `skip` bytes of a reply. */
export function unpackDoubles(buffer: Buffer, skip: number): number[] {
  const numbers = new Array<number>(Math.floor(Math.max(0, buffer.length - skip) / 8));
  for (let index = 0; index < numbers.length; index += 1) {
    numbers[index] = buffer.readDoubleLE(skip + index * 8);
  }
  return numbers;
}
