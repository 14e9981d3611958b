import { describe, expect, it } from 'vitest';
import {
  formatAmount,
  limitDocumentSchema,
  limitFromDocument,
  limitToDocument,
  parseAmount,
  windowFault,
} from './limits.js';

describe('limits', () => {
  it('round-trips large amounts exactly', () => {
    for (const amount of [0n, 10n ** 14n, 10n ** 15n, 2n ** 53n - 1n, 2n ** 53n + 1n]) {
      for (const metric of ['tokens', 'cost'] as const) {
        expect(parseAmount(metric, formatAmount(metric, amount))).toBe(amount);
      }
      const limit = {
        id: '0192f0c1-2f6b-7cc0-8000-000000000001',
        metric: 'tokens',
        window: 'month',
        amount,
        model: null,
        mode: 'hard',
      } as const;
      const json = JSON.stringify(limitToDocument(limit));
      expect(limitFromDocument(limitDocumentSchema.parse(JSON.parse(json)))).toEqual(limit);
    }
  });

  it('keeps no limit and block apart', () => {
    const base = {
      id: '0192f0c1-2f6b-7cc0-8000-000000000001',
      metric: 'cost',
      window: 'month',
      model: null,
      mode: 'hard',
    } as const;
    expect(limitFromDocument({ ...base, amount: null }).amount).toBeNull();
    expect(limitFromDocument({ ...base, amount: '0' }).amount).toBe(0n);
  });

  it('refuses amounts that no limit can have', () => {
    for (const text of ['NaN', 'Infinity', '-1', '1e9', '']) {
      expect(() => parseAmount('tokens', text), text).toThrow(RangeError);
    }
    expect(() => parseAmount('tokens', '1.5')).toThrow(/at most 0 decimals/);
    expect(() => parseAmount('cost', '9999999999999999')).toThrow(/larger than any limit/);
  });

  it('says why a metric and a window do not go together', () => {
    expect(windowFault('concurrency', null)).toBeNull();
    expect(windowFault('concurrency', 'minute')).toMatch(/no window/);
    expect(windowFault('cost', 'minute')).toMatch(/calendar window/);
    expect(windowFault('tokens', null)).toMatch(/needs a window/);
    expect(windowFault('tokens', 'second')).toMatch(/at least a minute/);
    expect(windowFault('requests', 'second')).toBeNull();
    expect(windowFault('cost', 'month')).toBeNull();
  });
});
