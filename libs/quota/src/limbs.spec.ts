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

  it('agree for counts that are safe integers', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (count) => {
        expect(limbsOfCount(count)).toEqual(limbsOf(BigInt(count)));
      }),
    );
  });
});
