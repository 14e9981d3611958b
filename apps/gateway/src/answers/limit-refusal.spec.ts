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
const context = {
  language: 'en' as const,
  currency: 'EUR',
  timeZone: 'Europe/Berlin',
  fittingCap: null,
};
const refuse = (violations: Violation[], retryAfterMs: number | null = null) =>
  limitRefusal({ outcome: 'refused', violations, retryAfterMs }, context);

describe('limitRefusal', () => {
  it('names the level, limit, use, reservations and reset of an exhausted budget, in currency units', () => {
    const error = refuse([budget]);
    expect(error.code).toBe('insufficient_quota');
    expect(error.message).toBe(
      'The department "Marketing" has used up its budget: limit 12.50 EUR a month, 12.00 EUR used, 0.40 EUR reserved by running calls, 0.20 EUR asked for by this call. It resets at 2026-12-01T00:00:00.000Z (Europe/Berlin).',
    );
    expect(errorBody(error, 'openai', { requestId: 'req-1', docsUrl: undefined })).toMatchObject({
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
    expect(errorBody(error, 'openai', { requestId: 'r', docsUrl: undefined })).toMatchObject({
      error: { type: 'tokens' },
    });
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

  it('speaks Chinese where asked to, and changes nothing that a program reads', () => {
    const inChinese = { ...context, language: 'zh' as const };
    const refused = (violation: Violation, retryAfterMs: number | null = null) =>
      ({ outcome: 'refused', violations: [violation], retryAfterMs }) as const;
    const chinese = limitRefusal(refused(budget), inChinese);
    expect(chinese.message).toBe(
      '部门“Marketing”的预算已用完：限额 每月 12.50 EUR，已用 12.00 EUR，运行中的调用预留 0.40 EUR，本次调用需要 0.20 EUR。将于 2026-12-01T00:00:00.000Z（Europe/Berlin）重置。',
    );
    expect(limitRefusal(refused(rate, 4_200), inChinese).message).toBe(
      'API 密钥“ci”已达到限额 每分钟 1,000 个 token：已用 600，运行中的调用预留 300，本次调用需要 200。请在 5 秒后重试。',
    );
    const impossible = refused({ ...rate, impossible: true, requested: 1_200n });
    expect(limitRefusal(impossible, { ...inChinese, fittingCap: 700 }).message).toBe(
      '本次调用可能需要 1,200 个 token，但API 密钥“ci”的限额为 每分钟 1,000 个 token，无法满足。将 max_tokens 设为不超过 700 即可。',
    );
    expect(limitRefusal(refused({ ...budget, limit: 0n }), inChinese).message).toContain(
      '已被停用',
    );
    for (const refusal of [refused(budget), refused(rate, 4_200), impossible]) {
      const english = limitRefusal(refusal, context);
      const other = limitRefusal(refusal, inChinese);
      expect({ code: other.code, details: other.details }).toEqual({
        code: english.code,
        details: english.details,
      });
    }
  });

  it('links to the page on its code where there is one, and nowhere else', () => {
    const error = refuse([budget]);
    const docsUrl = 'https://docs.example.com/errors';
    for (const dialect of ['openai', 'anthropic'] as const) {
      const body = errorBody(error, dialect, { requestId: 'r', docsUrl });
      expect(body).toMatchObject({
        error: { weir: { doc: `${docsUrl}#insufficient_quota` } },
        weir: { doc: `${docsUrl}#insufficient_quota` },
      });
      const without = errorBody(error, dialect, { requestId: 'r', docsUrl: undefined });
      expect(without['weir']).not.toHaveProperty('doc');
    }
  });
});
