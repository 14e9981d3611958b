import { newId } from '@weir/domain';
import {
  createTestDatabase,
  numbered,
  type TestDatabase,
  type TestTenant,
  testTenant,
  usageEvent,
  type UsageEventOverrides,
} from '@weir/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../database.js';
import { UsageLedger } from '../ledger/usage-ledger.js';
import { ProviderFileError, readProviderFile } from './provider-file.js';
import { importProviderFile, matchProviderFile } from './provider-match.js';

const dayMs = Date.parse('2026-11-20T00:00:00Z');
const day = dayMs / 1_000;

let testDatabase: TestDatabase;
let database: Database;
let tenant: TestTenant;
let provider: { id: string; name: string };
let seq = 0;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, poolMax: 4 });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(() => {
  tenant = testTenant();
  provider = { id: newId(), name: 'openai' };
});

async function book(calls: readonly (UsageEventOverrides & { atMs: number })[]): Promise<void> {
  const events = calls.map(({ atMs, ...overrides }) =>
    numbered(
      usageEvent(tenant, atMs, { provider, modelServed: 'gpt-x', ...overrides }),
      (seq += 1),
    ),
  );
  await new UsageLedger(database.pool).bookSlice({
    topic: 'test',
    partition: 0,
    order: 'unfenced',
    records: events.map((event, index) => ({
      offset: BigInt(index),
      key: null,
      value: Buffer.from(JSON.stringify(event)),
    })),
  });
}

const importText = (text: string, dialect: 'openai' | 'anthropic' = 'openai') =>
  importProviderFile(database.pool, {
    enterpriseId: tenant.enterprise.id,
    providerId: provider.id,
    dialect,
    fileName: 'usage.csv',
    text,
    atMs: dayMs,
  });

const bucket = (start: number, end: number, results: object[]) => ({
  object: 'bucket',
  start_time: start,
  end_time: end,
  results,
});
const result = (
  model: string,
  requests: number,
  input: number,
  cached: number,
  output: number,
) => ({
  object: 'organization.usage.completions.result',
  model,
  num_model_requests: requests,
  input_tokens: input,
  input_cached_tokens: cached,
  output_tokens: output,
});

describe("a provider's usage file with buckets", () => {
  it('is matched both ways: what agrees, what differs, and what only one side has', async () => {
    await book([
      // The first day agrees: two calls of 1,000 + 100 cached in, 200 out.
      { atMs: dayMs + 1_000, usage: { cachedInput: 100 } },
      { atMs: dayMs + 86_300_000, usage: { cachedInput: 100 } },
      // The second day: the provider counts one output token more.
      { atMs: dayMs + 90_000_000 },
      // The third: a model that the provider does not bill.
      { atMs: dayMs + 180_000_000, modelServed: 'gpt-y' },
      // A failed call without a token is on nobody's bill.
      { atMs: dayMs + 180_000_000, status: 'error', usage: { input: 0, output: 0 } },
      // Another provider's call is not compared.
      { atMs: dayMs + 1_000, provider: { id: newId(), name: 'other' } },
    ]);
    const page = {
      object: 'page',
      data: [
        // Split by project: the parts belong together.
        bucket(day, day + 86_400, [
          result('gpt-x', 1, 1_100, 100, 200),
          result('gpt-x', 1, 1_100, 100, 200),
        ]),
        bucket(day + 86_400, day + 172_800, [result('gpt-x', 1, 1_000, 0, 201)]),
        bucket(day + 172_800, day + 259_200, [result('gpt-z', 7, 70, 0, 7)]),
      ],
    };
    const { importId, lines } = await importText(JSON.stringify(page));
    expect(lines).toBe(4);
    const report = await matchProviderFile(database.pool, importId);
    expect(report.matched).toBe(1);
    expect(report.differing).toEqual([
      {
        requestId: null,
        model: 'gpt-x',
        startsAt: new Date(dayMs + 86_400_000),
        endsAt: new Date(dayMs + 172_800_000),
        theirs: { requests: 1n, inputTokens: 1_000n, cachedTokens: 0n, outputTokens: 201n },
        ours: { requests: 1n, inputTokens: 1_000n, cachedTokens: 0n, outputTokens: 200n },
      },
    ]);
    expect(report.onlyTheirs).toEqual([
      expect.objectContaining({
        model: 'gpt-z',
        theirs: expect.objectContaining({ requests: 7n }),
      }),
    ]);
    expect(report.onlyOurs).toEqual([
      expect.objectContaining({ model: 'gpt-y', ours: expect.objectContaining({ requests: 1n }) }),
    ]);
  });

  it("that names no requests, as Anthropic's, is compared by tokens", async () => {
    await book([
      { atMs: dayMs + 5_000, usage: { input: 10, cachedInput: 20, cacheWrite: 30, output: 40 } },
    ]);
    const page = {
      data: [
        {
          starting_at: '2026-11-20T00:00:00Z',
          ending_at: '2026-11-21T00:00:00Z',
          results: [
            {
              model: 'gpt-x',
              uncached_input_tokens: 10,
              cache_read_input_tokens: 20,
              cache_creation: { ephemeral_1h_input_tokens: 5, ephemeral_5m_input_tokens: 25 },
              output_tokens: 40,
            },
          ],
        },
      ],
      has_more: false,
    };
    const { importId } = await importText(JSON.stringify(page), 'anthropic');
    expect(await matchProviderFile(database.pool, importId)).toMatchObject({
      matched: 1,
      differing: [],
      onlyTheirs: [],
      onlyOurs: [],
    });
  });
});

