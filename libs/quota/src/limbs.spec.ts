import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromLimbs, limbsOf, limbsOfCount, packDoubles, unpackDoubles } from './limbs.js';

describe('limbs', () => {
  it('hold every amount up to 9e18, negative ones too, exactly', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -9n * 10n ** 18n, max: 9n * 10n ** 18n }), (amount) => {
        const [high, low] = limbsOf(amount);
        expect(low).toBeGreaterThanOrEqual(0);
        expect(low).toBeLessThan(1e9);
        const [storedHigh = 0, storedLow = 0] = unpackDoubles(packDoubles([high, low]), 0);
        expect(fromLimbs(storedHigh, storedLow)).toBe(amount);
      }),
    );
  });

  it('are exact for counts that are safe integers, also next to a whole number of limbs', () => {
    const nextToLimbs = fc
      .tuple(fc.integer({ min: 1, max: 9_007_199 }), fc.integer({ min: -2, max: 2 }))
      .map(([limbs, beside]) => limbs * 1e9 + beside);
    fc.assert(
      fc.property(fc.oneof(fc.maxSafeNat(), nextToLimbs), (count) => {
        const high = BigInt(count) / 1_000_000_000n;
        const low = BigInt(count) % 1_000_000_000n;
        expect(limbsOfCount(count)).toEqual([Number(high), Number(low)]);
        expect(limbsOf(BigInt(count))).toEqual([Number(high), Number(low)]);
        expect(fromLimbs(Number(high), Number(low))).toBe(BigInt(count));
      }),
    );
  });
});
