import { type CalendarWindow, calendarWindows, periodAt, shardOf } from '@weir/domain';
import type { Pool, PoolClient } from 'pg';
import {
  type FinestPeriod,
  rollupSourceFor,
  rollupSums,
  type UsageRange,
} from './rollup-source.js';

/** Sums of one scope: what the counters count. */
export type ScopeSums = {
  readonly scopeId: string;
  /** null: all models together. */
  readonly model: string | null;
  readonly requests: bigint;
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
  readonly costNano: bigint;
};

type Row = {
  scope_id: string;
  model: string | null;
  requests: string;
  input_tokens: string;
  output_tokens: string;
  cost_nano: string;
};

/** `joined` has path_id, user_id, key_id, model and the sums; each event counts for its key and every ancestor. */
const byScope = (enterprise: string) => `scoped as (
    select ${enterprise}::uuid as scope_id, j.* from joined j
    union all select d.id, j.* from joined j join usage_path p on p.id = j.path_id
      cross join lateral unnest(p.department_ids) as d (id)
    union all select j.user_id, j.* from joined j
    union all select j.key_id, j.* from joined j
  )
  select scope_id, model, sum(requests)::text as requests, sum(input)::text as input_tokens,
    sum(output)::text as output_tokens, sum(cost_nano)::text as cost_nano
  from scoped group by grouping sets ((scope_id, model), (scope_id))`;

const inputSum = (from: string) =>
  [
    'input_tokens',
    'cached_input_tokens',
    'cache_write_tokens',
    'audio_input_tokens',
    'image_input_tokens',
  ]
    .map((name) => `${from}.${name}`)
    .join(' + ');

function sumsOf(rows: readonly Row[]): ScopeSums[] {
  return rows.map((row) => ({
    scopeId: row.scope_id,
    model: row.model,
    requests: BigInt(row.requests),
    inputTokens: BigInt(row.input_tokens),
    outputTokens: BigInt(row.output_tokens),
    costNano: BigInt(row.cost_nano),
  }));
}

/** Sums per scope and model over a range, from the roll-ups: the longest periods that answer, or shorter ones on demand. */
export async function scopeSumsFromRollups(
  pool: Pool | PoolClient,
  range: UsageRange,
  finest: FinestPeriod = 'month',
): Promise<ScopeSums[]> {
  const source = await rollupSourceFor(pool, range, finest);
  const { rows } = await pool.query<Row>(
    `with base as (
       select r.series_id, ${rollupSums} from ${source.table} r where ${source.where} group by 1
     ), joined as (
       select s.path_id, s.user_id, s.key_id, s.model, b.requests, ${inputSum('b')} as input,
         b.output_tokens + b.audio_output_tokens as output, b.cost_nano
       from base b join usage_series s on s.id = b.series_id
     ), ${byScope('$1')}`,
    [...source.values],
  );
  return sumsOf(rows);
}

/** The same from the rows themselves, by the period that each was charged to. For comparing; reads every row. */
export async function scopeSumsFromRows(
  pool: Pool | PoolClient,
  enterpriseId: string,
  periodId: string,
): Promise<ScopeSums[]> {
  const { rows } = await pool.query<Row>(
    `with base as (
       select e.series_id, count(*) filter (where e.kind = 'usage') as requests, sum(${inputSum('e')}) as input,
         sum(e.output_tokens + e.audio_output_tokens) as output, sum(e.cost_nano) as cost_nano
       from usage_event e where e.enterprise_id = $1 and e.period_id = $2 group by 1
     ), joined as (
       select s.path_id, s.user_id, s.key_id, s.model, b.requests, b.input, b.output, b.cost_nano
       from base b join usage_series s on s.id = b.series_id
     ), ${byScope('$1')}`,
    [enterpriseId, periodId],
  );
  return sumsOf(rows);
}

/** The counters of one scope and current period; what a new epoch starts from. */
export type ScopeCounters = ScopeSums & {
  readonly window: CalendarWindow;
  readonly periodId: string;
};

/**
 * The current periods' counters of every enterprise of a shard, in each enterprise's own zone, from the roll-ups.
 * One enterprise and window at a time, so that memory is bounded by the largest of them.
 */
export async function* loadScopeCounters(
  pool: Pool,
  shard: number,
  shardCount: number,
  nowMs: number,
): AsyncGenerator<ScopeCounters> {
  const { rows } = await pool.query<{ id: string; zone: string }>(
    `select id, time_zone as zone from enterprise order by id`,
  );
  for (const { id, zone } of rows) {
    if (shardOf(id, shardCount) !== shard) continue;
    for (const window of calendarWindows) {
      const period = periodAt(window, nowMs, zone);
      const sums = await scopeSumsFromRollups(pool, {
        enterpriseId: id,
        timeZone: zone,
        fromMs: window === 'total' ? null : period.startsAt,
        toMs: period.endsAt,
      });
      for (const sum of sums) yield { ...sum, window, periodId: period.id };
    }
  }
}
