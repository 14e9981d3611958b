// Calls flow while SIGKILL hits every part of the pipeline; then the books of caller, provider, ledger and counters must
// agree to the last digit.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { connectKafka } from '../../libs/metering/dist/index.js';
import { numberOption } from '../bench/lib/bench-services.mjs';
import { seededRandom } from '../bench/lib/figures.mjs';
import { bodyOf, signIn } from '../launcher/lib/admin-api.mjs';
import { startStack } from '../launcher/stack.mjs';
import { Books, compareCalls } from './lib/books.mjs';
import { startKiller, targetsOf } from './lib/killer.mjs';
import { startTraffic } from './lib/traffic.mjs';

const CALLS_PER_SECOND = 20;
/** Short, so that the calls of dead gateways are charged while we wait; renewals come every third of it. */
const LEASE_MS = 8_000;
/** The demo provider's pace: calls take from a few tenths of a second to two, so that some are cut in the middle. */
const PROVIDER_SETTINGS = { tokens_per_second: 60, first_token_delay_ms: 30, events_per_tick: 1 };
/** Leases, sessions of dead consumers, entries of dead relays: each waits at most 30 s, and then come retries. */
const REST_MS_MAX = 180_000;
const REST_POLL_MS = 500;
/** What was at rest must be so still after this: something that comes late would come twice. */
const STILL_MS = 3_000;
const QUERY_MS_MAX = 30_000;
/**
 * For so long after Redis was killed gateways decide by themselves. One that has just started knows nothing of a budget
 * then, and refuses whoever has one (ADR 13): a 429 that says nothing of this test's own limits.
 */
const ALONE_MS_MAX = 5_000;
const REQUEST_MS = 15_000;
const SERVING_MS_MAX = 60_000;

/**
 * Breaks the pipeline for some seconds and counts what was lost or doubled. Money is in pico-currency.
 *
 * @param {{ seconds: number, args?: string[], log: (line: string) => void }} options
 *   args: `--seed N` repeats an order of kills and calls, `--rate N` calls a second, `--keep` leaves the logs
 * @throws Error that names the calls at fault when an invariant is broken
 */
export async function run({ seconds, args = [], log }) {
  const seed = numberOption(args, '--seed', Math.floor(Math.random() * 1_000_000));
  const callsPerSecond = numberOption(args, '--rate', CALLS_PER_SECOND);
  log(
    `seed ${seed} (repeat with --seed ${seed}), ${callsPerSecond} calls a second for ${seconds} s`,
  );
  const stateDir = mkdtempSync(join(tmpdir(), 'weir-chaos-'));
  let killer = null;
  const stack = await startStack({
    stateDir,
    log,
    apps: { gateways: 2, workers: 2 },
    isThrowaway: true,
    // The killer looks for what has ended and starts it again.
    onUnexpectedExit: (message) => log(message),
  });
  const pool = new pg.Pool({
    connectionString: stack.services.postgres.url,
    max: 4,
    query_timeout: QUERY_MS_MAX,
  });
  pool.on('error', () => {
    // Its server was killed; the next query gets a new connection.
  });
  let isSound = false;
  try {
    if (stack.services.kafka === null) throw new Error('this test needs Kafka: see the line above');
    await prepare(stack, log);
    const traffic = startTraffic({
      gateways: stack.urls.gateways,
      keys: stack.demo.keys.map(({ secret }) => secret),
      callsPerSecond,
      random: seededRandom(seed),
      label: `chaos-${seed}`,
    });
    killer = startKiller({ targets: targetsOf(stack), random: seededRandom(seed + 1), log });
    await sleep(seconds * 1_000);
    await killer.stopKilling();
    await traffic.stop();
    log(`${killer.kills.length} kills; waiting until everything is at rest`);
    const result = await compareAtRest({ stack, pool, killer, calls: traffic.calls, log });
    isSound = true;
    return result;
  } finally {
    await killer?.stopWatching();
    await pool.end();
    await stack.stop();
    if (isSound && !args.includes('--keep')) rmSync(stateDir, { recursive: true, force: true });
    else log(`logs are in ${join(stateDir, 'logs')}`);
  }
}

async function prepare({ urls, env, demo }, log) {
  const response = await fetch(`${urls.demoProvider}/demo/settings`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${env.DEMO_API_KEY}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(PROVIDER_SETTINGS),
  });
  await bodyOf(response);
  const ask = await signIn(urls.adminApi, demo.console);
  const { version } = await ask('GET', '/enterprise');
  await ask('PATCH', '/enterprise', { settings: { leaseMs: LEASE_MS } }, version);
  await untilServing(urls.gateways, demo.keys[0].secret, log);
}

/**
 * Waits until every gateway admits calls. Chaos is to be survived from a sound state on: what keeps a fresh stack from
 * serving is found here, by name, and not counted as the kills' doing. The quota view charges nothing and reads the
 * counters that admissions need.
 */
async function untilServing(gateways, key, log) {
  const begunMs = Date.now();
  for (const gateway of gateways) {
    for (let answer = ''; ;) {
      const response = await fetch(`${gateway}/v1/quota`, {
        headers: { authorization: `Bearer ${key}` },
        signal: AbortSignal.timeout(REQUEST_MS),
      });
      answer = `${response.status} ${await response.text()}`;
      if (response.ok) break;
      if (Date.now() - begunMs > SERVING_MS_MAX) {
        throw new Error(
          `${gateway} does not serve ${SERVING_MS_MAX / 1_000} s after it said that it is ready: ${answer}`,
        );
      }
      await sleep(REST_POLL_MS);
    }
  }
  log(
    `all gateways admit calls ${((Date.now() - begunMs) / 1_000).toFixed(1)} s after they said ready`,
  );
}

