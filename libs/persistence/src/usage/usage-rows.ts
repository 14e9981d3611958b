import type { Pool, PoolClient } from 'pg';
import { inTransaction } from '../transaction.js';
import type { UsageFilters } from './usage-queries.js';

/** One row of the ledger as exports show it. Integers of any size are bigint. */
export type UsageRow = {
  readonly eventId: string;
  readonly requestId: string;
  readonly kind: string;
  readonly adjusts: string | null;
  readonly attempt: number;
  readonly reservedAt: Date;
  readonly startedAt: Date;
  readonly firstTokenAt: Date | null;
  readonly endedAt: Date;
  readonly periodId: string;
  readonly departmentIds: readonly string[];
  readonly departmentNames: readonly string[];
  readonly userId: string;
  readonly userName: string;
  readonly keyId: string;
  readonly keyName: string;
  readonly modelAsked: string;
  readonly modelServed: string;
  readonly providerName: string;
  readonly route: string;
  readonly streamed: boolean;
  readonly status: string;
  readonly estimated: boolean;
  readonly late: boolean;
  readonly inputTokens: bigint;
  readonly cachedInputTokens: bigint;
  readonly cacheWriteTokens: bigint;
  readonly audioInputTokens: bigint;
  readonly imageInputTokens: bigint;
  readonly outputTokens: bigint;
  readonly reasoningTokens: bigint;
  readonly audioOutputTokens: bigint;
  readonly costPico: bigint;
  readonly costNano: bigint;
  readonly currency: string;
  readonly priceVersionId: string;
  readonly tags: Readonly<Record<string, string>>;
};

export type UsageRowsQuery = {
  readonly enterpriseId: string;
  readonly from: Date;
  readonly to: Date;
  readonly filters: UsageFilters;
};

const bigintColumns = [
  'inputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'audioInputTokens',
  'imageInputTokens',
  'outputTokens',
  'reasoningTokens',
  'audioOutputTokens',
  'costPico',
  'costNano',
] as const;

const columns = `event_id as "eventId", request_id as "requestId", kind, adjusts, attempt, reserved_at as "reservedAt",
  started_at as "startedAt", first_token_at as "firstTokenAt", ended_at as "endedAt", period_id as "periodId",
  department_ids::text[] as "departmentIds", department_names as "departmentNames", user_id as "userId",
  user_name as "userName", key_id as "keyId", key_name as "keyName", model_asked as "modelAsked",
  model_served as "modelServed", provider_name as "providerName", route, streamed, status, estimated, late,
  input_tokens as "inputTokens", cached_input_tokens as "cachedInputTokens", cache_write_tokens as "cacheWriteTokens",
  audio_input_tokens as "audioInputTokens", image_input_tokens as "imageInputTokens", output_tokens as "outputTokens",
  reasoning_tokens as "reasoningTokens", audio_output_tokens as "audioOutputTokens", cost_pico as "costPico",
  cost_nano as "costNano", currency, price_version_id as "priceVersionId", tags`;

/** A snapshot of the rows of a range: count and rows agree, whatever is booked meanwhile. */
export type UsageRowsSnapshot = {
  readonly count: bigint;
  /** In order of reservation and event id, in batches. */
  batches(batchSize: number): AsyncGenerator<readonly UsageRow[]>;
};

/** Runs work on one snapshot of the rows. The snapshot lives as long as the work. */
export async function withUsageRows<T>(
  pool: Pool,
  query: UsageRowsQuery,
  work: (snapshot: UsageRowsSnapshot) => Promise<T>,
): Promise<T> {
  return inTransaction(
    pool,
    async (client) => {
      // A large range is read for longer than a statement of the API may take.
      await client.query('set local statement_timeout = 0');
      const { where, values } = whereOf(query);
      const { rows } = await client.query<{ count: string }>(
        `select count(*) from usage_event e where ${where}`,
        [...values],
      );
      return work({
        count: BigInt(rows[0]?.count ?? 0),
        batches: (batchSize) => readBatches(client, where, values, batchSize),
      });
    },
    'begin isolation level repeatable read read only',
  );
}

async function* readBatches(
  client: PoolClient,
  where: string,
  values: readonly unknown[],
  batchSize: number,
): AsyncGenerator<readonly UsageRow[]> {
  let after: { reservedAt: Date; eventId: string } | undefined;
  for (;;) {
    const at = values.length;
    const keyset: string =
      after === undefined ? '' : `and (e.reserved_at, e.event_id) > ($${at + 2}, $${at + 3})`;
    const { rows }: { rows: RawRow[] } = await client.query<RawRow>(
      `select ${columns} from usage_event e where ${where} ${keyset}
       order by e.reserved_at, e.event_id limit $${at + 1}`,
      [...values, batchSize, ...(after === undefined ? [] : [after.reservedAt, after.eventId])],
    );
    if (rows.length > 0) yield rows.map(toRow);
    const last: RawRow | undefined = rows.at(-1);
    if (rows.length < batchSize || last === undefined) return;
    after = last;
  }
}

type RawRow = Omit<UsageRow, (typeof bigintColumns)[number]> &
  Record<(typeof bigintColumns)[number], string>;

function toRow(raw: RawRow): UsageRow {
  const numbers = Object.fromEntries(bigintColumns.map((name) => [name, BigInt(raw[name])]));
  return { ...raw, ...numbers } as unknown as UsageRow;
}

const dayMs = 86_400_000;

function whereOf(query: UsageRowsQuery): { where: string; values: readonly unknown[] } {
  const { enterpriseId, from, to, filters } = query;
  // A row lies in the partition of its id's instant, which is at most a day before its reservation.
  const values: unknown[] = [enterpriseId, from, to, new Date(from.getTime() - dayMs)];
  const clauses = [
    'e.enterprise_id = $1 and e.reserved_at >= $2 and e.reserved_at < $3 and e.minted_at >= $4',
  ];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  if (filters.userId !== undefined) clauses.push(`and e.user_id = ${bind(filters.userId)}`);
  if (filters.keyId !== undefined) clauses.push(`and e.key_id = ${bind(filters.keyId)}`);
  if (filters.model !== undefined) clauses.push(`and e.model_asked = ${bind(filters.model)}`);
  if (filters.departmentId !== undefined) {
    clauses.push(`and e.department_ids @> array[${bind(filters.departmentId)}::uuid]`);
  }
  return { where: clauses.join(' '), values };
}
