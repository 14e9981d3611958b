import type { PoolClient } from 'pg';
import { BinaryValues, elementTypes } from './binary-values.js';
import type { RollupDelta } from './rollup-deltas.js';

/** Held shared by every booking, exclusively while an enterprise's days and months are cut anew in another zone. */
export const zoneLock = 7_405_323;

const counts = {
  requests: 'requests',
  retries: 'retries',
  estimated: 'estimated',
  input_tokens: 'input',
  cached_input_tokens: 'cachedInput',
  cache_write_tokens: 'cacheWrite',
  audio_input_tokens: 'audioInput',
  image_input_tokens: 'imageInput',
  output_tokens: 'output',
  reasoning_tokens: 'reasoning',
  audio_output_tokens: 'audioOutput',
} as const;
const costs = { cost_pico: 'costPico', cost_nano: 'costNano' } as const;
const countFields = Object.values(counts);
const costFields = Object.values(costs);
/** Bytes of an element with its length; a numeric may need more. */
const elementBytesMax = 24;

/** The columns that roll-up rows sum. */
export const sumColumns: readonly string[] = [...Object.keys(counts), ...Object.keys(costs)];

/** The first day of the month that a day lies in, in SQL. */
export const monthOf = (day: string): string => `date_trunc('month', ${day}::timestamp)::date`;

const sumNames = sumColumns.join(', ');
const parameters = [
  '$1::uuid[]',
  '$2::timestamptz[]',
  '$3::int[]',
  ...sumColumns.map((name, index) => `$${index + 4}::${name in costs ? 'numeric' : 'bigint'}[]`),
].join(', ');
const source = `unnest(${parameters}) as u (enterprise_id, quarter, series_id, ${sumNames})`;
const additions = (table: string) =>
  sumColumns.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(', ');

const totals = sumColumns.map((name) => `sum(${name}) as ${name}`).join(', ');
const addTo = (table: string, period: string, rows: string) =>
  `insert into ${table} (enterprise_id, ${period}, series_id, ${sumNames}) ${rows}
    on conflict (enterprise_id, ${period}, series_id) do update set ${additions(table)}`;

/** One statement, so that the sums travel and are read once. Each table's rows are locked in key order. */
const addSums = {
  name: 'weir_add_sums',
  text: `with u as materialized (
      select * from ${source}
    ), local as materialized (
      select enterprise_id, (quarter at time zone zone)::date as day, series_id, ${totals}
      from u join usage_zone using (enterprise_id) group by 1, 2, 3
    ), quarters as (
      ${addTo('usage_rollup', 'quarter', `select enterprise_id, quarter, series_id, ${sumNames} from u order by 1, 2, 3`)}
    ), days as (
      ${addTo('usage_rollup_day', 'day', `select enterprise_id, day, series_id, ${sumNames} from local order by 1, 2, 3`)}
    )
    ${addTo('usage_rollup_month', 'month', `select enterprise_id, ${monthOf('day')}, series_id, ${totals} from local group by 1, 2, 3 order by 1, 2, 3`)}`,
};

/**
 * Adds what a slice booked to the roll-ups per quarter, day and month. The caller holds {@link zoneLock} (shared), and
 * every enterprise has its zone.
 */
export async function addToRollups(
  client: PoolClient,
  deltas: readonly RollupDelta[],
): Promise<void> {
  if (deltas.length === 0) return;
  const values = [
    arrayOf('uuid', deltas, (values, { enterpriseId }) => values.uuid(enterpriseId)),
    arrayOf('timestamptz', deltas, (values, { quarterMs }) => values.timestamptz(quarterMs)),
    arrayOf('int4', deltas, (values, { seriesId }) => values.int4(seriesId)),
    ...countFields.map((field) =>
      arrayOf('int8', deltas, (values, delta) => values.int8(delta[field])),
    ),
    ...costFields.map((field) =>
      arrayOf('numeric', deltas, (values, delta) => values.numeric(delta[field])),
    ),
  ];
  await client.query({ ...addSums, values });
}

function arrayOf(
  type: keyof typeof elementTypes,
  deltas: readonly RollupDelta[],
  write: (values: BinaryValues, delta: RollupDelta) => void,
): Buffer {
  const values = new BinaryValues(elementBytesMax * (deltas.length + 1));
  values.array(elementTypes[type], deltas.length);
  for (const delta of deltas) write(values, delta);
  return values.bytes();
}
