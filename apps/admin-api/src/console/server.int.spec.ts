import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { adminOpenApiDocument } from '@weir/domain';
import {
  createTestDatabase,
  openTestRedis,
  type TestDatabase,
  type TestRedis,
} from '@weir/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../testing/test-app.js';

let database: TestDatabase;
let redis: TestRedis;
let test: TestApp;
let folder: string;

beforeAll(async () => {
  database = await createTestDatabase();
  redis = openTestRedis();
  folder = await mkdtemp(join(tmpdir(), 'weir-console-'));
  await mkdir(join(folder, 'dist', 'assets'), { recursive: true });
  await writeFile(join(folder, 'dist', 'index.html'), '<!doctype html><title>Weir</title>');
  await writeFile(join(folder, 'dist', 'favicon.svg'), '<svg/>');
  await writeFile(join(folder, 'dist', 'assets', 'index-a1b2c3.js'), 'export {};');
  await writeFile(join(folder, 'secret.txt'), 'not for you');
  test = await startTestApp({
    databaseUrl: database.url,
    redisUrl: redis.url,
    redisPrefix: redis.prefix,
    settings: { CONSOLE_DIR: join(folder, 'dist'), METRICS_TOKEN: 'metrics-token-for-tests' },
  });
});
afterAll(async () => {
  await test?.close();
  await redis?.close();
  await database?.drop();
  await rm(folder, { recursive: true, force: true });
});

const get = async (url: string, headers: Record<string, string> = {}) =>
  test.app.inject({ method: 'GET', url, headers });

describe('the console', () => {
  it('is served at / and at its own routes, to be asked for anew each time', async () => {
    for (const url of ['/', '/organisation', '/usage?from=2026-11-01', '/nodes/abc/limits']) {
      const answer = await get(url);
      expect(answer.statusCode, url).toBe(200);
      expect(answer.headers['content-type']).toContain('text/html');
      expect(answer.headers['cache-control']).toBe('no-cache');
      expect(answer.payload).toContain('<title>Weir</title>');
    }
  });

  it('has assets that are kept for ever, and others that are not', async () => {
    const asset = await get('/assets/index-a1b2c3.js');
    expect(asset.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect(asset.headers['content-type']).toContain('javascript');
    expect((await get('/favicon.svg')).headers['cache-control']).toBe('no-cache');
  });

  it.each([
    '/assets/index-old.js',
    '/missing.css',
    '/api/v1/nothing',
    '/api',
    '/internal/nothing',
    '/../secret.txt',
    '/..%2fsecret.txt',
    '/%2e%2e/secret.txt',
    '/assets/..%5c..%5csecret.txt',
    '/%00',
    '/%E0%A4%A',
  ])('%s is not there, and gets no page', async (url) => {
    const answer = await get(url);
    expect([400, 404]).toContain(answer.statusCode);
    expect(answer.payload).not.toContain('not for you');
    expect(answer.payload).not.toContain('<title>');
    expect(JSON.parse(answer.payload).error.requestId).toBeTruthy();
  });

  it('may run no script but its own, in no frame but its own', async () => {
    for (const url of ['/', '/api/v1/auth/me']) {
      const { headers } = await get(url);
      const policy = String(headers['content-security-policy']);
      expect(policy).toContain("default-src 'self'");
      expect(policy).toContain("script-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('upgrade-insecure-requests');
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['x-frame-options']).toBe('DENY');
      expect(headers['referrer-policy']).toBe('same-origin');
    }
  });
});

describe('the server', () => {
  it('serves the OpenAPI document that the contract generates', async () => {
    const answer = await get('/api/openapi.json');
    expect(JSON.parse(answer.payload)).toEqual(JSON.parse(JSON.stringify(adminOpenApiDocument())));
  });

  it('answers its probes and, to those who may, its metrics', async () => {
    expect((await get('/healthz')).statusCode).toBe(200);
    const ready = JSON.parse((await get('/readyz')).payload);
    expect(ready.status).toBe('ready');
    expect(Object.keys(ready.checks).sort()).toEqual(['postgres', 'redis']);
    expect((await get('/metrics')).statusCode).toBe(401);
    const metrics = await get('/metrics', { authorization: 'Bearer metrics-token-for-tests' });
    expect(metrics.payload).toContain('http_request_duration_seconds');
  });

  it('goes on without Redis, and says that it is degraded', async () => {
    const cutOff = await startTestApp({
      databaseUrl: database.url,
      redisUrl: 'redis://127.0.0.1:1',
      redisPrefix: redis.prefix,
      settings: { PUBLISH_TIMEOUT_MS: '100' },
    });
    try {
      const answer = await cutOff.app.inject('/readyz');
      expect(answer.statusCode).toBe(200);
      expect(JSON.parse(answer.payload).status).toBe('degraded');
    } finally {
      await cutOff.close();
    }
  });

  it('refuses a body that is larger than any of its own', async () => {
    const answer = await test.app.inject({
      method: 'POST',
      url: '/api/v1/auth/sign-in',
      headers: { 'content-type': 'application/json' },
      payload: JSON.stringify({ email: 'a@b.example', password: 'x'.repeat(300_000) }),
    });
    expect(answer.statusCode).toBe(413);
    expect(JSON.parse(answer.payload).error.code).toBe('body_too_large');
  });
});
