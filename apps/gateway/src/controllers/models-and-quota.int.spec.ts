import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limit, model, type World } from '../testing/documents.js';
import { GatewayHarness } from '../testing/gateway-harness.js';

let harness: GatewayHarness;
beforeAll(async () => {
  harness = await GatewayHarness.start();
});
afterAll(() => harness.close());

async function get(
  path: string,
  world?: World,
): Promise<{ status: number; body: Record<string, unknown>; headers: Headers }> {
  const response = await fetch(harness.url + path, {
    headers: world === undefined ? {} : { authorization: `Bearer ${world.secret}` },
  });
  return {
    status: response.status,
    body: (await response.json()) as Record<string, unknown>,
    headers: response.headers,
  };
}

describe('GET /v1/models', () => {
  it('lists only what the key may use, and finds names with a slash', async () => {
    const upstream = harness.demoUpstream();
    const models = ['small', 'acme/large', 'secret'].map((alias) => model(alias, upstream.id));
    const world = await harness.publish({
      upstreams: [upstream],
      models,
      key: { allowedModels: ['small', 'acme/large'] },
    });
    const list = await get('/v1/models', world);
    expect((list.body['data'] as { id: string }[]).map(({ id }) => id)).toEqual([
      'small',
      'acme/large',
    ]);
    expect((await get('/v1/models/acme/large', world)).body).toMatchObject({
      id: 'acme/large',
      object: 'model',
    });
    const hidden = await get('/v1/models/secret', world);
    expect(hidden.status).toBe(404);
    expect(hidden.body).toMatchObject({
      error: { code: 'model_not_found', type: 'invalid_request_error' },
    });
  });

  it('wants a key', async () => {
    const { status, body, headers } = await get('/v1/models');
    expect(status).toBe(401);
    expect(body).toMatchObject({ error: { code: 'invalid_api_key' } });
    expect(headers.get('x-request-id')).toBeTruthy();
  });
});

describe('GET /v1/quota', () => {
  it('shows every limit on the path with used, reserved, remaining and reset, money in currency units', async () => {
    const world = await harness.publish({
      limits: {
        department: [limit('cost', 'month', '12.5')],
        user: [limit('requests', 'day', '10')],
      },
    });
    const answer = await harness.chat(world, { max_tokens: 10 });
    await answer.arrayBuffer();
    const { body } = await get('/v1/quota', world);
    const path = body['path'] as {
      level: string;
      name: string;
      limits: Record<string, string>[];
    }[];
    expect(path.map(({ level }) => level)).toEqual(['enterprise', 'department', 'user', 'key']);
    const cost = path[1]?.limits[0];
    expect(cost).toMatchObject({
      metric: 'cost',
      window: 'month',
      limit: '12.50',
      reserved: '0.00',
    });
    expect(Number(cost?.['used'])).toBeGreaterThan(0);
    expect(Number(cost?.['used']) + Number(cost?.['remaining'])).toBeCloseTo(12.5, 9);
    expect(path[2]?.limits[0]).toMatchObject({
      metric: 'requests',
      limit: '10',
      used: '1',
      remaining: '9',
    });
    expect(Date.parse(path[2]?.limits[0]?.['resets_at'] ?? '')).toBeGreaterThan(Date.now());
  });
});

describe('GET /v1/usage', () => {
  it('passes the request and the key on to the admin API, and its answer back', async () => {
    const seen: { url: string | undefined; authorization: string | undefined }[] = [];
    const adminApi = createServer((request, response) => {
      seen.push({ url: request.url, authorization: request.headers.authorization });
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"rows":[]}');
    });
    await new Promise<void>((resolve) => adminApi.listen(0, '127.0.0.1', resolve));
    const { port } = adminApi.address() as AddressInfo;
    const own = await GatewayHarness.start({ ADMIN_API_URL: `http://127.0.0.1:${port}` });
    try {
      const world = await own.publish();
      const response = await fetch(`${own.url}/v1/usage?granularity=day`, {
        headers: { authorization: `Bearer ${world.secret}` },
      });
      expect([response.status, await response.json()]).toEqual([200, { rows: [] }]);
      expect(seen).toEqual([
        { url: '/internal/v1/key-usage?granularity=day', authorization: `Bearer ${world.secret}` },
      ]);
      expect((await fetch(`${own.url}/v1/usage`)).status).toBe(401);
    } finally {
      await own.close();
      adminApi.close();
    }
  });

  it('says that it is not set up where there is no admin API', async () => {
    const { status, body } = await get('/v1/usage', await harness.publish());
    expect(status).toBe(503);
    expect(body).toMatchObject({ error: { code: 'unavailable' } });
  });
});

describe('health', () => {
  it('is ready, and its metrics count what happened', async () => {
    const world = await harness.publish();
    await (await harness.chat(world)).arrayBuffer();
    expect((await get('/healthz')).body).toEqual({ status: 'ok' });
    expect((await get('/readyz')).body).toMatchObject({ status: 'ready' });
    const text = await (await fetch(`${harness.url}/metrics`)).text();
    expect(text).toMatch(/weir_calls_total\{[^}]*route="\/v1\/chat\/completions"[^}]*\} [1-9]/);
  });
});