describe("a provider's usage file with a line per call", () => {
  it('is matched by request id, both ways', async () => {
    await book([
      { atMs: dayMs + 1_000, requestId: 'a' },
      { atMs: dayMs + 2_000, requestId: 'b' },
      { atMs: dayMs + 3_000, requestId: 'ours-alone' },
    ]);
    const { importId } = await importText(
      [
        'request_id,timestamp,model,input_tokens,output_tokens',
        'a,2026-11-20T00:00:01Z,gpt-x,1000,200',
        'b,2026-11-20 00:00:02,gpt-x,1000,199',
        'theirs-alone,2026-11-20T12:00:00+08:00,gpt-x,5,5',
      ].join('\r\n'),
    );
    const report = await matchProviderFile(database.pool, importId);
    expect(report).toMatchObject({ matched: 1, truncated: false });
    expect(report.differing.map(({ requestId }) => requestId)).toEqual(['b']);
    expect(report.onlyTheirs.map(({ requestId }) => requestId)).toEqual(['theirs-alone']);
    expect(report.onlyOurs.map(({ requestId }) => requestId)).toEqual(['ours-alone']);
  });

  it('is stored once, however often it is imported', async () => {
    const text = 'request_id,timestamp,model,input_tokens,output_tokens\na,1763596801,gpt-x,1,1\n';
    const first = await importText(text);
    expect(await importText(text)).toEqual(first);
    const { rows } = await database.pool.query(
      'select count(*)::int as n from provider_usage_line where import_id = $1',
      [first.importId],
    );
    expect(rows).toEqual([{ n: 1 }]);
  });
});

describe('reading', () => {
  it("takes the CSV download of Anthropic's console: days of UTC, kinds apart", () => {
    const text = [
      '\ufeffusage_date_utc,model_version,api_key,usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m,usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens',
      '2026-11-20,claude-x,"key, one",1,2,3,4,5',
    ].join('\n');
    expect(readProviderFile('anthropic', text)).toEqual([
      {
        line: 2,
        requestId: null,
        model: 'claude-x',
        startsAt: new Date(dayMs),
        endsAt: new Date(dayMs + 86_400_000),
        requests: null,
        inputTokens: 10n,
        cachedTokens: 4n,
        outputTokens: 5n,
      },
    ]);
  });

  it.each([
    ['an empty file', ' \n', 'empty'],
    ['broken JSON', '{"data":[', 'not JSON'],
    ['JSON of another shape', '{"hello":1}', 'start_time'],
    ['a CSV without tokens', 'a,b\n1,2\n', 'model'],
    [
      'a number that is none',
      'timestamp,model,input_tokens,output_tokens\n2026-11-20,gpt,1e9,1\n',
      'line 2',
    ],
    [
      'a negative number',
      'timestamp,model,input_tokens,output_tokens\n2026-11-20,gpt,-1,1\n',
      'line 2',
    ],
    [
      'a time that is none',
      'timestamp,model,input_tokens,output_tokens\nyesterday,gpt,1,1\n',
      'not a time',
    ],
    [
      'an end before the start',
      'start_time,end_time,model,input_tokens,output_tokens\n1763596801,1763596800,gpt,1,1\n',
      'ends before',
    ],
  ])('refuses %s as a whole and says why', (_name, text, reason) => {
    expect(() => readProviderFile('openai', text)).toThrow(ProviderFileError);
    expect(() => readProviderFile('openai', text)).toThrow(reason);
  });
});
