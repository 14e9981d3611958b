import { describe, expect, it } from 'vitest';
import { costPicoOf, type PriceVersion, priceVersionAt, UnpricedTokenKindError } from './prices.js';
import { noTokens } from './token-usage.js';

const price: PriceVersion = {
  id: '0192f0c1-2f6b-7cc0-8000-000000000001',
  model: 'demo-small',
  currency: 'USD',
  from: '2026-01-01T00:00:00.000Z',
  to: '2026-06-01T00:00:00.000Z',
  picoPerToken: { input: '500000', cachedInput: '50000', output: '1500000' },
  picoPerRequest: '7',
};

describe('prices', () => {
  it('adds every kind once, and reasoning not besides output', () => {
    const usage = { ...noTokens, input: 100, cachedInput: 10, output: 20, reasoning: 15 };
    expect(costPicoOf(usage, price)).toBe(100n * 500_000n + 10n * 50_000n + 20n * 1_500_000n + 7n);
  });

  it('is exact where doubles are not', () => {
    const usage = { ...noTokens, input: Number.MAX_SAFE_INTEGER };
    expect(costPicoOf(usage, price)).toBe(9_007_199_254_740_991n * 500_000n + 7n);
  });

  it('never prices a token kind that has no price, but an explicit zero is free', () => {
    expect(() => costPicoOf({ ...noTokens, audioOutput: 1 }, price)).toThrow(
      UnpricedTokenKindError,
    );
    const free = { ...price, picoPerToken: { audioOutput: '0' }, picoPerRequest: '0' };
    expect(costPicoOf({ ...noTokens, audioOutput: 1 }, free)).toBe(0n);
  });

  it('finds the version in force: from inclusive, to exclusive', () => {
    const next = {
      ...price,
      id: '0192f0c1-2f6b-7cc0-8000-000000000002',
      from: price.to ?? '',
      to: null,
    };
    const versions = [price, next];
    const turn = Date.parse('2026-06-01T00:00:00.000Z');
    expect(priceVersionAt(versions, turn - 1)?.id).toBe(price.id);
    expect(priceVersionAt(versions, turn)?.id).toBe(next.id);
    expect(priceVersionAt(versions, Date.parse('2025-12-31T23:59:59.999Z'))).toBeUndefined();
  });
});
