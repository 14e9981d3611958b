import { describe, expect, it } from 'vitest';
import { RecentSettlements } from './recent-settlements.js';
import { actualOf, eventOf, tenant } from './testbed/quota-testbed.js';

const caller = tenant();
const entry = (atMs: number, epoch = 'a', shard = 0, seq = atMs) => {
  const lease = {
    id: `lease-${atMs}`,
    shard,
    enterpriseId: caller.enterpriseId,
    reservedAtMs: atMs,
    expiresAtMs: atMs,
    periodId: '2026-11',
    epoch,
  };
  const actual = actualOf(1, 1);
  const event = JSON.stringify(eventOf(caller, lease, actual));
  return { lease, actual, event, descriptor: Buffer.from([0, 255]), epoch, seq, atMs };
};

describe('recent settlements', () => {
  it('come back as they were, whatever their size and whatever comes after', () => {
    const recent = new RecentSettlements();
    const entries = Array.from({ length: 1_500 }, (_, index) => ({
      ...entry(index),
      event: `${index} ${'é水😀'.repeat(index)}`,
      descriptor: Buffer.alloc(index % 300, index),
      actual: actualOf(index, index * 2),
    }));
    const huge = { ...entry(1_500), event: 'x'.repeat(3_000_000) };
    const { epoch: _, ...lease } = entry(1_501).lease;
    const local = { ...entry(1_501), lease };
    for (const each of [...entries, huge, local]) recent.add(each);
    expect(recent.takeOlderThan(0, 'b', 1_501)).toEqual([...entries, huge, local]);
    expect(recent.takeOlderThan(0, 'b', 1_501)).toEqual([]);
  });

  it('are forgotten after a quarter of a minute', () => {
    const recent = new RecentSettlements();
    for (let second = 0; second < 60; second += 1) recent.add(entry(second * 1_000));
    const left = recent.takeOlderThan(0, 'b', 59_000);
    expect(left.map(({ atMs }) => atMs)).toEqual(
      Array.from({ length: 16 }, (_, index) => 44_000 + index * 1_000),
    );
  });

  it('use the memory of those that are forgotten again', () => {
    const recent = new RecentSettlements();
    const big = { ...entry(0), event: 'x'.repeat(100_000) };
    // Three to four pieces of 1 MiB are filled in the time that settlements are kept.
    for (let second = 0; second < 600; second += 1) recent.add({ ...big, atMs: second * 1_000 });
    expect(recent.heldBytes).toBeLessThanOrEqual(10 * 1_048_576);
    expect(recent.takeOlderThan(0, 'b', 599_000)).toHaveLength(16);
  });

  it('stay bounded in memory however many come, the oldest going first', () => {
    const recent = new RecentSettlements();
    const big = { ...entry(1), event: 'x'.repeat(200_000) };
    for (let seq = 0; seq < 1_000; seq += 1) recent.add({ ...big, seq });
    expect(recent.heldBytes).toBeLessThanOrEqual(66 * 1_048_576);
    const left = recent.takeOlderThan(0, 'b', 1).map(({ seq }) => seq);
    expect(left.length).toBeGreaterThan(60);
    expect(left.at(-1)).toBe(999);
    expect(left[0]).toBe(1_000 - left.length);
  });

  it('are taken per shard and only of other epochs, and can be put back', () => {
    const recent = new RecentSettlements();
    recent.add(entry(1, 'a', 0));
    recent.add(entry(2, 'a', 1));
    recent.add(entry(3, 'b', 0));
    const taken = recent.takeOlderThan(0, 'b', 3);
    expect(taken.map(({ seq }) => seq)).toEqual([1]);
    for (const each of taken) recent.add(each);
    expect(recent.takeOlderThan(1, 'b', 3).map(({ seq }) => seq)).toEqual([2]);
    expect(recent.takeOlderThan(0, 'c', 3).map(({ seq }) => seq)).toEqual([3, 1]);
  });
});
