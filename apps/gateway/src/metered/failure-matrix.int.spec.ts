import { newId, type UnnumberedUsageEvent, type UpstreamDocument } from '@weir/domain';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { model, type World } from '../testing/documents.js';
import { GatewayHarness, until } from '../testing/gateway-harness.js';

let harness: GatewayHarness;
beforeAll(async () => {
  harness = await GatewayHarness.start();
});
afterAll(async () => {
  await harness.close();
});

const question = [{ role: 'user', content: 'Tell me of rivers.' }];

type RouteCase = {
  readonly name: string;
  readonly path: string;
  readonly body: Record<string, unknown>;
  readonly streamed: boolean;
  readonly dialect: 'openai' | 'anthropic';
  readonly kind: 'chat' | 'embedding';
};

const routes: readonly RouteCase[] = [
  ['/v1/chat/completions', { messages: question }, 'openai', 'chat'],
  ['/v1/completions', { prompt: 'Tell me of rivers.' }, 'openai', 'chat'],
  ['/v1/responses', { input: 'Tell me of rivers.' }, 'openai', 'chat'],
  ['/v1/messages', { messages: question, max_tokens: 500 }, 'anthropic', 'chat'],
  ['/v1/embeddings', { input: 'Tell me of rivers.' }, 'openai', 'embedding'],
].flatMap(([path, body, dialect, kind]) =>
  (kind === 'embedding' ? [false] : [false, true]).map((streamed) => ({
    name: `${path as string}${streamed ? ' (stream)' : ''}`,
    path: path as string,
    body: { ...(body as object), ...(streamed ? { stream: true } : {}) },
    streamed,
    dialect: dialect as 'openai' | 'anthropic',
    kind: kind as 'chat' | 'embedding',
  })),
);

/** What both sides must show for a call. `exact`: the upstream told its usage; `estimated`: we counted what was delivered. */
type Phase = {
  readonly name: string;
  readonly fault: string;
  readonly upstream?: Partial<UpstreamDocument>;
  readonly only?: (route: RouteCase) => boolean;
  readonly wanted: (route: RouteCase) => {
    status: number;
    charge: 'nothing' | 'estimated' | 'exact';
    event?: UnnumberedUsageEvent['data']['status'];
  };
};

const always = (status: number, charge: 'nothing' | 'exact', event?: 'ok' | 'partial') => () => ({
  status,
  charge,
  ...(event === undefined ? {} : { event }),
});
const streamed = (route: RouteCase): boolean => route.streamed;
const whole = (route: RouteCase): boolean => !route.streamed;
const broken = (status: number) => () => ({
  status,
  charge: 'estimated' as const,
  event: 'partial' as const,
});

