import Anthropic from '@anthropic-ai/sdk';
import { newId, type Metric, type Window } from '@weir/domain';
import { OpenAI } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limit, model, type World } from '../testing/documents.js';
import { GatewayHarness, until } from '../testing/gateway-harness.js';

let harness: GatewayHarness;
beforeAll(async () => {
  harness = await GatewayHarness.start();
});
afterAll(() => harness.close());

async function onlyEvent(world: World) {
  const events = await until(async () => {
    const found = await harness.events(world);
    return found.length > 0 ? found : null;
  }, 'the event');
  expect(events).toHaveLength(1);
  const [event] = events;
  if (event === undefined) throw new Error('an event');
  return event.data;
}

describe('before any upstream call', () => {
  it('refuses 45 of 50 streams that start at once on a budget for 5', async () => {
    const world = await harness.publish({
      limits: { department: [limit('output_tokens', 'month', '1000')] },
    });
    const ids = Array.from({ length: 50 }, () => newId());
    const statuses = await Promise.all(
      ids.map(async (requestId) => {
        const response = await harness.chat(
          world,
          { stream: true, max_tokens: 200 },
          { requestId, demo: 'output_tokens=200;headers_delay_ms=500' },
        );
        await response.text();
        return response.status;
      }),
    );
    expect(statuses.filter((status) => status === 200)).toHaveLength(5);
    expect(statuses.filter((status) => status === 429)).toHaveLength(45);
    expect(await harness.bill(ids)).toHaveLength(5);
    expect((await harness.peek(world))[1]?.month.outputTokens).toBe(1_000n);
    await harness.untilNothingHeld(world);
  });

  it('never lets more than 10 calls reach the upstream at a time under a concurrency of 10', async () => {
    const world = await harness.publish({ limits: { user: [limit('concurrency', null, '10')] } });
    const ids = Array.from({ length: 60 }, () => newId());
    const statuses = await Promise.all(
      ids.map(async (requestId) => {
        const response = await harness.chat(
          world,
          {},
          { requestId, demo: 'headers_delay_ms=1500' },
        );
        await response.arrayBuffer();
        return response.status;
      }),
    );
    // All 60 ask while the first ten run.
    expect(statuses.filter((status) => status === 200)).toHaveLength(10);
    expect(await harness.bill(ids)).toHaveLength(10);
  });

  it('does not try the fallback of a call whose budget has meanwhile gone', async () => {
    const upstreams = [
      harness.demoUpstream({ name: 'First' }),
      harness.demoUpstream({ name: 'Second' }),
    ];
    const world = await harness.publish({
      upstreams,
      models: [
        model('small', '', {
          routes: upstreams.map(({ id }, priority) => ({
            upstreamId: id,
            upstreamModel: priority === 0 ? 'demo-small#hang_before_headers' : 'demo-small',
            weight: 1,
            priority,
          })),
        }),
      ],
    });
    const requestId = newId();
    const running = harness.chat(world, {}, { requestId });
    await until(async () => (await harness.peek(world))[0]?.inFlight === 1, 'the first attempt');
    await harness.publishDepartmentLimits(world, [limit('cost', 'month', '0')]);
    const response = await running;
    expect(response.status).toBe(429);
    expect(await response.json()).toMatchObject({
      error: { code: 'insufficient_quota' },
      weir: { level: 'department' },
    });
    // The bill has the first attempt alone, which never answered.
    const bills = await harness.bill([requestId]);
    expect(bills.map(({ outcome }) => outcome)).toEqual(['fault']);
    expect(await harness.events(world)).toEqual([]);
    await harness.untilNothingHeld(world);
  }, 20_000);
});

const question = [{ role: 'user', content: 'Tell me of rivers.' }];

