import type { PoolClient } from 'pg';
import { plainArray, textArray } from './array-literal.js';
import type { BookedRecord } from './rollup-deltas.js';
import type { UsageRecord } from './usage-record.js';

type Cell = string | number | bigint | boolean | null;
type Column = {
  readonly name: string;
  readonly type: string;
  /** `array`: travels as text, because PostgreSQL would unnest an array of arrays to its elements. */
  readonly encode: 'plain' | 'text' | 'array';
  readonly value: (booked: BookedRecord) => Cell;
};

const plain = (name: string, type: string, value: Column['value']): Column => ({
  name,
  type,
  encode: 'plain',
  value,
});
const text = (name: string, value: Column['value'], type = 'text'): Column => ({
  name,
  type,
  encode: 'text',
  value,
});

/** Every column of usage_event that the ledger writes, with where it comes from. */
const columns: readonly Column[] = [
  plain('enterprise_id', 'uuid', ({ record }) => record.event.data.enterprise.id),
  plain('event_id', 'uuid', ({ record }) => record.event.id),
  plain('minted_at', 'timestamptz', ({ record }) => new Date(record.mintedAtMs).toISOString()),
  plain('reserved_at', 'timestamptz', ({ record }) => record.event.data.reservedAt),
  plain('started_at', 'timestamptz', ({ record }) => record.event.data.startedAt),
  plain('first_token_at', 'timestamptz', ({ record }) => record.event.data.firstTokenAt),
  plain('ended_at', 'timestamptz', ({ record }) => record.event.data.endedAt),
  plain('seq', 'bigint', ({ record }) => record.event.data.position.seq),
  plain('series_id', 'int', ({ seriesId }) => seriesId),
  plain('shard', 'smallint', ({ record }) => record.event.data.position.shard),
  plain('attempt', 'smallint', ({ record }) => record.event.data.attempt),
  plain('queue_wait_ms', 'int', ({ record }) => record.event.data.queueWaitMs),
  plain('department_id', 'uuid', ({ record }) => record.event.data.departments.at(-1)?.id ?? null),
  plain('user_id', 'uuid', ({ record }) => record.event.data.user.id),
  plain('key_id', 'uuid', ({ record }) => record.event.data.key.id),
  plain('provider_id', 'uuid', ({ record }) => record.event.data.provider.id),
  plain('price_version_id', 'uuid', ({ record }) => record.event.data.price.id),
  plain('adjusts', 'uuid', ({ record }) => record.event.data.adjusts),
  plain('streamed', 'boolean', ({ record }) => record.event.data.streamed),
  plain('estimated', 'boolean', ({ record }) => record.event.data.estimated),
  plain('late', 'boolean', ({ record }) => record.event.data.late),
  plain('input_tokens', 'bigint', ({ record }) => record.event.data.usage.input),
  plain('cached_input_tokens', 'bigint', ({ record }) => record.event.data.usage.cachedInput),
  plain('cache_write_tokens', 'bigint', ({ record }) => record.event.data.usage.cacheWrite),
  plain('audio_input_tokens', 'bigint', ({ record }) => record.event.data.usage.audioInput),
  plain('image_input_tokens', 'bigint', ({ record }) => record.event.data.usage.imageInput),
  plain('output_tokens', 'bigint', ({ record }) => record.event.data.usage.output),
  plain('reasoning_tokens', 'bigint', ({ record }) => record.event.data.usage.reasoning),
  plain('audio_output_tokens', 'bigint', ({ record }) => record.event.data.usage.audioOutput),
  plain('cost_pico', 'numeric', ({ record }) => record.event.data.costPico),
  plain('cost_nano', 'numeric', ({ record }) => record.event.data.costNano),
  text('currency', ({ record }) => record.event.data.currency),
  text('kind', ({ record }) => record.event.data.kind),
  text('status', ({ record }) => record.event.data.status),
  text('period_id', ({ record }) => record.event.data.periodId),
  text('epoch', ({ record }) => record.event.data.position.epoch),
  text('request_id', ({ record }) => record.event.data.requestId),
  text('route', ({ record }) => record.event.data.route),
  text('model_asked', ({ record }) => record.event.data.modelAsked),
  text('model_served', ({ record }) => record.event.data.modelServed),
  text('provider_name', ({ record }) => record.event.data.provider.name),
  text('user_name', ({ record }) => record.event.data.user.name),
  text('key_name', ({ record }) => record.event.data.key.name),
  {
    name: 'department_ids',
    type: 'uuid[]',
    encode: 'array',
    value: ({ record }) => plainArray(record.event.data.departments.map(({ id }) => id)),
  },
  {
    name: 'department_names',
    type: 'text[]',
    encode: 'array',
    value: ({ record }) => textArray(record.event.data.departments.map(({ name }) => name)),
  },
  text(
    'unit_prices',
    ({ record: { event } }) =>
      JSON.stringify({
        picoPerToken: event.data.price.picoPerToken,
        picoPerRequest: event.data.price.picoPerRequest,
      }),
    'jsonb',
  ),
  text('tags', ({ record }) => JSON.stringify(record.event.data.tags), 'jsonb'),
];

