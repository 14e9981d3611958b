import { connect } from 'node:net';
import { newId } from '@weir/domain';
import { LeaseReaper } from '@weir/quota';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { limit, model, type World } from '../testing/documents.js';
import { GatewayHarness, until } from '../testing/gateway-harness.js';

describe('upstream routing', () => {
  let harness: GatewayHarness;
  beforeAll(async () => {
    harness = await GatewayHarness.start();
  });
  afterAll(() => harness.close());

  async function publish(
    first: object,
    secondModel = 'demo-small',
    more: object = {},
  ): Promise<World> {
    const upstreams = [
      harness.demoUpstream({ name: 'First', ...first }),
      harness.demoUpstream({ name: 'Second' }),
    ];
    const routes = upstreams.map(({ id }, priority) => ({
      upstreamId: id,
      upstreamModel: priority === 0 ? 'demo-small#status:503' : secondModel,
      weight: 1,
      priority,
    }));
    const served = model('small', upstreams[0]?.id ?? '', { routes });
    return harness.publish({ upstreams, models: [served], ...more });
  }

  it.each([
    ['answers 503', {}],
    ['cannot be reached', { baseUrl: 'http://127.0.0.1:9/v1' }],
  ])(
    'falls back to the next upstream when the first %s, each attempt with its own lease',
    async (_name, first) => {
      const world = await publish(first);
      const requestId = newId();
      const response = await harness.chat(world, {}, { requestId });
      expect(response.status).toBe(200);
      await response.arrayBuffer();
      const events = await harness.events(world);
      expect(events).toHaveLength(1);
      expect(events[0]?.data).toMatchObject({
        attempt: 2,
        provider: { name: 'Second' },
        requestId,
      });
      const failure = await until(
        async () => (await harness.refusals(world))[0] ?? null,
        'the failed attempt',
      );
      expect(failure).toMatchObject({ outcome: 'failed', code: 'upstream_error', requestId });
      await harness.untilNothingHeld(world);
    },
  );

  it.each([
    ['when the request itself is refused', 'status:400', false, 400],
    ['once a stream has begun', 'eof_mid_stream', true, 200],
    ['once an answer has begun', 'eof_mid_stream', false, 502],
  ])('tries nobody else %s', async (_name, fault, stream, status) => {
    const upstreams = [
      harness.demoUpstream({ name: 'First' }),
      harness.demoUpstream({ name: 'Second' }),
    ];
    const routes = upstreams.map(({ id }, priority) => ({
      upstreamId: id,
      upstreamModel: priority === 0 ? `demo-small#${fault}` : 'demo-small',
      weight: 1,
      priority,
    }));
    const world = await harness.publish({ upstreams, models: [model('small', '', { routes })] });
    const requestId = newId();
    const response = await harness.chat(world, { stream }, { requestId });
    await response.text();
    expect(response.status).toBe(status);
    await harness.untilNothingHeld(world);
    expect(await harness.bill([requestId])).toHaveLength(1);
    expect((await harness.events(world)).length).toBe(status === 400 ? 0 : 1);
  });

  it('admits a fallback before it is tried: without the room for a second request it is not', async () => {
    const world = await publish({}, 'demo-small', {
      limits: { key: [limit('requests', 'minute', '3')] },
    });
    const statuses: number[] = [];
    for (let call = 0; call < 6; call += 1) statuses.push((await harness.chat(world)).status);
    expect(statuses).toContain(429);
    const served = statuses.filter((status) => status === 200).length;
    expect(await harness.events(world)).toHaveLength(served);
  });
});

