import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadEncoding } from './encodings.js';
import { createTokenCounter, type TokenCounter } from './token-counter.js';

const failures: Error[] = [];
let counter: TokenCounter;
beforeAll(async () => {
  counter = createTokenCounter({
    onFailure: (error) => failures.push(error),
    answer_ms_max: 20_000,
  });
  await counter.warmUp();
});
afterAll(async () => {
  await counter.close();
  expect(failures).toEqual([]);
});

/** The examples of the OpenAI Cookbook, "How to count tokens with tiktoken", which it checked against the API. */
const cookbookMessages = [
  [
    'system',
    undefined,
    'You are a helpful, pattern-following assistant that translates corporate jargon into plain English.',
  ],
  ['system', 'example_user', 'New synergies will help drive top-line growth.'],
  ['system', 'example_assistant', 'Things working well together will increase revenue.'],
  [
    'system',
    'example_user',
    "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
  ],
  ['system', 'example_assistant', "Let's talk later when we're less busy about how to do better."],
  [
    'user',
    undefined,
    "This late pivot means we don't have time to boil the ocean for the client deliverable.",
  ],
].map(([role, name, content]) => (name ? { role, name, content } : { role, content }));

const weatherTool = {
  type: 'function',
  function: {
    name: 'get_current_weather',
    description: 'Get the current weather in a given location',
    parameters: {
      type: 'object',
      properties: {
        location: { type: 'string', description: 'The city and state, e.g. San Francisco, CA' },
        unit: {
          type: 'string',
          description: 'The unit of temperature to return',
          enum: ['celsius', 'fahrenheit'],
        },
      },
      required: ['location'],
    },
  },
};
const weatherMessages = [
  {
    role: 'system',
    content: 'You are a helpful assistant that can answer to questions about the weather.',
  },
  { role: 'user', content: "What's the weather like in San Francisco?" },
];

const user = (content: unknown) => ({ messages: [{ role: 'user', content }] });

