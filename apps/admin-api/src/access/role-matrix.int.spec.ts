import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { adminApi, newId, shardOf, type ApiRoute, type OperationId, type Role } from '@weir/domain';
import {
  importProviderFile,
  listDeadLetters,
  openDatabase,
  UsageLedger,
  type Database,
} from '@weir/persistence';
import {
  createTestDatabase,
  numbered,
  openTestRedis,
  testTenant,
  usageEvent,
  type TestDatabase,
  type TestRedis,
} from '@weir/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp, type TestCall, type TestClient } from '../testing/test-app.js';
import { makeTestWorld, signInAll, type TestWorld } from '../testing/test-world.js';

/*
 * Role × route × foreign id, over the whole route table. The roles are written out here a second time, so that a slip in
 * the table of permissions shows; a route without an entry does not compile, and fails at run time.
 */

type Entry = {
  /** Who may call it. All others get 403, whatever the id. */
  readonly roles: readonly Role[];
  /** A call that succeeds for this role; makes what it needs. null: nothing of the kind is within its reach. */
  readonly own: (role: Role) => TestCall | null | Promise<TestCall>;
  /** What it answers instead of success, where that needs more than this suite runs. */
  readonly status?: number;
  /** Calls that name something out of this role's reach: not found. Absent where the route takes no id. */
  readonly foreign?: (role: Role) => TestCall[] | Promise<TestCall[]>;
};

const everyone: readonly Role[] = ['owner', 'admin', 'finance', 'manager', 'member'];
const writers: readonly Role[] = ['owner', 'admin', 'manager'];

let database: TestDatabase;
let redis: TestRedis;
let test: TestApp;
let db: Database;
let exportDir: string;
/** The world under test, and another enterprise in the same installation. */
let acme: TestWorld;
let globex: TestWorld;
let clients: Record<Role, TestClient>;
let counter = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  redis = openTestRedis();
  exportDir = await mkdtemp(join(tmpdir(), 'weir-exports-'));
  test = await startTestApp({
    databaseUrl: database.url,
    redisUrl: redis.url,
    redisPrefix: redis.prefix,
    settings: { EXPORT_DIR: exportDir },
  });
  db = openDatabase({ url: database.url, poolMax: 2 });
  globex = await makeTestWorld(test.app, 'globex');
  // On a shard of its own, so that what is the shard's is its alone; what is made in vain is on the other's.
  do acme = await makeTestWorld(test.app, unique('acme').replace(' ', '-'));
  while (shardOfWorld(acme) === shardOfWorld(globex));
  clients = await signInAll(test, acme);
});
afterAll(async () => {
  await test?.close();
  await db?.close();
  await redis?.close();
  await database?.drop();
  await rm(exportDir, { recursive: true, force: true });
});

const unique = (name: string) => `${name} ${(counter += 1)}`;

/** The owner makes something fresh for another role to work on. */
async function made(operationId: OperationId, body: unknown): Promise<{ id: string }> {
  const answer = await clients.owner.call(operationId, { body });
  if (answer.status !== adminApi[operationId].status) throw new Error(answer.text);
  return answer.body.key ?? answer.body;
}
const freshDepartment = () =>
  made('createDepartment', { name: unique('D'), parentId: acme.marketing });
const freshUser = () => made('createUser', { name: unique('U'), departmentId: acme.content });
const freshKey = async (status: 'active' | 'disabled' = 'active') => {
  const { id } = await made('createKey', { name: unique('K'), userId: acme.users.member });
  if (status === 'active') return { id, version: 1 };
  await clients.owner.call('patchKey', { id, version: 1, body: { status } });
  return { id, version: 2 };
};
const freshLimit = async () =>
  made('createLimit', {
    scopeLevel: 'user',
    scopeId: (await freshUser()).id,
    metric: 'cost',
    window: 'month',
    amount: '1.00',
  });
const freshUpstream = () =>
  made('createUpstream', { name: unique('P'), baseUrl: 'https://1.1.1.1/v1' });
