import type { Pool } from 'pg';
import { inTransaction } from '../transaction.js';
import {
  type RollupSource,
  rollupSourceFor,
  rollupSums,
  type UsageRange,
} from './rollup-source.js';
import {
  type FigureRow,
  figuresOf,
  figureSums,
  sumOfFigures,
  type UsageFigures,
} from './usage-figures.js';

export type UsageGrouping = 'none' | 'department' | 'user' | 'key' | 'model' | 'provider';
export type UsageGranularity = 'none' | 'hour' | 'day' | 'month';

export type UsageFilters = {
  /** The department with all that was below it at the time of use. */
  readonly departmentId?: string | undefined;
  readonly userId?: string | undefined;
  readonly keyId?: string | undefined;
  /** The model as the tenant asked for it. */
  readonly model?: string | undefined;
};

export type UsageSummaryQuery = {
  readonly enterpriseId: string;
  /** Inclusive and exclusive; whole quarters of an hour. */
  readonly from: Date;
  readonly to: Date;
  /** Where hours, days and months begin. */
  readonly timeZone: string;
  readonly groupBy: UsageGrouping;
  readonly granularity: UsageGranularity;
  readonly filters: UsageFilters;
};

export type UsageSummaryRow = {
  /** Id of the department, user, key or provider; the model's name; null without grouping. */
  readonly groupId: string | null;
  /** The name as last seen in use; null when unknown. */
  readonly groupName: string | null;
  /** Departments: the chain down to it, outermost first. */
  readonly groupPath: readonly string[];
  /** `2026-11-29T13:00`, `2026-11-29` or `2026-11` in the zone; null without granularity. */
  readonly period: string | null;
  readonly figures: UsageFigures;
};

export type UsageSummary = {
  /** Ordered by period, then cost, dearest first. */
  readonly rows: readonly UsageSummaryRow[];
  /** There are more groups than are listed; the totals count them all. */
  readonly truncated: boolean;
  /** Over the whole filter, each event once: with departments, where a parent holds its children, not the sum of rows. */
  readonly totals: UsageFigures;
};

/** Rows listed at most. */
export const summaryRowsMax = 20_000;

const groups: Record<UsageGrouping, { id: string; dimension: string | null }> = {
  none: { id: 'null::text', dimension: null },
  department: { id: 'd.id::text', dimension: 'department' },
  user: { id: 's.user_id::text', dimension: 'user' },
  key: { id: 's.key_id::text', dimension: 'key' },
  model: { id: 's.model', dimension: null },
  provider: { id: 's.provider_id::text', dimension: 'provider' },
};

const formats: Record<UsageGranularity, string | null> = {
  none: null,
  hour: 'YYYY-MM-DD"T"HH24":00"',
  day: 'YYYY-MM-DD',
  month: 'YYYY-MM',
};

/**
 * Sums of usage from the roll-ups, in one snapshot. Grouped by department, each department holds all below it:
 * a parent is the sum of its children and of what was used in itself.
 */
export async function usageSummary(pool: Pool, query: UsageSummaryQuery): Promise<UsageSummary> {
  const range: UsageRange = {
    enterpriseId: query.enterpriseId,
    timeZone: query.timeZone,
    fromMs: query.from.getTime(),
    toMs: query.to.getTime(),
  };
  return inTransaction(
    pool,
    async (client) => {
      const source = await rollupSourceFor(
        client,
        range,
        query.granularity === 'none' ? 'month' : query.granularity,
      );
      const values: unknown[] = [...source.values];
      const bind = (value: unknown): string => `$${values.push(value)}`;
      const start = periodStart(query, source.table, bind);
      const format = formats[query.granularity];
      // Texts are made of sums, not of each row: there are a hundred times fewer.
      const period = format === null ? 'null::text' : `to_char(b.start, '${format}')`;
      const seriesFilter = filterClause(query.filters, bind);
      const base = `with base as (
          select r.series_id, ${start} as start, ${rollupSums}
          from ${source.table} r where ${source.where} group by 1, 2
        ), joined as (
          select b.*, ${period} as period, s.path_id, s.user_id, s.key_id, s.model, s.provider_id, s.status
          from base b join usage_series s on s.id = b.series_id where s.enterprise_id = $1 ${seriesFilter}
        )`;
      const { id, dimension } = groups[query.groupBy];
      const departments =
        query.groupBy === 'department'
          ? 'join usage_path p on p.id = s.path_id cross join lateral unnest(p.department_ids) as d (id)'
          : '';
      const names =
        dimension === null
          ? ''
          : `left join usage_dimension n on n.enterprise_id = $1 and n.kind = '${dimension}' and n.id = g.group_id::uuid`;
      const limit = bind(summaryRowsMax + 1);
      const { rows } = await client.query<
        FigureRow & { group_id: string; name: string; path: string[]; period: string }
      >(
        `${base}, g as (
            select ${id} as group_id, s.period, ${figureSums} from joined s ${departments} group by 1, 2
          )
          select g.*, ${dimension === null ? 'g.group_id' : 'n.name'} as name,
            ${dimension === 'department' ? 'n.path::text[]' : 'null::text[]'} as path
          from g ${names} order by g.period, g.cost_pico::numeric desc, g.group_id limit ${limit}`,
        values,
      );
      const truncated = rows.length > summaryRowsMax;
      // Departments overlap, and what is not listed counts too: then the rows do not add up to the whole.
      const addsUp = query.groupBy !== 'department' && !truncated;
      const totals = addsUp
        ? rows
        : (
            await client.query<FigureRow>(
              `${base} select ${figureSums} from joined`,
              values.slice(0, -1),
            )
          ).rows;
      return {
        rows: rows.slice(0, summaryRowsMax).map((row) => ({
          groupId: row.group_id,
          groupName: row.name,
          groupPath: row.path ?? [],
          period: row.period,
          figures: figuresOf(row),
        })),
        truncated,
        totals: sumOfFigures(totals.map(figuresOf)),
      };
    },
    'begin isolation level repeatable read read only',
  );
}

