import { expect, it } from 'vitest';
import { currentPrice, isFarOff, sampleCost } from './prepare-prices.js';
import { pricesOf, priceValuesOf } from './price-form.js';

const version = (from: string, to: string | null) => ({
  id: from,
  currency: 'USD',
  from,
  to,
  perMillionTokens: {},
  perRequest: '0',
});

it('the sample call costs exactly what its tokens cost', () => {
  expect(sampleCost('2.50', '10')).toBe('0.0075');
  expect(sampleCost('0.000001', '0.000001')).toBe('0.0000000015');
  expect(sampleCost('2.5', '')).toBeNull();
  expect(sampleCost('2.5000001', '1')).toBeNull();
});

it('a slip of the point is noticed, a change of price is not', () => {
  expect(isFarOff('2.50', '25.0')).toBe(true);
  expect(isFarOff('2.50', '0.25')).toBe(true);
  expect(isFarOff('2.50', '24.99')).toBe(false);
  expect(isFarOff('2.50', '0')).toBe(true);
  expect(isFarOff(undefined, '99')).toBe(false);
});

it('the price in force is neither past nor planned', () => {
  const now = Date.parse('2026-11-15T00:00:00Z');
  const prices = [
    version('2026-01-01T00:00:00Z', '2026-11-15T00:00:00Z'),
    version('2026-11-15T00:00:00Z', '2026-12-01T00:00:00Z'),
    version('2026-12-01T00:00:00Z', null),
  ];
  expect(currentPrice(prices, now)?.id).toBe('2026-11-15T00:00:00Z');
  expect(currentPrice([], now)).toBeNull();
});

it('an empty price is left out, but for cached input, which costs as input', () => {
  expect(pricesOf({ ...priceValuesOf(null), input: '2', output: '8' })).toEqual({
    input: '2',
    cachedInput: '2',
    output: '8',
  });
  expect(
    pricesOf({
      ...priceValuesOf(null),
      input: '2',
      output: '8',
      cachedInput: '1',
      cacheWrite: '3',
    }),
  ).toEqual({ input: '2', cachedInput: '1', output: '8', cacheWrite: '3' });
});
