import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  basisPoints,
  compactCount,
  compareText,
  currencySign,
  exactMoney,
  groupedCount,
  percentText,
  roundedMoney,
  scaled,
  unscaled,
} from './decimal.js';

describe('money for display', () => {
  it('is rounded half up to fixed decimals and grouped', () => {
    expect(roundedMoney('1234567.00005', 4)).toEqual({ tiny: false, text: '1,234,567.0001' });
    expect(roundedMoney('0.99995', 4)).toEqual({ tiny: false, text: '1.0000' });
    expect(roundedMoney('12.34', 4)).toEqual({ tiny: false, text: '12.3400' });
    expect(roundedMoney('-2.5', 2)).toEqual({ tiny: false, text: '-2.50' });
  });

  it('is never zero when it is not nothing', () => {
    expect(roundedMoney('0.000000000001', 4)).toEqual({ tiny: true, text: '0.0001' });
    expect(roundedMoney('0.00009999', 4)).toEqual({ tiny: true, text: '0.0001' });
    expect(roundedMoney('0.0001', 4)).toEqual({ tiny: false, text: '0.0001' });
    expect(roundedMoney('0', 4)).toEqual({ tiny: false, text: '0.0000' });
  });

  it('keeps digits that a double would lose', () => {
    expect(exactMoney('9007199254740993.000000000001')).toBe('9,007,199,254,740,993.000000000001');
    expect(exactMoney('-1234.5')).toBe('-1,234.50');
    expect(exactMoney('7', 12)).toBe('7.000000000000');
  });

  it('reads back to the same value whatever the amount', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), (pico) => {
        expect(scaled(unscaled(pico))).toBe(pico);
        expect(scaled(exactMoney(unscaled(pico)).replaceAll(',', ''))).toBe(pico);
      }),
    );
  });

  it('is off by at most half a step after rounding', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 10n ** 8n, max: 10n ** 26n }), (pico) => {
        const shown = scaled(roundedMoney(unscaled(pico), 4).text.replaceAll(',', ''));
        const off = shown > pico ? shown - pico : pico - shown;
        expect(off <= 5n * 10n ** 7n).toBe(true);
      }),
    );
  });

  it('has its currency’s sign, or its code where there is none', () => {
    expect(currencySign('USD', 'zh-CN')).toBe('$');
    expect(currencySign('CNY', 'en')).toBe('¥');
    expect(currencySign('CHF', 'en')).toBe('CHF ');
  });
});

describe('counts', () => {
  it('are grouped at any length', () => {
    expect(groupedCount('123456789012345678901')).toBe('123,456,789,012,345,678,901');
    expect(groupedCount('-1234')).toBe('-1,234');
    expect(groupedCount('999')).toBe('999');
  });

  it('are shortened downwards', () => {
    expect(compactCount('999')).toBe('999');
    expect(compactCount('1000')).toBe('1k');
    expect(compactCount('1999')).toBe('1.9k');
    expect(compactCount('128000')).toBe('128k');
    expect(compactCount('1500000')).toBe('1.5M');
    expect(compactCount('2000000000')).toBe('2B');
  });

  it('are ordered by value, not by text', () => {
    expect(['10', '9', '100.5', '100.50', '0'].toSorted(compareText)).toEqual([
      '0',
      '9',
      '10',
      '100.5',
      '100.50',
    ]);
  });
});

describe('shares', () => {
  it('reach 100 % only when the whole is reached', () => {
    expect(basisPoints(scaled('99.999999'), scaled('100'))).toBe(9_999);
    expect(percentText(9_999, false)).toBe('99.9 %');
    expect(percentText(basisPoints(scaled('100'), scaled('100')) ?? -1, false)).toBe('100.0 %');
  });

  it('are not zero when something was used', () => {
    expect(percentText(basisPoints(1n, 10n ** 12n) ?? -1, false)).toBe('<0.1 %');
    expect(percentText(0, true)).toBe('0 %');
  });

  it('do not exist without a whole', () => {
    expect(basisPoints(5n, 0n)).toBeNull();
  });
});
