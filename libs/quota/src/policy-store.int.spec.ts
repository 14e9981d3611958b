import { newId, shardOf } from '@weir/domain';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { policyChannel } from './keys.js';
import { PolicyPublisher } from './policy-publisher.js';
import { PolicyStore } from './policy-store.js';
import { connectQuotaRedis } from './quota-redis.js';
import { startOwnRedis } from './testbed/own-redis.js';
import { policyDocuments } from './testbed/policy-documents.js';
import {
  admitted,
  callOf,
  createTestbed,
  limit,
  refused,
  requiredUrl,
  type Testbed,
} from './testbed/quota-testbed.js';
import { servers } from './testbed/servers.js';

describe.each(servers)('the policy store on $name', ({ variable, cluster }) => {
  let bed: Testbed;
  let publisher: PolicyPublisher;
  const stores: PolicyStore[] = [];
  const open = (): PolicyStore => {
    const store = new PolicyStore(bed.redis);
    stores.push(store);
    return store;
  };

  beforeAll(async () => {
    bed = await createTestbed({ url: requiredUrl(variable, process.env[variable]), cluster });
    publisher = new PolicyPublisher(bed.redis);
  });
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.stop()));
  });
  afterAll(() => bed.close());

  it('joins a key’s documents into its path, enterprise first', async () => {
    const documents = policyDocuments([
      limit({ metric: 'requests', window: 'minute', amount: 60 }),
    ]);
    const version = await publisher.republish(documents);
    const policy = await open().resolve(documents.sha256);
    expect(policy).toMatchObject({ version, active: true });
    expect(policy?.path.map(({ level }) => level)).toEqual([
      'enterprise',
      'department',
      'user',
      'key',
    ]);
    expect(policy?.path[3]?.limits).toMatchObject([{ amount: 60n }]);
  });

  it('does not know a key that was never published, nor one whose path is incomplete', async () => {
    const store = open();
    expect(await store.resolve('f'.repeat(64))).toBeNull();
    const documents = policyDocuments();
    await publisher.republish({ ...documents, nodes: documents.nodes.slice(1) });
    expect(await store.resolve(documents.sha256)).toBeNull();
  });

  it('is told by admit that its policy is out of date, and has the new limit after a refresh', async () => {
    const documents = policyDocuments();
    await publisher.republish(documents);
    const store = open();
    const before = await store.resolve(documents.sha256);
    if (!before) throw new Error('the key does not resolve');
    const caller = { enterpriseId: before.enterprise.id, shard: before.shard, path: before.path };
    await admitted(bed.engine, callOf(caller, { policyVersion: before.version }));

    const [key] = documents.keys;
    if (!key) throw new Error('no key');
    const blocked = policyDocuments([limit({ metric: 'requests', window: 'total', amount: 0 })]);
    const version = await publisher.publish(caller.enterpriseId, {
      keys: [{ ...key, limits: blocked.keys[0]?.limits ?? [] }],
    });
    const stale = await bed.engine.admit(callOf(caller, { policyVersion: before.version }));
    expect(stale).toEqual({ outcome: 'stale', currentVersion: version });

    const after = await store.refresh(documents.sha256);
    if (!after) throw new Error('the key does not resolve');
    const call = callOf({ ...caller, path: after.path }, { policyVersion: after.version });
    await refused(bed.engine, call);
  });

  it('counts for a new limit what the ledger has of its period, and never lowers a counter', async () => {
    const documents = policyDocuments([
      limit({ metric: 'requests', window: 'total', amount: 10 }),
      limit({ metric: 'tokens', window: 'week', amount: 1_000, model: 'm' }),
    ]);
    await publisher.republish(documents);
    const policy = await open().resolve(documents.sha256);
    const key = policy?.path[3];
    if (!policy || !key) throw new Error('the key does not resolve');
    const caller = { enterpriseId: policy.enterprise.id, shard: policy.shard, path: policy.path };
    const call = (version: number) => callOf(caller, { policyVersion: version });
    const first = await admitted(bed.engine, call(policy.version));
    expect(first.remaining.map(({ remaining }) => remaining)).toEqual([9n, 970n]);
    const counted = { requests: 4n, inputTokens: 300n, outputTokens: 400n, costNano: 0n };
    const seeds = [
      { ...counted, scopeId: key.id, window: 'total' as const, periodId: 'total', model: null },
      { ...counted, scopeId: key.id, window: 'week' as const, periodId: '2026-W46', model: 'm' },
    ];
    const version = await publisher.publish(caller.enterpriseId, { seeds });
    const second = await admitted(bed.engine, call(version));
    expect(second.remaining.map(({ remaining }) => remaining)).toEqual([4n, 240n]);
    const lower = seeds.map((seed) => ({
      ...seed,
      requests: 1n,
      inputTokens: 0n,
      outputTokens: 0n,
    }));
    const third = await publisher.publish(caller.enterpriseId, { seeds: lower });
    expect((await admitted(bed.engine, call(third))).remaining[0]?.remaining).toBe(3n);
  });

  it('drops a cached policy when an invalidation comes', async () => {
    const documents = policyDocuments();
    await publisher.republish(documents);
    const store = open();
    await store.start();
    await store.resolve(documents.sha256);
    await vi.waitFor(async () => {
      const version = await publisher.publish(documents.enterprise.id, {
        enterprise: { ...documents.enterprise, name: 'Renamed' },
      });
      expect(await store.resolve(documents.sha256)).toMatchObject({
        version,
        enterprise: { name: 'Renamed' },
      });
    });
  });

  it('has a change within two seconds although the invalidation was lost', async () => {
    const documents = policyDocuments();
    await publisher.republish(documents);
    const store = open();
    await store.start();
    await store.resolve(documents.sha256);
    // A version that nobody announced: what a lost message leaves behind.
    const scopeKey = bed.redis
      .keys(shardOf(documents.enterprise.id, bed.redis.shardCount))
      .scope(documents.enterprise.id);
    const version = (await publisher.version(documents.enterprise.id)) ?? 0;
    await bed.redis.client.hset(scopeKey, 'v', String(version + 1));
    const began = Date.now();
    await vi.waitFor(
      async () => {
        expect(await store.resolve(documents.sha256)).toMatchObject({ version: version + 1 });
      },
      { timeout: 3_000, interval: 20 },
    );
    expect(Date.now() - began).toBeLessThan(2_000);
  });

  it('never resolves a removed key again, and forgets a key that it did not know once it is published', async () => {
    const documents = policyDocuments();
    const store = open();
    await store.start();
    expect(await store.resolve(documents.sha256)).toBeNull();
    await publisher.republish(documents);
    await vi.waitFor(async () => {
      expect(await store.refresh(documents.sha256)).not.toBeNull();
    });
    await publisher.publish(documents.enterprise.id, { removedKeySha256s: [documents.sha256] });
    expect(await store.refresh(documents.sha256)).toBeNull();
  });

  it('gives versions that never repeat, also when Redis has lost the last one', async () => {
    const documents = policyDocuments();
    const first = await publisher.republish(documents);
    const shard = shardOf(documents.enterprise.id, bed.redis.shardCount);
    await bed.redis.client.del(bed.redis.keys(shard).scope(documents.enterprise.id));
    await bed.setNow(bed.now() + 1);
    expect(await publisher.republish(documents)).toBeGreaterThan(first);
    expect(await publisher.version(newId())).toBeNull();
  });
});

describe('the policy store of a gateway that was started before Redis', () => {
  it('receives invalidations once Redis is there', async () => {
    const server = await startOwnRedis();
    await server.kill();
    const redis = connectQuotaRedis({ url: server.url, prefix: 'p', shardCount: 1 });
    const store = new PolicyStore(redis);
    try {
      await store.start();
      await server.restart();
      await vi.waitFor(
        async () => {
          const [, listeners] = await redis.client.pubsub('NUMSUB', policyChannel('p'));
          expect(listeners).toBe(1);
        },
        { timeout: 10_000 },
      );
    } finally {
      await store.stop();
      await redis.close();
      await server.close();
    }
  });
});
