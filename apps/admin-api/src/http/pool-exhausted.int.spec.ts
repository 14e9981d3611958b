import type { Database } from '@weir/persistence';
import {
  createTestDatabase,
  openTestRedis,
  type TestDatabase,
  type TestRedis,
} from '@weir/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp, type TestClient } from '../testing/test-app.js';
import { makeTestWorld, signInAll } from '../testing/test-world.js';
import { DATABASE } from '../tokens.js';

let database: TestDatabase;
let redis: TestRedis;
let test: TestApp;
let owner: TestClient;

beforeAll(async () => {
  database = await createTestDatabase();
  redis = openTestRedis();
  test = await startTestApp({
    databaseUrl: database.url,
    redisUrl: redis.url,
    redisPrefix: redis.prefix,
    settings: { DATABASE_POOL_MAX: '2' },
  });
  const world = await makeTestWorld(test.app, 'acme');
  ({ owner } = await signInAll(test, world));
});
afterAll(async () => {
  await test?.close();
  await redis?.close();
  await database?.drop();
});

describe('with every connection to the database in use', () => {
  it('calls are answered 503 with a time to come back, none hangs, and the next ones are served', async () => {
    const { pool } = test.app.get<Database>(DATABASE);
    const taken = [await pool.connect(), await pool.connect()];
    const begun = performance.now();
    const answers = await Promise.all([
      // A read through Prisma, one of the books in plain SQL, a write, and one that nobody signed.
      owner.call('listUsers'),
      owner.call('getMeteringStatus'),
      owner.call('createDepartment', { body: { name: 'Late', parentId: null } }),
      test.anonymous.call('signIn', { body: { email: 'a@b.example', password: 'nothing' } }),
    ]);
    expect(performance.now() - begun).toBeLessThan(20_000);
    for (const connection of taken) connection.release();
    for (const answer of answers) {
      expect(answer.status, answer.text).toBe(503);
      expect(answer.body.error.code).toBe('unavailable');
      expect(answer.headers['retry-after']).toBe('1');
      expect(answer.headers['x-request-id']).toBeTruthy();
    }
    expect((await owner.call('listUsers')).status).toBe(200);
  }, 40_000);
});
