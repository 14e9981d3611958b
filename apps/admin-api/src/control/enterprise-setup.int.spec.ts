import { openDatabase, verifyAuditChain, type Database } from '@weir/persistence';
import {
  createTestDatabase,
  openTestRedis,
  type TestDatabase,
  type TestRedis,
} from '@weir/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../testing/test-app.js';
import { createEnterpriseWithOwner, EnterpriseSetup } from './enterprise-setup.js';

let database: TestDatabase;
let redis: TestRedis;
let db: Database;
let test: TestApp;

beforeAll(async () => {
  database = await createTestDatabase();
  redis = openTestRedis();
  db = openDatabase({ url: database.url, poolMax: 2 });
  test = await startTestApp({
    databaseUrl: database.url,
    redisUrl: redis.url,
    redisPrefix: redis.prefix,
  });
});
afterAll(async () => {
  await test?.close();
  await db?.close();
  await redis?.close();
  await database?.drop();
});

describe('a new enterprise', () => {
  it('has one owner, who can sign in and make the rest', async () => {
    const email = 'Owner@example.com';
    const password = 'a long enough password';
    const made = await createEnterpriseWithOwner(test.app, {
      enterprise: { name: 'Example Ltd', timeZone: 'America/St_Johns', currency: 'CAD' },
      owner: { name: 'Owner', email, password, department: 'Administration' },
    });
    const owner = await test.signIn(email, password);
    const me = (await owner.call('me')).body;
    expect(me).toMatchObject({
      user: { id: made.ownerId, role: 'owner' },
      enterprise: { id: made.enterpriseId, timeZone: 'America/St_Johns', currency: 'CAD' },
    });
    const department = await owner.call('createDepartment', { body: { name: 'Sales' } });
    expect(department.status).toBe(201);
    expect(await verifyAuditChain(db.prisma, made.enterpriseId)).toEqual({
      intact: true,
      entries: 4n,
    });
  });

  it('is not made when its owner cannot be', async () => {
    const before = await db.prisma.enterprise.count();
    const again = createEnterpriseWithOwner(test.app, {
      enterprise: { name: 'Again', timeZone: 'UTC', currency: 'EUR' },
      owner: {
        name: 'Owner',
        email: 'OWNER@example.com',
        password: 'a long enough password',
        department: 'Administration',
      },
    });
    await expect(again).rejects.toMatchObject({ code: 'conflict' });
    expect(await db.prisma.enterprise.count()).toBe(before);
  });

  it.each([
    [{ timeZone: 'Mars/Olympus' }, 'timeZone'],
    [{ currency: 'euro' }, 'currency'],
  ])('with %o is refused, and nothing of it is left', async (rest, field) => {
    const before = await db.prisma.enterprise.count();
    const enterprise = { name: 'X', timeZone: 'UTC', currency: 'EUR', requestId: 'r', ...rest };
    await expect(test.app.get(EnterpriseSetup).createEnterprise(enterprise)).rejects.toMatchObject({
      code: 'validation_failed',
      details: { fields: [{ path: field }] },
    });
    expect(await db.prisma.enterprise.count()).toBe(before);
  });
});