describe('what the caller says of the size of the answer', () => {
  const routes = [
    ['/v1/chat/completions', { messages: question }, 'openai', 'max_tokens'],
    ['/v1/chat/completions', { messages: question }, 'openai', 'max_completion_tokens'],
    ['/v1/completions', { prompt: 'Tell me of rivers.' }, 'openai', 'max_tokens'],
    ['/v1/responses', { input: 'Tell me of rivers.' }, 'openai', 'max_output_tokens'],
    ['/v1/messages', { messages: question }, 'anthropic', 'max_tokens'],
  ] as const;

  it.each(routes)(
    'is refused where it makes no sense, and left to the model where it is null: %s %o %s %s',
    async (path, body, dialect, field) => {
      const upstream = harness.demoUpstream({ dialect });
      const world = await harness.publish({
        upstreams: [upstream],
        models: [model('m', upstream.id, { dialect })],
      });
      for (const value of [-1, 0, 1e12, '5', 1.5, [5], true, 2 ** 53]) {
        const answer = await harness.post(path, world, { model: 'm', ...body, [field]: value });
        expect(answer.status, `${field}: ${JSON.stringify(value)}`).toBe(400);
        expect(await answer.text()).toMatch(/output cap|must be from|whole number/);
      }
      for (const usage of await harness.peek(world)) {
        expect(usage).toMatchObject({ inFlight: 0, month: { requests: 0n, reservedTokens: 0n } });
      }
      const none = await harness.post(path, world, { model: 'm', ...body, [field]: null });
      // Anthropic's API itself wants a number.
      expect(none.status).toBe(dialect === 'anthropic' ? 400 : 200);
    },
  );

  it.each(['n', 'best_of'])(
    'is refused where %s is out of range, on completions',
    async (field) => {
      const world = await harness.publish();
      for (const value of [0, -1, 129, 1.5, '2']) {
        const answer = await harness.post('/v1/completions', world, {
          model: 'small',
          prompt: 'x',
          [field]: value,
        });
        expect(answer.status, `${field}: ${JSON.stringify(value)}`).toBe(400);
      }
    },
  );
});

describe('what cannot be estimated', () => {
  it.each(['priority', 'scale', 'tomorrow', 7])(
    'a service tier without a price (%o) is refused, and nothing is sent',
    async (tier) => {
      const world = await harness.publish();
      const requestId = newId();
      const answer = await harness.chat(world, { service_tier: tier }, { requestId });
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({
        error: { code: 'invalid_request', param: 'service_tier' },
      });
      expect(await harness.bill([requestId])).toEqual([]);
    },
  );

  it.each(['auto', 'default', 'flex', null])('the service tier %o is served', async (tier) => {
    const world = await harness.publish();
    expect((await harness.chat(world, { service_tier: tier })).status).toBe(200);
  });

  it.each([
    ['/v1/chat/completions', 'messages', 'input_audio'],
    ['/v1/responses', 'input', 'input_audio'],
  ])('audio on %s is refused where the model has no price for it', async (path, field, type) => {
    const world = await harness.publish();
    const requestId = newId();
    const part = { type, input_audio: { data: 'AAAA', format: 'wav' } };
    const content = [{ role: 'user', content: [part] }];
    const answer = await harness.post(
      path,
      world,
      { model: 'small', [field]: content },
      { requestId },
    );
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ error: { code: 'price_missing' } });
    expect(await harness.bill([requestId])).toEqual([]);
  });

  it('a picture of unknown size reserves what the largest costs', async () => {
    const world = await harness.publish({ limits: { key: [limit('tokens', 'month', '100000')] } });
    const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
    const running = harness.chat(
      world,
      { max_tokens: 1, messages: [{ role: 'user', content: [image] }] },
      { demo: 'headers_delay_ms=300' },
    );
    await until(async () => {
      const reserved = (await harness.peek(world))[3]?.month.reservedTokens ?? 0n;
      return reserved > 700n;
    }, 'the reservation');
    expect((await running).status).toBe(200);
  });

  it.each([
    ['only a previous response', '/v1/responses', { previous_response_id: 'resp_1' }, 4_000n],
    ['tools alone', '/v1/chat/completions', { messages: [{ role: 'user' }], tools: [{}] }, 0n],
  ])('a call with %s reserves something', async (_name, path, body, least) => {
    const world = await harness.publish();
    const running = harness.post(
      path,
      world,
      { model: 'small', ...body },
      { demo: 'headers_delay_ms=300' },
    );
    await until(async () => {
      const reserved = (await harness.peek(world))[3]?.month.reservedTokens ?? 0n;
      return reserved > least;
    }, 'the reservation');
    await (await running).arrayBuffer();
    await harness.untilNothingHeld(world);
  });
});

