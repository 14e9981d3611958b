import { APIError, OpenAI } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '@weir/domain';
import { limit, model, type World } from '../testing/documents.js';
import { GatewayHarness, until } from '../testing/gateway-harness.js';

let harness: GatewayHarness;
beforeAll(async () => {
  harness = await GatewayHarness.start();
});
afterAll(() => harness.close());

function clientOf(
  world: World,
  options: { maxRetries?: number; fetch?: typeof fetch } = {},
): OpenAI {
  return new OpenAI({
    apiKey: world.secret,
    baseURL: `${harness.url}/v1`,
    maxRetries: 2,
    ...options,
  });
}

/** A fetch that counts its calls. */
function countingFetch(): { fetch: typeof fetch; count: () => number } {
  let count = 0;
  return {
    fetch: (input, init) => {
      count += 1;
      return fetch(input, init);
    },
    count: () => count,
  };
}

const question = [{ role: 'user', content: 'Tell me of rivers.' }] as const;

describe('chat completions with the official openai SDK', () => {
  it('answers a call, and books exactly what the provider bills at every level', async () => {
    const world = await harness.publish();
    const { data, response } = await clientOf(world)
      .chat.completions.create({ model: 'small', messages: [...question], max_tokens: 200 })
      .withResponse();
    expect(data.choices[0]?.message.content).toBeTruthy();
    const requestId = response.headers.get('x-request-id') ?? '';
    const [event] = await harness.events(world);
    const [bill] = await harness.bill([requestId]);
    expect(event?.data).toMatchObject({
      status: 'ok',
      estimated: false,
      requestId,
      route: '/v1/chat/completions',
      modelAsked: 'small',
      modelServed: 'demo-small',
      usage: { input: bill?.prompt_tokens, output: bill?.output_tokens },
      costPico: bill?.cost_pico,
    });
    for (const usage of await harness.peek(world)) {
      expect(usage.month.requests).toBe(1n);
      expect(usage.month.tokens).toBe(
        BigInt((bill?.prompt_tokens ?? 0) + (bill?.output_tokens ?? 0)),
      );
      expect(usage.month.costNano).toBe(BigInt(event?.data.costNano ?? -1));
    }
    await harness.untilNothingHeld(world);
  });

  it('streams, with the exact usage booked although the client did not ask for it and saw no extra chunk', async () => {
    const world = await harness.publish();
    const { data: stream, response } = await clientOf(world)
      .chat.completions.create({ model: 'small', messages: [...question], stream: true })
      .withResponse();
    let text = '';
    let chunks = 0;
    for await (const chunk of stream) {
      expect(chunk.choices).toHaveLength(1);
      text += chunk.choices[0]?.delta.content ?? '';
      chunks += 1;
    }
    expect(text.length).toBeGreaterThan(20);
    expect(chunks).toBeGreaterThan(5);
    const [bill] = await harness.bill([response.headers.get('x-request-id') ?? '']);
    const [event] = await harness.events(world);
    expect(event?.data).toMatchObject({
      status: 'ok',
      streamed: true,
      estimated: false,
      usage: { input: bill?.prompt_tokens, output: bill?.output_tokens },
      costPico: bill?.cost_pico,
    });
    expect(event?.data.firstTokenAt).not.toBeNull();
  });

  it('gives the usage chunk to a client that asks for it', async () => {
    const world = await harness.publish();
    const stream = await clientOf(world).chat.completions.create({
      model: 'small',
      messages: [...question],
      stream: true,
      stream_options: { include_usage: true },
    });
    const last = [];
    for await (const chunk of stream) if (chunk.usage) last.push(chunk);
    expect(last).toHaveLength(1);
    expect(last[0]?.choices).toEqual([]);
  });

  it('passes tools on in both directions', async () => {
    const world = await harness.publish();
    const tools = [
      {
        type: 'function' as const,
        function: {
          name: 'weather',
          parameters: { type: 'object', properties: { city: { type: 'string' } } },
        },
      },
    ];
    const data = await clientOf(world).chat.completions.create({
      model: 'small',
      messages: [
        { role: 'user', content: 'Weather in Bern?' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: 'call_1',
              type: 'function',
              function: { name: 'weather', arguments: '{"city":"Bern"}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
      ],
      tools,
    });
    const [event] = await harness.events(world);
    expect(event?.data.usage.input).toBe(data.usage?.prompt_tokens);
  });

  it('makes one attempt only on an exhausted budget, and the error names the department and its numbers', async () => {
    const world = await harness.publish({
      limits: { department: [limit('cost', 'month', '0.001')] },
    });
    const counting = countingFetch();
    const client = clientOf(world, { fetch: counting.fetch });
    let refusal: unknown;
    let served = 0;
    // Each answer costs a few hundred-thousandths: the budget is used up well before the bound.
    for (let call = 0; call < 200 && refusal === undefined; call += 1) {
      try {
        await client.chat.completions.create({
          model: 'small',
          messages: [...question],
          max_tokens: 60,
        });
        served += 1;
      } catch (error) {
        refusal = error;
      }
    }
    expect(served).toBeGreaterThan(3);
    expect(counting.count()).toBe(served + 1);
    expect(refusal).toBeInstanceOf(APIError);
    const error = refusal as APIError & { error: { weir: Record<string, unknown> } };
    expect(error.status).toBe(429);
    expect(error.code).toBe('insufficient_quota');
    expect(error.message).toContain('department "Marketing"');
    expect(error.message).toContain('0.001 USD a month');
    expect(error.error.weir).toMatchObject({
      level: 'department',
      name: 'Marketing',
      metric: 'cost',
      window: 'month',
      limit: '0.001',
      reserved: '0.00',
    });
    expect(Date.parse(String(error.error.weir['resets_at']))).toBeGreaterThan(Date.now());
    expect(error.headers?.get('x-should-retry')).toBe('false');
    expect(error.headers?.get('retry-after')).toBeNull();
    const department = (await harness.peek(world))[1];
    expect(department?.month.costNano).toBeLessThanOrEqual(1_000_000n);
    const refused = await until(
      async () => (await harness.refusals(world))[0] ?? null,
      'the refusal event',
    );
    expect(refused).toMatchObject({
      outcome: 'refused',
      code: 'insufficient_quota',
      scope: { name: 'Marketing' },
    });
  });

  it('backs off as told on a rate limit, and then gets its answer', async () => {
    const world = await harness.publish({ limits: { user: [limit('requests', 'second', '1')] } });
    const counting = countingFetch();
    const client = clientOf(world, { fetch: counting.fetch, maxRetries: 4 });
    for (let call = 0; call < 3; call += 1) {
      await client.chat.completions.create({ model: 'small', messages: [...question] });
    }
    expect(counting.count()).toBeGreaterThan(3);
    expect((await harness.peek(world))[2]?.month.requests).toBe(3n);
  });

  it('tells the rate headers, and the remaining falls', async () => {
    const world = await harness.publish({
      limits: { key: [limit('requests', 'minute', '300'), limit('tokens', 'minute', '100000')] },
    });
    const read = async (): Promise<number[]> => {
      const response = await harness.chat(world);
      await response.arrayBuffer();
      return ['requests', 'tokens'].map((kind) =>
        Number(response.headers.get(`x-ratelimit-remaining-${kind}`)),
      );
    };
    const [first, second] = [await read(), await read()];
    expect(second[0]).toBeLessThan(first[0] ?? 0);
    expect(second[1]).toBeLessThan(first[1] ?? 0);
  });

  it('lets 200 parallel calls through to the provider for exactly the 20 that there is room for', async () => {
    const world = await harness.publish({
      limits: { department: [limit('requests', 'month', '20')] },
    });
    const ids = Array.from({ length: 200 }, () => newId());
    const statuses = await Promise.all(
      ids.map(async (requestId) => {
        const response = await harness.chat(world, {}, { requestId });
        await response.arrayBuffer();
        return response.status;
      }),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(20);
    expect(statuses.filter((status) => status === 429)).toHaveLength(180);
    expect(await harness.bill(ids)).toHaveLength(20);
    expect(await harness.events(world)).toHaveLength(20);
    await harness.untilNothingHeld(world);
  });

  it('frees the slot of a stream that its client aborts, so that concurrency 1 can call again', async () => {
    const upstream = harness.demoUpstream({ onClientGone: 'abort' });
    const world = await harness.publish({
      upstreams: [upstream],
      limits: { user: [limit('concurrency', null, '1')] },
    });
    const requestId = newId();
    const stream = await clientOf(world).chat.completions.create(
      {
        model: 'small',
        messages: [...question],
        stream: true,
        user: 'demo:output_tokens=400;tokens_per_second=50',
      },
      { headers: { 'x-request-id': requestId } },
    );
    let seen = 0;
    for await (const _chunk of stream) {
      seen += 1;
      if (seen === 5) break;
    }
    await until(
      async () => (await harness.events(world)).length === 1,
      'the aborted stream to be settled',
    );
    const second = await harness.chat(world);
    expect(second.status).toBe(200);
    const [event] = await harness.events(world);
    expect(event?.data).toMatchObject({ status: 'cancelled', estimated: true, requestId });
    expect(event?.data.usage.output).toBeGreaterThan(0);
    expect(event?.data.usage.output).toBeLessThan(200);
    await harness.untilNothingHeld(world);
  });

  it('drains a stream whose client has left, and then books what the provider bills', async () => {
    const world = await harness.publish();
    const requestId = newId();
    const abort = new AbortController();
    const response = await harness.chat(
      world,
      { stream: true },
      { requestId, signal: abort.signal, demo: 'output_tokens=60;tokens_per_second=200' },
    );
    const reader = response.body?.getReader();
    await reader?.read();
    abort.abort();
    const [event] = await until(async () => {
      const events = await harness.events(world);
      return events.length > 0 ? events : null;
    }, 'the drained stream to be settled');
    const [bill] = await harness.bill([requestId]);
    expect(bill?.outcome).toBe('finished');
    expect(event?.data).toMatchObject({
      status: 'cancelled',
      estimated: false,
      usage: { output: 60 },
      costPico: bill?.cost_pico,
    });
  });

  it('bills a whole answer in full although its client has left', async () => {
    const world = await harness.publish();
    const requestId = newId();
    const abort = new AbortController();
    const pending = harness.chat(
      world,
      {},
      { requestId, signal: abort.signal, demo: 'headers_delay_ms=150;output_tokens=33' },
    );
    await until(
      async () => ((await harness.peek(world))[0]?.inFlight ?? 0) === 1,
      'the call to be in flight',
    );
    abort.abort();
    await expect(pending).rejects.toThrow();
    const [event] = await until(async () => {
      const events = await harness.events(world);
      return events.length > 0 ? events : null;
    }, 'the abandoned call to be settled');
    const [bill] = await harness.bill([requestId]);
    expect(bill?.output_tokens).toBe(33);
    expect(event?.data).toMatchObject({ status: 'cancelled', costPico: bill?.cost_pico });
  });

  it('lets the next call of a sequential client with concurrency 1 pass, 30 times in a row', async () => {
    const world = await harness.publish({ limits: { key: [limit('concurrency', null, '1')] } });
    for (let call = 0; call < 30; call += 1) {
      const response = await harness.chat(world, { stream: call % 2 === 0 });
      await response.text();
      expect(response.status).toBe(200);
    }
  });
});

describe('the taximeter', () => {
  it('ends a stream without a cap properly when the budget is used up, and overshoots by less than an instalment', async () => {
    const upstream = harness.demoUpstream();
    const world = await harness.publish({
      upstreams: [upstream],
      models: [model('small', upstream.id, { defaultOutputReserve: 64 })],
      limits: { department: [limit('tokens', 'month', '300')] },
    });
    const stream = await clientOf(world).chat.completions.create({
      model: 'small',
      messages: [...question],
      stream: true,
      stream_options: { include_usage: true },
      // As fast as can be, so that many events come in one piece: the meter must look inside of it.
      user: 'demo:output_tokens=4000',
    });
    let finish: string | null = null;
    let notice: unknown;
    let usage: { completion_tokens: number } | null | undefined;
    for await (const chunk of stream) {
      finish = chunk.choices[0]?.finish_reason ?? finish;
      notice = (chunk as { weir?: unknown }).weir ?? notice;
      usage = chunk.usage ?? usage;
    }
    expect(finish).toBe('length');
    expect(notice).toMatchObject({ code: 'insufficient_quota', name: 'Marketing' });
    expect(usage?.completion_tokens).toBeGreaterThan(100);
    const [event] = await harness.events(world);
    expect(event?.data).toMatchObject({ status: 'partial', estimated: true });
    const used = (await harness.peek(world))[1]?.month.tokens ?? 0n;
    expect(used).toBeGreaterThan(150n);
    expect(used).toBeLessThanOrEqual(300n + 64n);
    expect((event?.data.usage.output ?? 0) + (event?.data.usage.input ?? 0)).toBe(Number(used));
    await harness.untilNothingHeld(world);
  });

  it('lets a long stream without a cap run to its end where the budget has the room', async () => {
    const upstream = harness.demoUpstream();
    const world = await harness.publish({
      upstreams: [upstream],
      models: [model('small', upstream.id, { defaultOutputReserve: 64 })],
      limits: { department: [limit('tokens', 'month', '100000')] },
    });
    const response = await harness.chat(
      world,
      { stream: true },
      { demo: 'output_tokens=1500;tokens_per_second=3000' },
    );
    expect(await response.text()).toContain('[DONE]');
    const [event] = await harness.events(world);
    expect(event?.data).toMatchObject({ status: 'ok', usage: { output: 1_500 } });
  });
});

describe('limits in force', () => {
  it('applies a changed limit at once, without a restart', async () => {
    const world = await harness.publish();
    expect((await harness.chat(world)).status).toBe(200);
    await harness.publishDepartmentLimits(world, [limit('requests', 'month', '1')]);
    // A lowered limit holds on the very next call: the admission itself compares the versions.
    expect((await harness.chat(world)).status).toBe(429);
    await harness.publishDepartmentLimits(world, [limit('requests', 'month', '5')]);
    const begun = performance.now();
    await until(async () => (await harness.chat(world)).status === 200, 'the raised limit');
    expect(performance.now() - begun).toBeLessThan(2_000);
  });

  it('reloads a policy whose change it was not told of, and serves the call', async () => {
    const world = await harness.publish();
    expect((await harness.chat(world)).status).toBe(200);
    await harness.bumpVersionSilently(world);
    expect((await harness.chat(world)).status).toBe(200);
  });

  it('admits a call without a cap under a limit smaller than the default estimate, with a lowered cap that it shows', async () => {
    const world = await harness.publish({ limits: { user: [limit('tokens', 'minute', '100')] } });
    const response = await harness.chat(world, { stream: true });
    expect(response.status).toBe(200);
    expect(Number(response.headers.get('x-weir-output-cap'))).toBeGreaterThan(15);
    await response.text();
  });

  it('answers 400 with both numbers when the caller asks for more than a limit could ever give', async () => {
    const world = await harness.publish({ limits: { user: [limit('tokens', 'minute', '100')] } });
    const response = await harness.chat(world, { max_tokens: 4_000 });
    expect(response.status).toBe(400);
    const body = (await response.json()) as { error: { code: string; message: string } };
    expect(body.error.code).toBe('impossible_request');
    expect(body.error.message).toMatch(/100 tokens/);
    expect(response.headers.get('retry-after')).toBeNull();
  });

  it('does not let one call without a cap pin the whole budget: a second one still fits', async () => {
    const world = await harness.publish({ limits: { user: [limit('tokens', 'month', '5000')] } });
    const demo = 'headers_delay_ms=100';
    const [first, second] = await Promise.all([
      harness.chat(world, {}, { demo }),
      harness.chat(world, {}, { demo }),
    ]);
    expect([first.status, second.status]).toEqual([200, 200]);
  });

  it('caps an answer without a cap to what it reserved, where the budget has no room for the whole', async () => {
    const world = await harness.publish({ limits: { user: [limit('tokens', 'month', '3000')] } });
    const response = await harness.chat(world, {}, { demo: 'output_tokens=4000' });
    const body = (await response.json()) as { usage: { completion_tokens: number } };
    const cap = Number(response.headers.get('x-weir-output-cap'));
    expect(cap).toBeGreaterThan(1_000);
    expect(cap).toBeLessThanOrEqual(1_500);
    expect(body.usage.completion_tokens).toBe(cap);
    // With twice the room for all that the model can give, nothing is cut.
    const roomy = await harness.publish({ limits: { user: [limit('tokens', 'month', '20000')] } });
    const whole = await harness.chat(roomy, {}, { demo: 'output_tokens=4000' });
    expect(whole.headers.get('x-weir-output-cap')).toBeNull();
    expect(((await whole.json()) as typeof body).usage.completion_tokens).toBe(4_000);
  });

  it('lowers a cap to what is left where the enterprise chose to clamp, and refuses where it did not', async () => {
    const limits = { user: [limit('tokens', 'month', '500')] };
    const clamping = await harness.publish({ limits, settings: { onCapBeyondBudget: 'clamp' } });
    const used = await harness.chat(clamping, { max_tokens: 100 }, { demo: 'output_tokens=100' });
    await used.arrayBuffer();
    const clamped = await harness.chat(
      clamping,
      { max_tokens: 450 },
      { demo: 'output_tokens=450' },
    );
    expect(clamped.status).toBe(200);
    const cap = Number(clamped.headers.get('x-weir-output-cap'));
    const body = (await clamped.json()) as { usage: { completion_tokens: number } };
    expect(cap).toBeLessThan(450);
    expect(body.usage.completion_tokens).toBe(cap);
    expect((await harness.peek(clamping))[2]?.month.tokens).toBeLessThanOrEqual(500n);

    const refusing = await harness.publish({ limits });
    await (
      await harness.chat(refusing, { max_tokens: 100 }, { demo: 'output_tokens=100' })
    ).arrayBuffer();
    const refused = await harness.chat(refusing, { max_tokens: 450 });
    expect(refused.status).toBe(429);
    expect(await refused.text()).toMatch(/Setting max_tokens to \d+ or less would fit/);
  });

  it('answers a storm of refused calls by itself, with a retry-after that holds', async () => {
    const world = await harness.publish({ limits: { user: [limit('requests', 'minute', '30')] } });
    const localDenials = async (): Promise<number> => {
      const text = await (await fetch(`${harness.url}/metrics`)).text();
      return Number(/^weir_local_denials\{.*\} (\d+)$/m.exec(text)?.[1]);
    };
    const before = await localDenials();
    let refused = 0;
    let last: Response | null = null;
    for (let call = 0; call < 200; call += 1) {
      const response = await harness.chat(world);
      await response.arrayBuffer();
      if (response.status !== 429) continue;
      refused += 1;
      last = response;
    }
    expect(refused).toBeGreaterThan(150);
    expect((await localDenials()) - before).toBeGreaterThan(refused - 10);
    expect(last?.headers.get('retry-after')).toMatch(/^[12]$/);
    const waitMs = Number(last?.headers.get('retry-after-ms'));
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    expect((await harness.chat(world)).status).toBe(200);
    // An edit lifts what is remembered at once.
    await harness.publishUserLimits(world, [limit('requests', 'minute', '6000')]);
    const begun = performance.now();
    await until(async () => (await harness.chat(world)).status === 200, 'the raised limit');
    expect(performance.now() - begun).toBeLessThan(2_000);
  });
});
