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
  const event = Buffer.from(JSON.stringify(eventOf(caller, lease, actual)));
  return { lease, actual, event, descriptor: Buffer.alloc(0), epoch, seq, atMs };
};

describe('recent settlements', () => {
  it('are forgotten after a quarter of a minute', () => {
    const recent = new RecentSettlements();
    for (let second = 0; second < 60; second += 1) recent.add(entry(second * 1_000));
    expect(recent.size).toBe(16);
    expect(recent.takeOlderThan(0, 'b').map(({ atMs }) => atMs)[0]).toBe(44_000);
  });

  it('stay bounded in number however many come', () => {
    const recent = new RecentSettlements();
    const one = entry(1);
    for (let count = 0; count < 120_000; count += 1) recent.add(one);
    expect(recent.size).toBe(50_000);
  });

  it('keep the bytes of each event, whatever its size and whatever comes after', () => {
    const recent = new RecentSettlements();
    const texts = Array.from({ length: 3_000 }, (_, index) => `${index} ${'é水'.repeat(index)}`);
    const kept = texts.map((text) => recent.bytesOf(text));
    expect(kept.map(String)).toEqual(texts);
    const huge = 'x'.repeat(3_000_000);
    expect(String(recent.bytesOf(huge))).toBe(huge);
  });

  it('are taken per shard and only of other epochs, and can be put back in order', () => {
    const recent = new RecentSettlements();
    recent.add(entry(1, 'a', 0));
    recent.add(entry(2, 'a', 1));
    recent.add(entry(3, 'b', 0));
    const taken = recent.takeOlderThan(0, 'b');
    expect(taken.map(({ seq }) => seq)).toEqual([1]);
    expect(recent.size).toBe(2);
    recent.putBack(taken);
    expect(recent.takeOlderThan(0, 'c').map(({ seq }) => seq)).toEqual([1, 3]);
  });
});
