import { createHash } from 'node:crypto';
import { newId } from '@weir/domain';
import type { Pool, PoolClient } from 'pg';
import { plainArray, textArray } from '../ledger/array-literal.js';
import { inTransaction } from '../transaction.js';
import { type ProviderFileDialect, type ProviderLine, readProviderFile } from './provider-file.js';

export type MatchFigures = {
  /** null: the provider's file does not count them. */
  readonly requests: bigint | null;
  readonly inputTokens: bigint;
  readonly cachedTokens: bigint;
  readonly outputTokens: bigint;
};

/** One call, or one bucket of time and model, on either side. */
export type MatchItem = {
  readonly requestId: string | null;
  readonly model: string;
  /** Of the provider's bucket; null for what falls into none of them. */
  readonly startsAt: Date | null;
  readonly endsAt: Date | null;
};

export type MatchReport = {
  /** Items that both sides have, with the same figures. */
  readonly matched: number;
  readonly differing: readonly (MatchItem & { theirs: MatchFigures; ours: MatchFigures })[];
  /** The provider bills it, and the books do not have it. */
  readonly onlyTheirs: readonly (MatchItem & { theirs: MatchFigures })[];
  /** The books have it, and the provider does not bill it. */
  readonly onlyOurs: readonly (MatchItem & { ours: MatchFigures })[];
  /** There is more of any kind than is listed. */
  readonly truncated: boolean;
};

/** Items listed per report. */
const itemsMax = 5_000;

/**
 * Stores a provider's own usage file. The same file again is the same import.
 *
 * @throws ProviderFileError when it cannot be read; nothing of it is stored then
 */
export async function importProviderFile(
  pool: Pool,
  file: {
    enterpriseId: string;
    providerId: string;
    dialect: ProviderFileDialect;
    fileName: string;
    text: string;
    atMs: number;
  },
): Promise<{ importId: string; lines: number }> {
  const lines = readProviderFile(file.dialect, file.text);
  const sha256 = createHash('sha256').update(file.text).digest('hex');
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ id: string; is_new: boolean }>(
      `insert into provider_import (id, enterprise_id, provider_id, dialect, file_name, file_sha256, rows, created_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8)
       on conflict (enterprise_id, provider_id, file_sha256) do update set file_name = excluded.file_name
       returning id, xmax = 0 as is_new`,
      [
        newId(file.atMs),
        file.enterpriseId,
        file.providerId,
        file.dialect,
        file.fileName,
        sha256,
        lines.length,
        new Date(file.atMs),
      ],
    );
    const [row] = rows;
    if (row === undefined) throw new Error('an import was not returned');
    if (row.is_new) await storeLines(client, row.id, lines);
    return { importId: row.id, lines: lines.length };
  });
}

async function storeLines(
  client: PoolClient,
  importId: string,
  lines: readonly ProviderLine[],
): Promise<void> {
  await client.query(
    `insert into provider_usage_line
       (import_id, line, request_id, model, starts_at, ends_at, requests, input_tokens, cached_tokens, output_tokens)
     select $1, * from unnest($2::int[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::bigint[],
       $8::bigint[], $9::bigint[], $10::bigint[])`,
    [
      importId,
      plainArray(lines.map(({ line }) => line)),
      textArray(lines.map(({ requestId }) => requestId)),
      textArray(lines.map(({ model }) => model)),
      plainArray(lines.map(({ startsAt }) => startsAt.toISOString())),
      plainArray(lines.map(({ endsAt }) => endsAt.toISOString())),
      plainArray(lines.map(({ requests }) => requests)),
      plainArray(lines.map(({ inputTokens }) => inputTokens)),
      plainArray(lines.map(({ cachedTokens }) => cachedTokens)),
      plainArray(lines.map(({ outputTokens }) => outputTokens)),
    ],
  );
}

const ourInput =
  'input_tokens + cached_input_tokens + cache_write_tokens + audio_input_tokens + image_input_tokens';

/** Rows of the provider in the file's time. Calls without a token are in no provider's bill. */
const ourRows = `rows as (
    select e.*, e.${ourInput.replaceAll(' + ', ' + e.')} as all_input from usage_event e, span
    where e.enterprise_id = $2 and e.provider_id = $3 and e.kind = 'usage'
      and e.reserved_at >= span.starts_at - interval '1 day' and e.minted_at >= span.starts_at - interval '2 days'
      and e.reserved_at < span.ends_at and e.ended_at >= span.starts_at and e.ended_at < span.ends_at
      and e.${ourInput.replaceAll(' + ', ' + e.')} + e.output_tokens + e.audio_output_tokens > 0
  )`;

const span = `span as (
    select min(starts_at) as starts_at, max(ends_at) as ends_at from provider_usage_line where import_id = $1
  )`;

