import { createOpenAI } from '@ai-sdk/openai';
import Anthropic, { RateLimitError } from '@anthropic-ai/sdk';
import { dynamicTool, generateText, jsonSchema, streamText } from 'ai';
import { OpenAI } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limit, model, type World, type WorldOptions } from '../testing/documents.js';
import { GatewayHarness, until } from '../testing/gateway-harness.js';

let harness: GatewayHarness;
beforeAll(async () => {
  harness = await GatewayHarness.start();
});
afterAll(() => harness.close());

function counted(): { fetch: typeof fetch; count: () => number } {
  let calls = 0;
  return {
    fetch: (input, init) => {
      calls += 1;
      return fetch(input, init);
    },
    count: () => calls,
  };
}

async function onlyEvent(world: World) {
  return until(async () => {
    const events = await harness.events(world);
    expect(events.length).toBeLessThanOrEqual(1);
    return events[0] ?? null;
  }, 'the event');
}

/** One slot, and a slow model whose stream is cut with its client, beside a quick one. */
async function publishAborting(dialect: 'openai' | 'anthropic'): Promise<World> {
  const upstream = harness.demoUpstream({ dialect, onClientGone: 'abort' });
  const slow = 'demo-small#output_tokens=400;tokens_per_second=50';
  return harness.publish({
    upstreams: [upstream],
    models: [
      model('m', upstream.id, {
        dialect,
        routes: [{ upstreamId: upstream.id, upstreamModel: slow, weight: 1, priority: 0 }],
      }),
      model('quick', upstream.id, { dialect }),
    ],
    limits: { key: [limit('concurrency', null, '1')] },
  });
}

async function expectCancelled(world: World): Promise<void> {
  const event = await onlyEvent(world);
  expect(event.data).toMatchObject({ status: 'cancelled', estimated: true });
  expect(event.data.usage.output).toBeGreaterThan(0);
  expect(event.data.usage.output).toBeLessThan(200);
  await until(async () => (await harness.peek(world))[3]?.inFlight === 0, 'the slot to be free');
}

describe('the official Anthropic SDK', () => {
  async function publish(options: Partial<WorldOptions> = {}): Promise<World> {
    const upstream = harness.demoUpstream({ dialect: 'anthropic' });
    return harness.publish({
      upstreams: [upstream],
      models: [model('claude', upstream.id, { dialect: 'anthropic' })],
      ...options,
    });
  }
  const clientOf = (world: World, more: object = {}): Anthropic =>
    new Anthropic({ apiKey: world.secret, baseURL: harness.url, ...more });
  const asked = {
    model: 'claude',
    max_tokens: 200,
    messages: [{ role: 'user' as const, content: 'Tell me of rivers.' }],
  };

  it('gets an answer with x-api-key, booked as the provider bills it', async () => {
    const world = await publish();
    const { data, response } = await clientOf(world).messages.create(asked).withResponse();
    expect(data.content[0]).toMatchObject({ type: 'text' });
    const [bill] = await harness.bill([response.headers.get('x-request-id') ?? '']);
    const event = await onlyEvent(world);
    expect(event.data).toMatchObject({
      costPico: bill?.cost_pico,
      estimated: false,
      route: '/v1/messages',
    });
    expect(response.headers.get('request-id')).toBe(event.data.requestId);
  });

  it('streams with its helpers, tools included', async () => {
    const world = await publish();
    const stream = clientOf(world).messages.stream({
      ...asked,
      tools: [
        {
          name: 'weather',
          input_schema: { type: 'object', properties: { city: { type: 'string' } } },
        },
      ],
    });
    const message = await stream.finalMessage();
    const event = await onlyEvent(world);
    expect(event.data.usage).toMatchObject({
      input: message.usage.input_tokens,
      output: message.usage.output_tokens,
    });
  });

  it('makes one attempt on an exhausted budget, and gets the error in its own shape', async () => {
    const world = await publish({ limits: { department: [limit('requests', 'month', '1')] } });
    const counting = counted();
    const client = clientOf(world, { fetch: counting.fetch, maxRetries: 3 });
    await client.messages.create(asked);
    const refusal = await client.messages.create(asked).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(RateLimitError);
    expect((refusal as RateLimitError).error).toMatchObject({
      type: 'error',
      error: { type: 'rate_limit_error', code: 'insufficient_quota' },
    });
    expect(counting.count()).toBe(2);
  });

  it('backs off on a rate limit as told', async () => {
    const world = await publish({ limits: { key: [limit('requests', 'second', '1')] } });
    const counting = counted();
    const client = clientOf(world, { fetch: counting.fetch, maxRetries: 4 });
    for (let call = 0; call < 2; call += 1) await client.messages.create(asked);
    expect(counting.count()).toBeGreaterThan(2);
  });

  it('frees its slot when it aborts a stream', async () => {
    const world = await publishAborting('anthropic');
    const client = clientOf(world);
    const stream = client.messages.stream({ ...asked, model: 'm', max_tokens: 500 });
    stream.once('text', () => stream.abort());
    await expect(stream.done()).rejects.toThrow(/abort/i);
    await expectCancelled(world);
    const next = await client.messages.create({ ...asked, model: 'quick' });
    expect(next.content[0]).toMatchObject({ type: 'text' });
  });

  it('counts tokens without a charge', async () => {
    const world = await publish();
    const { input_tokens } = await clientOf(world).messages.countTokens({
      model: 'claude',
      messages: asked.messages,
    });
    expect(input_tokens).toBeGreaterThan(5);
    expect((await harness.peek(world))[0]?.month.requests).toBe(0n);
  });

  it('gets authentication and model errors in its own shape', async () => {
    const world = await publish();
    const wrongKey = await new Anthropic({ apiKey: 'weir-wrong', baseURL: harness.url }).messages
      .create(asked)
      .catch((error: unknown) => error);
    expect(wrongKey).toMatchObject({
      status: 401,
      error: { error: { type: 'authentication_error' } },
    });
    const wrongModel = await clientOf(world)
      .messages.create({ ...asked, model: 'nope' })
      .catch((error: unknown) => error);
    expect(wrongModel).toMatchObject({
      status: 404,
      error: { error: { type: 'not_found_error' } },
    });
  });
});

