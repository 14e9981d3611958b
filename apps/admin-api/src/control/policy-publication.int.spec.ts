import { createHash } from 'node:crypto';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { CallerPolicy } from '@weir/domain';
import { inControlChange, openDatabase, type Database } from '@weir/persistence';
import { connectQuotaRedis, PolicyStore, type QuotaRedis } from '@weir/quota';
import {
  createTestDatabase,
  openTestRedis,
  waitFor,
  type TestDatabase,
  type TestRedis,
} from '@weir/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp, type TestClient } from '../testing/test-app.js';
import { makeTestWorld, testPassword, type TestWorld } from '../testing/test-world.js';

let database: TestDatabase;
let redis: TestRedis;
let db: Database;
let test: TestApp;
let world: TestWorld;
let owner: TestClient;
/** What a gateway sees: its own connection and cache. */
let gateway: QuotaRedis;
let policies: PolicyStore;

beforeAll(async () => {
  database = await createTestDatabase();
  redis = openTestRedis();
  db = openDatabase({ url: database.url, poolMax: 4 });
  test = await startHere();
  world = await makeTestWorld(test.app, 'acme');
  owner = await test.signIn(world.emailOf('owner'), testPassword);
});
beforeEach(async () => {
  gateway = connectQuotaRedis({
    url: redis.url,
    prefix: redis.prefix,
    shardCount: 8,
    commandTimeoutMs: 2_000,
  });
  await gateway.ready();
  policies = new PolicyStore(gateway);
  await policies.start();
});
afterEach(async () => {
  await policies.stop();
  await gateway.close();
});
afterAll(async () => {
  await test?.close();
  await db?.close();
  await redis?.close();
  await database?.drop();
});

