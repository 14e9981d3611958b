// `npm run bench -- gateway`: what the gateway costs beside the upstream alone, the same gateway with its quotas
// off (`plain`) and a bare Fastify proxy that does nothing but pass on (`bare`), all on this machine at the same time,
// so that the CPU per call says more than the calls per second.
//
// Redis, the upstream and the load stand for other machines, yet share the cores with the gateway. What they would do there
// without taking its core is kept small here: the load is lean (lib/lean-client.mjs), the upstream collects its garbage in
// one thread and seldom all of it, and Redis does not rewrite its file meanwhile (lib/data-plane.mjs). What is left of it,
// such as a synced write of that file each second, counts as the gateway's: on two cores the slowest hundredth are calls
// that wait for one.

import { startDataPlane } from './lib/data-plane.mjs';
import { quantile } from './lib/figures.mjs';
import { closedLoop, cpuMicros, paced } from './lib/load.mjs';

/** @typedef {import('./lib/load.mjs').Target} Target */

const JSON_CONNECTIONS = 64;
const STREAM_CONNECTIONS = 16;
/** Opening, 17 tokens, closing, usage, end mark. */
const EVENTS_PER_STREAM = 21;
const STREAMED = { stream: true, stream_options: { include_usage: true }, max_tokens: 100 };
/** A cold gateway costs three times as much per call: its code has to be compiled first. */
const WARM_UP_MS = 4_000;
/** What is compared is measured in turns, and the median of the turns taken: this machine has other things to do. */
const TURNS = 5;
/** The slowest hundredth shows whatever else the machine did in a turn. */
const HALF_LOAD_TURNS = 9;
const PHASES = 1 + 3 * TURNS + 3 * HALF_LOAD_TURNS + 2 + 1;

/**
 * @param {{ seconds: number, log: (line: string) => void }} options
 */
export async function run({ seconds, log }) {
  const plane = await startDataPlane(log);
  const ms = (seconds * 1_000) / PHASES;
  try {
    const json = plane.targets({ max_tokens: 100, user: 'demo:output_tokens=40' });
    const stream = plane.targets({ ...STREAMED, user: 'demo:output_tokens=17' });
    const big = plane.targets({ max_tokens: 100 });

    const warmedUp = [json.direct, json.bare, json.plain, json.full, stream.plain, stream.full];
    for (const target of warmedUp) {
      await closedLoop(target, { connections: JSON_CONNECTIONS, ms: WARM_UP_MS });
    }
    const direct = await closedLoop(json.direct, { connections: JSON_CONNECTIONS, ms });
    const saturate = (/** @type {Target} */ target, /** @type {number | null} */ pid) =>
      withCpu(pid, () => closedLoop(target, { connections: JSON_CONNECTIONS, ms }));
    const [bare, plain, full] = await inTurns(
      TURNS,
      () => saturate(json.bare, plane.pids.bare),
      () => saturate(json.plain, plane.pids.plain),
      () => saturate(json.full, plane.pids.gateway),
    );
    log('streams');
    const plainStreams = await withCpu(plane.pids.plain, () =>
      closedLoop(stream.plain, { connections: STREAM_CONNECTIONS, ms }),
    );
    const fullStreams = await withCpu(plane.pids.gateway, () =>
      closedLoop(stream.full, { connections: STREAM_CONNECTIONS, ms }),
    );
    log('half load');
    // An idle process collects its garbage in other threads, on the same few cores.
    await plane.stopBare();
    const perSecond = full.perSecond / 2;
    /** @type {(name: string, target: Target) => Promise<import('./lib/load.mjs').Measured>} */
    const pace = async (name, target) => {
      const measured = await paced(target, { perSecond, connections: JSON_CONNECTIONS, ms });
      log(`  ${name} p50 ${measured.p50_ms.toFixed(2)} p99 ${measured.p99_ms.toFixed(1)} ms`);
      return measured;
    };
    const [directHalf, plainHalf, fullHalf] = await inTurns(
      HALF_LOAD_TURNS,
      () => pace('direct', json.direct),
      () => pace('plain ', json.plain),
      () => pace('full  ', json.full),
    );
    log('refusals');
    // The one call that this user has for the month.
    const { origin, path, ...call } = big.refused;
    await (await fetch(origin + path, { method: 'POST', ...call })).arrayBuffer();
    const before = await readMetrics(plane.gatewayUrl);
    const refused = await closedLoop(big.refused, {
      connections: JSON_CONNECTIONS,
      ms,
      status: 429,
    });
    const after = await readMetrics(plane.gatewayUrl);

    const whole = [direct, bare, plain, full, directHalf, plainHalf, fullHalf];
    const failures = [...whole, plainStreams, fullStreams, refused]
      .map((each) => each.failures)
      .reduce((sum, each) => sum + each, 0);
    const result = {
      ok: failures === 0,
      failures,
      direct_rps: round(direct.perSecond),
      bare_rps: round(bare.perSecond),
      plain_rps: round(plain.perSecond),
      full_rps: round(full.perSecond),
      bare_cpu_us: round(bare.cpuUs),
      plain_cpu_us: round(plain.cpuUs),
      full_cpu_us: round(full.cpuUs),
      cpu_ratio: round(full.cpuUs / plain.cpuUs, 2),
      cpu_ratio_bare: round(full.cpuUs / bare.cpuUs, 2),
      added_p50_ms: round(fullHalf.p50_ms - directHalf.p50_ms, 2),
      added_p99_ms: round(fullHalf.p99_ms - directHalf.p99_ms, 2),
      added_to_plain_p50_ms: round(fullHalf.p50_ms - plainHalf.p50_ms, 2),
      added_to_plain_p99_ms: round(fullHalf.p99_ms - plainHalf.p99_ms, 2),
      refusals_rps: round(refused.perSecond),
      refusal_p50_ms: round(median(before.refused, after.refused), 3),
      sse_streams_per_s: round(fullStreams.perSecond),
      sse_us_per_event: round(fullStreams.cpuUs / EVENTS_PER_STREAM, 1),
      plain_sse_streams_per_s: round(plainStreams.perSecond),
      plain_sse_us_per_event: round(plainStreams.cpuUs / EVENTS_PER_STREAM, 1),
      event_loop_delay_p99_ms: round(before.lagMs, 1),
    };
    for (const [name, value] of Object.entries(result)) log(`${name.padEnd(26)}${value}`);
    return result;
  } finally {
    await plane.stop();
  }
}

