import { adminApi, apiSchemas, type ApiRoute, type OperationId } from '@weir/domain';
import { openDatabase, verifyAuditChain, type Database } from '@weir/persistence';
import {
  createTestDatabase,
  openTestRedis,
  type TestDatabase,
  type TestRedis,
} from '@weir/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp, type TestCall, type TestClient } from '../testing/test-app.js';
import { makeTestWorld, signInAll, testPassword, type TestWorld } from '../testing/test-world.js';

let database: TestDatabase;
let redis: TestRedis;
let test: TestApp;
let db: Database;
let world: TestWorld;
let owner: TestClient;
let admin: TestClient;
let manager: TestClient;
let member: TestClient;

beforeAll(async () => {
  database = await createTestDatabase();
  redis = openTestRedis();
  test = await startTestApp({
    databaseUrl: database.url,
    redisUrl: redis.url,
    redisPrefix: redis.prefix,
  });
  db = openDatabase({ url: database.url, poolMax: 2 });
  world = await makeTestWorld(test.app, 'acme');
  ({ owner, admin, manager, member } = await signInAll(test, world));
});
afterAll(async () => {
  await test?.close();
  await db?.close();
  await redis?.close();
  await database?.drop();
});

async function ok(client: TestClient, operationId: OperationId, call: TestCall) {
  const answer = await client.call(operationId, call);
  if (answer.status >= 300) throw new Error(`${operationId}: ${answer.text}`);
  return answer.body;
}
const limitBody = (scopeLevel: string, scopeId: string, rest: object) => ({
  scopeLevel,
  scopeId,
  metric: 'requests',
  window: 'day',
  amount: '10',
  ...rest,
});
const department = (name: string, parentId: string | null = null) =>
  ok(owner, 'createDepartment', { body: { name, parentId } });
const faultsOf = (answer: { body: { error: { details: { fields?: { path: string }[] } } } }) =>
  (answer.body.error.details.fields ?? []).map(({ path }) => path);

describe('a write', () => {
  const versioned = (Object.entries(adminApi) as [OperationId, ApiRoute][]).filter(
    ([, route]) => route.versioned === true,
  );
  const targetOf = (operationId: OperationId): { id: string; body: object } => {
    if (operationId.endsWith('Enterprise')) return { id: '', body: { name: 'E' } };
    if (operationId.endsWith('Department')) return { id: world.engineering, body: { name: 'D' } };
    if (operationId.endsWith('User')) return { id: world.users.engineer, body: { name: 'U' } };
    if (operationId.endsWith('Key')) return { id: world.keys.engineer.id, body: { name: 'K' } };
    if (operationId.endsWith('Limit')) return { id: world.limits.engineering, body: {} };
    if (operationId.endsWith('Upstream')) return { id: world.upstream, body: {} };
    return { id: world.model, body: {} };
  };

  it.each(versioned)('%s needs If-Match, and a right one', async (operationId, route) => {
    const { id, body } = targetOf(operationId);
    const call = { id, ...(route.body === undefined ? {} : { body }) };
    const missing = await owner.call(operationId, call);
    expect(missing.status, missing.text).toBe(428);
    expect(missing.body.error.code).toBe('version_required');

    const nonsense = await owner.call(operationId, { ...call, headers: { 'if-match': '"abc"' } });
    expect(nonsense.status).toBe(400);

    const stale = await owner.call(operationId, { ...call, version: 999 });
    expect(stale.status).toBe(412);
    expect(stale.body.error.code).toBe('version_conflict');
    expect(stale.body.error.details.current.version).toBeGreaterThanOrEqual(1);
    if (id !== '') expect(stale.body.error.details.current.id).toBe(id);
  });

  it('answers the stored row, and its ETag is what the next write needs', async () => {
    const made = await owner.call('createLimit', {
      body: limitBody('department', world.engineering, { metric: 'cost', amount: '12.500000001' }),
    });
    expect(made.status).toBe(201);
    expect(made.headers['etag']).toBe('"1"');
    const read = await owner.call('getLimit', { id: made.body.id });
    expect(read.body).toEqual(made.body);
    expect(read.body).toMatchObject({ amount: '12.500000001', window: 'day', mode: 'hard' });
    const patched = await owner.call('patchLimit', {
      id: made.body.id,
      body: { amount: '0' },
      headers: { 'if-match': String(made.headers['etag']) },
    });
    expect(patched.body).toMatchObject({ amount: '0.00', version: 2 });
  });

  it('gives the second of two tabs the stored row, and loses nothing', async () => {
    const { id } = await ok(owner, 'createLimit', {
      body: limitBody('department', world.content, {}),
    });
    const [first, second] = await Promise.all(
      ['20', '30'].map((amount) => admin.call('patchLimit', { id, version: 1, body: { amount } })),
    );
    const statuses = [first?.status, second?.status].sort();
    expect(statuses).toEqual([200, 412]);
    const winner = first?.status === 200 ? first : second;
    const loser = first?.status === 200 ? second : first;
    expect(loser?.body.error.details.current).toEqual(winner?.body);
    expect((await ok(owner, 'getLimit', { id })).amount).toBe(winner?.body.amount);
  });

  it('leaves absent fields alone and clears those that are null', async () => {
    const made = await ok(owner, 'createDepartment', { body: { name: 'Legal', costCenter: 'CC' } });
    const renamed = await ok(owner, 'patchDepartment', {
      id: made.id,
      version: 1,
      body: { name: 'Law' },
    });
    expect(renamed).toMatchObject({ name: 'Law', costCenter: 'CC', version: 2 });
    const cleared = await ok(owner, 'patchDepartment', {
      id: made.id,
      version: 2,
      body: { costCenter: null },
    });
    expect(cleared).toMatchObject({ name: 'Law', costCenter: null, version: 3 });
  });
});

