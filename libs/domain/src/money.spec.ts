import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatDecimal,
  formatNano,
  nanoFromPico,
  parseDecimal,
  parseNano,
  perMillionFromPicoPerToken,
  picoPerTokenFromPerMillion,
} from './money.js';

describe('money', () => {
  it('reads back every amount that it writes, to the last digit', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 23n), max: 10n ** 23n }),
        fc.integer({ min: 0, max: 12 }),
        fc.integer({ min: 0, max: 4 }),
        (value, decimals, minDecimals) => {
          expect(
            parseDecimal(
              formatDecimal(value, decimals, minDecimals),
              Math.max(decimals, minDecimals),
            ),
          ).toBe(value * 10n ** BigInt(Math.max(minDecimals - decimals, 0)));
        },
      ),
    );
  });

  it('keeps amounts beyond what a double holds', () => {
    for (const text of ['90071992547409.93', '9000000000.000000001', '0.000000001']) {
      expect(formatNano(parseNano(text))).toBe(text);
    }
    expect(formatNano(parseNano('100'))).toBe('100.00');
  });

  it('refuses what is not a plain decimal, and decimals that it would have to drop', () => {
    for (const text of ['', '1e3', 'NaN', 'Infinity', '1,5', ' 1', '0x10', '--1', '.5', '1.']) {
      expect(() => parseNano(text), text).toThrow(/plain decimal/);
    }
    expect(() => parseNano('0.0000000001')).toThrow(/at most 9 decimals/);
    expect(parseNano('0.5000000000')).toBe(500_000_000n);
  });

  it('rounds a cost up to nano, so that a budget is never charged less', () => {
    expect(nanoFromPico(0n)).toBe(0n);
    expect(nanoFromPico(1n)).toBe(1n);
    expect(nanoFromPico(1_000n)).toBe(1n);
    expect(nanoFromPico(1_001n)).toBe(2n);
    expect(nanoFromPico(-1_001n)).toBe(-1n);
  });

  it('turns a price per million tokens into whole pico per token', () => {
    expect(picoPerTokenFromPerMillion('2.50')).toBe(2_500_000n);
    expect(picoPerTokenFromPerMillion('0.000001')).toBe(1n);
    expect(() => picoPerTokenFromPerMillion('0.0000001')).toThrow(/at most 6 decimals/);
    expect(perMillionFromPicoPerToken(2_500_000n)).toBe('2.50');
  });
});