/** The beginning of the row's period, local to the zone; null without granularity. */
function periodStart(
  { granularity, timeZone }: UsageSummaryQuery,
  table: RollupSource['table'],
  bind: (value: unknown) => string,
): string {
  if (granularity === 'none') return 'null::timestamp';
  return `date_trunc('${granularity}', ${localStart()})`;

  function localStart(): string {
    if (table === 'usage_rollup_month') return 'r.month::timestamp';
    if (table === 'usage_rollup_day') return 'r.day::timestamp';
    return `r.quarter at time zone ${bind(timeZone)}`;
  }
}

function filterClause(filters: UsageFilters, bind: (value: unknown) => string): string {
  const { departmentId, userId, keyId, model } = filters;
  const clauses: string[] = [];
  if (userId !== undefined) clauses.push(`and s.user_id = ${bind(userId)}::uuid`);
  if (keyId !== undefined) clauses.push(`and s.key_id = ${bind(keyId)}::uuid`);
  if (model !== undefined) clauses.push(`and s.model = ${bind(model)}`);
  if (departmentId !== undefined) {
    const department = bind(departmentId);
    clauses.push(
      `and s.path_id in (select id from usage_path where enterprise_id = $1 and department_ids @> array[${department}::uuid])`,
    );
  }
  return clauses.join(' ');
}

/** One attempt of a call, as it was booked. */
export type BookedAttempt = {
  readonly eventId: string;
  readonly requestId: string;
  readonly kind: string;
  readonly attempt: number;
  readonly reservedAt: Date;
  readonly startedAt: Date;
  readonly firstTokenAt: Date | null;
  readonly endedAt: Date;
  readonly departmentNames: readonly string[];
  readonly userName: string;
  readonly keyName: string;
  readonly modelAsked: string;
  readonly modelServed: string;
  readonly providerName: string;
  readonly route: string;
  readonly status: string;
  readonly estimated: boolean;
  readonly late: boolean;
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
  readonly costPico: bigint;
  readonly costNano: bigint;
};

export type RefusedCall = {
  readonly id: string;
  readonly at: Date;
  readonly outcome: string;
  readonly code: string;
  readonly scopeLevel: string | null;
  readonly scopeName: string | null;
  readonly metric: string | null;
};

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** All that the books know of a call, by its request id or by the id of one of its events. */
export async function findRequest(
  pool: Pool,
  enterpriseId: string,
  requestOrEventId: string,
): Promise<{ attempts: BookedAttempt[]; refusals: RefusedCall[] }> {
  const eventId = uuid.test(requestOrEventId) ? requestOrEventId : null;
  const attempts = await pool.query<
    Omit<BookedAttempt, 'inputTokens' | 'outputTokens' | 'costPico' | 'costNano'> &
      Record<string, string>
  >(
    `select event_id as "eventId", request_id as "requestId", kind, attempt, reserved_at as "reservedAt",
       started_at as "startedAt", first_token_at as "firstTokenAt", ended_at as "endedAt",
       department_names as "departmentNames", user_name as "userName", key_name as "keyName",
       model_asked as "modelAsked", model_served as "modelServed", provider_name as "providerName", route, status,
       estimated, late, (output_tokens + audio_output_tokens)::text as "outputTokens",
       (input_tokens + cached_input_tokens + cache_write_tokens + audio_input_tokens + image_input_tokens)::text as "inputTokens",
       cost_pico::text as "costPico", cost_nano::text as "costNano"
     from usage_event where enterprise_id = $1 and (request_id = $2 or event_id = $3)
     order by reserved_at, attempt limit 100`,
    [enterpriseId, requestOrEventId, eventId],
  );
  const refusals = await pool.query<RefusedCall>(
    `select id, at, outcome, code, scope_level as "scopeLevel", scope_name as "scopeName", metric
     from refusal where enterprise_id = $1 and (request_id = $2 or id = $3) order by at limit 100`,
    [enterpriseId, requestOrEventId, eventId],
  );
  return {
    attempts: attempts.rows.map((row) => ({
      ...row,
      inputTokens: BigInt(row.inputTokens ?? 0),
      outputTokens: BigInt(row.outputTokens ?? 0),
      costPico: BigInt(row.costPico ?? 0),
      costNano: BigInt(row.costNano ?? 0),
    })) as BookedAttempt[],
    refusals: refusals.rows,
  };
}