async function startHere(settings: Record<string, string> = {}): Promise<TestApp> {
  return startTestApp({
    databaseUrl: database.url,
    redisUrl: redis.url,
    redisPrefix: redis.prefix,
    settings,
  });
}
/** A way to Redis that can fall silent: bytes still arrive and nothing comes back. */
async function openSilencer(redisUrl: string) {
  const { hostname, port } = new URL(redisUrl);
  let isSilent = false;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
    }
    near.on('data', (bytes) => void (isSilent || far.write(bytes)));
    far.on('data', (bytes) => void (isSilent || near.write(bytes)));
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: ownPort } = server.address() as AddressInfo;
  return {
    url: `redis://127.0.0.1:${ownPort}`,
    silence: () => {
      isSilent = true;
    },
    open: () => {
      isSilent = false;
      // What was swallowed is lost: both sides have to begin again.
      for (const socket of sockets) socket.destroy();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
const sha256 = (secret: string) => createHash('sha256').update(secret).digest('hex');
const resolve = (secret: string) => policies.resolve(sha256(secret));
const limitsAt = (policy: CallerPolicy | null, scopeId: string) =>
  policy?.path.find(({ id }) => id === scopeId)?.limits ?? [];

async function ok(operationId: Parameters<TestClient['call']>[0], call: object) {
  const answer = await owner.call(operationId, call);
  if (answer.status >= 300) throw new Error(`${operationId}: ${answer.text}`);
  return answer;
}
async function pendingChanges(): Promise<bigint> {
  const { policyVersion } = await db.prisma.enterprise.findUniqueOrThrow({
    where: { id: world.enterpriseId },
  });
  const last = await db.prisma.auditEntry.aggregate({
    where: { enterpriseId: world.enterpriseId },
    _max: { sequence: true },
  });
  return (last._max.sequence ?? 0n) - policyVersion;
}

describe('a saved change', () => {
  it('is in force when the answer comes, at every gateway within two seconds, without a restart', async () => {
    const { secret } = world.keys.member;
    const before = await resolve(secret);
    expect(limitsAt(before, world.marketing)).toMatchObject([{ amount: 100_000_000_000n }]);
    const answer = await ok('patchLimit', {
      id: world.limits.marketing,
      version: 1,
      body: { amount: '0.25' },
    });
    expect(answer.headers['x-policy-state']).toBe('in-force');
    await waitFor(
      'the new limit at the gateway',
      async () => limitsAt(await resolve(secret), world.marketing)[0]?.amount === 250_000_000n,
      2_000,
    );
    // A gateway that has heard nothing sees it at once.
    const other = new PolicyStore(gateway);
    const policy = await other.resolve(sha256(secret));
    expect(limitsAt(policy, world.marketing)[0]?.amount).toBe(250_000_000n);
  });

  it('carries the whole policy of a caller', async () => {
    const policy = await resolve(world.keys.member.secret);
    expect(policy?.active).toBe(true);
    expect(policy?.path.map(({ level, id }) => [level, id])).toEqual([
      ['enterprise', world.enterpriseId],
      ['department', world.marketing],
      ['department', world.content],
      ['user', world.users.member],
      ['key', world.keys.member.id],
    ]);
    expect(policy?.enterprise.timeZone).toBe('Asia/Shanghai');
    expect(policy?.models.get('small')?.prices).toMatchObject([
      { picoPerToken: { input: '500000', output: '1500000' }, to: null },
    ]);
    expect([...(policy?.upstreams.values() ?? [])]).toMatchObject([{ id: world.upstream }]);
  });

  it('reaches keys, users, departments and models alike', async () => {
    const made = (await ok('createKey', { body: { name: 'new', userId: world.users.engineer } }))
      .body;
    expect((await resolve(made.secret))?.active).toBe(true);
    const active = async () => (await policies.refresh(sha256(made.secret)))?.active ?? null;

    await ok('patchKey', { id: made.key.id, version: 1, body: { status: 'disabled' } });
    expect(await active()).toBe(false);
    await ok('patchKey', { id: made.key.id, version: 2, body: { status: 'active' } });
    expect(await active()).toBe(true);

    const user = (await ok('getUser', { id: world.users.engineer })).body;
    await ok('patchUser', {
      id: user.id,
      version: user.version,
      body: { departmentId: world.content },
    });
    const moved = await policies.refresh(sha256(made.secret));
    expect(moved?.path.map(({ id }) => id)).toContain(world.content);

    await ok('patchDepartment', { id: world.content, version: 1, body: { status: 'disabled' } });
    expect(await active()).toBe(false);
    await ok('patchDepartment', { id: world.content, version: 2, body: { status: 'active' } });

    const price = { perMillionTokens: { input: '9.00', output: '9.00' } };
    await ok('createPrice', { id: world.model, body: price });
    const priced = await policies.refresh(sha256(made.secret));
    const versions = priced?.models.get('small')?.prices ?? [];
    expect(versions.map(({ picoPerToken }) => picoPerToken.input)).toEqual(['500000', '9000000']);
    expect(versions[0]?.to).toBe(versions[1]?.from);

    await ok('patchKey', { id: made.key.id, version: 3, body: { status: 'disabled' } });
    await ok('deleteKey', { id: made.key.id, version: 4 });
    expect(await active()).toBeNull();
  });

  it('ends up as the last one committed, however many come at once', async () => {
    const users = await Promise.all(
      Array.from({ length: 8 }, async (_, index) =>
        ok('createUser', { body: { name: `U${index}`, departmentId: world.engineering } }),
      ),
    );
    const made = await Promise.all(
      users.map(async ({ body }) =>
        ok('createLimit', {
          body: {
            scopeLevel: 'user',
            scopeId: body.id,
            metric: 'requests',
            window: 'day',
            amount: '1',
          },
        }),
      ),
    );
    const keys = await Promise.all(
      users.map(async ({ body }) => ok('createKey', { body: { name: 'k', userId: body.id } })),
    );
    await Promise.all(
      made.flatMap(({ body }) => [
        owner.call('patchLimit', { id: body.id, version: 1, body: { amount: '2' } }),
        owner.call('patchLimit', { id: body.id, version: 1, body: { amount: '3' } }),
      ]),
    );
    expect(await pendingChanges()).toBe(0n);
    for (const [index, { body }] of users.entries()) {
      const stored = (await ok('getLimit', { id: made[index]?.body.id })).body;
      const policy = await policies.refresh(sha256(keys[index]?.body.secret));
      expect(limitsAt(policy, body.id)[0]?.amount).toBe(BigInt(stored.amount));
      expect(stored.version).toBe(2);
    }
  });
});

describe('a change that could not be published', () => {
  it('is stored, said to be pending, and published once Redis can be reached', async () => {
    // Port 1 answers nobody: a Redis that is down.
    const cutOff = await startHere({ REDIS_URL: 'redis://127.0.0.1:1', PUBLISH_TIMEOUT_MS: '100' });
    try {
      const client = await cutOff.signIn(world.emailOf('owner'), testPassword);
      const { version } = (await ok('getLimit', { id: world.limits.engineering })).body;
      const answer = await client.call('patchLimit', {
        id: world.limits.engineering,
        version,
        body: { amount: '12.34' },
      });
      expect(answer.status).toBe(200);
      expect(answer.body.amount).toBe('12.34');
      expect(answer.headers['x-policy-state']).toBe('pending');
      const tree = await client.call('getOrganisation');
      expect(tree.status).toBe(200);
      expect(tree.body.live).toBe(false);
    } finally {
      await cutOff.close();
    }
    // Another process, which knows nothing of it but what the database says, brings it into force.
    await waitFor('nothing outstanding', async () => (await pendingChanges()) === 0n, 5_000);
    const { secret } = (await ok('createKey', { body: { name: 'k', userId: world.users.owner } }))
      .body;
    const policy = await policies.refresh(sha256(secret));
    expect(limitsAt(policy, world.engineering)[0]?.amount).toBe(12_340_000_000n);
  });

  it('keeps nobody waiting on a Redis that takes requests and does not answer', async () => {
    const hole = await openSilencer(redis.url);
    const settings = { LIVE_TIMEOUT_MS: '200', PUBLISH_TIMEOUT_MS: '300' };
    const behind = await startHere({ REDIS_URL: hole.url, ...settings });
    try {
      const client = await behind.signIn(world.emailOf('owner'), testPassword);
      const rename = (name: string, version: number) =>
        client.call('patchLimit', {
          id: world.limits.content,
          version,
          body: { amount: name },
        });
      const { version } = (await ok('getLimit', { id: world.limits.content })).body;
      const heard = await rename('5.00', version);
      expect(heard.headers['x-policy-state']).toBe('in-force');

      hole.silence();
      const began = performance.now();
      const tree = await client.call('getOrganisation');
      expect(tree.body.live).toBe(false);
      const first = await rename('6.00', version + 1);
      const second = await rename('7.00', version + 2);
      // A publish that is given up, and the round's own before it, at 300 ms each; far from any default of minutes.
      expect(performance.now() - began).toBeLessThan(5_000);
      for (const answer of [first, second]) {
        expect(answer.status, answer.text).toBe(200);
        expect(answer.headers['x-policy-state']).toBe('pending');
      }
    } finally {
      hole.open();
      await behind.close();
      await hole.close();
    }
    await waitFor('nothing outstanding', async () => (await pendingChanges()) === 0n, 5_000);
  });

  it('is published after a crash between commit and publishing, by whoever runs next', async () => {
    await test.close();
    // What a process leaves behind that dies right after its commit: the rows and the audit entry, nothing in Redis.
    const doomed = world.keys.member;
    await inControlChange(
      db.prisma,
      {
        enterpriseId: world.enterpriseId,
        actor: { id: null, name: 'Test' },
        requestId: 'crash',
        at: new Date(),
      },
      async (tx, record) => {
        const target = { targetType: 'key', targetId: doomed.id, targetName: 'laptop' } as const;
        await tx.apiKey.update({ where: { id: doomed.id }, data: { status: 'deleted' } });
        record({ ...target, action: 'key.deleted', before: { id: doomed.id }, after: null });
      },
    );
    expect(await pendingChanges()).toBe(1n);
    expect((await policies.refresh(sha256(doomed.secret)))?.active).toBe(true);

    test = await startHere();
    owner = await test.signIn(world.emailOf('owner'), testPassword);
    await waitFor(
      'the deleted key is gone at the gateways',
      async () => (await policies.refresh(sha256(doomed.secret))) === null,
      5_000,
    );
    // The mark that it is published follows the publication.
    await waitFor('nothing is left to publish', async () => (await pendingChanges()) === 0n, 5_000);
  });

  it('comes back with everything else when Redis has lost its data, without deleted keys', async () => {
    const { secret, key } = (
      await ok('createKey', { body: { name: 'gone', userId: world.users.owner } })
    ).body;
    const kept = (await ok('createKey', { body: { name: 'kept', userId: world.users.owner } }))
      .body;
    const oldDocument = await redis.client.get(`${redis.prefix}:key:${sha256(secret)}`);
    await ok('patchKey', { id: key.id, version: 1, body: { status: 'disabled' } });
    await ok('deleteKey', { id: key.id, version: 2 });
    // Redis comes back with an old snapshot of one key, and nothing of the enterprise.
    const names = await redis.client.keys(`${redis.prefix}:*`);
    await redis.client.del(names);
    await redis.client.set(`${redis.prefix}:key:${sha256(secret)}`, oldDocument ?? '');
    await waitFor(
      'all policies are back',
      async () => (await policies.refresh(sha256(kept.secret)))?.active === true,
      5_000,
    );
    expect(await policies.refresh(sha256(secret))).toBeNull();
  });
});
