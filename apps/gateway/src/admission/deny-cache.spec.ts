import type { CallerPolicy } from '@weir/domain';
import type { Reservation, Violation } from '@weir/quota';
import { beforeEach, describe, expect, it } from 'vitest';
import { DenyCache } from './deny-cache.js';

const violation: Violation = {
  scope: { level: 'user', id: '0190a0a0-0000-7000-8000-000000000001', name: 'Ada' },
  limitId: '0190a0a0-0000-7000-8000-000000000002',
  metric: 'requests',
  window: 'minute',
  model: null,
  mode: 'hard',
  limit: 60n,
  used: 60n,
  reserved: 0n,
  requested: 1n,
  resetsAtMs: null,
  retryAfterMs: 1_000,
  impossible: false,
};
const reserve: Reservation = {
  windowInputTokens: 100,
  windowOutputTokens: 50,
  budgetInputTokens: 100,
  budgetOutputTokens: 100,
  costNano: 500n,
};
const policy = (version = 1) => ({ key: { id: 'key' }, version }) as unknown as CallerPolicy;
const ask = (more: Partial<Reservation> = {}, model = 'small') => ({
  reserve: { ...reserve, ...more },
  model,
});

describe('DenyCache', () => {
  let now = 0;
  let cache: DenyCache;
  beforeEach(() => {
    now = 0;
    cache = new DenyCache(() => now);
  });
  const remember = (change: Partial<Violation>): void =>
    cache.remember(policy(), {
      outcome: 'refused',
      violations: [{ ...violation, ...change }],
      retryAfterMs: null,
    });

  it('repeats a refusal until its retry-after, which counts down, and not a moment longer', () => {
    remember({});
    now = 400;
    expect(cache.denialOf(policy(), ask())?.retryAfterMs).toBe(600);
    now = 1_000;
    expect(cache.denialOf(policy(), ask())).toBeNull();
  });

  it('remembers a long wait briefly, so that a storm does not reach the store, and tells the whole of it', () => {
    remember({ window: 'hour', retryAfterMs: 1_800_000 });
    now = 100;
    expect(cache.denialOf(policy(), null)).toMatchObject({
      retryAfterMs: 1_799_900,
      violations: [{ retryAfterMs: 1_799_900 }],
    });
    now = 250;
    expect(cache.denialOf(policy(), null)).toBeNull();
  });

  it('refuses before the body is read only what every call would meet', () => {
    remember({});
    expect(cache.denialOf(policy(), null)).not.toBeNull();
    remember({ model: 'small' });
    expect(cache.denialOf(policy(), null)).toBeNull();
    expect(cache.denialOf(policy(), ask())).not.toBeNull();
    expect(cache.denialOf(policy(), ask({}, 'large'))).toBeNull();
  });

  it('lets a call pass to the store that asks for less than the refused one', () => {
    remember({ metric: 'tokens', requested: 150n });
    expect(cache.denialOf(policy(), ask())).not.toBeNull();
    expect(cache.denialOf(policy(), ask({ windowOutputTokens: 49 }))).toBeNull();
  });

  it('forgets at the next version of the policy: a raised limit is in force at once', () => {
    remember({});
    expect(cache.denialOf(policy(2), ask())).toBeNull();
  });

  it('remembers a used-up budget shortly, but none that a settlement could give room back to', () => {
    remember({ metric: 'cost', window: 'month', requested: 500n, retryAfterMs: null });
    expect(cache.denialOf(policy(), ask())).toMatchObject({ retryAfterMs: null });
    now = 250;
    expect(cache.denialOf(policy(), ask())).toBeNull();
    remember({
      metric: 'cost',
      window: 'month',
      requested: 500n,
      retryAfterMs: null,
      reserved: 1n,
    });
    expect(cache.denialOf(policy(), ask())).toBeNull();
  });

  it('never remembers concurrency: a slot may be free the next moment', () => {
    remember({ metric: 'concurrency', window: null });
    expect(cache.denialOf(policy(), ask())).toBeNull();
  });
});