describe('the Vercel AI SDK', () => {
  it('generates and streams, over chat completions and over responses', async () => {
    const world = await harness.publish();
    const openai = createOpenAI({ apiKey: world.secret, baseURL: `${harness.url}/v1` });
    const whole = await generateText({ model: openai.chat('small'), prompt: 'Tell me of rivers.' });
    expect(whole.text.length).toBeGreaterThan(10);
    const response = await generateText({
      model: openai.responses('small'),
      prompt: 'Tell me of rivers.',
    });
    expect(response.text.length).toBeGreaterThan(10);
    for (const served of [openai.chat('small'), openai.responses('small')]) {
      const stream = streamText({ model: served, prompt: 'Tell me of rivers.' });
      let text = '';
      for await (const delta of stream.textStream) text += delta;
      expect(text.length).toBeGreaterThan(10);
      expect((await stream.usage).outputTokens).toBeGreaterThan(0);
    }
    const events = await harness.events(world);
    expect(events.map(({ data }) => [data.route, data.status, data.estimated])).toEqual([
      ['/v1/chat/completions', 'ok', false],
      ['/v1/responses', 'ok', false],
      ['/v1/chat/completions', 'ok', false],
      ['/v1/responses', 'ok', false],
    ]);
  });

  // It goes by the status alone, and of `x-should-retry` it knows nothing.
  it('makes one attempt on an exhausted budget, and gets the error in its own shape', async () => {
    const world = await harness.publish({ limits: { user: [limit('requests', 'month', '0')] } });
    const counting = counted();
    const openai = createOpenAI({
      apiKey: world.secret,
      baseURL: `${harness.url}/v1`,
      fetch: counting.fetch,
    });
    const refusal = await generateText({
      model: openai.chat('small'),
      prompt: 'Hello',
      maxRetries: 3,
    }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      name: 'AI_APICallError',
      statusCode: 402,
      message: expect.stringMatching(/blocked/) as string,
      data: { error: { code: 'insufficient_quota' } },
    });
    expect(counting.count()).toBe(1);
    const stream = streamText({
      model: openai.chat('small'),
      prompt: 'Hello',
      maxRetries: 3,
      onError: () => undefined,
    });
    await expect(stream.text).rejects.toThrow();
    expect(counting.count()).toBe(2);
    expect(await harness.events(world)).toEqual([]);
    expect((await harness.peek(world))[0]?.month).toMatchObject({ requests: 0n, tokens: 0n });
  });

  it('passes tools on and books them, and raises an error of a route as its own', async () => {
    const world = await harness.publish();
    const openai = createOpenAI({ apiKey: world.secret, baseURL: `${harness.url}/v1` });
    const weather = dynamicTool({
      description: 'The weather of a city',
      inputSchema: jsonSchema({
        type: 'object',
        properties: { city: { type: 'string' } },
        required: ['city'],
      }),
      execute: () => 'sunny',
    });
    const answer = await generateText({
      model: openai.chat('small'),
      prompt: 'Weather in Bern?',
      tools: { weather },
    });
    const event = await onlyEvent(world);
    expect(event.data.usage.input).toBe(answer.usage.inputTokens);
    const unknown = await generateText({ model: openai.chat('nope'), prompt: 'x' }).catch(
      (error: unknown) => error,
    );
    expect(unknown).toMatchObject({ statusCode: 404, isRetryable: false });
  });

  it('frees its slot when it aborts a stream', async () => {
    const world = await publishAborting('openai');
    const openai = createOpenAI({ apiKey: world.secret, baseURL: `${harness.url}/v1` });
    const abort = new AbortController();
    const stream = streamText({
      model: openai.chat('m'),
      prompt: 'Tell me of rivers.',
      abortSignal: abort.signal,
      onError: () => undefined,
    });
    for await (const _delta of stream.textStream) abort.abort();
    await expectCancelled(world);
    expect((await generateText({ model: openai.chat('quick'), prompt: 'Hi' })).text).toBeTruthy();
  });
});