/** By the id that went along with the call, where every line has one. */
const byRequest = `with ${span}, theirs as (
    select request_id, min(model) as model, null::timestamptz as starts_at, null::timestamptz as ends_at,
      sum(requests) as requests, sum(input_tokens) as input, sum(cached_tokens) as cached, sum(output_tokens) as output
    from provider_usage_line where import_id = $1 group by 1
  ), ${ourRows}, ours as (
    select request_id, min(model_served) as model, null::timestamptz as starts_at, null::timestamptz as ends_at,
      count(*) as requests, sum(all_input) as input, sum(cached_input_tokens) as cached,
      sum(output_tokens + audio_output_tokens) as output
    from rows group by 1
  ), sides as (
    select coalesce(t.request_id, o.request_id) as request_id, coalesce(t.model, o.model) as model,
      t.starts_at, t.ends_at, ROWS
    from theirs t full join ours o on o.request_id = t.request_id
  )`;

/** By model and the provider's own buckets: a call belongs to the bucket that it ended in. */
const byBucket = `with ${span}, theirs as (
    select null::text as request_id, model, starts_at, ends_at, sum(requests) as requests, sum(input_tokens) as input,
      sum(cached_tokens) as cached, sum(output_tokens) as output
    from provider_usage_line where import_id = $1 group by model, starts_at, ends_at
  ), buckets as (select distinct starts_at, ends_at from theirs), ${ourRows}, ours as (
    select e.model_served as model, b.starts_at, b.ends_at, count(*) as requests, sum(e.all_input) as input,
      sum(e.cached_input_tokens) as cached, sum(e.output_tokens + e.audio_output_tokens) as output
    from rows e left join buckets b on e.ended_at >= b.starts_at and e.ended_at < b.ends_at
    group by 1, 2, 3
  ), sides as (
    select null::text as request_id, coalesce(t.model, o.model) as model,
      coalesce(t.starts_at, o.starts_at) as starts_at, coalesce(t.ends_at, o.ends_at) as ends_at, ROWS
    from theirs t full join ours o on o.model = t.model and o.starts_at = t.starts_at and o.ends_at = t.ends_at
  )`;

const bothColumns = `t.input is not null as is_theirs, o.input is not null as is_ours, t.requests as t_requests,
      t.input as t_input, t.cached as t_cached, t.output as t_output, o.requests as o_requests, o.input as o_input,
      o.cached as o_cached, o.output as o_output`;

const same = `is_theirs and is_ours and t_input = o_input and t_cached = o_cached and t_output = o_output
  and (t_requests is null or t_requests = o_requests)`;

type BothRow = {
  request_id: string | null;
  model: string;
  starts_at: Date | null;
  ends_at: Date | null;
  is_theirs: boolean;
  is_ours: boolean;
} & Record<`${'t' | 'o'}_${'requests' | 'input' | 'cached' | 'output'}`, string | null>;

/** Compares an imported file with the books, both ways. @throws Error when there is no such import */
export async function matchProviderFile(pool: Pool, importId: string): Promise<MatchReport> {
  const found = await pool.query<{ enterprise_id: string; provider_id: string; named: boolean }>(
    `select i.enterprise_id, i.provider_id,
       (select bool_and(request_id is not null) from provider_usage_line where import_id = i.id) as named
     from provider_import i where i.id = $1`,
    [importId],
  );
  const [file] = found.rows;
  if (file === undefined) throw new Error(`there is no import ${importId}`);
  const base = (file.named ? byRequest : byBucket).replace('ROWS', bothColumns);
  const values = [importId, file.enterprise_id, file.provider_id];
  const matched = await pool.query<{ n: number }>(
    `${base} select count(*)::int as n from sides where ${same}`,
    values,
  );
  const { rows } = await pool.query<BothRow>(
    `${base} select * from sides where not (${same}) order by starts_at, model, request_id limit ${itemsMax + 1}`,
    values,
  );
  const listed = rows.slice(0, itemsMax);
  return {
    matched: matched.rows[0]?.n ?? 0,
    differing: listed
      .filter(({ is_theirs, is_ours }) => is_theirs && is_ours)
      .map((row) => ({ ...itemOf(row), theirs: figuresOf(row, 't'), ours: figuresOf(row, 'o') })),
    onlyTheirs: listed
      .filter(({ is_ours }) => !is_ours)
      .map((row) => ({ ...itemOf(row), theirs: figuresOf(row, 't') })),
    onlyOurs: listed
      .filter(({ is_theirs }) => !is_theirs)
      .map((row) => ({ ...itemOf(row), ours: figuresOf(row, 'o') })),
    truncated: rows.length > itemsMax,
  };
}

function itemOf(row: BothRow): MatchItem {
  return {
    requestId: row.request_id,
    model: row.model,
    startsAt: row.starts_at,
    endsAt: row.ends_at,
  };
}

function figuresOf(row: BothRow, side: 't' | 'o'): MatchFigures {
  const requests = row[`${side}_requests`];
  return {
    requests: requests === null ? null : BigInt(requests),
    inputTokens: BigInt(row[`${side}_input`] ?? 0),
    cachedTokens: BigInt(row[`${side}_cached`] ?? 0),
    outputTokens: BigInt(row[`${side}_output`] ?? 0),
  };
}
