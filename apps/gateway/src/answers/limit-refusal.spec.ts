import type { Violation } from '@weir/quota';
import { describe, expect, it } from 'vitest';
import { errorBody, errorHeaders } from './error-body.js';
import { limitRefusal } from './limit-refusal.js';

const budget: Violation = {
  scope: { level: 'department', id: '0190a0a0-0000-7000-8000-000000000001', name: 'Marketing' },
  limitId: '0190a0a0-0000-7000-8000-000000000002',
  metric: 'cost',
  window: 'month',
  model: null,
  mode: 'hard',
  limit: 12_500_000_000n,
  used: 12_000_000_000n,
  reserved: 400_000_000n,
  requested: 200_000_000n,
  resetsAtMs: Date.parse('2026-12-01T00:00:00Z'),
  retryAfterMs: null,
  impossible: false,
};
const rate: Violation = {
  ...budget,
  scope: { level: 'key', id: '0190a0a0-0000-7000-8000-000000000003', name: 'ci' },
  metric: 'tokens',
  window: 'minute',
  limit: 1_000n,
  used: 600n,
  reserved: 300n,
  requested: 200n,
  resetsAtMs: null,
  retryAfterMs: 4_200,
};
const context = { currency: 'EUR', timeZone: 'Europe/Berlin', fittingCap: null };
const refuse = (violations: Violation[], retryAfterMs: number | null = null) =>
  limitRefusal({ outcome: 'refused', violations, retryAfterMs }, context);

describe('limitRefusal', () => {
  it('names the level, limit, use, reservations and reset of an exhausted budget, in currency units', () => {
    const error = refuse([budget]);
    expect(error.code).toBe('insufficient_quota');
    expect(error.message).toBe(
      'The department "Marketing" has used up its budget: limit 12.50 EUR a month, 12.00 EUR used, 0.40 EUR reserved by running calls, 0.20 EUR asked for by this call. It resets at 2026-12-01T00:00:00.000Z (Europe/Berlin).',
    );
    expect(errorBody(error, 'req-1', 'openai')).toMatchObject({
      error: { type: 'insufficient_quota', code: 'insufficient_quota' },
      weir: {
        request_id: 'req-1',
        level: 'department',
        name: 'Marketing',
        limit: '12.50',
        used: '12.00',
        reserved: '0.40',
        requested: '0.20',
        currency: 'EUR',
        resets_at: '2026-12-01T00:00:00.000Z',
      },
    });
  });

  it('tells SDKs not to try again on a budget, and gives no retry-after', () => {
    const headers = errorHeaders(refuse([budget]));
    expect(headers['x-should-retry']).toBe('false');
    expect(headers).not.toHaveProperty('retry-after');
    expect(headers).not.toHaveProperty('retry-after-ms');
  });

  it('gives a rate refusal a whole number of seconds, at least one, and its type', () => {
    const error = refuse([rate], 4_200);
    expect(error.code).toBe('rate_limit_exceeded');
    expect(errorHeaders(error)).toMatchObject({ 'retry-after': '5', 'retry-after-ms': '4200' });
    expect(errorBody(error, 'r', 'openai')).toMatchObject({ error: { type: 'tokens' } });
    expect(errorHeaders(refuse([{ ...rate, metric: 'requests' }], 3))['retry-after']).toBe('1');
  });

  it('names the budget when a rate and a budget are both in the way: waiting would not help', () => {
    expect(refuse([rate, budget], null).code).toBe('insufficient_quota');
  });

  it('answers 400 with both numbers to what the limit could never give', () => {
    const error = limitRefusal(
      {
        outcome: 'refused',
        violations: [{ ...rate, impossible: true, requested: 1_200n, retryAfterMs: null }],
        retryAfterMs: null,
      },
      { ...context, fittingCap: 700 },
    );
    expect(error.httpStatus).toBe(400);
    expect(error.message).toContain('1,200 tokens');
    expect(error.message).toContain('1,000 tokens');
    expect(error.message).toContain('max_tokens to 700');
    expect(errorHeaders(error)).not.toHaveProperty('retry-after');
  });

  it('says that a limit of 0 blocks', () => {
    const error = refuse([{ ...budget, limit: 0n, impossible: true }]);
    expect(error.code).toBe('insufficient_quota');
    expect(error.message).toContain('is blocked');
  });
});