const phases: readonly Phase[] = [
  {
    name: 'nobody listens',
    fault: '',
    upstream: { baseUrl: 'http://127.0.0.1:9/v1' },
    wanted: always(502, 'nothing'),
  },
  {
    name: 'the address is forbidden',
    fault: '',
    upstream: { baseUrl: 'http://169.254.169.254/v1' },
    wanted: always(502, 'nothing'),
  },
  {
    name: 'the connection is reset before the head',
    fault: 'connect_reset',
    wanted: always(502, 'nothing'),
  },
  {
    name: 'the head never comes',
    fault: 'hang_before_headers',
    upstream: { firstByteTimeoutMs: 200 },
    wanted: always(504, 'nothing'),
  },
  { name: 'the upstream answers 400', fault: 'status:400', wanted: always(400, 'nothing') },
  { name: 'the upstream answers 401', fault: 'status:401', wanted: always(502, 'nothing') },
  { name: 'the upstream answers 429', fault: 'status:429', wanted: always(429, 'nothing') },
  { name: 'the upstream answers 500', fault: 'status:500', wanted: always(502, 'nothing') },
  {
    name: 'the stream ends before its first token',
    fault: 'eof_mid_stream;fault_after_tokens=0',
    only: streamed,
    wanted: broken(200),
  },
  {
    name: 'the stream ends in the middle',
    fault: 'eof_mid_stream;fault_after_tokens=12',
    only: streamed,
    wanted: broken(200),
  },
  {
    name: 'the stream is reset in the middle',
    fault: 'reset_mid_stream;fault_after_tokens=12',
    only: streamed,
    wanted: broken(200),
  },
  {
    name: 'the stream says error in the middle',
    fault: 'error_event_mid_stream;fault_after_tokens=12',
    only: streamed,
    wanted: broken(200),
  },
  {
    name: 'the stream hangs in the middle',
    fault: 'hang_mid_stream;fault_after_tokens=12',
    upstream: { idleTimeoutMs: 200 },
    only: streamed,
    wanted: broken(200),
  },
  {
    name: 'the stream ends after its usage, without its last event',
    fault: 'eof_after_usage',
    // The last event of a response is the one that carries its usage.
    only: (route) => route.streamed && route.path !== '/v1/responses',
    // Of chat completions all is known by then; a message is whole with its `message_stop` only.
    wanted: (route) => always(200, 'exact', route.dialect === 'anthropic' ? 'partial' : 'ok')(),
  },
  { name: 'a whole answer is cut off', fault: 'eof_mid_stream', only: whole, wanted: broken(502) },
  {
    name: 'a whole answer hangs',
    fault: 'hang_mid_stream',
    upstream: { idleTimeoutMs: 200 },
    only: whole,
    wanted: broken(504),
  },
  { name: 'a whole answer is no JSON', fault: 'malformed_json', only: whole, wanted: broken(502) },
  {
    name: 'one event is no JSON',
    fault: 'malformed_json',
    only: streamed,
    wanted: always(200, 'exact', 'ok'),
  },
  { name: 'usage comes twice', fault: 'usage_twice', wanted: always(200, 'exact', 'ok') },
  {
    name: 'usage is null',
    fault: 'usage_null',
    wanted: () => ({ status: 200, charge: 'estimated', event: 'ok' }),
  },
  {
    name: 'bytes come in pieces of 3, with CRLF and comments',
    fault: 'split_bytes=3;crlf=true;comments=true',
    only: streamed,
    wanted: always(200, 'exact', 'ok'),
  },
  {
    name: 'part of the prompt was cached, part of the answer is reasoning',
    fault: 'cached_tokens=3;reasoning_tokens=7',
    only: (route) => route.kind === 'chat',
    wanted: always(200, 'exact', 'ok'),
  },
  { name: 'all is well', fault: '', wanted: always(200, 'exact', 'ok') },
];

const table = phases.flatMap((phase) =>
  routes
    .filter((route) => phase.only?.(route) ?? true)
    .map((route) => [`${phase.name}: ${route.name}`, phase, route] as const),
);

async function prepare(route: RouteCase, phase: Pick<Phase, 'fault' | 'upstream'>): Promise<World> {
  const upstream = harness.demoUpstream({ dialect: route.dialect, ...phase.upstream });
  const upstreamModel = `${route.kind === 'embedding' ? 'demo-embed' : 'demo-small'}${phase.fault === '' ? '' : `#${phase.fault}`}`;
  const served = model('m', upstream.id, {
    dialect: route.dialect,
    kind: route.kind,
    routes: [{ upstreamId: upstream.id, upstreamModel, weight: 1, priority: 0 }],
  });
  if (route.kind === 'embedding') {
    served.prices = served.prices.map((price) => ({ ...price, picoPerToken: { input: '20000' } }));
  }
  return harness.publish({ upstreams: [upstream], models: [served] });
}

describe('route × phase: one rule of charging for all', () => {
  it.concurrent.each(table)('%s', async (_title, phase, route) => {
    const world = await prepare(route, phase);
    const requestId = newId();
    const wanted = phase.wanted(route);
    const response = await harness.post(
      route.path,
      world,
      { model: 'm', ...route.body },
      { requestId },
    );
    // Where the connection is cut, the body may not be readable to its end.
    const text = await response.text();
    expect(response.status, text).toBe(wanted.status);
    expect(response.headers.get('x-request-id')).toBe(requestId);

    const usages = await harness.untilNothingHeld(world);
    const events = await harness.events(world);
    const bills = await harness.bill([requestId]);
    const billed = bills.reduce((sum, entry) => sum + BigInt(entry.cost_pico), 0n);

    if (wanted.charge === 'nothing') {
      expect(events).toEqual([]);
      expect(billed).toBe(0n);
      for (const { month } of usages) expect(month).toMatchObject({ tokens: 0n, costNano: 0n });
      const refusal = await until(
        async () => (await harness.refusals(world))[0] ?? null,
        'the failure to be recorded',
      );
      expect(refusal).toMatchObject({ outcome: 'failed', requestId });
      return;
    }
    expect(events).toHaveLength(1);
    const data = events[0]?.data;
    expect(data).toMatchObject({
      status: wanted.event,
      route: route.path,
      requestId,
      streamed: route.streamed,
    });
    expect(data?.estimated).toBe(wanted.charge === 'estimated');
    // The event, the counters of every level and the provider's own bill: the same number, told by it or counted by us.
    for (const { month } of usages) expect(month.costNano).toBe(BigInt(data?.costNano ?? -1));
    expect(bills).toHaveLength(1);
    expect(bills[0]).toMatchObject({
      prompt_tokens: (data?.usage.input ?? 0) + (data?.usage.cachedInput ?? 0),
      cached_tokens: data?.usage.cachedInput ?? 0,
      output_tokens: data?.usage.output ?? 0,
    });
    expect(billed).toBeGreaterThan(0n);
    expect(BigInt(data?.costPico ?? -1)).toBe(billed);
    if (wanted.event === 'partial' && route.streamed) expect(text).toMatch(/error/);
    if (wanted.event === 'ok' && route.streamed && phase.fault !== 'eof_after_usage') {
      expect(text).toMatch(/\[DONE\]|response\.completed|message_stop/);
    }
  });
});

