import { adminApi, apiSchemas, type ApiRoute, type OperationId } from '@weir/domain';
import {
  createTestDatabase,
  manualClock,
  openTestRedis,
  type TestDatabase,
  type TestRedis,
} from '@weir/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase, type Database } from '@weir/persistence';
import { clientOf, startTestApp, type TestApp, type TestClient } from '../testing/test-app.js';
import { makeTestWorld, testPassword, type TestWorld } from '../testing/test-world.js';

let database: TestDatabase;
let redis: TestRedis;
let test: TestApp;
let world: TestWorld;
let db: Database;
const clock = manualClock('2026-11-29T10:00:00Z');

beforeAll(async () => {
  database = await createTestDatabase();
  redis = openTestRedis();
  test = await startTestApp({
    databaseUrl: database.url,
    redisUrl: redis.url,
    redisPrefix: redis.prefix,
    clock,
    settings: {
      SESSION_TTL: '7200',
      SESSION_IDLE_TTL: '600',
      LOCKOUT_FAILURES: '3',
      LOCKOUT_SECONDS: '60',
    },
  });
  db = openDatabase({ url: database.url, poolMax: 2 });
  world = await makeTestWorld(test.app, 'acme');
});
afterAll(async () => {
  await test?.close();
  await db?.close();
  await redis?.close();
  await database?.drop();
});

const signIn = (email: string, password: string, headers: Record<string, string> = {}) =>
  test.anonymous.call('signIn', { body: { email, password }, headers });

