/**
 * Exact integers across the border to Lua, whose numbers are doubles: an amount is two limbs, high × 1e9 + low with
 * 0 ≤ low < 1e9 (see lua/includes/limbs.lua).
 */
const limb = 1_000_000_000;
const bigLimb = 1_000_000_000n;

export type Limbs = readonly [high: number, low: number];

export function limbsOf(amount: bigint): Limbs {
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
  return high === 0 ? BigInt(low) : BigInt(high) * bigLimb + BigInt(low);
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
  const numbers: number[] = [];
  for (let at = skip; at + 8 <= buffer.length; at += 8) numbers.push(buffer.readDoubleLE(at));
  return numbers;
}
