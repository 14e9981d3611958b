import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import Anthropic from '@anthropic-ai/sdk';
import { createLogger } from '@weir/platform';
import { createParser } from 'eventsource-parser';
import type { FastifyInstance } from 'fastify';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { BillEntry, BillReport } from './bill.js';
import { createProvider } from './provider.js';
import { defaultSettings } from './settings.js';

const apiKey = 'key-of-the-tests';
let provider: FastifyInstance;
let url: string;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  const logger = createLogger({ name: 'test', level: 'silent' });
  provider = createProvider({ apiKey, logger, clock: { now: () => Date.now() } });
  url = await provider.listen({ host: '127.0.0.1', port: 0 });
  openai = new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey, baseURL: url, maxRetries: 0 });
});
afterAll(async () => {
  await provider.close();
});
beforeEach(async () => {
  await call('DELETE', '/demo/settings');
  await call('POST', '/demo/bill/reset');
});

const authorization = `Bearer ${apiKey}`;

async function call(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) {
  const answer = await fetch(url + path, {
    method,
    headers: {
      authorization,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

async function entries(): Promise<BillEntry[]> {
  const { text } = await call('GET', '/demo/bill/entries?limit=1000');
  return (JSON.parse(text) as { entries: BillEntry[] }).entries;
}

async function onlyEntry(): Promise<BillEntry> {
  const [entry, ...others] = await vi.waitUntil(async () => {
    const all = await entries();
    return all.length > 0 ? all : undefined;
  });
  expect(others).toEqual([]);
  if (entry === undefined) throw new Error('there is no entry');
  return entry;
}

const hello = [{ role: 'user' as const, content: 'Hello there' }];
/** 3 for the answer's role, 3 for the message, 1 for its role, 2 for its text (OpenAI Cookbook, see libs/tokens). */
const helloTokens = 9;
const chat = (model: string, more: object = {}) => ({ model, messages: hello, ...more });
const streamed = { stream: true, stream_options: { include_usage: true } };

/** The data of each event of a raw event stream, however its bytes were cut. */
function eventsOf(text: string): { event: string | undefined; data: string }[] {
  const events: { event: string | undefined; data: string }[] = [];
  const parser = createParser({ onEvent: ({ event, data }) => events.push({ event, data }) });
  parser.feed(text);
  return events;
}

describe('with the official OpenAI client', () => {
  it('completes a chat and bills exactly the usage that it reports', async () => {
    const answer = await openai.chat.completions.create(chat('demo-small'), {
      headers: { 'x-request-id': 'mine' },
    });
    expect(answer.choices[0]?.message.content).toMatch(/^[A-Z].*\.$/);
    expect(answer.choices[0]?.finish_reason).toBe('stop');
    expect(answer.usage).toMatchObject({
      prompt_tokens: helloTokens,
      prompt_tokens_details: { cached_tokens: 0 },
    });
    expect(await onlyEntry()).toMatchObject({
      id: answer.id,
      request_id: 'mine',
      model: 'demo-small',
      prompt_tokens: helloTokens,
      output_tokens: answer.usage?.completion_tokens,
      streamed: false,
      outcome: 'finished',
      cost_pico: String(helloTokens * 500_000 + (answer.usage?.completion_tokens ?? 0) * 1_500_000),
    });
  });

  it('streams one token per chunk, usage null on each and the numbers on the last', async () => {
    const stream = await openai.chat.completions.create({
      ...chat('demo-large', { max_tokens: 7 }),
      stream: true,
      stream_options: { include_usage: true },
    });
    const contents: string[] = [];
    const usages: (OpenAI.CompletionUsage | null | undefined)[] = [];
    let finish: string | null | undefined;
    for await (const chunk of stream) {
      const content = chunk.choices[0]?.delta.content;
      if (content) contents.push(content);
      finish = chunk.choices[0]?.finish_reason ?? finish;
      usages.push(chunk.usage);
    }
    expect(contents).toHaveLength(7);
    expect(finish).toBe('length');
    expect(usages.pop()).toMatchObject({
      prompt_tokens: helloTokens,
      completion_tokens: 7,
      total_tokens: helloTokens + 7,
    });
    expect(usages.every((usage) => usage === null)).toBe(true);
    expect(await onlyEntry()).toMatchObject({
      output_tokens: 7,
      streamed: true,
      outcome: 'finished',
    });
  });

  it('says nothing about usage in a stream that did not ask for it', async () => {
    const stream = await openai.chat.completions.create({ ...chat('demo-small'), stream: true });
    for await (const chunk of stream) {
      expect(chunk).not.toHaveProperty('usage');
      expect(chunk.choices).toHaveLength(1);
    }
    expect((await onlyEntry()).output_tokens).toBeGreaterThanOrEqual(16);
  });

  it('gives the same answer to the same prompt, streamed or not', async () => {
    const whole = await openai.chat.completions.create(chat('demo-small'));
    const again = await openai.chat.completions.create(chat('demo-small'));
    const stream = await openai.chat.completions.create({ ...chat('demo-small'), stream: true });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    expect(again.choices).toEqual(whole.choices);
    expect(text).toBe(whole.choices[0]?.message.content);
    expect(again.id).not.toBe(whole.id);
  });

  it('generates every one of n choices and bills them all', async () => {
    const stream = await openai.chat.completions.create({
      ...chat('demo-small', { n: 3, max_tokens: 5 }),
      stream: true,
      stream_options: { include_usage: true },
    });
    const texts = ['', '', ''];
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      for (const choice of chunk.choices) texts[choice.index] += choice.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    expect(new Set(texts).size).toBe(1);
    expect(texts[0]).not.toBe('');
    expect(usage?.completion_tokens).toBe(15);
    const whole = await openai.chat.completions.create(chat('demo-small', { n: 3, max_tokens: 5 }));
    expect(whole.choices.map((choice) => choice.message.content)).toEqual(texts);
    expect((await entries()).map((entry) => entry.output_tokens)).toEqual([15, 15]);
  });

  it('completes a text, streamed and not', async () => {
    const request = { model: 'demo-small', prompt: 'Once upon a time', max_tokens: 4 };
    const whole = await openai.completions.create(request);
    const stream = await openai.completions.create({ ...request, stream: true });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.text ?? '';
    expect(text).toBe(whole.choices[0]?.text);
    expect(whole.usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 4 });
    expect((await entries()).map((entry) => entry.output_tokens)).toEqual([4, 4]);
  });

  it('answers on the Responses route, streamed and not, with usage in its shape', async () => {
    const request = { model: 'demo-small', input: '请介绍一下水坝' };
    const whole = await openai.responses.create(request);
    expect(whole.status).toBe('completed');
    expect(whole.output_text).toMatch(/。$/);
    expect(whole.usage).toMatchObject({
      // 3 for the answer's role, 3 for the message, 1 for its role, the text.
      input_tokens: 3 + 3 + 1 + 5,
      input_tokens_details: { cached_tokens: 0 },
    });
    const stream = await openai.responses.create({ ...request, stream: true });
    let text = '';
    const sequence: number[] = [];
    let usage: unknown;
    for await (const event of stream) {
      sequence.push(event.sequence_number);
      if (event.type === 'response.output_text.delta') text += event.delta;
      if (event.type === 'response.completed') usage = event.response.usage;
    }
    expect(text).toBe(whole.output_text);
    expect(usage).toEqual(whole.usage);
    expect(sequence).toEqual(sequence.map((_, index) => index));
    const cut = await openai.responses.create({ ...request, max_output_tokens: 3 });
    expect(cut).toMatchObject({ status: 'incomplete', usage: { output_tokens: 3 } });
  });

  it('embeds texts and token lists into unit vectors, the same for the same text', async () => {
    const { data, usage } = await openai.embeddings.create({
      model: 'demo-embed',
      input: ['alpha', 'beta', 'alpha'],
    });
    const [alpha, beta, again] = data.map((entry) => entry.embedding);
    expect(alpha).toHaveLength(256);
    expect(alpha).toEqual(again);
    expect(alpha).not.toEqual(beta);
    expect((alpha ?? []).reduce((sum, value) => sum + value * value, 0)).toBeCloseTo(1, 5);
    expect(usage).toEqual({ prompt_tokens: 3, total_tokens: 3 });
    expect(await onlyEntry()).toMatchObject({
      model: 'demo-embed',
      prompt_tokens: 3,
      cost_pico: '60000',
    });
    const numbers = await openai.embeddings.create({
      model: 'demo-embed',
      input: [[1, 2, 3], [4]],
      encoding_format: 'float',
      dimensions: 8,
    });
    expect(numbers.data.map((entry) => entry.embedding.length)).toEqual([8, 8]);
    expect(numbers.usage.prompt_tokens).toBe(4);
  });

  it('lists its models', async () => {
    const { data } = await openai.models.list();
    expect(data.map((entry) => entry.id)).toEqual([
      'demo-small',
      'demo-large',
      'demo-free',
      'demo-embed',
    ]);
    expect(await openai.models.retrieve('demo-free')).toMatchObject({ id: 'demo-free' });
  });

  it('raises the errors that the client knows, and bills nothing for them', async () => {
    await expect(openai.chat.completions.create(chat('gpt-9'))).rejects.toThrow(
      OpenAI.NotFoundError,
    );
    await expect(
      openai.chat.completions.create({ model: 'demo-small', messages: [] }),
    ).rejects.toThrow(OpenAI.BadRequestError);
    for (const max_tokens of [-1, 0, 1.5, 1e12]) {
      await expect(
        openai.chat.completions.create(chat('demo-small', { max_tokens })),
      ).rejects.toThrow(OpenAI.BadRequestError);
    }
    await expect(openai.chat.completions.create(chat('demo-embed'))).rejects.toThrow(
      OpenAI.BadRequestError,
    );
    const stranger = new OpenAI({ apiKey: 'wrong', baseURL: `${url}/v1`, maxRetries: 0 });
    await expect(stranger.chat.completions.create(chat('demo-small'))).rejects.toThrow(
      OpenAI.AuthenticationError,
    );
    const all = await entries();
    expect(all).toHaveLength(8);
    for (const entry of all)
      expect(entry).toMatchObject({ outcome: 'refused', prompt_tokens: 0, cost_pico: '0' });
  });
});

describe('with the official Anthropic client', () => {
  const request = { model: 'demo-large', max_tokens: 6, messages: hello };

  it('answers a message, streamed and not, and leaves cached tokens out of input_tokens', async () => {
    await call('POST', '/demo/settings', { cached_tokens: 2 });
    const whole = await anthropic.messages.create(request);
    expect(whole).toMatchObject({
      stop_reason: 'max_tokens',
      usage: { input_tokens: helloTokens - 2, cache_read_input_tokens: 2, output_tokens: 6 },
    });
    const final = await anthropic.messages.stream(request).finalMessage();
    expect(final.content).toMatchObject(whole.content);
    expect(final.usage).toMatchObject({
      input_tokens: helloTokens - 2,
      cache_read_input_tokens: 2,
      output_tokens: 6,
    });
    for (const entry of await entries()) {
      expect(entry).toMatchObject({
        prompt_tokens: helloTokens,
        cached_tokens: 2,
        output_tokens: 6,
      });
      expect(entry.cost_pico).toBe(
        String((helloTokens - 2) * 5_000_000 + 2 * 500_000 + 6 * 15_000_000),
      );
    }
  });

  it('counts tokens without a bill', async () => {
    expect(await anthropic.messages.countTokens({ model: 'demo-large', messages: hello })).toEqual({
      input_tokens: helloTokens,
    });
    expect(await entries()).toEqual([]);
  });

  it('raises errors in their shape', async () => {
    await expect(anthropic.messages.create({ ...request, model: 'claude' })).rejects.toThrow(
      Anthropic.NotFoundError,
    );
    const metadata = { user_id: 'demo:status:429;retry_after_seconds=7' };
    const refused = anthropic.messages
      .create({ ...request, metadata })
      .catch((error: unknown) => error);
    const error = await refused;
    expect(error).toBeInstanceOf(Anthropic.RateLimitError);
    expect(
      (error as InstanceType<typeof Anthropic.RateLimitError>).headers.get('retry-after'),
    ).toBe('7');
  });
});

describe('settings', () => {
  it('can be changed at run time, read and set back', async () => {
    const changed = await call('POST', '/demo/settings', {
      output_tokens: 3,
      reasoning_tokens: 1,
      prompt_tokens: 1_000,
    });
    expect(JSON.parse(changed.text)).toEqual({
      ...defaultSettings,
      output_tokens: 3,
      reasoning_tokens: 1,
      prompt_tokens: 1_000,
    });
    const { usage } = await openai.chat.completions.create(chat('demo-small'));
    expect(usage).toMatchObject({
      prompt_tokens: 1_000,
      completion_tokens: 3,
      completion_tokens_details: { reasoning_tokens: 1 },
    });
    expect(JSON.parse((await call('DELETE', '/demo/settings')).text)).toEqual(defaultSettings);
  });

  it('are taken from headers, then the body, then the model, each winning over the one before', async () => {
    const tokensOf = async (body: object, headers: Record<string, string> = {}) => {
      const { text } = await call('POST', '/v1/chat/completions', body, headers);
      return (JSON.parse(text) as OpenAI.ChatCompletion).usage?.completion_tokens;
    };
    await call('POST', '/demo/settings', { output_tokens: 2 });
    const headers = { 'x-demo-output-tokens': '3' };
    expect(await tokensOf(chat('demo-small'))).toBe(2);
    expect(await tokensOf(chat('demo-small'), headers)).toBe(3);
    expect(await tokensOf(chat('demo-small', { user: 'demo:output_tokens=4' }), headers)).toBe(4);
    expect(
      await tokensOf(chat('demo-small', { metadata: { demo: 'output_tokens=5' } }), headers),
    ).toBe(5);
    expect(
      await tokensOf(chat('demo-small#output_tokens=6', { user: 'demo:output_tokens=4' }), headers),
    ).toBe(6);
  });

  it('obey max_tokens unless told not to', async () => {
    const model = 'demo-small#output_tokens=9';
    const cut = await openai.chat.completions.create(chat(model, { max_completion_tokens: 4 }));
    expect(cut.usage?.completion_tokens).toBe(4);
    const over = await openai.chat.completions.create(
      chat(`${model};ignore_max_tokens=true`, { max_tokens: 4 }),
    );
    expect(over.usage?.completion_tokens).toBe(9);
  });

  it('are refused when they do not exist', async () => {
    expect((await call('POST', '/demo/settings', { outputTokens: 3 })).status).toBe(400);
    expect((await call('POST', '/v1/chat/completions', chat('demo-small#explode'))).status).toBe(
      400,
    );
    expect(
      (await call('POST', '/v1/chat/completions', chat('demo-small'), { 'x-demo-speed': '3' }))
        .status,
    ).toBe(400);
  });

  it('want the key, like the bill', async () => {
    for (const [method, path] of [
      ['GET', '/demo/settings'],
      ['POST', '/demo/settings'],
      ['DELETE', '/demo/settings'],
      ['GET', '/demo/bill'],
      ['GET', '/demo/bill/entries'],
      ['POST', '/demo/bill/reset'],
      ['GET', '/v1/models'],
    ] as const) {
      expect((await fetch(url + path, { method })).status).toBe(401);
    }
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });

  it('pace the tokens', async () => {
    const startedMs = performance.now();
    const model = 'demo-small#first_token_delay_ms=60;tokens_per_second=100;output_tokens=10';
    await call('POST', '/v1/chat/completions', chat(model, streamed));
    // The first after 60 ms, nine more at 10 ms each; timers may be up to a millisecond early.
    expect(performance.now() - startedMs).toBeGreaterThan(145);
    const wholeMs = performance.now();
    await call('POST', '/v1/chat/completions', chat(model));
    expect(performance.now() - wholeMs).toBeGreaterThan(155);
  });

  it('cut the bytes anywhere, use CRLF, comments and larger chunks, and the events stay the same', async () => {
    const path = '/v1/chat/completions';
    const body = (directives: string) => ({
      ...chat(`demo-small#output_tokens=12;${directives}`, streamed),
      messages: [{ role: 'user', content: '你好' }],
    });
    const normal = (text: string) =>
      eventsOf(text).map(({ data }) =>
        data.replace(/"id":"[^"]+"/, '').replace(/"created":\d+/, ''),
      );
    const plain = await call('POST', path, body(''));
    const odd = await call(
      'POST',
      path,
      body('split_bytes=7;crlf=true;comments=true;events_per_tick=1'),
    );
    expect(odd.text).toContain('\r\n\r\n');
    expect(odd.text).toContain(': keep-alive');
    expect(odd.text.replaceAll('\r\n', '')).not.toContain('\n');
    expect(normal(odd.text)).toEqual(normal(plain.text));
    const large = await call('POST', path, body('tokens_per_chunk=5'));
    expect(eventsOf(plain.text)).toHaveLength(1 + 12 + 1 + 1 + 1);
    expect(eventsOf(large.text)).toHaveLength(1 + 3 + 1 + 1 + 1);
  });

  it('can keep usage from being told although it is billed', async () => {
    const silent = await call(
      'POST',
      '/v1/chat/completions',
      chat('demo-small#usage=never', streamed),
    );
    expect(silent.text).not.toContain('usage');
    expect(silent.text).toContain('[DONE]');
    const whole = await call('POST', '/v1/chat/completions', chat('demo-small#usage=never'));
    expect(whole.text).not.toContain('usage');
    const always = await call(
      'POST',
      '/v1/chat/completions',
      chat('demo-small#usage=always', { stream: true }),
    );
    expect(always.text).toContain('"completion_tokens":');
    expect((await entries()).every((entry) => entry.output_tokens >= 16)).toBe(true);
  });
});

describe('faults', () => {
  const post = (directives: string, more: object = streamed) =>
    call('POST', '/v1/chat/completions', chat(`demo-small#output_tokens=10;${directives}`, more));

  it('before headers bill nothing', async () => {
    const refused = await post('status:503;retry_after_seconds=2');
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('2');
    await expect(post('connect_reset')).rejects.toThrow();
    const patience = new AbortController();
    const hanging = fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify(chat('demo-small#hang_before_headers')),
      signal: patience.signal,
    });
    setImmediate(() => patience.abort());
    await expect(hanging).rejects.toThrow();
    // Whether the aborted call reached the provider is the network's affair; the other two did.
    const all = await entries();
    expect(all.slice(0, 2).map((entry) => entry.outcome)).toEqual(['fault', 'fault']);
    expect((await report()).total).toMatchObject({
      prompt_tokens: 0,
      output_tokens: 0,
      cost_pico: '0',
    });
  });

  it('hang before headers until the caller gives up', async () => {
    const socket = await openRaw('demo-small#hang_before_headers', false);
    await once(socket, 'connect');
    // Another call that is answered proves that the hanging one was read before.
    await vi.waitUntil(async () => (await call('GET', '/healthz')).status === 200);
    socket.destroy();
    expect(await onlyEntry()).toMatchObject({ outcome: 'fault', prompt_tokens: 0, cost_pico: '0' });
  });

  it('eof_mid_stream ends cleanly without a terminal event and bills what was delivered', async () => {
    const { status, text } = await post('eof_mid_stream;fault_after_tokens=4');
    expect(status).toBe(200);
    expect(eventsOf(text)).toHaveLength(1 + 4);
    expect(text).not.toContain('[DONE]');
    expect(await onlyEntry()).toMatchObject({
      outcome: 'fault',
      prompt_tokens: helloTokens,
      output_tokens: 4,
    });
  });

  it('eof_after_usage tells the usage and ends without a terminal event', async () => {
    const { text } = await post('eof_after_usage;usage=always');
    expect(text).not.toContain('[DONE]');
    const last = JSON.parse(eventsOf(text).at(-1)?.data ?? '') as { usage: object };
    const entry = await onlyEntry();
    expect(last.usage).toMatchObject({ completion_tokens: entry.output_tokens });
    expect(entry).toMatchObject({
      outcome: 'fault',
      prompt_tokens: helloTokens,
      output_tokens: 10,
    });
  });

  it('error_event_mid_stream delivers half and an error event', async () => {
    const { text } = await post('error_event_mid_stream');
    expect(eventsOf(text)).toHaveLength(1 + 5 + 1);
    expect(eventsOf(text).at(-1)?.data).toContain('"server_error"');
    expect(await onlyEntry()).toMatchObject({ outcome: 'fault', output_tokens: 5 });
  });

  it('reset_mid_stream breaks the connection after the tokens before it have arrived', async () => {
    const socket = await openRaw('demo-small#reset_mid_stream;output_tokens=10', true);
    let text = '';
    socket.on('data', (bytes: Buffer) => (text += bytes.toString()));
    socket.on('error', () => {});
    await once(socket, 'close');
    expect(text.match(/"delta":\{"content":"[^"]+"\}/g)).toHaveLength(5);
    // Without the empty chunk that ends a body, every client takes this for a broken connection.
    expect(text).not.toMatch(/\r\n0\r\n\r\n$/);
    expect(await onlyEntry()).toMatchObject({ outcome: 'fault', output_tokens: 5 });
    await expect(post('reset_mid_stream')).rejects.toThrow();
  });

  it('hang_mid_stream is billed when the caller gives up', async () => {
    const socket = await openRaw('demo-small#hang_mid_stream;fault_after_tokens=3', true);
    let text = '';
    socket.on('data', (bytes: Buffer) => (text += bytes.toString()));
    await vi.waitUntil(() => text.split('"content":"').length === 1 + 1 + 3);
    expect(await entries()).toEqual([]);
    socket.destroy();
    expect(await onlyEntry()).toMatchObject({
      outcome: 'fault',
      prompt_tokens: helloTokens,
      output_tokens: 3,
    });
  });

  it('malformed_json breaks one event and goes on, or cuts a whole answer', async () => {
    const { text } = await post('malformed_json');
    const broken = eventsOf(text).filter(({ data }) => data !== '[DONE]' && !isJson(data));
    expect(broken).toHaveLength(1);
    expect(text).toContain('[DONE]');
    expect((await onlyEntry()).output_tokens).toBe(10);
    const whole = await post('malformed_json', {});
    expect(whole.status).toBe(200);
    expect(isJson(whole.text)).toBe(false);
  });

  it('usage_null and usage_twice tell usage in those ways', async () => {
    const usagesIn = (text: string) =>
      eventsOf(text)
        .filter(({ data }) => data.includes('"choices":[]'))
        .map(({ data }) => (JSON.parse(data) as { usage: OpenAI.CompletionUsage | null }).usage);
    expect(usagesIn((await post('usage_null')).text)).toEqual([null]);
    const twice = usagesIn((await post('usage_twice')).text);
    expect(twice.map((usage) => usage?.completion_tokens)).toEqual([5, 10]);
    expect(JSON.parse((await post('usage_null', {})).text)).toMatchObject({ usage: null });
  });

  it('break whole answers too', async () => {
    await expect(post('eof_mid_stream', {})).rejects.toThrow();
    await expect(post('reset_mid_stream', {})).rejects.toThrow();
    expect((await post('error_event_mid_stream', {})).status).toBe(500);
    expect((await entries()).map((entry) => [entry.outcome, entry.output_tokens])).toEqual([
      ['fault', 0],
      ['fault', 0],
      ['fault', 0],
    ]);
    // What broke off had read the prompt; what failed with a status is free.
    expect((await entries()).map((entry) => entry.prompt_tokens)).toEqual([
      helloTokens,
      helloTokens,
      0,
    ]);
  });

  it('can befall every n-th call only', async () => {
    await call('POST', '/demo/settings', { fault: 'status:500', fault_every: 3 });
    const statuses: number[] = [];
    for (let index = 0; index < 9; index += 1) statuses.push((await post('', {})).status);
    expect(statuses.filter((status) => status === 500)).toHaveLength(3);
  });

  it('speak the dialect of the route', async () => {
    const path = '/v1/messages';
    const body = (directives: string) => ({
      ...chat(`demo-small#output_tokens=4;${directives}`, { stream: true }),
      max_tokens: 10,
    });
    const broken = eventsOf((await call('POST', path, body('error_event_mid_stream'))).text);
    expect(broken.at(-1)).toMatchObject({
      event: 'error',
      data: expect.stringContaining('overloaded_error'),
    });
    const refused = await call('POST', path, body('status:529'));
    expect(JSON.parse(refused.text)).toMatchObject({
      type: 'error',
      error: { type: 'server_error' },
    });
    const twice = eventsOf((await call('POST', path, body('usage_twice'))).text);
    const told = twice.filter(({ event }) => event === 'message_delta');
    expect(
      told.map(
        ({ data }) =>
          (JSON.parse(data) as { usage: { output_tokens: number } }).usage.output_tokens,
      ),
    ).toEqual([2, 4]);
  });
});

describe('a caller that leaves', () => {
  it('is billed for the prompt and the tokens until it was noticed', async () => {
    const controller = new AbortController();
    const stream = await openai.chat.completions.create(
      { ...chat('demo-small#tokens_per_second=5;output_tokens=500'), stream: true },
      { signal: controller.signal },
    );
    let received = 0;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) received += 1;
      if (received === 2) controller.abort();
    }
    const entry = await onlyEntry();
    expect(entry).toMatchObject({
      outcome: 'client_aborted',
      prompt_tokens: helloTokens,
      streamed: true,
    });
    expect(entry.output_tokens).toBeGreaterThanOrEqual(2);
    expect(entry.output_tokens).toBeLessThanOrEqual(4);
  });

  it('is billed for the prompt alone when no token was generated yet', async () => {
    const socket = await openRaw('demo-small#first_token_delay_ms=60000;reasoning_tokens=5', true);
    await once(socket, 'data');
    socket.destroy();
    expect(await onlyEntry()).toMatchObject({
      outcome: 'client_aborted',
      prompt_tokens: helloTokens,
      output_tokens: 0,
    });
  });

  it('has an entry however soon it leaves', async () => {
    const directives = [
      'hang_before_headers',
      'headers_delay_ms=60000',
      'first_token_delay_ms=60000',
      '',
    ];
    for (const [index, directive] of directives.entries()) {
      await call('POST', '/demo/bill/reset');
      for (let count = 0; count < 20; count += 1) {
        const socket = await openRaw(`demo-small#${directive}`, count % 2 === 0);
        socket.on('error', () => {});
        socket.write('', () => socket.destroy());
      }
      await vi.waitUntil(async () => (await entries()).length === 20);
      const tokens = (await entries()).map((entry) => entry.prompt_tokens);
      expect(new Set(tokens)).toEqual(new Set([index < 2 ? 0 : helloTokens]));
    }
  });

  it('is billed in full for an answer that is not streamed', async () => {
    const socket = await openRaw('demo-small#first_token_delay_ms=60000;output_tokens=20', false);
    await once(socket, 'connect');
    await call('GET', '/healthz');
    socket.destroy();
    expect(await onlyEntry()).toMatchObject({
      outcome: 'client_aborted',
      output_tokens: 20,
      streamed: false,
    });
  });

  it('does not make the provider generate more than a slow caller takes', async () => {
    const total = 400_000;
    const socket = await openRaw(`demo-small#output_tokens=${total}`, true);
    await once(socket, 'data');
    socket.pause();
    expect((await call('GET', '/healthz')).status).toBe(200);
    socket.destroy();
    const entry = await onlyEntry();
    expect(entry.outcome).toBe('client_aborted');
    expect(entry.output_tokens).toBeLessThan(total / 4);
  });

  it('may read slowly and still gets every token', async () => {
    const total = 60_000;
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify(chat(`demo-small#output_tokens=${total}`, { stream: true })),
    });
    let bytes = '';
    const decoder = new TextDecoder();
    for await (const piece of answer.body ?? []) {
      bytes += decoder.decode(piece as Uint8Array, { stream: true });
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(eventsOf(bytes)).toHaveLength(1 + total + 1 + 1);
    expect(await onlyEntry()).toMatchObject({ outcome: 'finished', output_tokens: total });
  });
});