describe('the address rules of an enterprise', () => {
  const patch = async (settings: object) => {
    const { version } = await ok(owner, 'getEnterprise', {});
    return owner.call('patchEnterprise', { version, body: { settings } });
  };

  it('are kept by a change that does not name them, and go when it empties them', async () => {
    const ipRules = { allow: ['10.0.0.0/8'], deny: ['10.0.0.7', '2001:db8::/32'] };
    expect((await patch({ ipRules })).body.settings).toMatchObject({ ipRules });
    const changed = await patch({ leaseMs: 62_000 });
    expect(changed.body.settings).toMatchObject({ ipRules, leaseMs: 62_000 });
    const none = { allow: [], deny: [] };
    expect((await patch({ ipRules: none })).body.settings).toMatchObject({ ipRules: none });
  });

  it('are refused when one is not an address, naming which', async () => {
    const answer = await patch({ ipRules: { allow: ['10.0.0.0/8', '10.0.0.0/99'], deny: [] } });
    expect(answer.status).toBe(422);
    expect(faultsOf(answer)).toEqual(['settings.ipRules.allow.1']);
  });
});

describe('the queue of an enterprise', () => {
  const patch = async (settings: object) => {
    const { version } = await ok(owner, 'getEnterprise', {});
    return owner.call('patchEnterprise', { version, body: { settings } });
  };

  it('keeps what a change of one of its fields does not name', async () => {
    const whole = { maxWaitMs: 20_000, maxWaiting: 30, streamNotices: false };
    expect((await patch({ queue: whole })).body.settings).toMatchObject({ queue: whole });
    const changed = await patch({ queue: { maxWaitMs: 10_000 } });
    expect(changed.body.settings).toMatchObject({ queue: { ...whole, maxWaitMs: 10_000 } });
    const other = await patch({ leaseMs: 63_000 });
    expect(other.body.settings).toMatchObject({ queue: { ...whole, maxWaitMs: 10_000 } });
  });

  it('is refused beyond its bounds, naming the field', async () => {
    const answer = await patch({ queue: { maxWaitMs: 60_001, maxWaiting: -1 } });
    expect(answer.status).toBe(422);
    expect(faultsOf(answer)).toEqual(['settings.queue.maxWaitMs', 'settings.queue.maxWaiting']);
  });
});