describe('a 429', () => {
  const kinds: readonly {
    metric: Metric;
    window: Window | null;
    amount: string;
    code: string;
    type: string;
    waits: boolean;
    header: string | null;
  }[] = [
    {
      metric: 'requests',
      window: 'hour',
      amount: '1',
      code: 'rate_limit_exceeded',
      type: 'requests',
      waits: true,
      header: 'requests',
    },
    {
      metric: 'tokens',
      window: 'hour',
      amount: '300',
      code: 'rate_limit_exceeded',
      type: 'tokens',
      waits: true,
      header: 'tokens',
    },
    {
      metric: 'concurrency',
      window: null,
      amount: '1',
      code: 'concurrency_exceeded',
      type: 'requests',
      waits: true,
      header: null,
    },
    {
      metric: 'cost',
      window: 'month',
      amount: '0.0005',
      code: 'insufficient_quota',
      type: 'insufficient_quota',
      waits: false,
      header: null,
    },
  ];
  const levels = ['enterprise', 'department', 'user', 'key'] as const;

  it.each(levels.flatMap((level) => kinds.map((kind) => ({ level, ...kind }))))(
    'for $metric at the $level alone names the level and the kind, and says when to come back',
    async ({ level, metric, window, amount, code, type, waits, header }) => {
      const world = await harness.publish({ limits: { [level]: [limit(metric, window, amount)] } });
      const first = harness.chat(
        world,
        { max_tokens: 300 },
        { demo: 'output_tokens=300;headers_delay_ms=300' },
      );
      await until(async () => (await harness.peek(world))[0]?.inFlight === 1, 'the first to run');
      const refused = await harness.chat(world, { max_tokens: 300 });
      expect(refused.status).toBe(429);
      const body = (await refused.json()) as { error: Record<string, unknown> };
      expect(body).toMatchObject({
        error: { code, type },
        weir: { level, id: world[level].id, metric, window },
      });
      const retryAfter = refused.headers.get('retry-after');
      if (waits) {
        expect(retryAfter).toMatch(/^[1-9]\d*$/);
        expect(refused.headers.get('x-should-retry')).not.toBe('false');
      } else {
        expect(retryAfter).toBeNull();
        expect(refused.headers.get('x-should-retry')).toBe('false');
      }
      if (header !== null) {
        expect(refused.headers.get(`x-ratelimit-limit-${header}`)).toBe(amount);
        expect(refused.headers.get(`x-ratelimit-remaining-${header}`)).toMatch(/^\d+$/);
        expect(refused.headers.get(`x-ratelimit-reset-${header}`)).toMatch(
          /^(\d+h)?(\d+m)?[\d.]+m?s$/,
        );
      }
      expect((await first).status).toBe(200);
    },
  );

  it('tells the limit also when it is repeated from memory, and in the words of Anthropic on its route', async () => {
    const upstream = harness.demoUpstream({ dialect: 'anthropic' });
    const world = await harness.publish({
      upstreams: [upstream],
      models: [model('m', upstream.id, { dialect: 'anthropic' })],
      limits: { user: [limit('requests', 'hour', '1')] },
    });
    const ask = () =>
      harness.post('/v1/messages', world, { model: 'm', max_tokens: 9, messages: question });
    await (await ask()).arrayBuffer();
    const resets: number[] = [];
    for (let call = 0; call < 3; call += 1) {
      const { status, headers } = await ask();
      expect(status).toBe(429);
      expect(headers.get('anthropic-ratelimit-requests-limit')).toBe('1');
      expect(headers.get('anthropic-ratelimit-requests-remaining')).toBe('0');
      expect(headers.get('x-ratelimit-remaining-requests')).toBe('0');
      expect(headers.get('ratelimit')).toMatch(/^"requests";r=0;t=\d+$/);
      expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      resets.push(Date.parse(headers.get('anthropic-ratelimit-requests-reset') ?? ''));
    }
    // The same moment each time, but for the second that it is rounded to.
    expect(Math.max(...resets) - Math.min(...resets)).toBeLessThanOrEqual(1_000);
    expect(Math.min(...resets)).toBeGreaterThan(Date.now());
    expect(await harness.metric('weir_local_denials')).toBeGreaterThan(0);
  });

  it('and every other refusal carries a request id by which it can be found', async () => {
    const world = await harness.publish({ limits: { key: [limit('requests', 'month', '0')] } });
    const answers = [
      await harness.chat(world),
      await harness.chat(world, { max_tokens: -1 }),
      await harness.chat(world, { model: 'nope' }),
    ];
    const ids = answers.map((answer) => answer.headers.get('x-request-id'));
    expect(ids.every((id) => id !== null && id !== '')).toBe(true);
    const recorded = await until(async () => {
      const found = await harness.refusals(world);
      return found.length >= 3 ? found : null;
    }, 'the refusals');
    expect(recorded.map(({ requestId }) => requestId).sort()).toEqual([...ids].sort());
  });
});

