import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { formatNano, parseDecimal, parseNano } from '@weir/domain';
import { parse } from 'csv-parse/sync';
import OpenAI from 'openai';
import { expect, type RunningStack, test } from './stack.js';

type Figures = { requests: string; tokens: string; cost: string };
type Limit = {
  id: string;
  metric: string;
  window: string | null;
  amount: string | null;
  version: number;
};
type NodeDetail = {
  id: string;
  name: string;
  month: {
    requests: string;
    cost: string;
    reservedCost: string;
    reservedTokens: string;
    inFlight: number;
  };
  limits: Limit[];
};
type Usage = { rows: (Figures & { groupId: string })[]; totals: Figures };
type QuotaView = {
  path: { name: string; limits: { metric: string; window: string; limit: string }[] }[];
};
type Bill = { total: { calls: number; cost_pico: string } };

const prompts = [
  'Write two sentences about the river that our town is named after.',
  '请用两句话介绍一下我们公司的新产品，以及它和去年的版本有什么不同。',
  'Explain this:\n```ts\nexport const sum = (xs: number[]) => xs.reduce((a, b) => a + b, 0);\n```',
];

/** Counts the HTTP attempts that the SDK makes, so that hidden retries show. */
function clientFor(
  stack: RunningStack,
  department: string,
): { client: OpenAI; attempts: () => number } {
  let attempts = 0;
  const client = new OpenAI({
    apiKey: stack.keyOf(department),
    baseURL: `${stack.urls.gateway}/v1`,
    fetch: (input, init) => {
      attempts += 1;
      return fetch(input, init);
    },
  });
  return { client, attempts: () => attempts };
}

async function streamOnce(client: OpenAI, prompt: string): Promise<string> {
  const stream = await client.chat.completions.create({
    model: 'demo-small',
    stream: true,
    max_tokens: 64,
    messages: [{ role: 'user', content: prompt }],
  });
  let text = '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  return text;
}

const nodeOf = (stack: RunningStack, id: string) =>
  stack.admin.get<NodeDetail>(`/api/v1/nodes/${id}`);

async function billOf(stack: RunningStack): Promise<Bill> {
  const response = await fetch(`${stack.urls.demoProvider}/demo/bill`, {
    headers: { authorization: `Bearer ${stack.env.DEMO_API_KEY}` },
    signal: AbortSignal.timeout(5_000),
  });
  if (response.status !== 200) throw new Error(`the bill answered ${response.status}`);
  return (await response.json()) as Bill;
}

/** The dates of the enterprise's current month as the usage query takes them: from inclusive, to exclusive. */
function thisMonth(): string {
  const today = new Intl.DateTimeFormat('en-CA', { timeZone: 'Asia/Shanghai' }).format(new Date());
  const [year = 0, month = 0] = today.split('-').map(Number);
  const next =
    month === 12 ? `${year + 1}-01-01` : `${year}-${String(month + 1).padStart(2, '0')}-01`;
  return `from=${today.slice(0, 7)}-01&to=${next}`;
}

test.describe.configure({ mode: 'serial' });

