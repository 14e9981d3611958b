import { newId, type Metric, type Window } from '@weir/domain';
import type { Remaining, Reservation } from '@weir/quota';
import { describe, expect, it } from 'vitest';
import { leavesRoom } from './room.js';

const reserve: Reservation = {
  windowInputTokens: 10,
  windowOutputTokens: 20,
  budgetInputTokens: 10,
  budgetOutputTokens: 40,
  costNano: 700n,
};

function left(metric: Metric, window: Window | null, remaining: bigint, limit: bigint): Remaining {
  const scope = { level: 'user', id: newId(), name: 'Ada' } as const;
  return { scope, limitId: newId(), metric, window, model: null, limit, remaining, resetMs: null };
}

describe('leavesRoom', () => {
  it('is true where nothing is limited', () => {
    expect(leavesRoom([], reserve)).toBe(true);
  });

  it.each([
    ['requests', 'minute', 1n],
    ['tokens', 'minute', 30n],
    ['tokens', 'month', 50n],
    ['input_tokens', 'day', 10n],
    ['output_tokens', 'month', 40n],
    ['cost', 'month', 700n],
  ] as const)('needs as much again of %s per %s', (metric, window, asked) => {
    expect(leavesRoom([left(metric, window, asked, 1_000_000n)], reserve)).toBe(true);
    expect(leavesRoom([left(metric, window, asked - 1n, 1_000_000n)], reserve)).toBe(false);
  });

  it.each([
    [1n, 0n, false],
    [2n, 1n, true],
    [10n, 4n, false],
    [10n, 5n, true],
    [11n, 5n, false],
  ])('of %d slots, leaves room with %d free: %s', (limit, free, room) => {
    expect(leavesRoom([left('concurrency', null, free, limit)], reserve)).toBe(room);
  });

  it('asks every limit', () => {
    const roomy = left('tokens', 'month', 1_000n, 2_000n);
    const tight = left('requests', 'minute', 0n, 60n);
    expect(leavesRoom([roomy, tight], reserve)).toBe(false);
    expect(leavesRoom([tight, roomy], reserve)).toBe(false);
  });
});
