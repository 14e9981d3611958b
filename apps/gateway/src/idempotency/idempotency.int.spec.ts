import { newId } from '@weir/domain';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limit } from '../testing/documents.js';
import { GatewayHarness, until } from '../testing/gateway-harness.js';

let harness: GatewayHarness;
beforeAll(async () => {
  harness = await GatewayHarness.start();
});
afterAll(() => harness.close());

const keyed = (key: string) => ({ headers: { 'idempotency-key': key } });

describe('Idempotency-Key', () => {
  it.each([false, true])(
    'repeats the stored answer without another charge (stream: %s)',
    async (stream) => {
      const world = await harness.publish({ limits: { key: [limit('concurrency', null, '1')] } });
      const key = newId();
      const first = await harness.chat(world, { stream }, keyed(key));
      const text = await first.text();
      const second = await harness.chat(world, { stream }, keyed(key));
      expect(second.status).toBe(200);
      expect(second.headers.get('idempotent-replayed')).toBe('true');
      expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'));
      expect(await second.text()).toBe(text);
      expect(await harness.events(world)).toHaveLength(1);
      expect((await harness.peek(world))[0]?.month.requests).toBe(1n);
      // The slot is free for another call.
      expect((await harness.chat(world)).status).toBe(200);
    },
  );

  it('answers 409 while the call is running, and 422 to another body', async () => {
    const world = await harness.publish();
    const key = newId();
    const running = harness.chat(world, {}, { ...keyed(key), demo: 'headers_delay_ms=300' });
    await until(async () => (await harness.peek(world))[0]?.inFlight === 1, 'the call to run');
    const repeated = await harness.chat(world, {}, { ...keyed(key), demo: 'headers_delay_ms=300' });
    expect(repeated.status).toBe(409);
    expect(repeated.headers.get('retry-after')).toBe('1');
    const other = await harness.chat(world, { max_tokens: 5 }, keyed(key));
    expect(other.status).toBe(422);
    expect((await running).status).toBe(200);
    expect(await harness.events(world)).toHaveLength(1);
  });

  it('gives a client that lost its connection the whole answer when it comes back, charged once', async () => {
    const upstream = harness.demoUpstream({ onClientGone: 'abort' });
    const world = await harness.publish({ upstreams: [upstream] });
    const key = newId();
    const abort = new AbortController();
    const body = { stream: true };
    const demo = 'output_tokens=40;tokens_per_second=200';
    const lost = await harness.chat(world, body, { ...keyed(key), demo, signal: abort.signal });
    await lost.body?.getReader().read();
    abort.abort();
    const again = await until(async () => {
      const response = await harness.chat(world, body, { ...keyed(key), demo });
      if (response.status === 200) return response;
      await response.arrayBuffer();
      return null;
    }, 'the stored answer');
    expect(await again.text()).toContain('[DONE]');
    const events = await harness.events(world);
    expect(events).toHaveLength(1);
    expect(events[0]?.data.usage.output).toBe(40);
  });

  it('does not bill a stream that broke off a second time', async () => {
    const world = await harness.publish();
    const key = newId();
    const demo = 'eof_mid_stream;fault_after_tokens=9';
    const first = await (
      await harness.chat(world, { stream: true }, { ...keyed(key), demo })
    ).text();
    const second = await (
      await harness.chat(world, { stream: true }, { ...keyed(key), demo })
    ).text();
    expect(second).toBe(first);
    const events = await harness.events(world);
    expect(events.map(({ data }) => data.status)).toEqual(['partial']);
  });

  it('lets a call that failed without a charge be tried again under the same key', async () => {
    const world = await harness.publish({ limits: { user: [limit('requests', 'month', '0')] } });
    const key = newId();
    expect((await harness.chat(world, {}, keyed(key))).status).toBe(429);
    await harness.publishUserLimits(world, []);
    const second = await until(async () => {
      const response = await harness.chat(world, {}, keyed(key));
      await response.arrayBuffer();
      return response.status === 200 ? response : null;
    }, 'the raised limit');
    expect(second.headers.get('idempotent-replayed')).toBeNull();
  });

  it('keeps the keys of one API key apart from those of another, and refuses nonsense', async () => {
    const [one, two] = [await harness.publish(), await harness.publish()];
    const key = newId();
    await (await harness.chat(one, {}, keyed(key))).arrayBuffer();
    const other = await harness.chat(two, {}, keyed(key));
    expect(other.headers.get('idempotent-replayed')).toBeNull();
    expect(await harness.events(two)).toHaveLength(1);
    expect((await harness.chat(one, {}, keyed('x'.repeat(256)))).status).toBe(400);
  });

  it('does not keep an answer that is too large, nor bill its repetition', async () => {
    const world = await harness.publish();
    const key = newId();
    const body = { max_tokens: 4_000, n: 40 };
    const demo = 'output_tokens=3000';
    const first = await harness.chat(world, body, { ...keyed(key), demo });
    expect((await first.arrayBuffer()).byteLength).toBeGreaterThan(256 * 1024);
    expect((await harness.chat(world, body, { ...keyed(key), demo })).status).toBe(409);
    expect(await harness.events(world)).toHaveLength(1);
  });
});