const modelBody = (upstreamId: string) => ({
  alias: unique('m').replace(' ', '-'),
  contextWindowTokens: 1_000,
  maxOutputTokens: 100,
  routes: [{ upstreamId, upstreamModel: 'x' }],
  price: { perMillionTokens: { input: '1.00', output: '1.00' } },
});
const priceBody = { perMillionTokens: { input: '2.00', output: '2.00' } };
const exportBody = { kind: 'usage-csv', from: '2026-11-01', to: '2026-12-01' };
async function freshExport(
  world: TestWorld,
  role: Role,
  status: 'queued' | 'done',
): Promise<string> {
  const id = newId();
  const fileName = `${id}.csv`;
  await writeFile(join(exportDir, fileName), 'a,b\r\n');
  await db.prisma.exportJob.create({
    data: {
      id,
      enterpriseId: world.enterpriseId,
      requestedBy: world.users[role],
      kind: 'usage-csv',
      request: {},
      status,
      ...(status === 'done' ? { fileName, finishedAt: new Date() } : {}),
    },
  });
  return id;
}
async function freshRequest(world: TestWorld, member: 'member' | 'engineer'): Promise<string> {
  const requestId = newId();
  await db.prisma.refusalRow.create({
    data: {
      id: newId(),
      enterpriseId: world.enterpriseId,
      at: new Date(),
      requestId,
      departmentId: member === 'member' ? world.content : world.engineering,
      userId: world.users[member],
      keyId: world.keys[member].id,
      model: 'small',
      route: '/v1/chat/completions',
      outcome: 'refused',
      code: 'rate_limit_exceeded',
    },
  });
  return requestId;
}

const shardOfWorld = (world: TestWorld) => shardOf(world.enterpriseId, test.config.SHARD_COUNT);
const providerFileOf = (upstreamId: string) => ({
  upstreamId,
  dialect: 'openai' as const,
  fileName: 'usage.csv',
  content: `start_time,end_time,model,input_tokens,output_tokens\n1763596800,1763600400,gpt,${(counter += 1)},1\n`,
});
async function freshProviderFile(world: TestWorld): Promise<string> {
  const { upstreamId, content, ...file } = providerFileOf(world.upstream);
  const { enterpriseId } = world;
  const { importId } = await importProviderFile(db.pool, {
    ...file,
    enterpriseId,
    providerId: upstreamId,
    text: content,
    atMs: Date.now(),
  });
  return importId;
}
const eventOf = (world: TestWorld) =>
  usageEvent(testTenant({ enterprise: { id: world.enterpriseId, name: 'x' } }), Date.now());
async function book(values: readonly (object | string)[]): Promise<void> {
  const result = await new UsageLedger(db.pool).bookSlice({
    topic: 'matrix',
    partition: 0,
    records: values.map((value) => ({
      offset: BigInt((counter += 1)),
      key: null,
      value: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)),
    })),
    order: 'unfenced',
  });
  if (result.outcome !== 'booked') throw new Error(result.outcome);
}
/** A record that cannot be booked; null: of nobody that could be named. */
async function freshDeadLetter(world: TestWorld | null): Promise<string> {
  await book([
    world === null
      ? `{"data":{"enterprise":{"id":"${acme.enterpriseId}"`
      : { ...eventOf(world), spoilt: true },
  ]);
  const [letter] = await listDeadLetters(db.pool, { limit: 1 });
  if (letter === undefined) throw new Error('a dead letter');
  return letter.id;
}
async function freshHole(world: TestWorld) {
  const shard = shardOfWorld(world);
  const epoch = newId();
  await book([1, 3].map((seq) => numbered(eventOf(world), seq, { shard, epoch })));
  return { shard, epoch, fromSeq: 2, toSeq: 2, reason: 'lost with its disk' };
}

/** The same call with ids that this role must not learn of: another enterprise's, and what is beyond its reach. */
const foreignIds =
  (
    of: (world: TestWorld) => string,
    beyond: { manager: () => string[]; member: () => string[] },
    rest: TestCall = {},
  ) =>
  (role: Role): TestCall[] => {
    const ids = [of(globex), newId(), 'not-an-id'];
    if (role === 'manager') ids.push(...beyond.manager());
    if (role === 'member') ids.push(...beyond.member());
    return ids.map((id) => ({ ...rest, id }));
  };
const nobodyBeyond = { manager: () => [], member: () => [] };
const departmentsBeyond = {
  manager: () => [acme.engineering],
  member: () => [acme.engineering, acme.marketing, acme.content],
};
const usersBeyond = {
  manager: () => [acme.users.engineer, acme.users.owner],
  member: () => [acme.users.engineer, acme.users.manager],
};
const keysBeyond = {
  manager: () => [acme.keys.engineer.id],
  member: () => [acme.keys.engineer.id],
};
const limitsBeyond = {
  manager: () => [acme.limits.engineering, acme.limits.enterprise],
  member: () => [acme.limits.engineering, acme.limits.enterprise, acme.limits.content],
};