/**
 * Measures several things in turns.
 * @param {number} turns
 * @template {(() => Promise<Record<string, number>>)[]} Works
 * @param {Works} works
 * @returns {Promise<{ [I in keyof Works]: Awaited<ReturnType<Works[I]>> }>} of each, the median of every figure; the
 * failures of all turns
 */
async function inTurns(turns, ...works) {
  /** @type {Record<string, number>[][]} */
  const measured = works.map(() => []);
  for (let turn = 0; turn < turns; turn += 1) {
    for (const [index, work] of works.entries()) measured[index]?.push(await work());
  }
  const medians = measured.map((all) =>
    Object.fromEntries(
      Object.keys(all[0] ?? {}).map((name) => {
        const values = all.map((each) => each[name] ?? Number.NaN);
        const sum = values.reduce((total, value) => total + value, 0);
        return [name, name === 'failures' ? sum : quantile(values, 0.5)];
      }),
    ),
  );
  return /** @type {any} */ (medians);
}

/**
 * @template {import('./lib/load.mjs').Measured} T
 * @param {number | null} pid
 * @param {() => Promise<T>} work
 */
async function withCpu(pid, work) {
  const before = cpuMicros(pid);
  const measured = await work();
  return { ...measured, cpuUs: (cpuMicros(pid) - before) / measured.calls };
}

/**
 * Cumulative counts of the refusals' server-side time by upper bound in seconds, and the 99th percentile of the event
 * loop's delay since the metrics were last read.
 * @param {string} url
 */
async function readMetrics(url) {
  const text = await (await fetch(`${url}/metrics`)).text();
  /** @type {Map<number, number>} */
  const refused = new Map();
  for (const line of text.split('\n')) {
    if (!line.startsWith('weir_admission_seconds_bucket') || !line.includes('refused')) continue;
    const bound = /le="([^"]+)"/.exec(line)?.[1] ?? '';
    refused.set(
      bound === '+Inf' ? Infinity : Number(bound),
      Number(line.slice(line.lastIndexOf(' '))),
    );
  }
  const lag = /^nodejs_eventloop_lag_p99_seconds\S* (\S+)$/m.exec(text)?.[1];
  return { refused, lagMs: Number(lag) * 1_000 };
}

/**
 * The median between two readings of a histogram, in ms, by linear interpolation within its bucket.
 * @param {Map<number, number>} before
 * @param {Map<number, number>} after
 */
function median(before, after) {
  const bounds = [...after.keys()].sort((a, b) => a - b);
  const count = (/** @type {number} */ bound) => (after.get(bound) ?? 0) - (before.get(bound) ?? 0);
  const half = count(Infinity) / 2;
  let lower = 0;
  let below = 0;
  for (const bound of bounds) {
    const upTo = count(bound);
    if (upTo >= half) {
      const share = upTo === below ? 0 : (half - below) / (upTo - below);
      return (lower + (Math.min(bound, 10) - lower) * share) * 1_000;
    }
    lower = bound;
    below = upTo;
  }
  return Number.NaN;
}

/** @param {number} value */
function round(value, digits = 0) {
  return Number(value.toFixed(digits));
}