describe('an upstream that hangs', () => {
  it.each([
    ['before its head', 'hang_before_headers', { firstByteTimeoutMs: 800 }],
    ['in the middle', 'hang_mid_stream;fault_after_tokens=3', { idleTimeoutMs: 800 }],
  ])('%s on all 10 slots gives them back by itself', async (_name, fault, timeouts) => {
    const upstream = harness.demoUpstream(timeouts);
    const world = await harness.publish({
      upstreams: [upstream],
      limits: { key: [limit('concurrency', null, '10')] },
    });
    const hanging = Array.from({ length: 10 }, async () => {
      const response = await harness.chat(world, { stream: true }, { demo: fault });
      return response.text();
    });
    await until(async () => (await harness.peek(world))[0]?.inFlight === 10, 'all to hang');
    expect((await harness.chat(world)).status).toBe(429);
    await Promise.all(hanging);
    await harness.untilNothingHeld(world);
    expect((await harness.chat(world)).status).toBe(200);
  });
});

describe('a client that leaves', () => {
  /** Reads until so many pieces of text have come, then leaves. */
  async function leaveAfter(
    pieces: number,
    world: World,
    demo: string,
  ): Promise<{ requestId: string }> {
    const requestId = newId();
    const abort = new AbortController();
    const options = { requestId, signal: abort.signal, demo };
    const response = await harness.chat(world, { stream: true }, options);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while ((text.match(/"content":"[^"]/g) ?? []).length < pieces) {
      const piece = await reader?.read();
      if (piece?.done !== false) throw new Error('the stream ended before');
      text += piece.value;
    }
    abort.abort();
    return { requestId };
  }
  const billOf = ({ requestId }: { requestId: string }) =>
    until(async () => (await harness.bill([requestId]))[0] ?? null, 'the bill of the provider');

  it('after the last piece of the text pays what the provider bills, to the last digit, where the rest is drained', async () => {
    const world = await harness.publish();
    const left = await leaveAfter(25, world, 'output_tokens=25;tokens_per_second=100');
    const data = await onlyEvent(world);
    const bill = await billOf(left);
    expect(bill).toMatchObject({ outcome: 'finished', output_tokens: 25 });
    expect(data).toMatchObject({ estimated: false, costPico: bill.cost_pico });
    await harness.untilNothingHeld(world);
  });

  it.each([
    ['after the last piece of the text', 25, 'hang_mid_stream;fault_after_tokens=25', 0],
    ['in the middle of a pause', 12, 'output_tokens=400;hang_mid_stream;fault_after_tokens=12', 0],
    // What the provider wrote before it noticed, and nobody read: some milliseconds of 20 for a token.
    ['in the middle', 12, 'output_tokens=400;tokens_per_second=50', 5],
  ])(
    '%s pays what the provider bills for what it got, where the upstream is cut',
    async (_name, pieces, demo, unreadMost) => {
      const upstream = harness.demoUpstream({ onClientGone: 'abort' });
      const world = await harness.publish({ upstreams: [upstream] });
      const left = await leaveAfter(pieces, world, `output_tokens=25;${demo}`);
      const data = await onlyEvent(world);
      const bill = await billOf(left);
      expect(data).toMatchObject({ status: 'cancelled', estimated: true });
      expect(data.usage.input).toBe(bill.prompt_tokens);
      expect(data.usage.output).toBeGreaterThanOrEqual(pieces);
      const unread = bill.output_tokens - data.usage.output;
      expect(unread).toBeGreaterThanOrEqual(0);
      expect(unread).toBeLessThanOrEqual(unreadMost);
      if (unread === 0) expect(data.costPico).toBe(bill.cost_pico);
      for (const { month } of await harness.peek(world)) {
        expect(month.costNano).toBe(BigInt(data.costNano));
      }
      await harness.untilNothingHeld(world);
    },
  );
});