/** Prompts and answers of every kind, of which the provider never tells the usage. */
const kinds: readonly (readonly [name: string, path: string, fault: string, body: object])[] = [
  [
    'a conversation with names, in two languages',
    '/v1/chat/completions',
    'usage_null',
    {
      messages: [
        { role: 'system', content: '请用中文回答。' },
        { role: 'user', name: 'ada', content: 'What is 水坝 in English?' },
        { role: 'assistant', content: 'A dam. 🦫' },
        ...question,
      ],
    },
  ],
  [
    'tools, their calls and results, and a schema',
    '/v1/chat/completions',
    'usage_null',
    {
      tools: [
        {
          type: 'function',
          function: {
            name: 'gauge',
            description: 'Reads the level of a river.',
            parameters: {
              type: 'object',
              properties: { river: { type: 'string', enum: ['Rhine', 'Elbe'] } },
            },
          },
        },
      ],
      response_format: { type: 'json_schema', json_schema: { name: 'level', schema: {} } },
      messages: [
        ...question,
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: 'c1',
              type: 'function',
              function: { name: 'gauge', arguments: '{"river":"Elbe"}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: '3.14 m' },
      ],
    },
  ],
  [
    'a picture',
    '/v1/messages',
    'usage_null',
    {
      max_tokens: 500,
      system: 'Be brief.',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image', source: { type: 'url', url: 'https://example.com/dam.png' } },
          ],
        },
      ],
    },
  ],
  ['three answers at once', '/v1/chat/completions', 'usage_null', { messages: question, n: 3 }],
  [
    'three answers at once, cut in the middle',
    '/v1/chat/completions',
    'eof_mid_stream;fault_after_tokens=31',
    { messages: question, n: 3, stream: true },
  ],
  ['token ids', '/v1/completions', 'usage_null', { prompt: [[1, 2, 3], [4]] }],
  [
    'a long English stream, cut in the middle',
    '/v1/responses',
    'eof_mid_stream;output_tokens=3000;fault_after_tokens=2021',
    { input: 'Tell me all of rivers.', stream: true },
  ],
  [
    'a long Chinese stream, cut in the middle',
    '/v1/chat/completions',
    'eof_mid_stream;output_tokens=3000;fault_after_tokens=2021',
    { messages: [{ role: 'user', content: '请介绍水坝。' }], stream: true },
  ],
  [
    'a long whole answer',
    '/v1/chat/completions',
    'usage_null;output_tokens=5000',
    { messages: [{ role: 'user', content: 'x'.repeat(20_000) }] },
  ],
  [
    'many texts to embed',
    '/v1/embeddings',
    'usage_null',
    { input: Array.from({ length: 200 }, (_, index) => `river ${index}, 第${index}条河`) },
  ],
];

describe('what we count where the provider tells nothing', () => {
  it.concurrent.each(kinds)(
    '%s: its own bill to the last digit',
    async (_name, path, fault, body) => {
      const route = routes.find((candidate) => candidate.path === path);
      if (route === undefined) throw new Error(`no route ${path}`);
      const world = await prepare(route, { fault });
      const requestId = newId();
      const response = await harness.post(path, world, { model: 'm', ...body }, { requestId });
      const text = await response.text();
      expect(response.status, text).toBe(200);
      await harness.untilNothingHeld(world);
      const [event] = await harness.events(world);
      const [bill] = await harness.bill([requestId]);
      expect(event?.data.estimated).toBe(true);
      expect(event?.data.usage).toMatchObject({
        input: bill?.prompt_tokens,
        output: bill?.output_tokens,
      });
      expect(event?.data.costPico).toBe(bill?.cost_pico);
      expect(BigInt(bill?.cost_pico ?? 0)).toBeGreaterThan(0n);
    },
  );
});
