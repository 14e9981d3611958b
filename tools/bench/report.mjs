// How fast the usage report answers over thirteen months of history.

import pg from 'pg';
import { periodAt } from '../../libs/domain/dist/index.js';
import { usageSummary } from '../../libs/persistence/dist/index.js';
import { logMachine, numberOption, withServices } from './lib/bench-services.mjs';
import { grouped, quantile, tenth } from './lib/figures.mjs';
import { KEYS_DEFAULT, makeTenants, storeTenants } from './lib/usage-load.mjs';

const ROWS_DEFAULT = 10_000_000;
const MONTHS = 13;
const STATUSES = ['ok', 'cancelled', 'partial', 'error', 'expired'];
/** A report is asked for again and again; the first ones read from disk and count too. */
const QUERIES_MIN = 30;
const QUERIES_MAX = 400;

/**
 * @param {{ seconds: number, args: string[], log: (line: string) => void }} options seconds: how long the queries are
 *   repeated, half of it each; args: `--rows N` quarter-hour roll-up rows, `--keys N` API keys
 */
export async function run({ seconds, args, log }) {
  logMachine(log);
  const rows = numberOption(args, '--rows', ROWS_DEFAULT);
  const keys = numberOption(args, '--keys', KEYS_DEFAULT);
  return withServices({ names: ['postgres'], log }, async ({ postgres }) => {
    const pool = new pg.Pool({ connectionString: postgres.url, max: 2 });
    pool.on('error', (error) => log(`postgres connection: ${error.message}`));
    try {
      const tenants = makeTenants(keys);
      await storeTenants(pool, tenants);
      await storeSeries(pool, tenants);
      const total = await makeHistory({ pool, tenants, rows, log });
      const context = { pool, tenants, total, seconds: seconds / 2, log };
      const month = await measure({ ...context, name: 'a month by department', ...byDepartment });
      const year = await measure({ ...context, name: 'a year by model', ...byModel });
      return { month_by_department_p99_ms: tenth(month), year_by_model_p99_ms: tenth(year) };
    } finally {
      await pool.end();
    }
  });
}

/** Every combination that calls have been made in: each key with each model, most of them only ever `ok`. */
async function storeSeries(pool, tenants) {
  for (const { enterprise, paths, keys, models } of tenants) {
    const paths_ = await pool.query(
      `insert into usage_path (enterprise_id, department_ids)
       select $1, array(select jsonb_array_elements_text(p)::uuid) from jsonb_array_elements($2::jsonb) as p
       returning id, department_ids`,
      [enterprise.id, JSON.stringify(paths.map((path) => path.map(({ id }) => id)))],
    );
    const idOf = new Map(paths_.rows.map((row) => [row.department_ids.at(-1), row.id]));
    const series = keys.flatMap((key) =>
      models.map(({ alias, provider }) => ({
        path: idOf.get(key.user.departments.at(-1).id),
        user: key.user.ref.id,
        key: key.ref.id,
        model: alias,
        provider: provider.id,
      })),
    );
    await pool.query(
      `insert into usage_series (enterprise_id, path_id, user_id, key_id, model, provider_id, status)
       select $1, s.path, s.user, s.key, s.model, s.provider, status
       from jsonb_to_recordset($2::jsonb) as s (path int, "user" uuid, key uuid, model text, provider uuid),
         unnest($3::text[]) with ordinality as t (status, nth)
       -- A third of the series also has calls that ended otherwise.
       where nth = 1 or hashtext(s.key::text || s.model) % 3 = 0`,
      [enterprise.id, JSON.stringify(series), STATUSES],
    );
    const named = [
      ...paths.map((path) => ['department', path.at(-1), path.map(({ id }) => id)]),
      ...keys.map((key) => ['key', key.ref, []]),
      ...models.map(({ provider }) => ['provider', provider, []]),
    ];
    await pool.query(
      `insert into usage_dimension (enterprise_id, kind, id, name, path, last_seen_at)
       select $1, d->>0, (d->1->>'id')::uuid, d->1->>'name',
         array(select jsonb_array_elements_text(d->2)::uuid), now()
       from jsonb_array_elements($2::jsonb) as d on conflict do nothing`,
      [enterprise.id, JSON.stringify(named)],
    );
  }
}

/**
 * Makes the roll-ups themselves, in the server: events in such numbers would take hours and answer no other question.
 * A row is a quarter of an hour and a series that was used in it. Rows are spread over thirteen months with the shape of
 * working days (nights and weekends have a fifth), few series have most of them, and days and months are summed from
 * the quarters in each enterprise's zone, as the ledger does.
 */