const names = columns.map(({ name }) => name).join(', ');
const selected = columns
  .map(({ name, type, encode }) => (encode === 'array' ? `${name}::${type}` : name))
  .join(', ');
const parameters = columns
  .map(({ type, encode }, index) => `$${index + 1}::${encode === 'array' ? 'text' : type}[]`)
  .join(', ');

const insertEvents = {
  name: 'weir_insert_events',
  text: `insert into usage_event (${names})
    select ${selected} from unnest(${parameters}) as u (${names})
    on conflict (enterprise_id, event_id, minted_at) do nothing
    returning enterprise_id, event_id`,
};

/** Identity of an event within the ledger. */
export function rowKey(enterpriseId: string, eventId: string): string {
  return `${enterpriseId.toLowerCase()}|${eventId}`;
}

export function keyOf({ event }: UsageRecord): string {
  return rowKey(event.data.enterprise.id, event.id);
}

/**
 * Inserts the rows that are not there yet.
 *
 * @param records in key order, each key once: transactions that meet the same keys then wait for each other
 * in the same order
 * @returns the keys of the rows that are new
 */
export async function insertUsageEvents(
  client: PoolClient,
  records: readonly BookedRecord[],
): Promise<ReadonlySet<string>> {
  if (records.length === 0) return new Set();
  const values = columns.map(({ encode, value }) => {
    const cells = records.map(value);
    return encode === 'plain' ? plainArray(cells) : textArray(cells as (string | null)[]);
  });
  const { rows } = await client.query<{ enterprise_id: string; event_id: string }>({
    ...insertEvents,
    values,
  });
  return new Set(rows.map((row) => rowKey(row.enterprise_id, row.event_id)));
}

/**
 * What must agree when an event comes a second time. Left out: names, and the place in the shard's numbering, because
 * a settlement that is sent again after Redis has lost its last second is numbered anew in the next epoch.
 */
const comparedColumns = columns.filter(
  ({ name }) =>
    ![
      'series_id',
      'shard',
      'epoch',
      'seq',
      'unit_prices',
      'tags',
      'department_names',
      'user_name',
      'key_name',
      'provider_name',
    ].includes(name),
);

function comparable(column: Column, value: unknown): string {
  if (value === null || value === undefined) return '';
  if (column.type === 'timestamptz') return String(new Date(value as string | Date).getTime());
  if (column.type === 'uuid' || column.type === 'uuid[]') return String(value).toLowerCase();
  return String(value);
}

/**
 * Compares records whose keys are taken with the rows that took them.
 *
 * @returns per key of a row that says something else, the columns that differ
 */
export async function findConflicts(
  client: PoolClient,
  records: readonly BookedRecord[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (records.length === 0) return new Map();
  const { rows } = await client.query<Record<string, unknown>>({
    name: 'weir_find_conflicts',
    text: `select ${comparedColumns
      .map(({ name, type }) =>
        type === 'timestamptz' || type === 'boolean' ? `e.${name}` : `e.${name}::text as ${name}`,
      )
      .join(', ')}
      from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as u (enterprise_id, event_id, minted_at)
      join usage_event e using (enterprise_id, event_id, minted_at)`,
    values: [
      plainArray(records.map(({ record }) => record.event.data.enterprise.id)),
      plainArray(records.map(({ record }) => record.event.id)),
      plainArray(records.map(({ record }) => new Date(record.mintedAtMs).toISOString())),
    ],
  });
  const byKey = new Map(
    rows.map((row) => [rowKey(String(row['enterprise_id']), String(row['event_id'])), row]),
  );
  const conflicts = new Map<string, readonly string[]>();
  for (const booked of records) {
    const row = byKey.get(keyOf(booked.record));
    if (row === undefined) continue;
    const differing = comparedColumns
      .filter(
        (column) =>
          comparable(column, row[column.name]) !== comparable(column, column.value(booked)),
      )
      .map(({ name }) => name);
    if (differing.length > 0) conflicts.set(keyOf(booked.record), differing);
  }
  return conflicts;
}