describe('the address guard', () => {
  let harness: GatewayHarness;
  beforeAll(async () => {
    harness = await GatewayHarness.start({ UPSTREAM_ALLOW_PRIVATE: false });
  });
  afterAll(() => harness.close());

  it.each(['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '2130706433'])(
    'sends nothing to a private address that does answer, written as %s',
    async (host) => {
      const { port } = new URL(harness.providerUrl);
      const upstream = harness.demoUpstream({ baseUrl: `http://${host}:${port}/v1` });
      const world = await harness.publish({ upstreams: [upstream] });
      const requestId = newId();
      const response = await harness.chat(world, {}, { requestId });
      expect(response.status).toBe(502);
      // What is wrong inside of the network is not for the caller.
      expect(await response.text()).not.toMatch(/private|loopback|127/);
      expect(await harness.bill([requestId])).toEqual([]);
      await harness.untilNothingHeld(world);
    },
  );
});

describe('the adaptive guard', () => {
  let harness: GatewayHarness;
  beforeAll(async () => {
    harness = await GatewayHarness.start({ ADAPTIVE_CONCURRENCY: true });
  });
  afterAll(() => harness.close());

  it('keeps more calls than an upstream serves well away from it, without a reservation left behind', async () => {
    const world = await harness.publish();
    const ids = Array.from({ length: 60 }, () => newId());
    const statuses = await Promise.all(
      ids.map(async (requestId) => {
        const response = await harness.chat(world, {}, { requestId, demo: 'headers_delay_ms=400' });
        await response.arrayBuffer();
        return response.status;
      }),
    );
    const served = statuses.filter((status) => status === 200).length;
    // It begins with 20; a few more may pass between the look and the call.
    expect(served).toBeGreaterThanOrEqual(20);
    expect(served).toBeLessThan(60);
    expect(statuses.filter((status) => status === 503)).toHaveLength(60 - served);
    expect(await harness.bill(ids)).toHaveLength(served);
    await harness.untilNothingHeld(world);
    expect((await harness.chat(world)).status).toBe(200);
  });
});

describe('streams over time', () => {
  let harness: GatewayHarness;
  beforeAll(async () => {
    harness = await GatewayHarness.start({ STREAM_KEEP_ALIVE_MS: 50, CLIENT_STALL_MS: 300 });
  });
  afterAll(() => harness.close());

  it('keeps a waiting stream open with comments', async () => {
    const world = await harness.publish();
    const response = await harness.chat(
      world,
      { stream: true },
      { demo: 'first_token_delay_ms=400' },
    );
    const text = await response.text();
    expect(text).toContain(': keep-alive');
    expect(text).toContain('[DONE]');
  });

  it('keeps the slot of a stream that runs longer than its lease, and settles it as any other', async () => {
    const world = await harness.publish({
      settings: { leaseMs: 5_000 },
      limits: { key: [limit('concurrency', null, '1')] },
    });
    const requestId = newId();
    // With a cap there is no taximeter, which would renew the lease as well.
    const response = await harness.chat(
      world,
      { stream: true, max_tokens: 200 },
      { requestId, demo: 'output_tokens=65;tokens_per_second=10' },
    );
    const reaper = new LeaseReaper(harness.redis, { batch: 100 });
    let reaped = 0;
    let refused = 0;
    let ended = false;
    const body = response.text().finally(() => {
      ended = true;
    });
    while (!ended) {
      for (const shard of [0, 1]) reaped += await reaper.reap(shard);
      const second = await harness.chat(world, {});
      await second.arrayBuffer();
      if (second.status === 429) refused += 1;
      await Promise.race([body, new Promise((resolve) => setTimeout(resolve, 250))]);
    }
    expect(await body).toContain('[DONE]');
    expect(reaped).toBe(0);
    expect(refused).toBeGreaterThan(10);
    const [event] = await harness.events(world);
    const [bill] = await harness.bill([requestId]);
    expect(event?.data).toMatchObject({ status: 'ok', late: false, costPico: bill?.cost_pico });
  }, 20_000);

  it('cuts a client that takes nothing, and settles its stream', async () => {
    const upstream = harness.demoUpstream({ onClientGone: 'abort' });
    const world = await harness.publish({
      upstreams: [upstream],
      models: [
        model('small', upstream.id, { maxOutputTokens: 200_000, contextWindowTokens: 400_000 }),
      ],
    });
    const body = JSON.stringify({
      model: 'small',
      stream: true,
      max_tokens: 200_000,
      messages: [{ role: 'user', content: 'Go on.' }],
      user: 'demo:output_tokens=200000',
    });
    const { hostname, port } = new URL(harness.url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => undefined);
    socket.pause();
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${world.secret}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    const [event] = await until(async () => {
      const events = await harness.events(world);
      return events.length > 0 ? events : null;
    }, 'the stalled stream to be settled');
    socket.destroy();
    expect(event?.data.status).toBe('cancelled');
    expect(event?.data.usage.output).toBeGreaterThan(0);
    await harness.untilNothingHeld(world);
  });

  it('leaves nothing reserved after 120 streams that are cancelled at random points, and the counters equal the events', async () => {
    const upstreams = [
      harness.demoUpstream({ onClientGone: 'abort' }),
      harness.demoUpstream({ onClientGone: 'drain' }),
    ];
    const models = upstreams.map(({ id }, index) => model(`m${index}`, id));
    const world = await harness.publish({ upstreams, models });
    let seed = 7;
    const random = (): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    await Promise.all(
      Array.from({ length: 120 }, async (_, index) => {
        const abort = new AbortController();
        const demo =
          'headers_delay_ms=20;first_token_delay_ms=20;output_tokens=60;tokens_per_second=400';
        // A quarter leaves at some moment, most of them before the head; the others after some pieces of the answer.
        const pieces = index % 4 === 0 ? null : Math.floor(random() * 12);
        if (pieces === null) setTimeout(() => abort.abort(), random() * 60);
        try {
          const response = await harness.chat(
            world,
            { model: `m${index % 2}`, stream: true },
            { signal: abort.signal, demo },
          );
          const reader = response.body?.getReader();
          for (let read = 0; read < (pieces ?? 1_000); read += 1) {
            if ((await reader?.read())?.done === true) break;
          }
          abort.abort();
        } catch {
          // Cancelled, as intended.
        }
      }),
    );
    await harness.untilNothingHeld(world);
    const events = await harness.events(world);
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    const total = events.reduce((sum, { data }) => sum + BigInt(data.costNano), 0n);
    for (const { month } of await harness.peek(world)) {
      expect(month.costNano).toBe(total);
      expect(month.requests).toBe(BigInt(events.length));
    }
    expect(events.some(({ data }) => data.status === 'cancelled')).toBe(true);
  });
});

describe('the end of a gateway', () => {
  let harness: GatewayHarness;
  afterEach(() => harness.close());

  it('lets a stream that fits into the grace time finish, cuts one that does not, and settles both', async () => {
    harness = await GatewayHarness.start({ SHUTDOWN_GRACE_MS: 1_000 });
    const short = await harness.publish();
    const long = await harness.publish();
    const [first, second] = await Promise.all([
      harness.chat(short, { stream: true }, { demo: 'output_tokens=20;tokens_per_second=50' }),
      harness.chat(long, { stream: true }, { demo: 'output_tokens=1000;tokens_per_second=50' }),
    ]);
    const bodies = Promise.allSettled([first.text(), second.text()]);
    const begun = performance.now();
    await harness.closeGateway();
    // The grace time, and not the 5 s that a step of the shutdown may take at most.
    expect(performance.now() - begun).toBeLessThan(5_000);
    const [whole, cut] = await bodies;
    expect(whole.status === 'fulfilled' && whole.value.includes('[DONE]')).toBe(true);
    expect(cut.status).toBe('rejected');
    expect((await harness.events(short))[0]?.data.status).toBe('ok');
    const [event] = await harness.events(long);
    // Which side's end of the connection is seen first is a matter of chance.
    expect(['cancelled', 'partial']).toContain(event?.data.status);
    expect(event?.data.usage.output).toBeGreaterThan(0);
    await harness.untilNothingHeld(short);
    await harness.untilNothingHeld(long);
  });
});
