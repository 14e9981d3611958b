import { createHash } from 'node:crypto';
import { mkdtemp, rm, stat, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apiSchemas } from '@weir/domain';
import { openDatabase, verifyAuditChain, type Database } from '@weir/persistence';
import { connectQuotaRedis, PolicyStore } from '@weir/quota';
import {
  createTestDatabase,
  openTestRedis,
  type TestDatabase,
  type TestRedis,
} from '@weir/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../testing/test-app.js';
import { DemoSecrets } from './demo-secrets.js';
import { seedDemoEnterprise } from './seed-demo-enterprise.js';

let database: TestDatabase;
let redis: TestRedis;
let db: Database;
let test: TestApp;
let folder: string;
const provider = { url: 'http://127.0.0.1:4100/', apiKey: 'demo-key' };

beforeAll(async () => {
  database = await createTestDatabase();
  redis = openTestRedis();
  folder = await mkdtemp(join(tmpdir(), 'weir-demo-'));
  db = openDatabase({ url: database.url, poolMax: 2 });
  test = await startTestApp({
    databaseUrl: database.url,
    redisUrl: redis.url,
    redisPrefix: redis.prefix,
    settings: { UPSTREAM_ALLOW_PRIVATE: 'true' },
  });
});
afterAll(async () => {
  await test?.close();
  await db?.close();
  await redis?.close();
  await database?.drop();
  await rm(folder, { recursive: true, force: true });
});

const stateFile = () => join(folder, 'seed.json');
const seed = (from = provider) => seedDemoEnterprise(test.app, new DemoSecrets(stateFile()), from);
const rowCounts = async () => ({
  enterprises: await db.prisma.enterprise.count(),
  departments: await db.prisma.department.count(),
  users: await db.prisma.user.count(),
  keys: await db.prisma.apiKey.count(),
  limits: await db.prisma.quotaLimit.count(),
  models: await db.prisma.model.count(),
});

describe('the demo', () => {
  it('can be signed in to, and its keys work at a gateway', async () => {
    const made = await seed();
    expect(Object.keys(made.departments).sort()).toEqual([
      'Content Studio',
      'Customer Support',
      'Engineering',
      'Finance',
      'Marketing',
      'Platform',
      'Research',
    ]);
    const owner = await test.signIn(made.console.email, made.console.password);
    const finance = await test.signIn(made.console.finance.email, made.console.finance.password);
    expect((await owner.call('me')).body.user.role).toBe('owner');
    expect((await finance.call('me')).body.user.role).toBe('finance');
    const models = (await owner.call('listModels')).body.items;
    for (const model of models) apiSchemas.modelSchema.parse(model);
    expect(models.map(({ alias }: { alias: string }) => alias)).toEqual([
      'demo-embed',
      'demo-free',
      'demo-large',
      'demo-small',
    ]);

    const quota = connectQuotaRedis({
      url: redis.url,
      prefix: redis.prefix,
      shardCount: 8,
      commandTimeoutMs: 2_000,
    });
    try {
      await quota.ready();
      const store = new PolicyStore(quota);
      expect(made.keys.map(({ department }) => department)).toContain('Marketing');
      expect(made.keys.map(({ department }) => department)).toContain('Engineering');
      for (const { secret, department } of made.keys) {
        const policy = await store.resolve(createHash('sha256').update(secret).digest('hex'));
        expect(policy?.active).toBe(true);
        expect(policy?.path.at(-3)?.name).toBe(department);
        expect([...(policy?.upstreams.values() ?? [])]).toMatchObject([
          { baseUrl: 'http://127.0.0.1:4100/v1' },
        ]);
      }
    } finally {
      await quota.close();
    }
    expect(await verifyAuditChain(db.prisma, made.enterpriseId)).toMatchObject({ intact: true });
  });

  it('is made once: a second start prints the same and changes nothing', async () => {
    const before = await rowCounts();
    const audit = await db.prisma.auditEntry.count();
    expect(await seed()).toEqual(await seed());
    expect(await rowCounts()).toEqual(before);
    expect(await db.prisma.auditEntry.count()).toBe(audit);
  });

  it('follows its provider to another address, and keeps what people have changed', async () => {
    const made = await seed();
    const owner = await test.signIn(made.console.email, made.console.password);
    const id = made.departments['Research'] ?? '';
    const { version } = (await owner.call('getDepartment', { id })).body;
    const renamed = await owner.call('patchDepartment', { id, version, body: { name: 'Labs' } });
    expect(renamed.status).toBe(200);
    const before = await rowCounts();
    await seed({ url: 'http://127.0.0.1:4200', apiKey: 'another-key' });
    expect(await rowCounts()).toEqual(before);
    expect((await owner.call('listUpstreams')).body.items).toMatchObject([
      { baseUrl: 'http://127.0.0.1:4200/v1', version: 2 },
    ]);
  });

  it('keeps its secrets in a file that only its owner reads', async () => {
    expect((await stat(stateFile())).mode & 0o777).toBe(0o600);
  });

  it('with its state file lost gets new passwords and keys, not a second enterprise', async () => {
    const before = await seed();
    await unlink(stateFile());
    const after = await seed();
    expect(after.enterpriseId).toBe(before.enterpriseId);
    expect(after.console.password).not.toBe(before.console.password);
    await test.signIn(after.console.email, after.console.password);
    await expect(test.signIn(before.console.email, before.console.password)).rejects.toThrow(
      'unauthenticated',
    );
    expect((await rowCounts()).enterprises).toBe(1);
  });
});
