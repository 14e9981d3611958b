import { pipeline } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { plainArray, textArray } from './array-literal.js';
import { BinaryValues } from './binary-values.js';
import type { BookedRecord } from './rollup-deltas.js';
import { rowKey } from './usage-record.js';

type Cell = string | number | boolean | readonly string[] | null;
type Type =
  | 'uuid'
  | 'timestamptz'
  | 'smallint'
  | 'int'
  | 'bigint'
  | 'boolean'
  | 'numeric'
  | 'text'
  | 'jsonb'
  | 'uuid[]'
  | 'text[]';
/** `value`: instants in milliseconds since the Unix epoch, numerics as texts, jsonb as JSON. */
type Column = {
  readonly name: string;
  readonly type: Type;
  readonly value: (booked: BookedRecord) => Cell;
};

const column = (name: string, type: Type, value: Column['value']): Column => ({
  name,
  type,
  value,
});
const text = (name: string, value: Column['value']): Column => column(name, 'text', value);

/** Every column of usage_event that the ledger writes, with where it comes from. */
const columns: readonly Column[] = [
  column('enterprise_id', 'uuid', ({ record }) => record.event.data.enterprise.id),
  column('event_id', 'uuid', ({ record }) => record.event.id),
  column('minted_at', 'timestamptz', ({ record }) => record.mintedAtMs),
  column('reserved_at', 'timestamptz', ({ record }) => record.reservedAtMs),
  column('started_at', 'timestamptz', ({ record }) => record.startedAtMs),
  column('first_token_at', 'timestamptz', ({ record }) => record.firstTokenAtMs),
  column('ended_at', 'timestamptz', ({ record }) => record.endedAtMs),
  column('seq', 'bigint', ({ record }) => record.event.data.position.seq),
  column('series_id', 'int', ({ seriesId }) => seriesId),
  column('shard', 'smallint', ({ record }) => record.event.data.position.shard),
  column('attempt', 'smallint', ({ record }) => record.event.data.attempt),
  column('queue_wait_ms', 'int', ({ record }) => record.event.data.queueWaitMs),
  column('department_id', 'uuid', ({ record }) => record.departmentIds.at(-1) ?? null),
  column('user_id', 'uuid', ({ record }) => record.event.data.user.id),
  column('key_id', 'uuid', ({ record }) => record.event.data.key.id),
  column('provider_id', 'uuid', ({ record }) => record.event.data.provider.id),
  column('price_version_id', 'uuid', ({ record }) => record.event.data.price.id),
  column('adjusts', 'uuid', ({ record }) => record.event.data.adjusts),
  column('streamed', 'boolean', ({ record }) => record.event.data.streamed),
  column('estimated', 'boolean', ({ record }) => record.event.data.estimated),
  column('late', 'boolean', ({ record }) => record.event.data.late),
  column('input_tokens', 'bigint', ({ record }) => record.event.data.usage.input),
  column('cached_input_tokens', 'bigint', ({ record }) => record.event.data.usage.cachedInput),
  column('cache_write_tokens', 'bigint', ({ record }) => record.event.data.usage.cacheWrite),
  column('audio_input_tokens', 'bigint', ({ record }) => record.event.data.usage.audioInput),
  column('image_input_tokens', 'bigint', ({ record }) => record.event.data.usage.imageInput),
  column('output_tokens', 'bigint', ({ record }) => record.event.data.usage.output),
  column('reasoning_tokens', 'bigint', ({ record }) => record.event.data.usage.reasoning),
  column('audio_output_tokens', 'bigint', ({ record }) => record.event.data.usage.audioOutput),
  column('cost_pico', 'numeric', ({ record }) => record.event.data.costPico),
  column('cost_nano', 'numeric', ({ record }) => record.event.data.costNano),
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
  column('department_ids', 'uuid[]', ({ record }) => record.departmentIds),
  column('department_names', 'text[]', ({ record }) =>
    record.event.data.departments.map(({ name }) => name),
  ),
  column('unit_prices', 'jsonb', ({ record: { event } }) =>
    JSON.stringify({
      picoPerToken: event.data.price.picoPerToken,
      picoPerRequest: event.data.price.picoPerRequest,
    }),
  ),
  column('tags', 'jsonb', ({ record }) => JSON.stringify(record.event.data.tags)),
];

const names = columns.map(({ name }) => name).join(', ');

/** A row is some 900 bytes; one buffer that fits is cheaper than one that grows. */
const rowBytesExpected = 1_200;

/** Rows as `COPY` reads them. */
export type EncodedRows = { readonly bytes: Buffer; readonly count: number };

