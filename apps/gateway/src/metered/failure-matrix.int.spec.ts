import { newId, type UnnumberedUsageEvent, type UpstreamDocument } from '@weir/domain';
import { createTokenCounter, type TokenCounter } from '@weir/tokens';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { model, type World } from '../testing/documents.js';
import { GatewayHarness, until } from '../testing/gateway-harness.js';

let harness: GatewayHarness;
let counter: TokenCounter;
beforeAll(async () => {
  harness = await GatewayHarness.start();
  counter = createTokenCounter();
  await counter.warmUp();
});
afterAll(async () => {
  await harness.close();
  await counter.close();
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

/** What both sides must show for a call. `exact`: the upstream told its usage, so that ours is the same to the last digit. */
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

async function prepare(route: RouteCase, phase: Phase): Promise<World> {
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

/** What an answer of any route says, streamed or whole. */
function deliveredText(answer: string): string {
  const bodies = answer.startsWith('{')
    ? [answer]
    : [...answer.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => data ?? '');
  return bodies.map((body) => textOf(JSON.parse(body))).join('');
}

type AnyAnswer = {
  type?: string;
  delta?: string | { text?: string };
  choices?: { text?: string; delta?: { content?: string }; message?: { content: string } }[];
  content?: { text: string }[];
  output?: { content: { text: string }[] }[];
};

function textOf({ type, delta, choices, content, output }: AnyAnswer): string {
  if (typeof delta === 'string') return type === 'response.output_text.delta' ? delta : '';
  const [choice] = choices ?? [];
  const texts = [
    delta?.text,
    choice?.text,
    choice?.delta?.content,
    choice?.message?.content,
    content?.[0]?.text,
    output?.[0]?.content[0]?.text,
  ];
  return texts.find((text) => text !== undefined) ?? '';
}

function countOf(text: string): number {
  const output = counter.outputCounter('demo-small');
  output.push(text);
  return output.finish();
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
    // The event, the counters of every level and, where the provider told its usage, its bill: the same number.
    for (const { month } of usages) expect(month.costNano).toBe(BigInt(data?.costNano ?? -1));
    if (wanted.charge === 'exact') {
      expect(bills).toHaveLength(1);
      expect(BigInt(data?.costPico ?? -1)).toBe(billed);
    } else {
      const [bill] = bills;
      if (bill === undefined || data === undefined) throw new Error('the provider has no entry');
      expect(BigInt(data.costPico)).toBeGreaterThan(0n);
      // All that was delivered is charged, and nothing else: no error text, and nothing of a body that cannot be read.
      const delivered = deliveredText(text);
      expect(data.usage.output).toBe(countOf(delivered));
      if (wanted.status !== 200) return;
      // The provider's tokens are words, ours those of a real model: ours are more, but not many times more.
      expect(bill.output_tokens > 0).toBe(delivered !== '');
      expect(data.usage.input).toBeGreaterThanOrEqual(bill.prompt_tokens);
      expect(data.usage.output).toBeGreaterThanOrEqual(bill.output_tokens);
      expect(data.usage.output).toBeLessThanOrEqual(3 * bill.output_tokens);
      expect(BigInt(data.costPico)).toBeGreaterThanOrEqual(billed);
    }
    if (wanted.event === 'partial' && route.streamed) expect(text).toMatch(/error/);
    if (wanted.event === 'ok' && route.streamed && phase.fault !== 'eof_after_usage') {
      expect(text).toMatch(/\[DONE\]|response\.completed|message_stop/);
    }
  });
});