describe('bad input', () => {
  const withBody = (Object.entries(adminApi) as [OperationId, ApiRoute][]).filter(
    ([, route]) => route.body !== undefined,
  );

  it.each(withBody)('%s names an unknown field, with a remedy', async (operationId) => {
    const answer = await owner.call(operationId, {
      id: world.model,
      version: 1,
      body: { surprise: 1 },
    });
    expect(answer.status).toBe(422);
    const { error } = apiSchemas.apiErrorSchema.parse(answer.body);
    expect(error.code).toBe('validation_failed');
    expect(JSON.stringify(error.details)).toContain('Remove: surprise');
  });

  it.each(withBody)('%s takes malformed JSON for what it is', async (operationId) => {
    const answer = await owner.call(operationId, { id: world.model, version: 1, body: '{"a":' });
    expect(answer.status).toBe(400);
    expect(answer.body.error.code).toBe('invalid_request');
  });

  it.each([
    ['a negative amount', { amount: '-1' }, 'amount'],
    ['NaN', { amount: 'NaN' }, 'amount'],
    ['infinity', { amount: 'Infinity' }, 'amount'],
    ['an exponent', { amount: '1e9' }, 'amount'],
    ['a number instead of a text', { amount: 5 }, 'amount'],
    ['a fraction of a request', { amount: '1.5' }, 'amount'],
    ['more than any counter holds', { amount: '9999999999999999999' }, 'amount'],
    [
      'ten decimals of money',
      { metric: 'cost', window: 'month', amount: '0.0000000001' },
      'amount',
    ],
    ['a money rate', { metric: 'cost', window: 'minute' }, 'window'],
    ['concurrency with a window', { metric: 'concurrency', window: 'day' }, 'window'],
    ['a rate without a window', { window: null }, 'window'],
    ['tokens per second', { metric: 'tokens', window: 'second' }, 'window'],
    ['a model that does not exist', { model: 'gpt-nothing' }, 'model'],
    ['an unknown metric', { metric: 'happiness' }, 'metric'],
  ])('a limit with %s is refused by field', async (_name, rest, field) => {
    const answer = await owner.call('createLimit', {
      body: limitBody('department', world.marketing, rest),
    });
    expect(answer.status).toBe(422);
    expect(faultsOf(answer)).toContain(field);
  });

  it.each(['0', '1', '100000000000000', '1000000000000000', '9007199254740991'])(
    'the amount %s comes back to the digit',
    async (amount) => {
      const made = await ok(owner, 'createLimit', {
        body: limitBody('user', world.users.engineer, { window: 'total', amount }),
      });
      expect(made.amount).toBe(amount);
      await ok(owner, 'deleteLimit', { id: made.id, version: 1 });
    },
  );

  it('keeps "no limit" and "block" apart', async () => {
    const made = await ok(owner, 'createLimit', {
      body: limitBody('user', world.users.engineer, { amount: null }),
    });
    expect(made.amount).toBeNull();
    const blocked = await ok(owner, 'patchLimit', {
      id: made.id,
      version: 1,
      body: { amount: '0' },
    });
    expect(blocked.amount).toBe('0');
    const open = await ok(owner, 'patchLimit', { id: made.id, version: 2, body: { amount: null } });
    expect(open.amount).toBeNull();
    expect((await ok(owner, 'getLimit', { id: made.id })).amount).toBeNull();
  });

  it('refuses a second limit for the same metric, window and model of a node', async () => {
    const again = await owner.call('createLimit', {
      body: limitBody('department', world.marketing, { metric: 'cost', window: 'month' }),
    });
    expect(again.status).toBe(409);
  });

  it('takes a child limit above its parent, as both stay in force', async () => {
    const made = await owner.call('createLimit', {
      body: limitBody('department', world.content, {
        metric: 'cost',
        window: 'week',
        amount: '999999.00',
      }),
    });
    expect(made.status).toBe(201);
  });
});