/** @throws UnwritableValueError where PostgreSQL would refuse a value */
export function encodeRows(records: readonly BookedRecord[]): EncodedRows {
  const values = new BinaryValues(records.length * rowBytesExpected);
  values.copyHeader();
  for (const booked of records) {
    values.row(columns.length);
    for (const { cell, write } of cells) {
      const value = cell(booked);
      if (value === null) values.null();
      else write(values, value as never);
    }
  }
  values.copyTrailer();
  return { bytes: values.bytes(), count: records.length };
}

/**
 * Writes rows none of which is there yet, the fastest way that PostgreSQL has. Either all are written or, with the first
 * that exists, none: see {@link isRepeatedEvent}.
 *
 * @param rows in key order, each key once: transactions that meet the same keys then wait for each other in the same order
 */
export async function copyRows(client: PoolClient, { bytes, count }: EncodedRows): Promise<void> {
  if (count === 0) return;
  const copy = client.query(copyFrom(`copy usage_event (${names}) from stdin (format binary)`));
  await pipeline([bytes], copy);
  if (copy.rowCount !== count) throw new Error(`${copy.rowCount} of ${count} rows were copied`);
}

/** PostgreSQL's refusal of a row whose key is taken, in whatever partition. */
export function isRepeatedEvent(error: unknown): boolean {
  const { code, table } = (error ?? {}) as { code?: unknown; table?: unknown };
  return code === '23505' && typeof table === 'string' && table.startsWith('usage_event');
}

const writers: Record<Type, (values: BinaryValues, cell: never) => void> = {
  uuid: (values, cell: string) => values.uuid(cell),
  timestamptz: (values, cell: number) => values.timestamptz(cell),
  smallint: (values, cell: number) => values.int2(cell),
  int: (values, cell: number) => values.int4(cell),
  bigint: (values, cell: number) => values.int8(cell),
  boolean: (values, cell: boolean) => values.bool(cell),
  numeric: (values, cell: string) => values.numeric(cell),
  text: (values, cell: string) => values.text(cell),
  jsonb: (values, cell: string) => values.jsonb(cell),
  'uuid[]': (values, cell: readonly string[]) => values.uuids(cell),
  'text[]': (values, cell: readonly string[]) => values.texts(cell),
};

const cells = columns.map(({ type, value }) => ({ cell: value, write: writers[type] }));

/** Arrays travel as texts, because PostgreSQL would unnest an array of arrays to its elements. */
const isArray = (type: Type): boolean => type.endsWith('[]');
const selected = columns
  .map(({ name, type }) => (isArray(type) ? `${name}::${type}` : name))
  .join(', ');
const parameters = columns
  .map(({ type }, index) => `$${index + 1}::${isArray(type) ? 'text' : type}[]`)
  .join(', ');

const insertEvents = {
  name: 'weir_insert_events',
  text: `insert into usage_event (${names})
    select ${selected} from unnest(${parameters}) as u (${names})
    on conflict (enterprise_id, event_id, minted_at) do nothing
    returning enterprise_id, event_id`,
};

/** The text that PostgreSQL reads as the cell's type. */
function textOf(type: Type, cell: Cell): string | null {
  if (cell === null) return null;
  if (type === 'timestamptz') return new Date(cell as number).toISOString();
  if (type === 'uuid[]') return plainArray(cell as readonly string[]);
  if (type === 'text[]') return textArray(cell as readonly string[]);
  return String(cell);
}

const needsQuotes = new Set<Type>(['text', 'jsonb', 'uuid[]', 'text[]']);

/**
 * Inserts the rows that are not there yet. Costs twice what {@link copyRows} does.
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
  const values = columns.map(({ type, value }) => {
    const cells = records.map((booked) => textOf(type, value(booked)));
    return needsQuotes.has(type) ? textArray(cells) : plainArray(cells);
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

function comparable(type: Type, value: unknown): string {
  if (value === null || value === undefined) return '';
  if (type === 'timestamptz') return String(new Date(value as number | Date).getTime());
  if (type === 'uuid[]') {
    return (Array.isArray(value) ? `{${value.join(',')}}` : String(value)).toLowerCase();
  }
  return type === 'uuid' ? String(value).toLowerCase() : String(value);
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
    const row = byKey.get(booked.record.key);
    if (row === undefined) continue;
    const differing = comparedColumns
      .filter(
        ({ name, type, value }) => comparable(type, row[name]) !== comparable(type, value(booked)),
      )
      .map(({ name }) => name);
    if (differing.length > 0) conflicts.set(booked.record.key, differing);
  }
  return conflicts;
}