async function compareAtRest({ stack, pool, killer, calls, log }) {
  const broker = connectKafka({
    brokers: [stack.services.kafka.url],
    clientId: 'weir-chaos',
    logger: { debug() {}, info() {}, warn() {}, error: (_fields, message) => log(message) },
  });
  const enterprise = await pool.query('select id, time_zone from enterprise where id = $1', [
    stack.demo.enterpriseId,
  ]);
  const books = new Books({
    pool,
    broker,
    redisUrl: stack.services.redis.url,
    demoProviderUrl: stack.urls.demoProvider,
    demoApiKey: stack.env.DEMO_API_KEY,
    enterpriseId: stack.demo.enterpriseId,
    timeZone: enterprise.rows[0].time_zone,
  });
  const gatewayNames = stack.processes.gateway.map(({ name }) => name);
  const gatewayKills = [...killer.kills, ...killer.ownEnds]
    .filter(({ name }) => gatewayNames.includes(name))
    .map(({ name, atMs }) => ({ gateway: gatewayNames.indexOf(name), atMs }));
  const look = async () => {
    const unrest = await books.unrest();
    const found = compareCalls({
      calls,
      bill: await books.bill(),
      rows: await books.rows(),
      gatewayKills,
    });
    const counters = await books.counters();
    const ledgerFaults = await books.ledgerFaults();
    return { unrest, found, counters, ledgerFaults };
  };
  try {
    const begunMs = Date.now();
    let seen = null;
    let fault = null;
    while (Date.now() - begunMs < REST_MS_MAX) {
      try {
        seen = await look();
        fault = null;
        if (faultsOf(seen).length === 0) {
          await sleep(STILL_MS);
          seen = await look();
          if (faultsOf(seen).length === 0) break;
        }
      } catch (error) {
        // A shard whose counters are being rebuilt cannot be read yet.
        fault = error;
      }
      await sleep(REST_POLL_MS);
    }
    if (fault !== null || seen === null) throw fault ?? new Error('nothing could be compared');
    log(`compared ${((Date.now() - begunMs) / 1_000).toFixed(1)} s after the last call`);
    return judge({ seen, killer, calls, log });
  } finally {
    await books.close();
    await broker.close();
  }
}

/** What must not be, in words. */
function faultsOf({ unrest, found, counters, ledgerFaults }) {
  const faults = [
    ...unrest.map((text) => `not at rest: ${text}`),
    ...ledgerFaults.map(({ kind, text }) => `${kind}: ${text}`),
  ];
  const mustBeZero = {
    holes: found.holes,
    duplicates: found.duplicates,
    'calls that nobody made': found.strangers,
    'estimated calls of living gateways': found.estimatedAlive,
    'difference of money, pico': found.moneyDiff,
    'difference of counters': counters.difference,
    'reserved for nobody': counters.reserved,
  };
  for (const [name, value] of Object.entries(mustBeZero)) {
    if (BigInt(value) !== 0n) faults.push(`${name}: ${value}`);
  }
  return faults;
}

function judge({ seen, killer, calls, log }) {
  const { found, counters, ledgerFaults } = seen;
  const outcomes = {};
  const kills = {};
  for (const { outcome, status } of calls.values()) {
    const name = outcome === 'refused' ? `refused ${status}` : outcome;
    outcomes[name] = (outcomes[name] ?? 0) + 1;
  }
  for (const { kind } of killer.kills) kills[kind] = (kills[kind] ?? 0) + 1;
  log(
    `kills ${JSON.stringify(kills)}; calls as their callers saw them ${JSON.stringify(outcomes)}`,
  );
  log(`${found.corrected} calls were charged by estimate and corrected later`);
  const result = {
    kills: killer.kills.length,
    calls: found.calls,
    rows: found.rows,
    holes: found.holes + ledgerFaults.filter(({ kind }) => kind === 'sequence').length,
    duplicates: found.duplicates,
    money_diff: Number(found.moneyDiff),
    estimated_calls: found.estimatedCalls,
    estimated_money_diff: Number(found.estimatedMoneyDiff),
    counter_diff: Number(counters.difference),
    reserved_left: Number(counters.reserved),
  };
  const faults = faultsOf(seen);
  // A run in which nothing was admitted, or a limit stood in the way, would show nothing.
  if (found.calls === 0) faults.push('no call was admitted');
  const redisKills = killer.kills.filter(({ kind }) => kind === 'redis');
  const isAlone = ({ startedMs, endedMs }) =>
    redisKills.some(({ atMs }) => endedMs >= atMs && startedMs <= atMs + ALONE_MS_MAX);
  const limited = [...calls.values()].filter(
    (call) => call.status === 429 && !isAlone(call),
  ).length;
  if (limited > 0) faults.push(`${limited} calls were refused by a limit: the rate is too high`);
  if (faults.length > 0) {
    const details = [...faults, ...found.offenders, ...counters.offenders];
    throw new Error(
      `the books do not agree: ${JSON.stringify(result)}\n${details.map((line) => `  ${line}`).join('\n')}`,
    );
  }
  return result;
}