async function makeHistory({ pool, tenants, rows, log }) {
  const begun = performance.now();
  await pool.query(
    `insert into usage_zone (enterprise_id, zone) select id, time_zone from enterprise on conflict do nothing`,
  );
  for (const [index, { enterprise }] of tenants.entries()) {
    await pool.query(
      `with series as (
         select id, model, row_number() over (order by hashtext(id::text)) - 1 as nth, count(*) over () as count
         from usage_series where enterprise_id = $1
       ), slots as (
         select n, now_hour - n * interval '15 minutes' as quarter,
           case when extract(isodow from now_hour - n * interval '15 minutes') > 5
             or extract(hour from now_hour - n * interval '15 minutes') not between 7 and 19 then 1 else 5 end as weight
         from date_trunc('hour', now()) as now_hour, generate_series(1, $3::int * 30 * 96) as n
       ), draws as (
         -- Of each draw a hash, so that every run makes the same history.
         select s.quarter,
           floor(power((hashint8extended(s.n::bigint * 100000 + k, $4::bigint) & 1048575) / 1048576.0, 1.6)
             * (select count(*) from series))::int as nth
         from slots s, generate_series(1, greatest(1,
           ceil(s.weight * $2::numeric * 1.1 / (select sum(weight) from slots))::int)) as k
       ), picked as (
         select distinct quarter, nth from draws
       )
       insert into usage_rollup (enterprise_id, quarter, series_id, requests, retries, estimated, input_tokens,
         cached_input_tokens, cache_write_tokens, audio_input_tokens, image_input_tokens, output_tokens,
         reasoning_tokens, audio_output_tokens, cost_pico, cost_nano)
       select $1, p.quarter, s.id, r, r / 50, r / 60, r * 900, r * 400, 0, 0, 0, r * 350, 0, 0,
         r * 5750000000::numeric + p.nth, r * 5750000::numeric + 1
       from picked p join series s on s.nth = p.nth,
         lateral (select 1 + (abs(hashint8(extract(epoch from p.quarter)::bigint + s.id)) % 40) as r) as c
       order by 2, 3`,
      [enterprise.id, Math.ceil(rows / tenants.length), MONTHS, index],
    );
  }
  await pool.query(
    `insert into usage_rollup_day
     select r.enterprise_id, (r.quarter at time zone z.zone)::date, r.series_id, sum(requests), sum(retries),
       sum(estimated), sum(input_tokens), sum(cached_input_tokens), sum(cache_write_tokens), sum(audio_input_tokens),
       sum(image_input_tokens), sum(output_tokens), sum(reasoning_tokens), sum(audio_output_tokens), sum(cost_pico),
       sum(cost_nano)
     from usage_rollup r join usage_zone z using (enterprise_id) group by 1, 2, 3`,
  );
  await pool.query(
    `insert into usage_rollup_month
     select enterprise_id, date_trunc('month', day::timestamp)::date, series_id, sum(requests), sum(retries),
       sum(estimated), sum(input_tokens), sum(cached_input_tokens), sum(cache_write_tokens), sum(audio_input_tokens),
       sum(image_input_tokens), sum(output_tokens), sum(reasoning_tokens), sum(audio_output_tokens), sum(cost_pico),
       sum(cost_nano)
     from usage_rollup_day group by 1, 2, 3`,
  );
  await pool.query(
    'vacuum analyze usage_rollup, usage_rollup_day, usage_rollup_month, usage_series, usage_path, usage_dimension',
  );
  const found = await pool.query(
    `select (select count(*) from usage_rollup) as quarters, (select count(*) from usage_rollup_day) as days,
       (select count(*) from usage_rollup_month) as months,
       (select count(*) from usage_series) as series,
       (select sum(requests) from usage_rollup) as requests,
       pg_total_relation_size('usage_rollup') + pg_total_relation_size('usage_rollup_day')
         + pg_total_relation_size('usage_rollup_month') as bytes`,
  );
  const [history] = found.rows;
  log(
    `history: ${grouped(Number(history.quarters))} rows per quarter of an hour, ${grouped(Number(history.days))} per day and ${grouped(Number(history.months))} per month ` +
      `of ${grouped(Number(history.series))} series over ${MONTHS} months (${grouped(Number(history.requests))} calls, ` +
      `${grouped(Number(history.bytes) / 1e6)} MB), made in ${((performance.now() - begun) / 1_000).toFixed(0)} s`,
  );
  if (Number(history.quarters) < rows * 0.9) {
    throw new Error(`only ${history.quarters} of ${rows} rows were made`);
  }
  return Number(history.requests);
}

/** The last whole month, in the enterprise's zone. */
const byDepartment = {
  rangeOf: ({ timeZone }) => {
    const thisMonth = periodAt('month', Date.now(), timeZone);
    const lastMonth = periodAt('month', thisMonth.startsAt - 1, timeZone);
    return { from: new Date(lastMonth.startsAt), to: new Date(thisMonth.startsAt) };
  },
  groupBy: 'department',
  granularity: 'none',
};

/** The twelve months to the end of the last one, month by month. */
const byModel = {
  rangeOf: ({ timeZone }) => {
    const end = periodAt('month', Date.now(), timeZone);
    let start = end;
    for (let months = 0; months < 12; months += 1) {
      start = periodAt('month', start.startsAt - 1, timeZone);
    }
    return { from: new Date(start.startsAt), to: new Date(end.startsAt) };
  },
  groupBy: 'model',
  granularity: 'month',
};

/** Asks for the same report of one enterprise after the other. */
async function measure({
  pool,
  tenants,
  total,
  seconds,
  log,
  name,
  rangeOf,
  groupBy,
  granularity,
}) {
  const end = performance.now() + seconds * 1_000;
  const times = [];
  let rows = 0;
  while (times.length < QUERIES_MIN || (performance.now() < end && times.length < QUERIES_MAX)) {
    const { enterprise, timeZone } = tenants[times.length % tenants.length];
    const begun = performance.now();
    const summary = await usageSummary(pool, {
      enterpriseId: enterprise.id,
      ...rangeOf({ timeZone }),
      timeZone,
      groupBy,
      granularity,
      filters: {},
    });
    times.push(performance.now() - begun);
    rows = summary.rows.length;
    const isSane = rows > 0 && summary.totals.requests > 0n && summary.totals.requests < total;
    if (!isSane) throw new Error(`${name}: ${rows} rows, ${summary.totals.requests} calls`);
  }
  const p50 = quantile(times, 0.5);
  const p99 = quantile(times, 0.99);
  log(
    `${name}: ${times.length} reports of ${rows} rows, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
  );
  return p99;
}