describe('the official OpenAI SDK on the other routes', () => {
  it('embeds texts, metered by their tokens', async () => {
    const upstream = harness.demoUpstream();
    const world = await harness.publish({
      upstreams: [upstream],
      models: [
        model('embed', upstream.id, {
          kind: 'embedding',
          routes: [
            { upstreamId: upstream.id, upstreamModel: 'demo-embed', weight: 1, priority: 0 },
          ],
        }),
      ],
    });
    const client = new OpenAI({ apiKey: world.secret, baseURL: `${harness.url}/v1` });
    const { data, usage } = await client.embeddings.create({
      model: 'embed',
      input: ['one river', 'two rivers'],
    });
    expect(data).toHaveLength(2);
    const event = await onlyEvent(world);
    expect(event.data.usage).toMatchObject({ input: usage.prompt_tokens, output: 0 });
    const chat = await client.chat.completions
      .create({ model: 'embed', messages: [{ role: 'user', content: 'x' }] })
      .catch((error: unknown) => error);
    expect(chat).toMatchObject({ status: 400, param: 'model' });
  });

  it('streams a response whose budget runs out, which ends as incomplete', async () => {
    const upstream = harness.demoUpstream();
    const world = await harness.publish({
      upstreams: [upstream],
      models: [model('small', upstream.id, { defaultOutputReserve: 64 })],
      limits: { department: [limit('tokens', 'month', '300')] },
    });
    const client = new OpenAI({ apiKey: world.secret, baseURL: `${harness.url}/v1` });
    const stream = await client.responses.create({
      model: 'small',
      input: 'Tell me of rivers.',
      stream: true,
      user: 'demo:output_tokens=4000',
    });
    const seen = [];
    for await (const event of stream) seen.push(event);
    const last = seen.at(-1);
    expect(last?.type).toBe('response.incomplete');
    if (last?.type !== 'response.incomplete') return;
    expect(last.response.usage?.output_tokens).toBeGreaterThan(60);
    expect((await harness.peek(world))[1]?.month.tokens).toBeLessThanOrEqual(364n);
  });

  it('refuses a response in the background: it could not be metered', async () => {
    const world = await harness.publish();
    const client = new OpenAI({ apiKey: world.secret, baseURL: `${harness.url}/v1` });
    const error = await client.responses
      .create({ model: 'small', input: 'x', background: true })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ status: 400, param: 'background' });
  });
});
