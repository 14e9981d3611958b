import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limit } from '../testing/documents.js';
import {
  GatewayHarness,
  redisUrl,
  until,
  type RunningGateway,
} from '../testing/gateway-harness.js';
import { TcpProxy } from '../testing/tcp-proxy.js';

/** A way to Redis that can be cut, or is long. */
function proxyToRedis(lagMs = 0): Promise<TcpProxy> {
  const { hostname, port } = new URL(redisUrl());
  return TcpProxy.start({ host: hostname, port: Number(port === '' ? 6_379 : port) }, lagMs);
}

let proxy: TcpProxy;
let harness: GatewayHarness;
beforeAll(async () => {
  proxy = await proxyToRedis();
  harness = await GatewayHarness.start({
    REDIS_URL: `redis://127.0.0.1:${proxy.port}`,
    REDIS_COMMAND_TIMEOUT_MS: 100,
  });
});
afterAll(async () => {
  proxy.pass();
  await harness.close();
  await proxy.close();
});

async function readiness(): Promise<string> {
  const response = await fetch(`${harness.url}/readyz`);
  return ((await response.json()) as { status: string }).status;
}

describe.each(['refuse', 'swallow'] as const)('with Redis away (%s)', (way) => {
  it('goes on within its share, says so, and books every call once Redis is back', async () => {
    const world = await harness.publish({
      limits: { department: [limit('tokens', 'month', '1000000')] },
    });
    let served = 0;
    // Redis itself must have said what is left, which a timeout on a busy machine can keep it from.
    await until(async () => {
      const response = await harness.chat(world, { max_tokens: 50 });
      await response.arrayBuffer();
      if (response.status === 200) served += 1;
      return response.status === 200 && response.headers.get('x-weir-degraded') === null;
    }, 'a call that Redis admitted');

    proxy[way]();
    let degraded = 0;
    for (let call = 0; call < 12; call += 1) {
      const begun = performance.now();
      const response = await harness.chat(world, { max_tokens: 50, stream: call % 2 === 0 });
      await response.text();
      expect(response.status).toBe(200);
      served += 1;
      if (response.headers.get('x-weir-degraded') === 'true') degraded += 1;
      // Two timeouts at most: while the circuit is still closed, and for the end that waits 20 ms.
      expect(performance.now() - begun).toBeLessThan(600);
    }
    expect(degraded).toBeGreaterThan(5);
    expect(await readiness()).toBe('degraded');

    proxy.pass();
    await until(
      async () => (await readiness()) === 'ready',
      'the gateway to share its limits again',
    );
    const events = await until(async () => {
      const found = await harness.events(world);
      return found.length >= served ? found : null;
    }, 'what was spooled to be booked');
    expect(new Set(events.map(({ id }) => id)).size).toBe(served);
    const total = events.reduce((sum, { data }) => sum + BigInt(data.costNano), 0n);
    for (const { month, inFlight } of await harness.peek(world)) {
      expect(month.costNano).toBe(total);
      expect(inFlight).toBe(0);
    }
  }, 30_000);

  it('refuses calls of an enterprise that chose to be closed, with 503 and a time to come back', async () => {
    const world = await harness.publish({ settings: { degradedMode: 'closed' } });
    await until(async () => (await harness.chat(world)).status === 200, 'a call to be served');
    proxy[way]();
    const response = await harness.chat(world);
    expect(response.status).toBe(503);
    expect(((await response.json()) as { error: { code: string } }).error.code).toBe(
      'quota_unavailable',
    );
    expect(response.headers.get('retry-after')).toBe('1');
    proxy.pass();
    await until(
      async () => (await readiness()) === 'ready',
      'the gateway to share its limits again',
    );
  }, 30_000);
});

describe.each(['refuse', 'swallow'] as const)('started while Redis is away (%s)', (way) => {
  it('says so, and shares its limits within seconds of its return', async () => {
    const away = await proxyToRedis();
    away[way]();
    const late = await GatewayHarness.start({
      REDIS_URL: `redis://127.0.0.1:${away.port}`,
      REDIS_COMMAND_TIMEOUT_MS: 500,
    });
    const status = async (): Promise<unknown> =>
      ((await (await fetch(`${late.url}/readyz`)).json()) as { status: unknown }).status;
    try {
      expect(await status()).toBe('degraded');
      const world = await late.publish({ limits: { user: [limit('requests', 'month', '1')] } });
      // It knows no key yet, and serves nobody whom it does not know.
      const early = await late.chat(world);
      expect(early.status).toBe(503);
      expect(early.headers.get('retry-after')).toBe('1');
      away.pass();
      const begun = performance.now();
      await until(async () => (await status()) === 'ready', 'the gateway to share its limits');
      expect(performance.now() - begun).toBeLessThan(5_000);
      const first = await late.chat(world);
      expect(first.status).toBe(200);
      expect(first.headers.get('x-weir-degraded')).toBeNull();
      expect((await late.chat(world)).status).toBe(429);
      expect((await late.peek(world))[2]?.month.requests).toBe(1n);
    } finally {
      away.pass();
      await late.close();
      await away.close();
    }
  }, 30_000);
});

describe('behind a slow network', () => {
  const lagMs = 5;
  let far: TcpProxy;
  let near: GatewayHarness;
  let slow: RunningGateway;
  beforeAll(async () => {
    far = await proxyToRedis(lagMs);
    near = await GatewayHarness.start();
    slow = await near.startAnother({ REDIS_URL: `redis://127.0.0.1:${far.port}` });
  });
  afterAll(async () => {
    await slow.close();
    await near.close();
    await far.close();
  });

  it('settles before it answers where the next call needs it, which may go through another gateway', async () => {
    const world = await near.publish({ limits: { key: [limit('concurrency', null, '1')] } });
    let passed = 0;
    for (let call = 0; call < 20; call += 1) {
      await (await near.chat(world, {}, { gatewayUrl: slow.url })).arrayBuffer();
      const next = await near.chat(world);
      await next.arrayBuffer();
      if (next.status === 200) passed += 1;
      // An answer that has waited for 20 ms waits no longer, and a busy machine takes that long now and then.
      await near.untilNothingHeld(world);
    }
    expect(passed).toBeGreaterThan(15);
  }, 30_000);

  it('answers a trip to Redis sooner where the limits leave room for the next call', async () => {
    const tight = await near.publish({ limits: { key: [limit('concurrency', null, '1')] } });
    const roomy = await near.publish({ limits: { key: [limit('concurrency', null, '100')] } });
    const times = { tight: [] as number[], roomy: [] as number[] };
    for (let call = 0; call < 20; call += 1) {
      for (const [name, world] of [
        ['tight', tight],
        ['roomy', roomy],
      ] as const) {
        const begun = performance.now();
        const response = await near.chat(world, {}, { gatewayUrl: slow.url });
        await response.arrayBuffer();
        times[name].push(performance.now() - begun);
        expect(response.status).toBe(200);
        await near.untilNothingHeld(world);
      }
    }
    const median = (values: number[]): number => values.sort((a, b) => a - b)[10] ?? Number.NaN;
    expect(median(times.roomy)).toBeLessThan(median(times.tight) - lagMs);
    expect(await near.events(roomy)).toHaveLength(20);
  }, 30_000);
});