const range = { from: '2026-11-01', to: '2026-12-01' };

const matrix: Record<OperationId, Entry | 'without a role'> = {
  // Sign-in has no caller yet; sign-out and me know no ids and no permission.
  signIn: 'without a role',
  signOut: 'without a role',
  me: { roles: everyone, own: () => ({}) },

  getEnterprise: { roles: everyone, own: () => ({}) },
  patchEnterprise: {
    roles: ['owner'],
    own: async () => ({
      version: (await clients.owner.call('getEnterprise')).body.version,
      body: { settings: { leaseMs: 61_000 } },
    }),
  },
  getOrganisation: { roles: everyone, own: () => ({}) },
  getNode: {
    roles: everyone,
    own: () => ({ id: acme.keys.member.id }),
    foreign: (role) =>
      [
        globex.enterpriseId,
        globex.marketing,
        globex.users.member,
        globex.keys.member.id,
        newId(),
        ...(role === 'manager'
          ? [acme.enterpriseId, acme.engineering, acme.users.engineer, acme.keys.engineer.id]
          : []),
        ...(role === 'member'
          ? [acme.enterpriseId, acme.content, acme.users.engineer, acme.keys.engineer.id]
          : []),
      ].map((id) => ({ id })),
  },

  createDepartment: {
    roles: writers,
    own: () => ({ body: { name: unique('D'), parentId: acme.marketing } }),
    foreign: (role) =>
      [globex.marketing, newId(), ...(role === 'manager' ? [acme.engineering] : [])].map(
        (parentId) => ({ body: { name: unique('D'), parentId } }),
      ),
  },
  getDepartment: {
    roles: everyone,
    own: (role) => (role === 'member' ? null : { id: acme.content }),
    foreign: foreignIds((world) => world.engineering, departmentsBeyond),
  },
  patchDepartment: {
    roles: writers,
    own: async () => ({ ...(await freshDepartment()), version: 1, body: { name: unique('D') } }),
    foreign: async (role) => [
      ...foreignIds((world) => world.engineering, departmentsBeyond, {
        version: 1,
        body: { name: 'x' },
      })(role),
      // Moving one's own below what is foreign.
      { ...(await freshDepartment()), version: 1, body: { parentId: globex.marketing } },
      ...(role === 'manager'
        ? [{ ...(await freshDepartment()), version: 1, body: { parentId: acme.engineering } }]
        : []),
    ],
  },
  deleteDepartment: {
    roles: writers,
    own: async () => ({ ...(await freshDepartment()), version: 1 }),
    foreign: foreignIds((world) => world.engineering, departmentsBeyond, { version: 1 }),
  },

  listUsers: {
    roles: everyone,
    own: () => ({}),
    foreign: (role) =>
      [globex.marketing, newId(), ...(role === 'manager' ? departmentsBeyond.manager() : [])]
        .concat(role === 'member' ? departmentsBeyond.member() : [])
        .map((departmentId) => ({ query: { departmentId } })),
  },
  createUser: {
    roles: writers,
    own: () => ({ body: { name: unique('U'), departmentId: acme.content } }),
    foreign: (role) =>
      [globex.marketing, newId(), ...(role === 'manager' ? [acme.engineering] : [])].map(
        (departmentId) => ({ body: { name: unique('U'), departmentId } }),
      ),
  },
  getUser: {
    roles: everyone,
    own: () => ({ id: acme.users.member }),
    foreign: foreignIds((world) => world.users.member, usersBeyond),
  },
  patchUser: {
    roles: writers,
    own: async () => ({ ...(await freshUser()), version: 1, body: { name: unique('U') } }),
    foreign: async (role) => [
      ...foreignIds((world) => world.users.member, usersBeyond, {
        version: 1,
        body: { name: 'x' },
      })(role),
      { ...(await freshUser()), version: 1, body: { departmentId: globex.marketing } },
      ...(role === 'manager'
        ? [{ ...(await freshUser()), version: 1, body: { departmentId: acme.engineering } }]
        : []),
    ],
  },
  deleteUser: {
    roles: writers,
    own: async () => ({ ...(await freshUser()), version: 1 }),
    foreign: foreignIds((world) => world.users.member, usersBeyond, { version: 1 }),
  },

  listKeys: {
    roles: ['owner', 'admin', 'manager', 'member'],
    own: () => ({}),
    foreign: (role) => [
      { query: { userId: globex.users.member } },
      { query: { departmentId: globex.content } },
      ...(role === 'manager'
        ? [
            { query: { userId: acme.users.engineer } },
            { query: { departmentId: acme.engineering } },
          ]
        : []),
      ...(role === 'member' ? [{ query: { userId: acme.users.engineer } }] : []),
    ],
  },
  createKey: {
    roles: ['owner', 'admin', 'manager', 'member'],
    own: () => ({ body: { name: unique('K'), userId: acme.users.member } }),
    foreign: (role) =>
      [
        globex.users.member,
        newId(),
        ...(role === 'manager' ? usersBeyond.manager() : []),
        ...(role === 'member' ? usersBeyond.member() : []),
      ].map((userId) => ({ body: { name: unique('K'), userId } })),
  },
  getKey: {
    roles: ['owner', 'admin', 'manager', 'member'],
    own: () => ({ id: acme.keys.member.id }),
    foreign: foreignIds((world) => world.keys.member.id, keysBeyond),
  },
  patchKey: {
    roles: ['owner', 'admin', 'manager', 'member'],
    own: async () => ({ ...(await freshKey()), body: { name: unique('K') } }),
    foreign: foreignIds((world) => world.keys.member.id, keysBeyond, {
      version: 1,
      body: { name: 'x' },
    }),
  },
  deleteKey: {
    roles: ['owner', 'admin', 'manager', 'member'],
    own: () => freshKey('disabled'),
    foreign: foreignIds((world) => world.keys.member.id, keysBeyond, { version: 1 }),
  },

  createLimit: {
    roles: writers,
    own: async () => ({
      body: {
        scopeLevel: 'user',
        scopeId: (await freshUser()).id,
        metric: 'tokens',
        window: 'minute',
        amount: '1000',
      },
    }),
    foreign: (role) =>
      [
        { scopeLevel: 'enterprise', scopeId: globex.enterpriseId },
        { scopeLevel: 'department', scopeId: globex.marketing },
        { scopeLevel: 'user', scopeId: globex.users.member },
        { scopeLevel: 'key', scopeId: globex.keys.member.id },
        // An own id under another level is nothing that exists.
        { scopeLevel: 'department', scopeId: acme.users.member },
        ...(role === 'manager'
          ? [
              { scopeLevel: 'enterprise', scopeId: acme.enterpriseId },
              { scopeLevel: 'department', scopeId: acme.engineering },
              { scopeLevel: 'user', scopeId: acme.users.engineer },
              { scopeLevel: 'key', scopeId: acme.keys.engineer.id },
            ]
          : []),
      ].map((scope) => ({
        body: { ...scope, metric: 'requests', window: 'day', amount: '5' },
      })),
  },
  getLimit: {
    roles: everyone,
    own: async (role) => ({
      id:
        role === 'member'
          ? (
              await made('createLimit', {
                scopeLevel: 'key',
                scopeId: (await freshKey()).id,
                metric: 'requests',
                window: 'day',
                amount: '5',
              })
            ).id
          : acme.limits.content,
    }),
    foreign: foreignIds((world) => world.limits.marketing, limitsBeyond),
  },
  patchLimit: {
    roles: writers,
    own: async () => ({ ...(await freshLimit()), version: 1, body: { amount: '2.00' } }),
    foreign: foreignIds((world) => world.limits.marketing, limitsBeyond, {
      version: 1,
      body: { amount: '1.00' },
    }),
  },
  deleteLimit: {
    roles: writers,
    own: async () => ({ ...(await freshLimit()), version: 1 }),
    foreign: foreignIds((world) => world.limits.marketing, limitsBeyond, { version: 1 }),
  },

  listUpstreams: { roles: everyone, own: () => ({}) },
  createUpstream: {
    roles: ['owner', 'admin'],
    own: () => ({ body: { name: unique('P'), baseUrl: 'https://1.1.1.1/v1' } }),
  },
  getUpstream: {
    roles: everyone,
    own: () => ({ id: acme.upstream }),
    foreign: foreignIds((world) => world.upstream, nobodyBeyond),
  },
  patchUpstream: {
    roles: ['owner', 'admin'],
    own: async () => ({ ...(await freshUpstream()), version: 1, body: { enabled: false } }),
    foreign: foreignIds((world) => world.upstream, nobodyBeyond, {
      version: 1,
      body: { enabled: false },
    }),
  },
  listModels: { roles: everyone, own: () => ({}) },
  createModel: {
    roles: ['owner', 'admin'],
    own: () => ({ body: modelBody(acme.upstream) }),
    foreign: () => [{ body: modelBody(globex.upstream) }, { body: modelBody(newId()) }],
  },
  getModel: {
    roles: everyone,
    own: () => ({ id: acme.model }),
    foreign: foreignIds((world) => world.model, nobodyBeyond),
  },
  patchModel: {
    roles: ['owner', 'admin'],
    own: async () => ({
      ...(await made('createModel', modelBody(acme.upstream))),
      version: 1,
      body: { enabled: false },
    }),
    foreign: async (role) => [
      ...foreignIds((world) => world.model, nobodyBeyond, {
        version: 1,
        body: { enabled: false },
      })(role),
      {
        ...(await made('createModel', modelBody(acme.upstream))),
        version: 1,
        body: { routes: [{ upstreamId: globex.upstream, upstreamModel: 'x' }] },
      },
    ],
  },
  createPrice: {
    roles: ['owner', 'admin'],
    own: async () => ({
      ...(await made('createModel', modelBody(acme.upstream))),
      body: { ...priceBody, from: '2099-01-01T00:00:00Z' },
    }),
    foreign: foreignIds((world) => world.model, nobodyBeyond, { body: priceBody }),
  },

  getUsage: {
    roles: everyone,
    own: () => ({ query: range }),
    foreign: (role) => [
      { query: { ...range, departmentId: globex.marketing } },
      { query: { ...range, userId: globex.users.member } },
      { query: { ...range, keyId: globex.keys.member.id } },
      ...(role === 'manager' || role === 'member'
        ? [
            { query: { ...range, departmentId: acme.engineering } },
            { query: { ...range, userId: acme.users.engineer } },
            { query: { ...range, keyId: acme.keys.engineer.id } },
          ]
        : []),
      ...(role === 'member' ? [{ query: { ...range, departmentId: acme.content } }] : []),
    ],
  },
  getRequest: {
    roles: everyone,
    own: async () => ({ query: { id: await freshRequest(acme, 'member') } }),
    foreign: async (role) => [
      { query: { id: await freshRequest(globex, 'member') } },
      { query: { id: newId() } },
      ...(role === 'manager' || role === 'member'
        ? [{ query: { id: await freshRequest(acme, 'engineer') } }]
        : []),
    ],
  },

  createExport: {
    roles: ['owner', 'admin', 'finance', 'manager'],
    own: () => ({ body: exportBody }),
    foreign: (role) => [
      { body: { ...exportBody, departmentId: globex.marketing } },
      { body: { ...exportBody, userId: globex.users.member } },
      { body: { ...exportBody, keyId: globex.keys.member.id } },
      ...(role === 'manager'
        ? [
            { body: { ...exportBody, departmentId: acme.engineering } },
            { body: { ...exportBody, userId: acme.users.engineer } },
            { body: { ...exportBody, keyId: acme.keys.engineer.id } },
          ]
        : []),
    ],
  },
  listExports: { roles: ['owner', 'admin', 'finance', 'manager'], own: () => ({}) },
  getExport: {
    roles: ['owner', 'admin', 'finance', 'manager'],
    own: async (role) => ({ id: await freshExport(acme, role, 'queued') }),
    foreign: async (role) => exportsBeyond(role, 'queued'),
  },
  cancelExport: {
    roles: ['owner', 'admin', 'finance', 'manager'],
    own: async (role) => ({ id: await freshExport(acme, role, 'queued') }),
    foreign: async (role) => exportsBeyond(role, 'queued'),
  },
  downloadExport: {
    roles: ['owner', 'admin', 'finance', 'manager'],
    own: async (role) => ({ id: await freshExport(acme, role, 'done') }),
    foreign: async (role) => exportsBeyond(role, 'done'),
  },

  listAudit: { roles: ['owner', 'admin', 'finance'], own: () => ({}) },
  getMeteringStatus: { roles: everyone, own: () => ({}) },
  // No epoch was declared in this Redis, so its counters cannot be read: an honest 503, past all checks of rights.
  getReconciliation: { roles: ['owner', 'admin', 'finance'], own: () => ({}), status: 503 },
  listReconcileRuns: { roles: ['owner', 'admin', 'finance'], own: () => ({}) },
  repairCounter: {
    roles: ['owner'],
    own: () => ({ body: { scopeId: acme.content, reason: 'x' } }),
    // As above: no epoch.
    status: 503,
    foreign: () =>
      [
        globex.enterpriseId,
        globex.marketing,
        globex.users.member,
        globex.keys.member.id,
        newId(),
      ].map((scopeId) => ({ body: { scopeId, reason: 'x' } })),
  },
  listProviderFiles: { roles: ['owner', 'admin', 'finance'], own: () => ({}) },
  importProviderFile: {
    roles: ['owner', 'admin', 'finance'],
    own: () => ({ body: providerFileOf(acme.upstream) }),
    foreign: () => [{ body: providerFileOf(globex.upstream) }, { body: providerFileOf(newId()) }],
  },
  matchProviderFile: {
    roles: ['owner', 'admin', 'finance'],
    own: async () => ({ id: await freshProviderFile(acme) }),
    foreign: async () => [{ id: await freshProviderFile(globex) }, { id: newId() }],
  },
  // Raw records: the owner's alone.
  listDeadLetters: { roles: ['owner'], own: () => ({}) },
  replayDeadLetter: {
    roles: ['owner'],
    own: async () => ({ id: await freshDeadLetter(acme) }),
    foreign: async () => [
      { id: await freshDeadLetter(globex) },
      { id: await freshDeadLetter(null) },
      { id: newId() },
    ],
  },
  acceptHole: {
    roles: ['owner'],
    own: async () => ({ body: await freshHole(acme) }),
    foreign: async () => [{ body: await freshHole(globex) }],
  },
};