describe('the stream contract of the official OpenAI SDK', () => {
  it.each([
    ['that asks for usage', true],
    ['that does not', false],
  ])('holds for a client %s', async (_name, asks) => {
    const world = await harness.publish();
    const client = new OpenAI({ apiKey: world.secret, baseURL: `${harness.url}/v1` });
    const stream = await client.chat.completions.create({
      model: 'small',
      messages: [{ role: 'user', content: 'Tell me of rivers.' }],
      stream: true,
      ...(asks ? { stream_options: { include_usage: true } } : {}),
    });
    const usages: unknown[] = [];
    for await (const chunk of stream) usages.push(chunk.usage);
    const last = usages.pop();
    expect(usages.length).toBeGreaterThan(5);
    const data = await onlyEvent(world);
    if (asks) {
      expect(new Set(usages)).toEqual(new Set([null]));
      expect(last).toMatchObject({
        prompt_tokens: data.usage.input,
        completion_tokens: data.usage.output,
      });
    } else {
      expect([...usages, last].every((usage) => usage === undefined || usage === null)).toBe(true);
      expect(data.estimated).toBe(false);
    }
  });
});

describe('the official SDKs on a rate limit', () => {
  it.each(['openai', 'anthropic'] as const)(
    '%s comes back when it is told to, not by a guess of its own, and is served at once',
    async (dialect) => {
      const upstream = harness.demoUpstream({ dialect });
      const world = await harness.publish({
        upstreams: [upstream],
        models: [model('m', upstream.id, { dialect })],
        // Ten at once to begin with, then one every two seconds: later than an SDK comes by itself.
        limits: { key: [limit('requests', 'minute', '30')] },
      });
      const attempts: { atMs: number; status: number; waitMs: number }[] = [];
      const options = {
        apiKey: world.secret,
        maxRetries: 3,
        fetch: async (input: string | URL | Request, init?: RequestInit) => {
          const atMs = performance.now();
          const response = await fetch(input, init);
          const waitMs = Number(response.headers.get('retry-after-ms'));
          attempts.push({ atMs, status: response.status, waitMs });
          return response;
        },
      };
      const ask =
        dialect === 'openai'
          ? () =>
              new OpenAI({ ...options, baseURL: `${harness.url}/v1` }).chat.completions.create({
                model: 'm',
                messages: [{ role: 'user', content: 'Hello' }],
                max_tokens: 8,
              })
          : () =>
              new Anthropic({ ...options, baseURL: harness.url }).messages.create({
                model: 'm',
                messages: [{ role: 'user', content: 'Hello' }],
                max_tokens: 8,
              });
      for (let call = 0; call < 11; call += 1) await ask();
      const refused = attempts.findIndex(({ status }) => status === 429);
      const [refusal, next] = attempts.slice(refused, refused + 2);
      if (refusal === undefined || next === undefined) throw new Error('nothing was refused');
      expect(attempts.filter(({ status }) => status === 429)).toHaveLength(1);
      expect(refusal.waitMs).toBeGreaterThan(1_000);
      expect(next.atMs - refusal.atMs).toBeGreaterThanOrEqual(refusal.waitMs - 5);
    },
    20_000,
  );
});
