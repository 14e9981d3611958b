import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limit } from '../testing/documents.js';
import { GatewayHarness, until } from '../testing/gateway-harness.js';

let harness: GatewayHarness;
beforeAll(async () => {
  harness = await GatewayHarness.start();
});
afterAll(() => harness?.close());

const oneAtATime = { enterprise: [limit('concurrency', null, '1')] };
const settings = (maxWaitMs: number, maxWaiting = 10, streamNotices = true) => ({
  queue: { maxWaitMs, maxWaiting, streamNotices },
});

const waiting = (count: number, at = harness) =>
  until(async () => (await at.metric('weir_calls_waiting')) === count, `${count} to wait`);

const abortUpstreams = () => [harness.demoUpstream({ onClientGone: 'abort' })];

describe('a call that a limit refuses for now', () => {
  it('waits for a slot, passes and says in its event how long it waited', async () => {
    const world = await harness.publish({ limits: oneAtATime, settings: settings(9_000) });
    const first = harness.chat(world, {}, { demo: 'headers_delay_ms=300', requestId: 'first' });
    await until(
      async () => (await harness.peek(world)).some(({ inFlight }) => inFlight === 1),
      'the first to run',
    );
    const second = await harness.chat(world, {}, { requestId: 'second' });
    expect([(await first).status, second.status]).toEqual([200, 200]);
    const events = await harness.events(world);
    expect(events.map(({ data }) => data.requestId)).toEqual(['first', 'second']);
    expect(events[0]?.data.queueWaitMs).toBe(0);
    expect(events[1]?.data.queueWaitMs).toBeGreaterThan(50);
    await harness.untilNothingHeld(world);
  });

  it('waits for a rate until its retry-after', async () => {
    const world = await harness.publish({
      limits: { user: [limit('requests', 'second', '1')] },
      settings: settings(9_000),
    });
    expect((await harness.chat(world)).status).toBe(200);
    const since = performance.now();
    expect((await harness.chat(world)).status).toBe(200);
    expect(performance.now() - since).toBeGreaterThan(100);
    expect(await harness.refusals(world)).toEqual([]);
  });

  it('is refused at once where the wait is known to be too long', async () => {
    const world = await harness.publish({
      limits: { user: [limit('requests', 'hour', '1')] },
      settings: settings(60_000),
    });
    expect((await harness.chat(world)).status).toBe(200);
    expect((await harness.chat(world)).status).toBe(429);
  });

  it('leaves with the usual 429 at the end of its time', async () => {
    const world = await harness.publish({
      upstreams: abortUpstreams(),
      limits: oneAtATime,
      settings: settings(150),
    });
    const release = await harness.holdSlot(world);
    const answer = await harness.chat(world);
    expect(answer.status).toBe(429);
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await answer.json()).toMatchObject({ error: { code: 'concurrency_exceeded' } });
    await release();
  });

  it('is refused at once when the line is full', async () => {
    const world = await harness.publish({
      upstreams: abortUpstreams(),
      limits: oneAtATime,
      settings: settings(30_000, 1),
    });
    const release = await harness.holdSlot(world);
    const inLine = harness.chat(world);
    await waiting(1);
    expect((await harness.chat(world)).status).toBe(429);
    await release();
    expect((await inLine).status).toBe(200);
    await harness.untilNothingHeld(world);
  });

  it('never waits for a budget', async () => {
    const world = await harness.publish({
      limits: { user: [limit('requests', 'day', '1')] },
      settings: settings(60_000),
    });
    expect((await harness.chat(world)).status).toBe(200);
    const answer = await harness.chat(world);
    expect(answer.status).toBe(429);
    expect(await answer.json()).toMatchObject({ error: { code: 'insufficient_quota' } });
    expect(answer.headers.get('x-should-retry')).toBe('false');
  });

  it('holds nothing when its caller leaves the line', async () => {
    const world = await harness.publish({
      upstreams: abortUpstreams(),
      limits: oneAtATime,
      settings: settings(30_000),
    });
    const release = await harness.holdSlot(world);
    const gone = new AbortController();
    const left = harness.chat(world, {}, { requestId: 'gone', signal: gone.signal });
    await waiting(1);
    gone.abort();
    await expect(left).rejects.toThrow();
    await waiting(0);
    await release();
    expect((await harness.chat(world, {}, { requestId: 'next' })).status).toBe(200);
    await harness.untilNothingHeld(world);
    const served = (await harness.events(world)).map(({ data }) => data.requestId);
    expect(served).toContain('next');
    expect(served).not.toContain('gone');
    expect(await harness.refusals(world)).toEqual([]);
  });

  it('takes turns with other users, and goes in the order of arrival within one', async () => {
    const ada = await harness.publish({
      upstreams: abortUpstreams(),
      limits: oneAtATime,
      settings: settings(30_000),
    });
    const bob = await harness.publishColleague(ada, 'Bob');
    const release = await harness.holdSlot(ada);
    const calls: Promise<Response>[] = [];
    for (const [world, requestId] of [
      [ada, 'ada-1'],
      [ada, 'ada-2'],
      [ada, 'ada-3'],
      [bob, 'bob-1'],
    ] as const) {
      calls.push(harness.chat(world, {}, { requestId }));
      await waiting(calls.length);
    }
    await release();
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    await harness.untilNothingHeld(ada);
    const order = (await harness.events(ada)).map(({ data }) => data.requestId);
    expect(order.slice(-4)).toEqual(['ada-1', 'bob-1', 'ada-2', 'ada-3']);
  });

  it('does not hold up a call that the same limit does not concern', async () => {
    const ada = await harness.publish({
      upstreams: abortUpstreams(),
      limits: { user: [limit('concurrency', null, '1')] },
      settings: settings(30_000),
    });
    const bob = await harness.publishColleague(ada, 'Bob');
    const release = await harness.holdSlot(ada);
    const inLine = harness.chat(ada);
    await waiting(1);
    expect((await harness.chat(bob)).status).toBe(200);
    expect((await harness.events(ada)).map(({ data }) => data.queueWaitMs)).toEqual([0]);
    await release();
    expect((await inLine).status).toBe(200);
    await harness.untilNothingHeld(ada);
  });

  it('cannot take the whole gateway from the other enterprises', async () => {
    const own = await GatewayHarness.start({ CALLS_IN_FLIGHT_MAX: 4 });
    try {
      const greedy = await own.publish({ limits: oneAtATime, settings: settings(30_000, 10_000) });
      const running = own.chat(greedy, {}, { demo: 'headers_delay_ms=1500' });
      await until(
        async () => (await own.peek(greedy)).some(({ inFlight }) => inFlight === 1),
        'the first to run',
      );
      const inLine = [own.chat(greedy), own.chat(greedy)];
      await waiting(2, own);
      expect((await own.chat(greedy)).status).toBe(429);
      const other = await own.publish();
      expect((await own.chat(other)).status).toBe(200);
      const answers = await Promise.all([running, ...inLine]);
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    } finally {
      await own.close();
    }
  });

  it('is told to come back when the gateway shuts down', async () => {
    const own = await GatewayHarness.start();
    try {
      const world = await own.publish({ limits: oneAtATime, settings: settings(30_000) });
      const running = own.chat(world, {}, { demo: 'headers_delay_ms=400' });
      await until(
        async () => (await own.peek(world)).some(({ inFlight }) => inFlight === 1),
        'the first to run',
      );
      const inLine = own.chat(world);
      await waiting(1, own);
      const closed = own.closeGateway();
      const answer = await inLine;
      expect(answer.status).toBe(503);
      expect(answer.headers.get('retry-after')).toBe('1');
      expect((await running).status).toBe(200);
      await closed;
    } finally {
      await own.close();
    }
  });
});
