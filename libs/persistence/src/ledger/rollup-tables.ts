import type { PoolClient } from 'pg';
import { plainArray } from './array-literal.js';
import type { RollupDelta } from './rollup-deltas.js';

/** Held shared by every booking, exclusively while an enterprise's daily roll-ups are cut anew in another zone. */
export const zoneLock = 7_405_323;

const sums: readonly {
  readonly name: string;
  readonly type: string;
  readonly field: keyof RollupDelta;
}[] = [
  { name: 'requests', type: 'bigint', field: 'requests' },
  { name: 'retries', type: 'bigint', field: 'retries' },
  { name: 'estimated', type: 'bigint', field: 'estimated' },
  { name: 'input_tokens', type: 'bigint', field: 'input' },
  { name: 'cached_input_tokens', type: 'bigint', field: 'cachedInput' },
  { name: 'cache_write_tokens', type: 'bigint', field: 'cacheWrite' },
  { name: 'audio_input_tokens', type: 'bigint', field: 'audioInput' },
  { name: 'image_input_tokens', type: 'bigint', field: 'imageInput' },
  { name: 'output_tokens', type: 'bigint', field: 'output' },
  { name: 'reasoning_tokens', type: 'bigint', field: 'reasoning' },
  { name: 'audio_output_tokens', type: 'bigint', field: 'audioOutput' },
  { name: 'cost_pico', type: 'numeric', field: 'costPico' },
  { name: 'cost_nano', type: 'numeric', field: 'costNano' },
];

/** The columns that roll-up rows sum. */
export const sumColumns: readonly string[] = sums.map(({ name }) => name);

const sumNames = sumColumns.join(', ');
const parameters = [
  '$1::uuid[]',
  '$2::timestamptz[]',
  '$3::int[]',
  ...sums.map(({ type }, index) => `$${index + 4}::${type}[]`),
].join(', ');
const source = `unnest(${parameters}) as u (enterprise_id, quarter, series_id, ${sumNames})`;
const additions = (table: string) =>
  sumColumns.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(', ');

const addQuarters = {
  name: 'weir_add_quarters',
  text: `insert into usage_rollup (enterprise_id, quarter, series_id, ${sumNames})
    select enterprise_id, quarter, series_id, ${sumNames} from ${source}
    order by enterprise_id, quarter, series_id
    on conflict (enterprise_id, quarter, series_id) do update set ${additions('usage_rollup')}`,
};

const addDays = {
  name: 'weir_add_days',
  text: `insert into usage_rollup_day (enterprise_id, day, series_id, ${sumNames})
    select u.enterprise_id, (u.quarter at time zone z.zone)::date, u.series_id,
      ${sumColumns.map((name) => `sum(u.${name})`).join(', ')}
    from ${source} join usage_zone z using (enterprise_id)
    group by 1, 2, 3 order by 1, 2, 3
    on conflict (enterprise_id, day, series_id) do update set ${additions('usage_rollup_day')}`,
};

/**
 * Adds what a slice booked to the roll-ups per quarter and per day. The caller holds {@link zoneLock} (shared), and
 * every enterprise has its zone.
 */
export async function addToRollups(
  client: PoolClient,
  deltas: readonly RollupDelta[],
): Promise<void> {
  if (deltas.length === 0) return;
  const values = [
    plainArray(deltas.map(({ enterpriseId }) => enterpriseId)),
    plainArray(deltas.map(({ quarterMs }) => new Date(quarterMs).toISOString())),
    plainArray(deltas.map(({ seriesId }) => seriesId)),
    ...sums.map(({ field }) => plainArray(deltas.map((delta) => delta[field]))),
  ];
  await client.query({ ...addQuarters, values });
  await client.query({ ...addDays, values });
}
