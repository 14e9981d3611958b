import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { APICallError, streamText } from 'ai';
import { APIError, OpenAI } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '@weir/domain';
import { limit, model, type World, type WorldOptions } from '../testing/documents.js';
import { GatewayHarness, until } from '../testing/gateway-harness.js';

/** Notices come fast here, so that no test has to wait for them. */
const notices = { WAIT_NOTICE_AFTER_MS: 50, WAIT_NOTICE_EVERY_MS: 50 };

let harness: GatewayHarness;
beforeAll(async () => {
  harness = await GatewayHarness.start(notices);
});
afterAll(() => harness?.close());

const oneAtATime = { enterprise: [limit('concurrency', null, '1')] };
const queue = (maxWaitMs: number, streamNotices = true) => ({
  queue: { maxWaitMs, maxWaiting: 10, streamNotices },
});
const long = queue(30_000);
/** Long enough for a notice, and over soon. */
const short = queue(400);

async function publish(options: Partial<WorldOptions> = {}): Promise<World> {
  const upstreams = [harness.demoUpstream({ onClientGone: 'abort' })];
  return harness.publish({ upstreams, limits: oneAtATime, settings: long, ...options });
}

async function publishAnthropic(options: Partial<WorldOptions> = {}): Promise<World> {
  const upstream = harness.demoUpstream({ dialect: 'anthropic', onClientGone: 'abort' });
  const models = [model('small', upstream.id, { dialect: 'anthropic' })];
  return publish({ upstreams: [upstream], models, ...options });
}