describe('OpenAI chat', () => {
  it.each([
    ['gpt-4o', 124],
    ['gpt-4o-mini', 124],
    ['openai/gpt-4o-2024-08-06', 124],
    ['ft:gpt-4o-mini-2024-07-18:acme::abc', 124],
    ['gpt-4-0613', 129],
    ['gpt-3.5-turbo', 129],
  ])("counts the Cookbook's messages for %s as %d, not estimated", async (model, tokens) => {
    expect(await counter.countChat(model, { messages: cookbookMessages })).toEqual({
      tokens,
      estimated: false,
      method: 'inline',
    });
  });

  it.each([
    ['gpt-4o', 101],
    ['gpt-4', 105],
  ])("counts the Cookbook's tool for %s as %d", async (model, tokens) => {
    const body = { messages: weatherMessages, tools: [weatherTool] };
    expect(await counter.countChat(model, body)).toMatchObject({ tokens, estimated: true });
    const legacy = { messages: weatherMessages, functions: [weatherTool.function] };
    expect(await counter.countChat(model, legacy)).toMatchObject({ tokens, estimated: true });
  });

  it('counts no messages as the priming alone', async () => {
    expect(await counter.countChat('gpt-4o', { messages: [] })).toMatchObject({ tokens: 3 });
  });

  it('never tokenises the base64 of a picture: 5 MB cost what the tiles cost', async () => {
    const url = `data:image/png;base64,${'A'.repeat(5_000_000)}`;
    const text = { type: 'text', text: 'What is this?' };
    const image = (detail: string) => ({ type: 'image_url', image_url: { url, detail } });
    const plain = await counter.countChat('gpt-4o', user([text]));
    const low = await counter.countChat('gpt-4o', user([text, image('low')]));
    const high = await counter.countChat('gpt-4o', user([text, image('high')]));
    expect(low).toEqual({ tokens: plain.tokens + 85, estimated: true, method: 'inline' });
    expect(high.tokens).toBe(plain.tokens + 85 + 8 * 170);
  });

  it('never tokenises audio and files', async () => {
    const data = 'A'.repeat(1_000_000);
    const count = await counter.countChat(
      'gpt-4o',
      user([
        { type: 'input_audio', input_audio: { data, format: 'mp3' } },
        {
          type: 'file',
          file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${data}` },
        },
        { type: 'file', file: { file_id: 'file-1' } },
      ]),
    );
    expect(count).toMatchObject({ estimated: true, method: 'inline' });
    expect(count.tokens).toBeGreaterThan(50_000);
  });

  it('counts tool calls, their results and answer schemas', async () => {
    const call = (argument: string) => ({
      messages: [
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'c1', type: 'function', function: { name: 'f', arguments: argument } },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: '42' },
      ],
    });
    const short = await counter.countChat('gpt-4o', call('{}'));
    const long = await counter.countChat(
      'gpt-4o',
      call(JSON.stringify({ q: 'word '.repeat(100) })),
    );
    expect(long.tokens - short.tokens).toBeGreaterThan(100);
    expect(short).toMatchObject({ estimated: true });
    const schema = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } };
    const plain = await counter.countChat('gpt-4o', user('hi'));
    const shaped = await counter.countChat('gpt-4o', { ...user('hi'), response_format: schema });
    expect(shaped.tokens).toBeGreaterThan(plain.tokens + 5);
    const mode = await counter.countChat('gpt-4o', {
      ...user('hi'),
      response_format: { type: 'json_object' },
    });
    expect(mode.tokens).toBe(plain.tokens);
  });

  it('counts nested schemas and keywords that it does not know', async () => {
    const tool = (parameters: unknown) => ({
      messages: [],
      tools: [{ type: 'function', function: { name: 'f', parameters } }],
    });
    const nest = (depth: number): unknown =>
      depth === 0
        ? { type: 'string', description: 'the innermost' }
        : { type: 'object', properties: { inner: nest(depth - 1) } };
    const [flat, deep, veryDeep, keyword] = await Promise.all([
      counter.countChat('gpt-4o', tool(nest(1))),
      counter.countChat('gpt-4o', tool(nest(10))),
      counter.countChat('gpt-4o', tool(nest(500))),
      counter.countChat('gpt-4o', tool({ anyOf: [{ pattern: 'word '.repeat(50) }] })),
    ]);
    expect(deep.tokens).toBeGreaterThan(flat.tokens + 9 * 6);
    expect(veryDeep.tokens).toBeGreaterThan(deep.tokens + 490);
    expect(keyword.tokens).toBeGreaterThan(50);
  });

  it.each([
    ['a message that is a number', { messages: [7, null, 'text', [], true] }],
    ['content that is an object', user({ deep: { deeper: [1, 2, 3] } })],
    ['parts of unknown types', user([{ type: 'hologram', data: 'x' }, null, 5, 'text', []])],
    [
      'pictures without an address',
      user([{ type: 'image_url' }, { type: 'image_url', image_url: 5 }]),
    ],
    ['tools that are none', { messages: [], tools: ['x', null, { type: 'web_search' }, 5] }],
    ['tools that are no list', { messages: [], tools: 'x', functions: {} }],
    [
      'schemas that are none',
      {
        messages: [],
        tools: [
          { function: { name: 'f', parameters: { properties: { a: 5, b: null }, enum: 7 } } },
        ],
      },
    ],
    [
      'tool calls that are none',
      { messages: [{ role: 'assistant', tool_calls: [null, {}, { function: 3 }] }] },
    ],
    [
      'lone surrogates, special tokens and byte order marks',
      user('\ud800<|endoftext|>\ufeff<|im_start|>\udc00'),
    ],
    ['a key named __proto__', JSON.parse('{"messages":[{"__proto__":{"a":1},"role":"user"}]}')],
  ])('does not throw on %s', async (_, body) => {
    const count = await counter.countChat('gpt-4o', body as never);
    expect(Number.isSafeInteger(count.tokens) && count.tokens >= 3).toBe(true);
  });
});

describe('bodies with more elements than any real one', () => {
  const messages = Array.from({ length: 50_000 }, () => ({ role: 'user', content: 'a b c' }));

  it('are bounded by their size, which is never less than the exact count', async () => {
    const bodyBytes = Buffer.byteLength(JSON.stringify({ messages }));
    const exact = 50_000 * (3 + 1 + 3) + 3;
    for (const size of [bodyBytes, undefined]) {
      const count = await counter.countChat('gpt-4o', { messages }, size);
      expect(count).toMatchObject({ estimated: true, method: 'estimate' });
      expect(count.tokens).toBeGreaterThanOrEqual(exact);
    }
  });

  it('are bounded even when only empty messages fill them, or nesting does', async () => {
    const empty = Array.from({ length: 50_000 }, () => ({}));
    const size = JSON.stringify({ messages: empty }).length;
    const count = await counter.countChat('claude-opus-4-1', { messages: empty }, size);
    expect(count.tokens).toBeGreaterThanOrEqual(50_000 * 5);
    const deep: unknown = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
    expect(await counter.countChat('gpt-4o', user(deep))).toMatchObject({ method: 'estimate' });
  });
});

describe('Anthropic messages', () => {
  const model = 'claude-sonnet-4-5';
  it('counts system, blocks, tools and tool results, and says that it estimates', async () => {
    const plain = await counter.countMessages(model, user('hello there'));
    expect(plain.estimated).toBe(true);
    const bodies = {
      system: { ...user('hello there'), system: 'Be brief and polite in all answers' },
      blocks: { ...user('hello there'), system: [{ type: 'text', text: 'Be brief' }] },
      tools: {
        ...user('hello there'),
        tools: [
          {
            name: 'f',
            description: 'does things',
            input_schema: { type: 'object', properties: { a: { type: 'string' } } },
          },
        ],
      },
      result: {
        messages: [
          ...user('hello there').messages,
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'sunny' }] },
            ],
          },
        ],
      },
      use: {
        messages: [
          ...user('hello there').messages,
          {
            role: 'assistant',
            content: [{ type: 'tool_use', id: 't', name: 'f', input: { a: 'b' } }],
          },
        ],
      },
      image: user([
        { type: 'text', text: 'hello there' },
        {
          type: 'image',
          source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(5_000_000) },
        },
      ]),
      document: user([
        { type: 'text', text: 'hello there' },
        {
          type: 'document',
          source: { type: 'text', media_type: 'text/plain', data: 'word '.repeat(50) },
        },
      ]),
      url: user([
        { type: 'text', text: 'hello there' },
        { type: 'document', source: { type: 'url', url: 'https://weir.example/a.pdf' } },
      ]),
    };
    const extra: Record<string, number> = {};
    for (const [name, body] of Object.entries(bodies)) {
      extra[name] = (await counter.countMessages(model, body)).tokens - plain.tokens;
    }
    expect(extra['system']).toBeGreaterThan(10);
    expect(extra['blocks']).toBeGreaterThan(5);
    expect(extra['tools']).toBeGreaterThan(530);
    expect(extra['result']).toBeGreaterThan(10);
    expect(extra['use']).toBeGreaterThan(10);
    expect(extra['image']).toBe(4_784);
    expect(extra['document']).toBeGreaterThan(50);
    expect(extra['url']).toBe(50_000);
  });
});

describe('Responses', () => {
  it('counts a text input like one user message', async () => {
    const chat = await counter.countChat('gpt-4o', user('hello there'));
    expect(await counter.countResponses('gpt-4o', { input: 'hello there' })).toEqual(chat);
    expect(
      await counter.countResponses('gpt-4o', {
        input: [
          { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hello there' }] },
        ],
      }),
    ).toEqual(chat);
  });

  it('counts instructions, tools, pictures, and calls with their outputs', async () => {
    const base = (await counter.countResponses('gpt-4o', { input: 'hi' })).tokens;
    const count = async (body: object) =>
      (await counter.countResponses('gpt-4o', body)).tokens - base;
    expect(await count({ input: 'hi', instructions: 'Be brief' })).toBe(3 + 1 + 2);
    expect(
      await count({ input: 'hi', tools: [{ type: 'function', ...weatherTool.function }] }),
    ).toBeGreaterThan(50);
    expect(
      await count({
        input: [
          {
            role: 'user',
            content: [
              { type: 'input_text', text: 'hi' },
              { type: 'input_image', image_url: 'https://weir.example/a.png', detail: 'low' },
            ],
          },
        ],
      }),
    ).toBe(85);
    expect(
      await count({
        input: [
          { role: 'user', content: 'hi' },
          { type: 'function_call', call_id: 'c', name: 'f', arguments: '{"a":1}' },
          { type: 'function_call_output', call_id: 'c', output: 'sunny' },
        ],
      }),
    ).toBeGreaterThan(15);
  });

  it('counts only a previous response id as the priming', async () => {
    expect(await counter.countResponses('gpt-4o', {})).toMatchObject({ tokens: 3 });
  });
});

describe('plain text', () => {
  it('counts texts and token ids without chat overhead', async () => {
    expect(await counter.countText('text-embedding-3-small', 'hello world')).toEqual({
      tokens: 2,
      estimated: false,
      method: 'inline',
    });
    expect(await counter.countText('gpt-4o', ['hello world', 'hello'])).toMatchObject({
      tokens: 3,
    });
    expect(await counter.countText('text-embedding-3-small', [1, 2, 3])).toMatchObject({
      tokens: 3,
      estimated: false,
    });
    expect(await counter.countText('text-embedding-3-small', [[1, 2, 3], [4]])).toMatchObject({
      tokens: 4,
    });
    expect(await counter.countText('gpt-4o', '')).toMatchObject({ tokens: 0 });
    expect(await counter.countText('gpt-4o', [])).toMatchObject({ tokens: 0 });
  });

  it('errs high for the models of other vendors and says so', async () => {
    const text = 'The budget of a department is never exceeded. 预算永远不会超支。'.repeat(20);
    const own = await counter.countText('gpt-4o', text);
    for (const model of [
      'claude-opus-4-1',
      'gemini-2.5-pro',
      'qwen3-max',
      'deepseek-chat',
      'gpt-oss-120b',
      'no-such-model',
    ]) {
      const count = await counter.countText(model, text);
      expect(count.tokens, model).toBeGreaterThan(own.tokens);
      expect(count.estimated, model).toBe(true);
    }
  });

  it('moves from the caller to the worker to the sample as the text grows', async () => {
    const { encoder } = await loadEncoding('o200k_base');
    for (const [chars, method] of [
      [16_000, 'inline'],
      [17_000, 'worker'],
      [1_000_000, 'worker'],
      [1_100_000, 'estimate'],
    ] as const) {
      const text = 'The river is held back. '.repeat(chars / 24 + 1).slice(0, chars);
      const count = await counter.countText('gpt-4o', text);
      expect(count.method, `${chars}`).toBe(method);
      if (method === 'estimate') {
        const exact = encoder.count(text);
        expect(count.tokens).toBeGreaterThanOrEqual(exact);
        expect(count.tokens).toBeLessThan(exact * 1.4);
        expect(count.estimated).toBe(true);
      } else expect(count).toMatchObject({ tokens: encoder.count(text), estimated: false });
    }
  });

  it('measures the text in bytes: 6,000 Chinese characters are too many for the caller', async () => {
    expect(await counter.countText('gpt-4o', '水'.repeat(6_000))).toMatchObject({
      method: 'worker',
    });
  });
});

describe('when the worker cannot answer', () => {
  const texts = {
    prose: 'The weir holds back the river and measures its flow, day and night. '.repeat(2_000),
    chinese: '水坝拦住河水并且计量流量每一升都只记一次'.repeat(2_000),
    'half and half': 'plain words '.repeat(6_000) + '水坝拦住河水并且计量流量'.repeat(4_000),
    letters: 'a'.repeat(100_000),
    base64: Buffer.from(Array.from({ length: 75_000 }, (_, i) => (i * i * 31) % 251)).toString(
      'base64',
    ),
    digits: '1234567890'.repeat(10_000),
    emoji: '👩‍👩‍👧‍👦'.repeat(10_000),
    'many small texts': undefined,
  };
  const small = Array.from({ length: 5_000 }, (_, i) => `part ${i}`);

  it.each(Object.entries(texts))(
    'the estimate of %s is never below the exact count',
    async (_, text) => {
      const input = text ?? small;
      const { encoder } = await loadEncoding('o200k_base');
      const exact = (typeof input === 'string' ? [input] : input).reduce(
        (sum, part) => sum + encoder.count(part),
        0,
      );
      for (const place of [0, 0.25, 0.5, 0.75, 0.999]) {
        const sampled = createTokenCounter({ threads: 0, random: () => place });
        const count = await sampled.countText('gpt-4o', input);
        expect(count).toMatchObject({ method: 'estimate', estimated: true });
        expect(count.tokens / exact, `random ${place}`).toBeGreaterThanOrEqual(1);
        expect(count.tokens / exact, `random ${place}`).toBeLessThan(2.5);
      }
    },
  );

  it('a full queue gives estimates, and every other caller its exact count', async () => {
    const { encoder } = await loadEncoding('o200k_base');
    const busy = createTokenCounter({ queue_jobs_max: 2, answer_ms_max: 20_000 });
    await busy.warmUp();
    const counts = await Promise.all(
      Array.from({ length: 8 }, () => busy.countText('gpt-4o', texts.chinese)),
    );
    const exact = encoder.count(texts.chinese);
    expect(counts.filter(({ method }) => method === 'worker').map(({ tokens }) => tokens)).toEqual([
      exact,
      exact,
      exact,
    ]);
    const estimates = counts.filter(({ method }) => method === 'estimate');
    expect(estimates.length).toBe(5);
    for (const { tokens } of estimates) expect(tokens).toBeGreaterThanOrEqual(exact);
    expect(busy.stats()).toMatchObject({
      counts: { inline: 0, worker: 3, estimate: 5 },
      queued: 0,
    });
    await busy.close();
    expect(await busy.countText('gpt-4o', texts.chinese)).toMatchObject({ method: 'estimate' });
    expect(await busy.countText('gpt-4o', 'hello')).toMatchObject({ tokens: 1, method: 'inline' });
  });
});

it('counts streamed output with the encoding and factor of the model', async () => {
  for (const [model, factor] of [
    ['gpt-4o', 1],
    ['claude-opus-4-1', 1.75],
  ] as const) {
    const output = counter.outputCounter(model);
    for (let i = 0; i < 100; i++) output.push('hello world ');
    const exact = (await counter.countText('gpt-4o', 'hello world '.repeat(100))).tokens;
    expect(output.finish()).toBe(Math.ceil(exact * factor));
  }
});