async function exportsBeyond(role: Role, status: 'queued' | 'done'): Promise<TestCall[]> {
  return [
    { id: await freshExport(globex, 'owner', status) },
    { id: newId() },
    ...(role === 'manager' ? [{ id: await freshExport(acme, 'finance', status) }] : []),
  ];
}

const cases = (Object.entries(matrix) as [OperationId, Entry | 'without a role'][]).flatMap(
  ([operationId, entry]) =>
    entry === 'without a role' ? [] : everyone.map((role) => ({ operationId, role, entry })),
);

describe('the matrix of roles and routes', () => {
  it('has an entry for every route of the table, and for nothing else', () => {
    expect(Object.keys(matrix).sort()).toEqual(Object.keys(adminApi).sort());
  });

  it('tests a foreign id on every route that takes one', () => {
    for (const [operationId, route] of Object.entries(adminApi) as [OperationId, ApiRoute][]) {
      const entry = matrix[operationId];
      const takesId =
        route.path.includes('{id}') ||
        [...Object.keys(route.body?.shape ?? {}), ...Object.keys(route.query?.shape ?? {})].some(
          (field) => field.endsWith('Id') && field !== 'targetId',
        );
      if (takesId && entry !== 'without a role') expect(entry.foreign, operationId).toBeDefined();
    }
  });

  it.each(cases)('$operationId as $role', async ({ operationId, role, entry }) => {
    const client = clients[role];
    const route: ApiRoute = adminApi[operationId];
    const foreign = (await entry.foreign?.(role)) ?? [];
    if (!entry.roles.includes(role)) {
      const own = (await entry.own(role)) ?? {};
      for (const call of [own, ...foreign]) {
        const answer = await client.call(operationId, call);
        expect(answer.status, answer.text).toBe(403);
        expect(answer.body.error.code).toBe('forbidden');
      }
      return;
    }
    for (const call of foreign) {
      const answer = await client.call(operationId, call);
      expect(answer.status, `${JSON.stringify(call)} ${answer.text}`).toBe(404);
      expect(answer.body.error.code).toBe('not_found');
    }
    const own = await entry.own(role);
    if (own === null) return;
    const answer = await client.call(operationId, own);
    expect(answer.status, answer.text).toBe(entry.status ?? route.status);
  });
});
