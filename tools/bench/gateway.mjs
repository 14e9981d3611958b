// `npm run bench -- gateway`: what the gateway costs beside the bare upstream and a plain proxy on the
// same stack, all on this machine at the same time, so that the CPU per call says more than the calls per second.

import { closedLoop, cpuMicros, paced } from './lib/load.mjs';
import { startDataPlane } from './lib/data-plane.mjs';

const JSON_CONNECTIONS = 64;
const STREAM_CONNECTIONS = 16;
/** Opening, 17 tokens, closing, usage, end mark. */
const EVENTS_PER_STREAM = 21;
const STREAMED = { stream: true, stream_options: { include_usage: true }, max_tokens: 100 };
/** A cold gateway costs three times as much per call: its code has to be compiled first. */
const WARM_UP_MS = 4_000;
const PHASES = 8;

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

    for (const target of [json.direct, json.plain, json.full, stream.plain, stream.full]) {
      await closedLoop(target, { connections: JSON_CONNECTIONS, ms: WARM_UP_MS });
    }
    const direct = await closedLoop(json.direct, { connections: JSON_CONNECTIONS, ms });
    const plain = await withCpu(plane.pids.plain, () =>
      closedLoop(json.plain, { connections: JSON_CONNECTIONS, ms }),
    );
    const full = await withCpu(plane.pids.gateway, () =>
      closedLoop(json.full, { connections: JSON_CONNECTIONS, ms }),
    );
    log('half load');
    const perSecond = full.perSecond / 2;
    const directHalf = await paced(json.direct, { perSecond, ms });
    const fullHalf = await paced(json.full, { perSecond, ms });
    log('streams');
    const plainStreams = await withCpu(plane.pids.plain, () =>
      closedLoop(stream.plain, { connections: STREAM_CONNECTIONS, ms }),
    );
    const fullStreams = await withCpu(plane.pids.gateway, () =>
      closedLoop(stream.full, { connections: STREAM_CONNECTIONS, ms }),
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

    const failures = [direct, plain, full, directHalf, fullHalf, plainStreams, fullStreams, refused]
      .map((each) => each.failures)
      .reduce((sum, each) => sum + each, 0);
    const result = {
      ok: failures === 0,
      failures,
      direct_rps: round(direct.perSecond),
      plain_rps: round(plain.perSecond),
      full_rps: round(full.perSecond),
      plain_cpu_us: round(plain.cpuUs),
      full_cpu_us: round(full.cpuUs),
      cpu_ratio: round(full.cpuUs / plain.cpuUs, 2),
      added_p50_ms: round(fullHalf.p50_ms - directHalf.p50_ms, 2),
      added_p99_ms: round(fullHalf.p99_ms - directHalf.p99_ms, 2),
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