describe('the tree', () => {
  it('nests five deep and no deeper, by making and by moving', async () => {
    let parent = await department('L1');
    const top = parent;
    for (const name of ['L2', 'L3', 'L4', 'L5']) parent = await department(name, parent.id);
    const sixth = await owner.call('createDepartment', {
      body: { name: 'L6', parentId: parent.id },
    });
    expect(sixth.status).toBe(422);
    expect(faultsOf(sixth)).toEqual(['parentId']);
    const other = await department('Above');
    const moved = await owner.call('patchDepartment', {
      id: top.id,
      version: 1,
      body: { parentId: other.id },
    });
    expect(moved.status).toBe(422);
  });

  it('has no circles', async () => {
    const top = await department('Top');
    const below = await department('Below', top.id);
    for (const parentId of [top.id, below.id]) {
      const answer = await owner.call('patchDepartment', {
        id: top.id,
        version: 1,
        body: { parentId },
      });
      expect(answer.status).toBe(422);
      expect(faultsOf(answer)).toEqual(['parentId']);
    }
    // Two moves at once, each right by itself, would close a circle together.
    const [a, b] = [await department('A'), await department('B')];
    const answers = await Promise.all([
      owner.call('patchDepartment', { id: a.id, version: 1, body: { parentId: b.id } }),
      admin.call('patchDepartment', { id: b.id, version: 1, body: { parentId: a.id } }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422]);
  });

  it('lets only an empty department go, and keeps its name', async () => {
    const parent = await department('Going');
    const child = await department('Child', parent.id);
    const refused = await owner.call('deleteDepartment', { id: parent.id, version: 1 });
    expect(refused.status).toBe(409);
    expect(refused.body.error.details).toMatchObject({ departments: 1, users: 0 });
    await ok(owner, 'deleteDepartment', { id: child.id, version: 1 });
    await ok(owner, 'deleteDepartment', { id: parent.id, version: 1 });
    expect(await ok(owner, 'getDepartment', { id: parent.id })).toMatchObject({
      name: 'Going',
      status: 'deleted',
    });
    const tree = await ok(owner, 'getOrganisation', {});
    expect(tree.nodes.map((node: { id: string }) => node.id)).not.toContain(parent.id);
    const late = await owner.call('createUser', { body: { name: 'X', departmentId: parent.id } });
    expect(late.status).toBe(404);
  });

  it('shows each caller the own part: parents first, siblings by name, limits with it', async () => {
    const all = await ok(owner, 'getOrganisation', {});
    const ids: string[] = all.nodes.map((node: { id: string }) => node.id);
    for (const node of all.nodes) {
      if (node.parentId !== null)
        expect(ids.indexOf(node.parentId)).toBeLessThan(ids.indexOf(node.id));
    }
    expect(all.nodes[0]).toMatchObject({ level: 'enterprise', parentId: null });
    // No epoch was declared here, so nothing is known of use: neither 0 nor a guess.
    expect(all.live).toBe(false);
    expect(all.nodes[0].month).toBeNull();
    expect(all.nodes[0].limits[0]).toMatchObject({ amount: '100.00', used: null, reserved: null });

    const own = await ok(manager, 'getOrganisation', {});
    expect(own.nodes[0]).toMatchObject({ id: world.marketing, parentId: null });
    const levels = own.nodes.map((node: { level: string }) => node.level);
    expect(levels).not.toContain('enterprise');
    const ownIds = own.nodes.map((node: { id: string }) => node.id);
    expect(ownIds).toContain(world.content);
    expect(ownIds).not.toContain(world.engineering);

    const self = await ok(member, 'getOrganisation', {});
    expect(self.nodes.map((node: { id: string }) => node.id)).toEqual([world.users.member]);
  });

  it('names the limits above a node, nearest first', async () => {
    const node = await ok(member, 'getNode', { id: world.keys.member.id });
    expect(node.alsoLimitedBy.map((above: { id: string }) => above.id)).toEqual([
      world.users.member,
      world.content,
      world.marketing,
      world.enterpriseId,
    ]);
  });
});

describe('a department manager', () => {
  const cap = async () => ok(owner, 'getLimit', { id: world.limits.marketing });
  const patch = async (client: TestClient, body: object) => {
    const { id, version } = await cap();
    return client.call('patchLimit', { id, version, body });
  };

  it.each([
    ['raise it', { amount: '100.01' }],
    ['lift it', { amount: null }],
    ['weaken it', { mode: 'soft' }],
    ['weaken it while lowering it', { amount: '1.00', mode: 'shadow' }],
  ])('cannot %s: the own cap', async (_name, body) => {
    const answer = await patch(manager, body);
    expect(answer.status, answer.text).toBe(403);
    expect((await cap()).amount).toBe('100.00');
    expect((await patch(admin, body)).status).toBe(200);
    expect((await patch(admin, { amount: '100.00', mode: 'hard' })).status).toBe(200);
  });

  it('cannot delete it', async () => {
    const { id, version } = await cap();
    expect((await manager.call('deleteLimit', { id, version })).status).toBe(403);
  });

  it('may lower it, and share it out below', async () => {
    expect((await patch(manager, { amount: '90.00' })).status).toBe(200);
    const { id, version } = await ok(manager, 'getLimit', { id: world.limits.content });
    const raised = await manager.call('patchLimit', { id, version, body: { amount: '500.00' } });
    expect(raised.status).toBe(200);
    expect((await patch(admin, { amount: '100.00' })).status).toBe(200);
  });

  it('may add a limit to the own department, as that only narrows', async () => {
    const made = await manager.call('createLimit', {
      body: limitBody('department', world.marketing, { window: 'hour' }),
    });
    expect(made.status).toBe(201);
    const { id, version } = made.body;
    expect((await manager.call('deleteLimit', { id, version })).status).toBe(403);
  });

  it.each([
    ['move', { parentId: null }],
    ['disable', { status: 'disabled' }],
  ])('cannot %s the own department', async (what, body) => {
    const { version } = await ok(owner, 'getDepartment', { id: world.marketing });
    const answer = await manager.call('patchDepartment', { id: world.marketing, version, body });
    // Already at the top: moving it there changes nothing, and is no move.
    expect(answer.status).toBe(what === 'move' ? 200 : 403);
  });

  it('cannot make a department beside the own one', async () => {
    const answer = await manager.call('createDepartment', { body: { name: 'Beside' } });
    expect(answer.status).toBe(403);
  });
});

describe('roles and sign-ins', () => {
  it.each(['admin', 'manager'] as const)('%s cannot give a role', async (role) => {
    const client = role === 'admin' ? admin : manager;
    const body = { name: 'X', departmentId: world.content, role: 'finance' };
    expect((await client.call('createUser', { body })).status).toBe(403);
    const { version } = await ok(owner, 'getUser', { id: world.users.member });
    const raised = await client.call('patchUser', {
      id: world.users.member,
      version,
      body: { role: 'owner' },
    });
    expect(raised.status).toBe(403);
  });

  it.each([
    { password: 'a new long password' },
    { email: 'mine@acme.example' },
    { status: 'disabled' },
  ])('an admin cannot take over the owner by %o', async (body) => {
    const { version } = await ok(owner, 'getUser', { id: world.users.owner });
    const answer = await admin.call('patchUser', { id: world.users.owner, version, body });
    expect(answer.status).toBe(403);
    expect((await admin.call('deleteUser', { id: world.users.owner, version })).status).toBe(403);
  });

  it('keeps the last owner', async () => {
    const { version } = await ok(owner, 'getUser', { id: world.users.owner });
    for (const body of [{ role: 'admin' }, { status: 'disabled' }, { email: null }]) {
      const answer = await owner.call('patchUser', { id: world.users.owner, version, body });
      expect(answer.status, JSON.stringify(body)).toBe(409);
    }
  });

  it('makes people who sign in, with a unique e-mail, and never shows a hash', async () => {
    const body = {
      name: 'Newcomer',
      departmentId: world.content,
      email: 'New@acme.example',
      password: testPassword,
    };
    const made = await owner.call('createUser', { body });
    expect(made.status).toBe(201);
    expect(made.text).not.toContain('argon2');
    expect(made.body.email).toBe('new@acme.example');
    await test.signIn('new@acme.example', testPassword);
    const again = await owner.call('createUser', { body });
    expect(again.status).toBe(409);
    expect(again.body.error.details.field).toBe('email');
  });

  it.each([
    ['a password without an e-mail', { password: testPassword }, 'email'],
    [
      'a service account with a password',
      { kind: 'service', email: 's@acme.example', password: testPassword },
      'password',
    ],
    ['a service account with a role', { kind: 'service', role: 'finance' }, 'role'],
    ['a short password', { email: 'x@acme.example', password: 'short' }, 'password'],
  ])('%s is refused by field', async (_name, rest, field) => {
    const body = { name: 'X', departmentId: world.content, ...rest };
    const answer = await owner.call('createUser', { body });
    expect(answer.status).toBe(422);
    expect(faultsOf(answer)).toEqual([field]);
  });

  it('deletes a user with all keys, and frees the e-mail', async () => {
    const email = 'leaver@acme.example';
    const body = { name: 'Leaver', departmentId: world.content, email };
    const user = await ok(owner, 'createUser', { body });
    const { key } = await ok(owner, 'createKey', { body: { name: 'k', userId: user.id } });
    await ok(owner, 'deleteUser', { id: user.id, version: 1 });
    expect(await ok(owner, 'getKey', { id: key.id })).toMatchObject({
      status: 'deleted',
      userName: 'Leaver',
    });
    expect(await ok(owner, 'getUser', { id: user.id })).toMatchObject({ status: 'deleted' });
    expect((await owner.call('createUser', { body })).status).toBe(201);
  });
});

describe('keys', () => {
  it('show their secret once, and are stored as a hash', async () => {
    const made = await ok(member, 'createKey', {
      body: { name: 'cli', userId: world.users.member },
    });
    expect(made.secret).toMatch(/^weir_sk_[\w-]{43}$/);
    expect(made.key.prefix).toBe(made.secret.slice(0, 13));
    for (const [operationId, call] of [
      ['getKey', { id: made.key.id }],
      ['listKeys', {}],
    ] as const) {
      expect((await member.call(operationId, call)).text).not.toContain(made.secret);
    }
    const row = await db.prisma.apiKey.findUniqueOrThrow({ where: { id: made.key.id } });
    expect(JSON.stringify(row)).not.toContain(made.secret);
    const audit = await db.prisma.auditEntry.findMany({ where: { targetId: made.key.id } });
    expect(JSON.stringify(audit, bigintAsText)).not.toContain(made.secret);
  });

  it('are disabled before they are deleted', async () => {
    const { key } = await ok(member, 'createKey', {
      body: { name: 'old', userId: world.users.member },
    });
    expect((await member.call('deleteKey', { id: key.id, version: 1 })).status).toBe(409);
    await ok(member, 'patchKey', { id: key.id, version: 1, body: { status: 'disabled' } });
    expect((await member.call('deleteKey', { id: key.id, version: 2 })).status).toBe(204);
    expect(await ok(member, 'getKey', { id: key.id })).toMatchObject({
      name: 'old',
      status: 'deleted',
    });
    const again = await member.call('patchKey', {
      id: key.id,
      version: 3,
      body: { status: 'active' },
    });
    expect(again.status).toBe(404);
  });

  it.each([
    [{ allowedModels: ['no-such-model'] }, 'allowedModels'],
    [{ expiresAt: '2020-01-01T00:00:00Z' }, 'expiresAt'],
  ])('are refused with what cannot take effect: %o', async (rest, field) => {
    const body = { name: 'x', userId: world.users.member, ...rest };
    const answer = await member.call('createKey', { body });
    expect(answer.status).toBe(422);
    expect(faultsOf(answer)).toEqual([field]);
  });

  it('are listed page by page, none twice and none left out', async () => {
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await ok(owner, 'listKeys', {
        query: { limit: '2', ...(cursor === undefined ? {} : { cursor }) },
      });
      expect(page.items.length).toBeLessThanOrEqual(2);
      seen.push(...page.items.map((key: { id: string }) => key.id));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    const living = await db.prisma.apiKey.count({ where: { status: { not: 'deleted' } } });
    expect(new Set(seen).size).toBe(living);
    expect(seen).toHaveLength(living);
    expect((await owner.call('listKeys', { query: { limit: '201' } })).status).toBe(422);
    expect((await owner.call('listKeys', { query: { cursor: 'x' } })).status).toBe(422);
  });
});

describe('models and prices', () => {
  const model = (rest: object = {}) => ({
    alias: `m-${Math.random().toString(36).slice(2)}`,
    contextWindowTokens: 1_000,
    maxOutputTokens: 100,
    routes: [{ upstreamId: world.upstream, upstreamModel: 'x' }],
    price: { perMillionTokens: { input: '2.5', output: '10' }, perRequest: '0.000001' },
    ...rest,
  });

  it('show prices as they were written, exactly', async () => {
    const made = await ok(owner, 'createModel', { body: model() });
    expect(made.prices).toMatchObject([
      {
        currency: 'USD',
        to: null,
        perMillionTokens: { input: '2.50', output: '10.00' },
        perRequest: '0.000001',
      },
    ]);
  });

  it.each([
    [
      'a missing output price',
      { price: { perMillionTokens: { input: '1' } } },
      'price.perMillionTokens.output',
    ],
    [
      'seven decimals',
      { price: { perMillionTokens: { input: '0.0000001', output: '1' } } },
      'price.perMillionTokens.input',
    ],
    [
      'a price from the past',
      { price: { from: '2020-01-01T00:00:00Z', perMillionTokens: { input: '1', output: '1' } } },
      'price.from',
    ],
    ['more output than context', { maxOutputTokens: 2_000 }, 'maxOutputTokens'],
    [
      'no weight anywhere',
      { routes: [{ upstreamId: 'UPSTREAM', upstreamModel: 'x', weight: 0 }] },
      'routes',
    ],
    ['another dialect than its provider', { dialect: 'anthropic' }, 'routes.0.upstreamId'],
  ])('%s is refused by field', async (_name, rest, field) => {
    const body = JSON.parse(JSON.stringify(model(rest)).replace('UPSTREAM', world.upstream));
    const answer = await owner.call('createModel', { body });
    expect(answer.status, answer.text).toBe(422);
    expect(faultsOf(answer)).toEqual([field]);
  });

  it('a new version closes the one before, and fits in before a scheduled one', async () => {
    const made = await ok(owner, 'createModel', { body: model() });
    const price = (from: string | null, input: string) =>
      owner.call('createPrice', {
        id: made.id,
        body: { from, perMillionTokens: { input, output: '1' } },
      });
    const scheduled = await price('2090-01-01T00:00:00.000Z', '9');
    expect(scheduled.status).toBe(201);
    const now = await price(null, '5');
    expect(now.status).toBe(201);
    const [last, middle, first] = now.body.prices;
    expect(last).toMatchObject({ from: '2090-01-01T00:00:00.000Z', to: null });
    expect(middle).toMatchObject({ to: last.from, perMillionTokens: { input: '5.00' } });
    expect(first).toMatchObject({ to: middle.from, perMillionTokens: { input: '2.50' } });
    expect((await price('2090-01-01T00:00:00Z', '8')).status).toBe(409);
    expect((await price('2021-01-01T00:00:00Z', '8')).status).toBe(422);
    expect(now.body.version).toBe(3);
  });

  it.each([
    'http://127.0.0.1:9000/v1',
    'http://10.1.2.3/v1',
    'http://192.168.0.7/v1',
    'http://169.254.169.254/latest',
    'http://[::1]/v1',
    'http://[::ffff:10.0.0.1]/v1',
    'http://2130706433/v1',
    'http://localhost/v1',
    'https://user:secret@1.1.1.1/v1',
    'ftp://1.1.1.1/v1',
  ])('a provider at %s is refused', async (baseUrl) => {
    const answer = await owner.call('createUpstream', { body: { name: 'Bad', baseUrl } });
    expect(answer.status).toBe(422);
    expect(faultsOf(answer)).toEqual(['baseUrl']);
  });

  it('a provider key is sealed, never shown, and masked in the audit log', async () => {
    const secret = 'sk-very-secret-provider-key';
    const made = await owner.call('createUpstream', {
      body: { name: 'Sealed', baseUrl: 'https://1.1.1.1/v1/', apiKey: secret },
    });
    expect(made.text).not.toContain(secret);
    expect(made.body).toMatchObject({ hasApiKey: true, baseUrl: 'https://1.1.1.1/v1' });
    const row = await db.prisma.upstream.findUniqueOrThrow({ where: { id: made.body.id } });
    expect(row.sealedApiKey).toMatch(/^v1\./);
    const audit = await db.prisma.auditEntry.findFirstOrThrow({
      where: { targetId: made.body.id },
    });
    expect(JSON.stringify(audit.after)).not.toContain(secret);
    expect(audit.after).toMatchObject({ apiKey: '***' });
    const cleared = await ok(owner, 'patchUpstream', {
      id: made.body.id,
      version: 1,
      body: { apiKey: null },
    });
    expect(cleared.hasApiKey).toBe(false);
    const taken = await owner.call('createUpstream', {
      body: { name: 'Sealed', baseUrl: 'https://1.1.1.1/v1' },
    });
    expect(taken.status).toBe(409);
  });
});

describe('the audit log', () => {
  it('has who, what, before and after of a change, under the request id of the answer', async () => {
    const { id, version } = await ok(owner, 'getLimit', { id: world.limits.engineering });
    const answer = await admin.call('patchLimit', { id, version, body: { amount: '77.70' } });
    const page = await ok(owner, 'listAudit', { query: { targetId: id, limit: '1' } });
    expect(page.items[0]).toMatchObject({
      actorName: 'The admin',
      action: 'limit.updated',
      targetType: 'limit',
      targetName: 'Engineering: cost per month',
      requestId: answer.headers['x-request-id'],
      before: { amount: '100.00' },
      after: { amount: '77.70', version: version + 1 },
    });
  });

  it('finds old and new values, and takes a wildcard for what it is', async () => {
    const found = await ok(owner, 'listAudit', { query: { search: '77.70' } });
    expect(found.items.length).toBeGreaterThan(0);
    expect((await ok(owner, 'listAudit', { query: { search: '100%of' } })).items).toEqual([]);
    const all = await ok(owner, 'listAudit', { query: { limit: '3' } });
    const next = await ok(owner, 'listAudit', { query: { limit: '3', cursor: all.nextCursor } });
    const ids = [...all.items, ...next.items].map((entry: { id: string }) => entry.id);
    expect(new Set(ids).size).toBe(6);
  });

  it('has no entry for what was refused', async () => {
    const before = await db.prisma.auditEntry.count();
    await owner.call('createLimit', {
      body: limitBody('department', world.marketing, { window: 'month', metric: 'cost' }),
    });
    await manager.call('deleteLimit', { id: world.limits.marketing, version: 1 });
    await owner.call('patchLimit', { id: world.limits.marketing, version: 99, body: {} });
    expect(await db.prisma.auditEntry.count()).toBe(before);
  });

  it('is one unbroken chain, also when many write at once', async () => {
    await Promise.all(
      Array.from({ length: 12 }, async (_, index) =>
        ok(index % 2 === 0 ? owner : admin, 'createDepartment', { body: { name: `P${index}` } }),
      ),
    );
    expect(await verifyAuditChain(db.prisma, world.enterpriseId)).toMatchObject({ intact: true });
  });

  it.each([
    ['an altered value', `update audit_entry set after = '{"amount":"1.00"}' where id = $1`],
    ['another actor', `update audit_entry set actor_name = 'Nobody' where id = $1`],
    ['a removed entry', `delete from audit_entry where id = $1`],
    ['another time', `update audit_entry set at = at + interval '1 ms' where id = $1`],
  ])('gives away %s', async (_name, sql) => {
    const entry = await db.prisma.auditEntry.findFirstOrThrow({
      where: { enterpriseId: world.enterpriseId, action: 'limit.updated' },
    });
    const client = await db.pool.connect();
    try {
      await client.query('create table audit_kept as select * from audit_entry');
      await client.query(sql, [entry.id]);
      const verdict = await verifyAuditChain(db.prisma, world.enterpriseId);
      expect(verdict).toMatchObject({ intact: false, brokenAt: entry.sequence });
    } finally {
      await client.query('truncate audit_entry');
      await client.query('insert into audit_entry select * from audit_kept');
      await client.query('drop table audit_kept');
      client.release();
    }
    expect(await verifyAuditChain(db.prisma, world.enterpriseId)).toMatchObject({ intact: true });
  });

  it('gives away entries cut off at its end', async () => {
    const last = await db.prisma.auditEntry.findFirstOrThrow({
      where: { enterpriseId: world.enterpriseId },
      orderBy: { sequence: 'desc' },
    });
    await db.prisma.auditEntry.delete({ where: { id: last.id } });
    expect(await verifyAuditChain(db.prisma, world.enterpriseId)).toMatchObject({
      intact: false,
      brokenAt: last.sequence,
    });
  });
});

function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
