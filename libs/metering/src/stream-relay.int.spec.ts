import { outboxKey } from '@weir/domain';
import { openTestRedis, type TestRedis, waitFor } from '@weir/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readOutboxes } from './outbox-relay.js';
import { type StreamEntry, StreamRelay, type StreamRelayOptions } from './stream-relay.js';

let redis: TestRedis;
let prefix: string;
let relays: StreamRelay[] = [];
let count = 0;
const shards = [0, 1, 2];
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

beforeAll(() => {
  redis = openTestRedis();
});
afterAll(async () => {
  await redis.close();
});
beforeEach(() => {
  prefix = `${redis.prefix}-${(count += 1)}`;
});
afterEach(async () => {
  await Promise.all(relays.map((relay) => relay.stop()));
  relays = [];
});

const keyOf = (shard: number) => outboxKey(prefix, shard);

async function append(total: number, from = 1): Promise<string[]> {
  const pipeline = redis.client.pipeline();
  const ids: string[] = [];
  for (let n = from; n < from + total; n += 1) {
    ids.push(`event-${n}`);
    pipeline.xadd(keyOf(n % shards.length), '*', 'id', `event-${n}`, 'seq', String(n));
  }
  await pipeline.exec();
  return ids;
}

function relay(
  deliver: StreamRelayOptions['deliver'],
  overrides: Partial<StreamRelayOptions> = {},
): StreamRelay {
  const one = new StreamRelay({
    redis: redis.client,
    streams: shards.map((shard) => ({ shard, key: keyOf(shard) })),
    group: 'relay',
    consumer: `consumer-${Math.random()}`,
    batchMax: 10,
    claimIdleMs: 60_000,
    deliver,
    logger: silent,
    ...overrides,
  });
  relays.push(one);
  return one;
}

const idsOf = (entries: readonly StreamEntry[]) => entries.map(({ fields }) => fields['id'] ?? '');
const left = async () =>
  (await readOutboxes(redis.client, prefix, shards.length)).reduce(
    (sum, { entries }) => sum + entries,
    0,
  );

describe('the relay', () => {
  it('delivers what was written before its first start, once each, and leaves the streams empty', async () => {
    const ids = await append(95);
    const delivered: string[] = [];
    relay(async (entries) => void delivered.push(...idsOf(entries))).start();
    await waitFor('all removed', async () => (await left()) === 0);
    expect(delivered.sort()).toEqual(ids.sort());
  });

  it('removes nothing before the delivery has succeeded, and tries the same batch again', async () => {
    await append(3);
    const leftAtDelivery: number[] = [];
    let failures = 2;
    relay(async () => {
      leftAtDelivery.push(await left());
      if (failures > 0) {
        failures -= 1;
        throw new Error('the broker is away');
      }
    }).start();
    await waitFor('all removed', async () => (await left()) === 0);
    expect(leftAtDelivery).toEqual([3, 3, 3]);
  });

  it('holds one batch in memory, whatever waits, while nothing can be delivered', async () => {
    await append(500);
    const sizes: number[] = [];
    relay(async (entries) => {
      sizes.push(entries.length);
      throw new Error('down');
    }).start();
    await waitFor('three attempts', () => sizes.length >= 3);
    expect(new Set(sizes)).toEqual(new Set([30]));
    expect(await left()).toBe(500);
  });

  it('shares the work with others: each entry goes to one of them', async () => {
    const ids = await append(400);
    const delivered: string[][] = [[], [], []];
    for (const mine of delivered)
      relay(async (entries) => void mine.push(...idsOf(entries))).start();
    await waitFor('all removed', async () => (await left()) === 0);
    expect(delivered.flat().sort()).toEqual(ids.sort());
  });

  it('takes over what a dead relay had in hand', async () => {
    const ids = await append(40);
    const dead = relay(() => new Promise(() => {}), { consumer: 'dead' });
    dead.start();
    await waitFor('in its hand', async () => {
      const pending = await redis.client.xpending(keyOf(0), 'relay');
      return Number(pending[0]) > 0;
    });
    const delivered: string[] = [];
    relay(async (entries) => void delivered.push(...idsOf(entries)), { claimIdleMs: 50 }).start();
    await waitFor('all removed', async () => (await left()) === 0);
    expect(delivered.sort()).toEqual(ids.sort());
    // It can never end: its delivery hangs.
    relays = relays.filter((one) => one !== dead);
  });

  it('goes on after the server was emptied', async () => {
    const delivered: string[] = [];
    relay(async (entries) => void delivered.push(...idsOf(entries))).start();
    await append(5);
    await waitFor('first delivery', () => delivered.length === 5);
    await redis.client.del(...shards.map(keyOf));
    await append(5, 6);
    await waitFor('second delivery', () => delivered.length === 10);
  });

  it('ends at once when told to while it waits to try again, and leaves the batch to others', async () => {
    await append(7);
    let attempts = 0;
    const failing = relay(async () => {
      attempts += 1;
      throw new Error('down');
    });
    failing.start();
    await waitFor('an attempt', () => attempts > 0);
    await failing.stop();
    expect(await left()).toBe(7);
  });

  it('reports how much waits and since when', async () => {
    const before = Date.now();
    await append(4);
    const [first] = await readOutboxes(redis.client, prefix, shards.length);
    expect(first).toMatchObject({ shard: 0, entries: 1 });
    expect(first?.oldestAtMs ?? 0).toBeGreaterThanOrEqual(before - 1_000);
  });
});