describe('signing in', () => {
  it('answers who it is, with the rights of the role, and sets a cookie that scripts cannot read', async () => {
    const answer = await signIn(world.emailOf('finance'), testPassword);
    expect(answer.status).toBe(200);
    expect(apiSchemas.meSchema.parse(answer.body)).toMatchObject({
      user: { id: world.users.finance, role: 'finance' },
      enterprise: { id: world.enterpriseId, timeZone: 'Asia/Shanghai', currency: 'USD' },
    });
    expect(answer.body.permissions).toContain('exports.run');
    expect(answer.body.permissions).not.toContain('limits.write');
    const cookie = String(answer.headers['set-cookie']);
    expect(cookie).toContain('HttpOnly');
    expect(cookie).toContain('SameSite=Lax');
    expect(cookie).not.toContain('Secure');
  });

  it('takes the e-mail in any case', async () => {
    const answer = await signIn(world.emailOf('admin').toUpperCase(), testPassword);
    expect(answer.status).toBe(200);
  });

  it('stores the token as a hash only', async () => {
    const client = await test.signIn(world.emailOf('owner'), testPassword);
    const token = client.cookie.split('=')[1] ?? '';
    expect(token).toMatch(/^[\w-]{43}$/);
    const rows = await db.prisma.adminSession.findMany();
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain(token);
  });

  it('says the same of an unknown e-mail and of a wrong password', async () => {
    const unknown = await signIn('nobody@acme.example', 'wrong password');
    const wrong = await signIn(world.emailOf('engineer'), 'wrong password');
    expect(unknown.status).toBe(401);
    expect({ ...unknown.body.error, requestId: '' }).toEqual({
      ...wrong.body.error,
      requestId: '',
    });
  });

  it('is refused for a disabled user and a service account', async () => {
    await db.prisma.user.update({
      where: { id: world.users.engineer },
      data: { status: 'disabled', failedSignIns: 0 },
    });
    expect((await signIn(world.emailOf('engineer'), testPassword)).status).toBe(401);
    await db.prisma.user.update({
      where: { id: world.users.engineer },
      data: { status: 'active', kind: 'service' },
    });
    expect((await signIn(world.emailOf('engineer'), testPassword)).status).toBe(401);
    await db.prisma.user.update({
      where: { id: world.users.engineer },
      data: { kind: 'person', failedSignIns: 0, lockedUntil: null },
    });
  });

  it('refuses forms and requests from other sites', async () => {
    const body = 'email=owner%40acme.example&password=x';
    const form = await test.anonymous.call('signIn', {
      body,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect(form.status).toBe(415);
    const text = await test.anonymous.call('signIn', {
      body: JSON.stringify({ email: world.emailOf('owner'), password: testPassword }),
      headers: { 'content-type': 'text/plain' },
    });
    expect(text.status).toBe(415);
    const cross = await signIn(world.emailOf('owner'), testPassword, {
      'sec-fetch-site': 'cross-site',
    });
    expect(cross.status).toBe(403);
    expect(cross.body.error.code).toBe('csrf_failed');
  });
});

describe('the lockout', () => {
  it.each([
    ['a known e-mail', () => world.emailOf('member')],
    ['an unknown e-mail', () => 'stranger@acme.example'],
  ])('locks %s after three failures, says how long, and opens again', async (_name, email) => {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect((await signIn(email(), 'guess')).body.error.code).toBe('unauthenticated');
    }
    const locked = await signIn(email(), testPassword);
    expect(locked.status).toBe(429);
    expect(locked.body.error.code).toBe('locked_out');
    expect(Number(locked.headers['retry-after'])).toBe(60);
    clock.advance(59_000);
    expect((await signIn(email(), testPassword)).body.error.code).toBe('locked_out');
    clock.advance(1_000);
    const again = await signIn(email(), 'guess');
    expect(again.body.error.code).toBe('unauthenticated');
  });

  it('lets the right password in before the limit, and forgets the failures then', async () => {
    const email = world.emailOf('manager');
    for (let round = 0; round < 3; round += 1) {
      expect((await signIn(email, 'guess')).status).toBe(401);
      expect((await signIn(email, 'guess')).status).toBe(401);
      expect((await signIn(email, testPassword)).status).toBe(200);
    }
  });

  it('checks no more guesses than allowed when they all come at once', async () => {
    const email = world.emailOf('admin');
    const answers = await Promise.all(
      Array.from({ length: 12 }, async (_, index) => signIn(email, `guess ${index}`)),
    );
    const checked = answers.filter(({ body }) => body.error.code === 'unauthenticated');
    expect(checked).toHaveLength(3);
    clock.advance(60_000);
    expect((await signIn(email, testPassword)).status).toBe(200);
  });
});

describe('a session', () => {
  it('ends by itself when unused, and at the latest after its time', async () => {
    const idle = await test.signIn(world.emailOf('finance'), testPassword);
    expect((await idle.call('me')).status).toBe(200);
    clock.advance(600_000);
    expect((await idle.call('me')).body.error.code).toBe('unauthenticated');

    const busy = await test.signIn(world.emailOf('finance'), testPassword);
    for (let minute = 0; minute < 119; minute += 1) {
      clock.advance(60_000);
      expect((await busy.call('me')).status).toBe(200);
    }
    clock.advance(60_000);
    expect((await busy.call('me')).status).toBe(401);
  });

  it('ends at sign-out', async () => {
    const client = await test.signIn(world.emailOf('finance'), testPassword);
    const out = await client.call('signOut');
    expect(out.status).toBe(204);
    expect(String(out.headers['set-cookie'])).toMatch(/weir_session=;/);
    expect((await client.call('me')).status).toBe(401);
  });

  it('ends at once when the user is disabled or gets another role or password', async () => {
    const owner = await test.signIn(world.emailOf('owner'), testPassword);
    const patch = async (body: unknown) => {
      const { version } = (await owner.call('getUser', { id: world.users.member })).body;
      const answer = await owner.call('patchUser', { id: world.users.member, version, body });
      expect(answer.status).toBe(200);
    };
    await db.prisma.user.update({
      where: { id: world.users.member },
      data: { failedSignIns: 0, lockedUntil: null },
    });
    for (const body of [
      { status: 'disabled' },
      { role: 'finance' },
      { role: 'member', password: testPassword },
    ]) {
      await patch({ status: 'active' });
      const client = await test.signIn(world.emailOf('member'), testPassword);
      await patch(body);
      expect((await client.call('me')).status, JSON.stringify(body)).toBe(401);
    }
  });

  it('gives the cookie the Secure mark behind https', async () => {
    const secure = await startTestApp({
      databaseUrl: database.url,
      redisUrl: redis.url,
      redisPrefix: redis.prefix,
      clock,
      settings: { TRUST_PROXY: '127.0.0.1' },
    });
    try {
      const answer = await secure.anonymous.call('signIn', {
        body: { email: world.emailOf('finance'), password: testPassword },
        headers: { 'x-forwarded-proto': 'https' },
      });
      expect(String(answer.headers['set-cookie'])).toContain('Secure');
    } finally {
      await secure.close();
    }
  });
});

describe('every route of the table', () => {
  const operations = Object.entries(adminApi) as [OperationId, ApiRoute][];
  const someId = '01890000-0000-7000-8000-000000000000';
  let client: TestClient;
  let other: TestClient;
  beforeAll(async () => {
    client = await test.signIn(world.emailOf('owner'), testPassword);
    other = await test.signIn(world.emailOf('owner'), testPassword);
  });

  it.each(operations.filter(([, route]) => route.permission !== null))(
    '%s wants a session, whatever the cookie says',
    async (operationId) => {
      const forged = clientOf(test.app, `weir_session=${'A'.repeat(43)}`, 'x');
      for (const stranger of [test.anonymous, forged]) {
        const answer = await stranger.call(operationId, { id: someId, body: {} });
        expect(answer.status).toBe(401);
        expect(apiSchemas.apiErrorSchema.parse(answer.body).error.code).toBe('unauthenticated');
      }
    },
  );

  it.each(operations.filter(([, route]) => route.permission !== null && route.method !== 'get'))(
    '%s wants the CSRF token of this very session',
    async (operationId) => {
      for (const token of [undefined, '', 'x', other.csrfToken]) {
        const answer = await client.call(operationId, {
          id: someId,
          body: {},
          headers: { 'x-csrf-token': token },
        });
        expect(answer.body.error.code).toBe('csrf_failed');
        expect(answer.status).toBe(403);
      }
    },
  );
});

describe('sign-ins from one address', () => {
  const narrowApp = (settings: Record<string, string> = {}) =>
    startTestApp({
      databaseUrl: database.url,
      redisUrl: redis.url,
      redisPrefix: redis.prefix,
      settings: { SIGN_IN_RATE_PER_MINUTE: '2', ...settings },
    });
  const attemptAt = (app: TestApp, headers: Record<string, string> = {}) =>
    app.anonymous.call('signIn', { body: { email: 'a@b.example', password: 'x' }, headers });

  it('are told apart behind a proxy by what it has added, not by what the caller claims', async () => {
    const proxied = await narrowApp({ TRUST_PROXY: '1' });
    try {
      const from = (forwarded: string) => attemptAt(proxied, { 'x-forwarded-for': forwarded });
      expect((await from('198.51.100.1, 203.0.113.7')).status).toBe(401);
      expect((await from('198.51.100.2, 203.0.113.7')).status).toBe(401);
      expect((await from('198.51.100.3, 203.0.113.7')).status).toBe(429);
      expect((await from('203.0.113.8')).status).toBe(401);
    } finally {
      await proxied.close();
    }
  });

  it('are bounded per minute', async () => {
    const narrow = await narrowApp();
    try {
      const attempt = () => attemptAt(narrow);
      expect((await attempt()).status).toBe(401);
      expect((await attempt()).status).toBe(401);
      const third = await attempt();
      expect(third.status).toBe(429);
      expect(third.body.error.code).toBe('rate_limit_exceeded');
      expect(Number(third.headers['retry-after'])).toBeGreaterThan(0);
      expect((await narrow.anonymous.call('me')).status).toBe(401);
    } finally {
      await narrow.close();
    }
  });
});