test.describe('the main road', () => {
  test('an admin sets the marketing budget in the console; within 2 s it refuses the call that would pass it', async ({
    page,
    stack,
  }) => {
    const marketing = stack.demo.departments['Marketing'] ?? '';
    await page.goto(stack.urls.adminApi);
    await page.getByLabel('Email').fill(stack.demo.console.email);
    await page.getByLabel('Password').fill(stack.demo.console.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'Organisation' }).first().click();
    await page.getByRole('treeitem', { name: 'Marketing', exact: true }).click();

    const budget = '0.0005';
    await page.getByRole('button', { name: /^Edit limit: Cost.*month/ }).click();
    const drawer = page.getByRole('dialog');
    await drawer.getByLabel('Amount').fill(budget);
    await drawer.getByRole('button', { name: 'Save' }).click();
    await expect(drawer).toBeHidden();
    const savedAt = Date.now();

    const { client, attempts } = clientFor(stack, 'Marketing');
    await expect(async () => {
      const quota = await client.get<QuotaView>('/quota');
      const limit = quota.path
        .find(({ name }) => name === 'Marketing')
        ?.limits.find(({ metric, window }) => metric === 'cost' && window === 'month');
      expect(parseNano(limit?.limit ?? '0')).toBe(parseNano(budget));
    }).toPass({ timeout: 2_000, intervals: [50] });
    expect(Date.now() - savedAt).toBeLessThan(2_000);

    const bar = page.getByRole('treeitem', { name: 'Marketing', exact: true }).getByRole('meter');
    await expect(bar).toBeVisible();

    let refused: InstanceType<typeof OpenAI.APIError> | null = null;
    for (let index = 0; index < 200 && refused === null; index += 1) {
      const before = attempts();
      try {
        expect(await streamOnce(client, prompts[index % prompts.length] ?? '')).not.toBe('');
      } catch (error) {
        if (!(error instanceof OpenAI.APIError)) throw error;
        refused = error;
        expect(attempts() - before, 'one attempt only on an exhausted budget').toBe(1);
      }
    }
    expect(refused?.status).toBe(429);
    expect(refused?.code).toBe('insufficient_quota');
    expect(refused?.message).toContain('Marketing');
    const weir = (refused?.error as { weir: Record<string, unknown> }).weir;
    expect(weir).toMatchObject({
      metric: 'cost',
      window: 'month',
      level: 'department',
      id: marketing,
      name: 'Marketing',
    });
    expect(parseNano(String(weir.limit))).toBe(parseNano(budget));
    const used = parseNano(String(weir.used));
    const reserved = parseNano(String(weir.reserved));
    const requested = parseNano(String(weir.requested));
    expect(used).toBeGreaterThan(0n);
    expect(used + reserved).toBeLessThanOrEqual(parseNano(budget));
    expect(used + reserved + requested).toBeGreaterThan(parseNano(budget));
    expect(Date.parse(String(weir.resets_at))).toBeGreaterThan(Date.now());

    await expect(bar).toHaveAttribute('aria-valuetext', /\d/);
    await expect
      .poll(async () => Number(await bar.getAttribute('aria-valuenow')))
      .toBeGreaterThan(0);

    const engineering = clientFor(stack, 'Engineering');
    expect(await streamOnce(engineering.client, prompts[0] ?? '')).not.toBe('');
  });

  test('200 parallel calls against room for exactly 20, with the worker killed meanwhile: exactly 20 are admitted', async ({
    stack,
  }) => {
    const engineering = stack.demo.departments['Engineering'] ?? '';
    const before = await nodeOf(stack, engineering);
    const used = BigInt(before.month.requests);
    const existing = before.limits.find(
      ({ metric, window }) => metric === 'requests' && window === 'month',
    );
    const amount = (used + 20n).toString();
    await (existing
      ? stack.admin.request('PATCH', `/api/v1/limits/${existing.id}`, { amount }, existing.version)
      : stack.admin.request('POST', '/api/v1/limits', {
          scopeLevel: 'department',
          scopeId: engineering,
          metric: 'requests',
          window: 'month',
          amount,
        }));

    const billBefore = await billOf(stack);
    const { client } = clientFor(stack, 'Engineering');
    const worker = stack.processes.worker[0];
    const outcomes = Array.from({ length: 200 }, async (_, index) => {
      try {
        await client.chat.completions.create(
          {
            model: 'demo-small',
            max_tokens: 32,
            messages: [{ role: 'user', content: prompts[index % prompts.length] ?? '' }],
          },
          { maxRetries: 0 },
        );
        return 'admitted';
      } catch (error) {
        return error instanceof OpenAI.APIError ? `${error.status} ${error.code}` : String(error);
      }
    });
    await worker?.kill('SIGKILL');
    const counts = new Map<string, number>();
    for (const outcome of await Promise.all(outcomes))
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    await worker?.restart();
    expect(Object.fromEntries(counts)).toEqual({ admitted: 20, '429 insufficient_quota': 180 });
    expect((await billOf(stack)).total.calls - billBefore.total.calls).toBe(20);
    expect(BigInt((await nodeOf(stack, engineering)).month.requests)).toBe(used + 20n);
  });

  test('rows in the ledger = counters = the provider’s own bill, to the last digit', async ({
    stack,
  }) => {
    const bill = await billOf(stack);
    await expect(async () => {
      const usage = await stack.admin.get<Usage>(`/api/v1/usage?${thisMonth()}`);
      expect(Number(usage.totals.requests)).toBe(bill.total.calls);
      expect(parseDecimal(usage.totals.cost, 12)).toBe(BigInt(bill.total.cost_pico));
    }).toPass({ timeout: 60_000, intervals: [250] });

    const books = await stack.admin.get<{
      balanced: boolean;
      scopes: {
        name: string;
        difference: string;
        counter: Figures;
        ledger: Figures;
        rollup: Figures;
      }[];
      metering: { holes: unknown[]; deadLetters: number; lagEvents: string };
    }>('/api/v1/reconciliation');
    expect(books.metering).toMatchObject({ holes: [], deadLetters: 0, lagEvents: '0' });
    for (const scope of books.scopes) {
      expect(scope.counter, scope.name).toEqual(scope.ledger);
      expect(scope.rollup, scope.name).toEqual(scope.ledger);
    }
    expect(books.balanced).toBe(true);

    const root = await nodeOf(stack, stack.demo.enterpriseId);
    expect(root.month).toMatchObject({ reservedTokens: '0', inFlight: 0 });
    expect(parseNano(root.month.reservedCost)).toBe(0n);
    expect(Number(root.month.requests)).toBe(bill.total.calls);
  });

  test('finance downloads the CSV: its total is the console’s and the ledger’s', async ({
    page,
    stack,
  }) => {
    const { finance } = stack.demo.console;
    await page.goto(stack.urls.adminApi);
    await page.getByLabel('Email').fill(finance.email);
    await page.getByLabel('Password').fill(finance.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'Usage' }).first().click();
    const usage = await stack.admin.get<Usage>(`/api/v1/usage?${thisMonth()}`);
    const shown = page.getByTestId('usage-total-cost');
    await expect(shown).toHaveAttribute('value', usage.totals.cost);

    await page.getByTestId('export-button').click();
    const link = page.getByTestId('export-download');
    await expect(link).toBeVisible({ timeout: 30_000 });
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
    const bytes = readFileSync(await download.path());
    const rows = parse(bytes, { bom: true, columns: true }) as { cost: string }[];
    const total = rows.reduce((sum, { cost }) => sum + parseDecimal(cost, 12), 0n);
    expect(total).toBe(parseDecimal(usage.totals.cost, 12));
    expect(rows).toHaveLength(Number(usage.totals.requests));

    const exports = await stack.admin.get<{
      items: { fileSha256: string; totalCost: string; status: string }[];
    }>('/api/v1/exports');
    expect(exports.items[0]).toMatchObject({
      status: 'done',
      fileSha256: createHash('sha256').update(bytes).digest('hex'),
    });
    expect(parseDecimal(exports.items[0]?.totalCost ?? '', 12)).toBe(total);
  });

  test('bad input is a clear 4xx in OpenAI’s shape, and nothing is reserved', async ({ stack }) => {
    const key = stack.keyOf('Customer Support');
    const before = await nodeOf(stack, stack.demo.enterpriseId);
    const body = (over: object) =>
      JSON.stringify({ model: 'demo-small', messages: [{ role: 'user', content: 'hi' }], ...over });
    const cases: [string, number, string, Record<string, string>][] = [
      ['malformed JSON', 400, '{"model": "demo-small", "messages": [', {}],
      ['wrong types', 400, body({ messages: 'hello' }), {}],
      ['an unknown model', 404, body({ model: 'no-such-model' }), {}],
      ['a negative max_tokens', 400, body({ max_tokens: -1 }), {}],
      ['a huge max_tokens', 400, body({ max_tokens: 1e15 }), {}],
      ['a fractional max_tokens', 400, body({ max_tokens: 1.5 }), {}],
      ['n of 0', 400, body({ n: 0 }), {}],
      ['20 MB of body', 413, body({ user: 'x'.repeat(20 * 1024 * 1024) }), {}],
      ['a wrong key', 401, body({}), { authorization: 'Bearer weir_sk_wrong' }],
      ['an oversized header', 431, body({}), { 'x-padding': 'x'.repeat(64 * 1024) }],
    ];
    for (const [name, status, text, headers] of cases) {
      const response = await fetch(`${stack.urls.gateway}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        body: text,
        signal: AbortSignal.timeout(20_000),
      });
      const answer = (await response.json()) as {
        error?: { message?: string; type?: string; code?: unknown; param?: unknown };
      };
      expect(response.status, name).toBe(status);
      expect(answer.error?.message, name).toEqual(expect.any(String));
      expect(answer.error?.type, name).toEqual(expect.any(String));
      expect(answer.error, name).toHaveProperty('param');
      expect(answer.error, name).toHaveProperty('code');
    }
    const after = await nodeOf(stack, stack.demo.enterpriseId);
    expect(after.month).toEqual(before.month);
    expect(formatNano(parseNano(after.month.reservedCost))).toBe('0.00');
  });
});
