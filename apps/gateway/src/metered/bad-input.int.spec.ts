import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { limit, type World } from '../testing/documents.js';
import { GatewayHarness } from '../testing/gateway-harness.js';

let harness: GatewayHarness;
let world: World;
beforeAll(async () => {
  harness = await GatewayHarness.start();
  world = await harness.publish({
    limits: { enterprise: [limit('concurrency', null, '50'), limit('requests', 'minute', '1000')] },
  });
});
afterAll(() => harness.close());

type Sent = { body: string; headers?: Record<string, string>; path?: string };
type Wanted = { status: number; code: string; param?: string; says: RegExp };

const messages = [{ role: 'user', content: 'Hello' }];
const json = (body: unknown): Sent => ({ body: JSON.stringify(body) });
const chat = (more: Record<string, unknown>): Sent => json({ model: 'small', messages, ...more });

const table: readonly (readonly [name: string, sent: Sent, wanted: Wanted])[] = [
  [
    'malformed JSON',
    { body: '{"model": "small", ' },
    { status: 400, code: 'invalid_request', says: /not valid JSON/ },
  ],
  ['no body', { body: '' }, { status: 400, code: 'invalid_request', says: /no body/ }],
  ['an array', json([1]), { status: 400, code: 'invalid_request', says: /JSON object/ }],
  [
    'a bottomless body',
    { body: `{"model":"small","messages":${'['.repeat(5_000)}${']'.repeat(5_000)}}` },
    { status: 400, code: 'invalid_request', says: /nested/ },
  ],
  [
    'no model',
    json({ messages }),
    { status: 400, code: 'invalid_request', param: 'model', says: /\/v1\/models/ },
  ],
  [
    'a model that is a number',
    json({ model: 5, messages }),
    { status: 400, code: 'invalid_request', param: 'model', says: /name/ },
  ],
  [
    'an unknown model',
    json({ model: 'gpt-nope', messages }),
    { status: 404, code: 'model_not_found', param: 'model', says: /"gpt-nope" does not exist/ },
  ],
  [
    'no messages',
    json({ model: 'small' }),
    { status: 400, code: 'invalid_request', param: 'messages', says: /missing/ },
  ],
  [
    'empty messages',
    chat({ messages: [] }),
    { status: 400, code: 'invalid_request', param: 'messages', says: /at least one/ },
  ],
  [
    'messages that are a text',
    chat({ messages: 'Hello' }),
    { status: 400, code: 'invalid_request', param: 'messages', says: /array/ },
  ],
  [
    'a message without a role',
    chat({ messages: [{ content: 'x' }] }),
    { status: 400, code: 'invalid_request', param: 'messages[0].role', says: /one of/ },
  ],
  [
    'content that is a number',
    chat({ messages: [{ role: 'user', content: 7 }] }),
    {
      status: 400,
      code: 'invalid_request',
      param: 'messages[0].content',
      says: /text or an array/,
    },
  ],
  [
    'negative max_tokens',
    chat({ max_tokens: -1 }),
    { status: 400, code: 'invalid_request', param: 'max_tokens', says: /must be from 1/ },
  ],
  [
    'max_tokens 0',
    chat({ max_tokens: 0 }),
    { status: 400, code: 'invalid_request', param: 'max_tokens', says: /must be from 1/ },
  ],
  [
    'huge max_tokens',
    chat({ max_tokens: 1e12 }),
    { status: 400, code: 'invalid_request', param: 'max_tokens', says: /at most 4096/ },
  ],
  [
    'max_tokens beyond integers',
    { body: '{"model":"small","messages":[{"role":"user","content":"x"}],"max_tokens":1e300}' },
    { status: 400, code: 'invalid_request', param: 'max_tokens', says: /whole number/ },
  ],
  [
    'max_tokens as text',
    chat({ max_tokens: '5' }),
    { status: 400, code: 'invalid_request', param: 'max_tokens', says: /whole number/ },
  ],
  [
    'fractional max_tokens',
    chat({ max_tokens: 1.5 }),
    { status: 400, code: 'invalid_request', param: 'max_tokens', says: /whole number/ },
  ],
  [
    'huge max_completion_tokens',
    chat({ max_completion_tokens: 1e12 }),
    { status: 400, code: 'invalid_request', param: 'max_completion_tokens', says: /at most 4096/ },
  ],
  [
    'n of 0',
    chat({ n: 0 }),
    { status: 400, code: 'invalid_request', param: 'n', says: /from 1 to 128/ },
  ],
  [
    'n of -1',
    chat({ n: -1 }),
    { status: 400, code: 'invalid_request', param: 'n', says: /from 1 to 128/ },
  ],
  [
    'n of 129',
    chat({ n: 129 }),
    { status: 400, code: 'invalid_request', param: 'n', says: /from 1 to 128/ },
  ],
  [
    'stream as text',
    chat({ stream: 'yes' }),
    { status: 400, code: 'invalid_request', param: 'stream', says: /true or false/ },
  ],
  [
    'stream_options without a stream',
    chat({ stream_options: { include_usage: true } }),
    { status: 400, code: 'invalid_request', param: 'stream_options', says: /"stream": true/ },
  ],
  [
    'stream_options as text',
    chat({ stream: true, stream_options: 'usage' }),
    { status: 400, code: 'invalid_request', param: 'stream_options', says: /object/ },
  ],
  [
    'tools as an object',
    chat({ tools: {} }),
    { status: 400, code: 'invalid_request', param: 'tools', says: /array/ },
  ],
  [
    'a 20 MB body',
    chat({ messages: [{ role: 'user', content: 'x'.repeat(20 * 1024 * 1024) }] }),
    { status: 413, code: 'body_too_large', says: /larger than 16777216 bytes/ },
  ],
  [
    'a form',
    { body: 'model=small', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    { status: 415, code: 'unsupported_media_type', says: /application\/json/ },
  ],
  [
    'a compressed body',
    { ...chat({}), headers: { 'content-encoding': 'gzip' } },
    { status: 415, code: 'unsupported_media_type', says: /content-encoding/ },
  ],
  [
    'a wrong key',
    { ...chat({}), headers: { authorization: 'Bearer weir-wrong' } },
    { status: 401, code: 'invalid_api_key', says: /not known/ },
  ],
  [
    'no key',
    { ...chat({}), headers: { authorization: '' } },
    { status: 401, code: 'invalid_api_key', says: /Authorization: Bearer/ },
  ],
  [
    'bad tags',
    { ...chat({}), headers: { 'x-weir-tags': 'team' } },
    { status: 400, code: 'invalid_request', param: 'x-weir-tags', says: /team=blue/ },
  ],
  [
    'an unknown route',
    { ...chat({}), path: '/v1/chat/complete' },
    { status: 404, code: 'not_found', says: /./ },
  ],
];

describe('bad input', () => {
  it.each(table)(
    '%s is refused in clear words, in OpenAI’s shape, and reserves nothing',
    async (_name, sent, wanted) => {
      const response = await fetch(harness.url + (sent.path ?? '/v1/chat/completions'), {
        method: 'POST',
        headers: {
          authorization: `Bearer ${world.secret}`,
          'content-type': 'application/json',
          ...sent.headers,
        },
        body: sent.body,
      });
      const body = (await response.json()) as {
        error: { message: string; type: string; code: string; param: string | null };
      };
      expect({ status: response.status, code: body.error.code, param: body.error.param }).toEqual({
        status: wanted.status,
        code: wanted.code,
        param: wanted.param ?? null,
      });
      expect(body.error.message).toMatch(wanted.says);
      expect(body.error.type).toBe('invalid_request_error');
      expect(response.headers.get('x-request-id')).toBeTruthy();
      for (const usage of await harness.peek(world)) {
        expect(usage.inFlight).toBe(0);
        expect(usage.month).toMatchObject({
          requests: 0n,
          tokens: 0n,
          reservedTokens: 0n,
          reservedCostNano: 0n,
        });
      }
    },
  );

  it('an oversized header is answered 431 in OpenAI’s shape', async () => {
    const answer = await rawRequest(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-big: ${'y'.repeat(20_000)}\r\ncontent-length: 0\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
    expect(answer).toMatch(/x-request-id: /);
    expect(answer).toContain('"code":"headers_too_large"');
  });

  it.each([
    ['two lengths', 'content-length: 2\r\ncontent-length: 3\r\n\r\n{}'],
    ['a length and chunks', 'content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}'],
  ])('a request with %s is refused: it could smuggle another', async (_name, rest) => {
    const answer = await rawRequest(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${rest}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('a key that is disabled, expired or without the model is refused with the reason', async () => {
    const disabled = await harness.publish({ key: { status: 'disabled' } });
    const expired = await harness.publish({ key: { expiresAt: '2020-01-01T00:00:00.000Z' } });
    const narrow = await harness.publish({ key: { allowedModels: ['large'] } });
    const read = async (of: World) => {
      const response = await harness.chat(of);
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      return [response.status, error.code, error.message];
    };
    expect(await read(disabled)).toEqual([
      401,
      'invalid_api_key',
      expect.stringContaining('is disabled'),
    ]);
    expect(await read(expired)).toEqual([
      401,
      'invalid_api_key',
      expect.stringContaining('expired'),
    ]);
    expect(await read(narrow)).toEqual([
      403,
      'model_not_allowed',
      expect.stringContaining('"small"'),
    ]);
  });

  it('a good call still passes after all of these', async () => {
    const response = await harness.chat(world);
    expect(response.status).toBe(200);
    await response.arrayBuffer();
  });
});

async function rawRequest(text: string): Promise<string> {
  const { hostname, port } = new URL(harness.url);
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(Number(port), hostname, () => socket.write(text));
    socket.setEncoding('utf8');
    socket.on('data', (data: string) => {
      answer += data;
      if (/\r\n\r\n[\s\S]+/.test(answer)) socket.end();
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}