describe('the bill', () => {
  it('agrees with what a crowd of callers was told, to the last token and pico', async () => {
    const calls = Array.from({ length: 300 }, (_, index) => {
      const model = ['demo-small', 'demo-large', 'demo-free'][index % 3] ?? 'demo-small';
      const content = `Question number ${index} ${'x'.repeat(index)}`;
      return openai.chat.completions.create({ model, messages: [{ role: 'user', content }] });
    });
    const usages = (await Promise.all(calls)).map((answer) => answer.usage);
    const sum = (pick: (usage: OpenAI.CompletionUsage) => number) =>
      usages.reduce((total, usage) => total + (usage ? pick(usage) : 0), 0);
    const { total, models } = await report();
    expect(total).toMatchObject({
      calls: 300,
      prompt_tokens: sum((usage) => usage.prompt_tokens),
      output_tokens: sum((usage) => usage.completion_tokens),
    });
    expect(models['demo-small']?.calls).toBe(100);
    expect(models['demo-free']?.cost_pico).toBe('0');
    const all = await entries();
    expect(all.reduce((pico, entry) => pico + BigInt(entry.cost_pico), 0n).toString()).toBe(
      total.cost_pico,
    );
    expect(new Set(all.map((entry) => entry.id)).size).toBe(300);
  });

  it('can be asked for what came since', async () => {
    await openai.chat.completions.create(chat('demo-small'));
    const { last_seq } = await report();
    await openai.chat.completions.create(chat('demo-large'));
    const since = JSON.parse(
      (await call('GET', `/demo/bill?since=${last_seq}`)).text,
    ) as BillReport;
    expect(since.total.calls).toBe(1);
    expect(Object.keys(since.models)).toEqual(['demo-large']);
    expect((await call('GET', '/demo/bill?since=yesterday')).status).toBe(400);
    expect((await call('GET', '/demo/bill/entries?limit=0')).status).toBe(400);
  });
});

async function report(): Promise<BillReport> {
  return JSON.parse((await call('GET', '/demo/bill')).text) as BillReport;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A call on a socket that the test holds in its own hands. */
async function openRaw(model: string, stream: boolean): Promise<Socket> {
  const body = JSON.stringify(chat(model, stream ? { stream } : {}));
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n` +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return Promise.resolve(socket);
}
