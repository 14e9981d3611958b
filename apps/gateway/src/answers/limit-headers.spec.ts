import type { Remaining } from '@weir/quota';
import { describe, expect, it } from 'vitest';
import { addLimitHeaders, goDuration } from './limit-headers.js';

const base: Remaining = {
  scope: { level: 'user', id: '0190a0a0-0000-7000-8000-000000000001', name: 'Ada' },
  limitId: '0190a0a0-0000-7000-8000-000000000002',
  metric: 'requests',
  window: 'minute',
  model: null,
  limit: 60n,
  remaining: 59n,
  resetMs: 1_000,
};

function limitHeaders(remaining: readonly Remaining[]): Record<string, string> {
  const headers: Record<string, string> = {};
  addLimitHeaders(headers, remaining);
  return headers;
}

describe('limit headers', () => {
  it('shows the tightest limit of the path', () => {
    const headers = limitHeaders([base, { ...base, limit: 100n, remaining: 3n, resetMs: 58_200 }]);
    expect(headers).toMatchObject({
      'x-ratelimit-limit-requests': '100',
      'x-ratelimit-remaining-requests': '3',
      'x-ratelimit-reset-requests': '58.2s',
      'ratelimit-policy': '"requests";q=100;w=60',
      ratelimit: '"requests";r=3;t=59',
    });
  });

  it('says nothing where there is no rate limit: a monthly budget is none', () => {
    expect(limitHeaders([])).toEqual({});
    expect(limitHeaders([{ ...base, metric: 'tokens', window: 'month' }])).toEqual({});
  });

  it.each([
    [0, '0s'],
    [120, '120ms'],
    [6_000, '6s'],
    [60_500, '1m0.5s'],
    [3_600_000, '1h0m0s'],
  ])('writes %i ms as Go does: %s', (ms, text) => {
    expect(goDuration(ms)).toBe(text);
  });
});