/** What the gateway sends, byte by byte: SDKs show neither heads nor comments. */
async function tapped(): Promise<{ url: string; sent: () => string; close: () => Promise<void> }> {
  const chunks: Buffer[] = [];
  const nears = new Set<Socket>();
  const target = Number(new URL(harness.url).port);
  const server = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port: target });
    nears.add(near);
    near.pipe(far).pipe(near);
    far.on('data', (chunk: Buffer) => chunks.push(chunk));
    for (const end of [near, far]) end.on('error', () => undefined);
    near.on('close', () => far.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent: () => Buffer.concat(chunks).toString('utf8'),
    close: () => {
      for (const near of nears) near.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

const firstNotice = /: waiting, position 1 of 1, (?:about \d+ s|for at most \d+ s more)\r?\n/;

/** Has a call wait until it is told so, frees the slot, and gives what was sent besides the answer. */
async function waitAndPass<Answer>(
  world: World,
  path: string,
  call: (baseUrl: string) => Promise<Answer>,
): Promise<{ answer: Answer; sent: string }> {
  const release = await harness.holdSlot(world, path);
  const tap = await tapped();
  try {
    const answering = call(tap.url);
    await until(() => firstNotice.test(tap.sent()), 'the first notice');
    expect((await harness.peek(world))[0]?.inFlight).toBe(1);
    await release();
    const answer = await answering;
    return { answer, sent: tap.sent() };
  } finally {
    await tap.close();
  }
}

/** Has a call wait until it is refused, and gives what its SDK throws. */
async function waitInVain(
  world: World,
  path: string,
  call: () => Promise<unknown>,
): Promise<unknown> {
  const release = await harness.holdSlot(world, path);
  const thrown = await call().then(
    (answer) => ({ unexpected: answer }),
    (error: unknown) => error,
  );
  await release();
  return thrown;
}

async function expectMeteredOnce(world: World): Promise<void> {
  await harness.untilNothingHeld(world);
  const events = (await harness.events(world)).filter(({ data }) => data.requestId !== 'holder');
  expect(events).toHaveLength(1);
  const data = events[0]?.data;
  expect(data).toMatchObject({ status: 'ok', estimated: false, streamed: true });
  expect(data?.queueWaitMs).toBeGreaterThanOrEqual(50);
  const bill = await harness.bill([data?.requestId ?? '']);
  expect(bill.map(({ cost_pico }) => cost_pico)).toEqual([data?.costPico]);
}

async function textOf(stream: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const piece of stream) text += piece;
  return text;
}

const prompt = 'Tell me of rivers.';
const openaiOf = (world: World, baseUrl = harness.url): OpenAI =>
  new OpenAI({ apiKey: world.secret, baseURL: `${baseUrl}/v1`, maxRetries: 0 });
const anthropicOf = (world: World, baseUrl = harness.url): Anthropic =>
  new Anthropic({ apiKey: world.secret, baseURL: baseUrl, maxRetries: 0 });

async function openaiChat(world: World, baseUrl?: string): Promise<string> {
  const stream = await openaiOf(world, baseUrl).chat.completions.create({
    model: 'small',
    messages: [{ role: 'user', content: prompt }],
    stream: true,
  });
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  return text;
}

async function openaiResponse(world: World, baseUrl?: string): Promise<string> {
  const stream = await openaiOf(world, baseUrl).responses.create({
    model: 'small',
    input: prompt,
    stream: true,
  });
  let text = '';
  for await (const event of stream) {
    if (event.type === 'response.output_text.delta') text += event.delta;
  }
  return text;
}

async function openaiCompletion(world: World, baseUrl?: string): Promise<string> {
  const stream = await openaiOf(world, baseUrl).completions.create({
    model: 'small',
    prompt,
    stream: true,
  });
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.text ?? '';
  return text;
}

const anthropicMessage = async (world: World, baseUrl?: string): Promise<string> => {
  const message = await anthropicOf(world, baseUrl)
    .messages.stream({
      model: 'small',
      max_tokens: 100,
      messages: [{ role: 'user', content: prompt }],
    })
    .finalMessage();
  return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
};

const vercel =
  (kind: 'chat' | 'responses') =>
  async (world: World, baseUrl = harness.url): Promise<string> => {
    const provider = createOpenAI({ apiKey: world.secret, baseURL: `${baseUrl}/v1` });
    let thrown: unknown;
    const stream = streamText({
      model: provider[kind]('small'),
      prompt,
      maxRetries: 0,
      onError: ({ error }) => void (thrown = error),
    });
    const text = await textOf(stream.textStream);
    if (thrown !== undefined) throw thrown;
    return text;
  };

const chat = '/v1/chat/completions';
const callers = [
  ['openai, chat completions', chat, openaiChat],
  ['openai, completions', chat, openaiCompletion],
  ['openai, responses', chat, openaiResponse],
  ['@anthropic-ai/sdk, messages', '/v1/messages', anthropicMessage],
  ['ai, chat completions', chat, vercel('chat')],
  ['ai, responses', chat, vercel('responses')],
] as const;
const publishFor = (path: string, options: Partial<WorldOptions> = {}) =>
  path === '/v1/messages' ? publishAnthropic(options) : publish(options);

describe('a stream that waits for its turn', () => {
  it.each(callers)(
    'is told where it stands in comments that %s passes over, then gets its answer',
    async (_name, path, call) => {
      const world = await publishFor(path);
      const { answer, sent } = await waitAndPass(world, path, (url) => call(world, url));
      expect(answer.length).toBeGreaterThan(10);
      expect(sent).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      expect(sent.match(/HTTP\/1\.1/g)).toHaveLength(1);
      expect(sent).toMatch(/content-type: text\/event-stream; charset=utf-8\r\n/);
      expect(sent.search(firstNotice)).toBeLessThan(sent.indexOf('data: '));
      expect(sent.slice(sent.indexOf('data: '))).not.toMatch(/: waiting/);
      await expectMeteredOnce(world);
    },
  );

  it.each(callers)(
    'is refused after its wait with an error that %s raises',
    async (name, path, call) => {
      const world = await publishFor(path, { settings: short });
      const thrown = await waitInVain(world, path, () => call(world));
      const message = expect.stringMatching(
        /enterprise "Acme" has reached its limit.*Try again in/,
      );
      const weir = {
        request_id: expect.any(String),
        level: 'enterprise',
        metric: 'concurrency',
        limit: 1,
        used: 1,
      };
      if (name.startsWith('openai')) {
        expect(thrown).toBeInstanceOf(APIError);
        expect(thrown).toMatchObject({
          message,
          code: 'concurrency_exceeded',
          type: 'requests',
          error: { weir },
        });
      } else if (name.startsWith('ai')) {
        expect(APICallError.isInstance(thrown)).toBe(true);
        expect(thrown).toMatchObject({ message });
        expect((thrown as APICallError).responseBody).toContain('concurrency_exceeded');
      } else {
        expect(thrown).toBeInstanceOf(Anthropic.APIError);
        expect(thrown).toMatchObject({
          type: 'rate_limit_error',
          error: {
            type: 'error',
            error: { type: 'rate_limit_error', message, code: 'concurrency_exceeded', weir },
          },
        });
      }
      const refusals = await until(async () => {
        const seen = await harness.refusals(world);
        return seen.length > 0 && seen;
      }, 'the refusal to be recorded');
      expect(refusals).toMatchObject([{ code: 'concurrency_exceeded', outcome: 'refused' }]);
    },
  );

  it('is told in Chinese where the caller asks for it', async () => {
    const world = await publish({ settings: short });
    const release = await harness.holdSlot(world);
    const headers = { 'accept-language': 'zh-CN' };
    const text = await (await harness.chat(world, { stream: true }, { headers })).text();
    expect(text).toMatch(/^: 正在排队，第 1 位，共 1 位，(?:预计还需约|最多再等) \d+ 秒\n\n/);
    expect(text).toMatch(/\ndata: \{"error":\{"message":"企业“Acme”已达到限额/);
    await release();
  });

  it('ends with what the status would have gone with, and without [DONE]', async () => {
    const world = await publish({ settings: short });
    const release = await harness.holdSlot(world);
    const noticed = await harness.chat(world, { stream: true }, { requestId: 'noticed' });
    const plain = await harness.chat(world, {}, { requestId: 'noticed' });
    expect([noticed.status, plain.status]).toEqual([200, 429]);
    expect(noticed.headers.get('x-request-id')).toBe('noticed');
    expect(noticed.headers.get('x-ratelimit-limit-requests')).toBeNull();
    const events = (await noticed.text()).split('\n\n').filter((event) => !event.startsWith(':'));
    expect(events).toHaveLength(2);
    expect(events[1]).toBe('');
    const told: unknown = JSON.parse(events[0]?.replace(/^data: /, '') ?? '');
    expect(told).toEqual(await plain.json());
    await release();
  });

  it('keeps its status where the wait is short', async () => {
    const own = await GatewayHarness.start();
    try {
      const world = await own.publish({ limits: oneAtATime, settings: queue(300) });
      const first = own.chat(world, {}, { demo: 'headers_delay_ms=2000' });
      await until(
        async () => (await own.peek(world)).some(({ inFlight }) => inFlight === 1),
        'the first to run',
      );
      const refused = await own.chat(world, { stream: true });
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await refused.json()).toMatchObject({ error: { code: 'concurrency_exceeded' } });
      expect((await first).status).toBe(200);
    } finally {
      await own.close();
    }
  });

  it('keeps its status where the enterprise wants no notices', async () => {
    const world = await publish({ settings: queue(400, false) });
    const release = await harness.holdSlot(world);
    const refused = await harness.chat(world, { stream: true });
    expect(refused.status).toBe(429);
    await release();
  });

  it('keeps the limit headers and the status of a call that is not streamed', async () => {
    const world = await publish();
    const release = await harness.holdSlot(world);
    const answering = harness.chat(world);
    await until(async () => (await harness.metric('weir_calls_waiting')) === 1, 'it to wait');
    await release();
    const answer = await answering;
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await answer.json()).toMatchObject({ object: 'chat.completion' });
  });
});

/** A stream that was told that it waits; its text can be read on. */
async function noticed(
  world: World,
  options: {
    requestId?: string;
    demo?: string;
    model?: string;
    headers?: Record<string, string>;
  } = {},
): Promise<{ rest: () => Promise<string>; leave: () => void }> {
  const gone = new AbortController();
  const body = { stream: true, ...(options.model === undefined ? {} : { model: options.model }) };
  const answer = await harness.chat(world, body, { ...options, signal: gone.signal });
  expect(answer.status).toBe(200);
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  const first = decoder.decode((await reader.read()).value, { stream: true });
  expect(first).toMatch(firstNotice);
  return {
    leave: () => gone.abort(),
    rest: async () => {
      let text = '';
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return text;
        text += decoder.decode(value, { stream: true });
      }
    },
  };
}

describe('a stream that was told that it waits', () => {
  it('is refused where its budget is used up meanwhile', async () => {
    const world = await publish();
    const release = await harness.holdSlot(world);
    const stream = await noticed(world);
    await harness.publishDepartmentLimits(world, [limit('requests', 'month', '0')]);
    await release();
    const rest = await stream.rest();
    expect(rest).toContain('"code":"insufficient_quota"');
    expect(rest).toContain('"level":"department"');
    await harness.untilNothingHeld(world);
  });

  it('is told where its provider fails before the first byte, and pays nothing', async () => {
    const world = await publish();
    const release = await harness.holdSlot(world);
    const stream = await noticed(world, { requestId: 'failed', demo: 'status:500' });
    await release();
    expect(await stream.rest()).toContain('"code":"upstream_error"');
    await harness.untilNothingHeld(world);
    const served = (await harness.events(world)).map(({ data }) => data.requestId);
    expect(served).not.toContain('failed');
  });

  it('gets the answer of a provider that does not stream as one event', async () => {
    const whole = { object: 'chat.completion', usage: { prompt_tokens: 5, completion_tokens: 7 } };
    const server = createHttpServer((_request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(whole, null, 2));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      const demo = harness.demoUpstream({ onClientGone: 'abort' });
      const other = {
        ...demo,
        id: newId(),
        baseUrl: `http://127.0.0.1:${port}`,
        sealedApiKey: null,
      };
      const models = [model('small', demo.id), model('whole', other.id)];
      const world = await publish({ upstreams: [demo, other], models });
      const release = await harness.holdSlot(world);
      const stream = await noticed(world, { requestId: 'whole', model: 'whole' });
      await release();
      expect(await stream.rest()).toBe(`data: ${JSON.stringify(whole)}\n\n`);
      await harness.untilNothingHeld(world);
      const event = (await harness.events(world)).find(({ data }) => data.requestId === 'whole');
      expect(event?.data).toMatchObject({ status: 'ok', usage: { input: 5, output: 7 } });
    } finally {
      server.close();
    }
  });

  it('holds nothing when its caller leaves', async () => {
    const world = await publish();
    const release = await harness.holdSlot(world);
    const stream = await noticed(world, { requestId: 'gone' });
    stream.leave();
    await until(async () => (await harness.metric('weir_calls_waiting')) === 0, 'it to leave');
    await release();
    expect((await harness.chat(world, {}, { requestId: 'next' })).status).toBe(200);
    await harness.untilNothingHeld(world);
    const served = (await harness.events(world)).map(({ data }) => data.requestId);
    expect(served).toContain('next');
    expect(served).not.toContain('gone');
    expect(await harness.refusals(world)).toEqual([]);
  });

  it('is repeated under its idempotency key without the notices, and metered once', async () => {
    const world = await publish();
    const release = await harness.holdSlot(world);
    const headers = { 'idempotency-key': 'one' };
    const stream = await noticed(world, { requestId: 'first', headers });
    await release();
    const rest = await stream.rest();
    await harness.untilNothingHeld(world);
    const again = await harness.chat(world, { stream: true }, { requestId: 'again', headers });
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await again.text()).toBe(rest.slice(rest.indexOf('data: ')));
    const served = (await harness.events(world)).map(({ data }) => data.requestId);
    expect(served).toEqual(['holder', 'first']);
  });

  it('may be tried again under its idempotency key after a refusal', async () => {
    const world = await publish({ settings: short });
    const release = await harness.holdSlot(world);
    const headers = { 'idempotency-key': 'two' };
    const stream = await noticed(world, { headers });
    expect(await stream.rest()).toContain('"code":"concurrency_exceeded"');
    await release();
    const again = await harness.chat(world, { stream: true }, { headers });
    expect(again.headers.get('idempotent-replayed')).toBeNull();
    expect(await again.text()).toContain('[DONE]');
    await harness.untilNothingHeld(world);
  });

  it('is told to come back when the gateway shuts down', async () => {
    const own = await GatewayHarness.start(notices);
    try {
      const world = await own.publish({ limits: oneAtATime, settings: long });
      const running = own.chat(world, {}, { demo: 'headers_delay_ms=1000' });
      await until(
        async () => (await own.peek(world)).some(({ inFlight }) => inFlight === 1),
        'the first to run',
      );
      const waiting = await own.chat(world, { stream: true });
      expect(waiting.status).toBe(200);
      const closed = own.closeGateway();
      expect(await waiting.text()).toMatch(/data: \{"error":\{.*"code":"unavailable"/);
      expect((await running).status).toBe(200);
      await closed;
    } finally {
      await own.close();
    }
  });
});
