// Load on one HTTP endpoint, measured at the caller's side.

import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { Pool } from '../../../node_modules/undici/index.js';

// The load shall not take more of the CPU than it must from what it measures.
setFlagsFromString('--no-parallel-scavenge');
setFlagsFromString('--no-concurrent-marking');

const TICKS_PER_SECOND = 100;
const TIMEOUT_MS = 30_000;
/** At the beginning of a paced run connections are made, all at once: that is not what a steady pace costs. */
const LEAD_IN_MS = 500;

/**
 * @typedef {object} Target
 * @property {string} origin
 * @property {string} path
 * @property {Record<string, string>} headers
 * @property {string} body
 */

/**
 * @typedef {object} Measured
 * @property {number} calls answered with the wanted status
 * @property {number} failures everything else
 * @property {number} perSecond
 * @property {number} p50_ms
 * @property {number} p99_ms
 */

/**
 * As many calls as the other side can answer over a number of connections.
 * @param {Target} target
 * @param {{ connections: number, ms: number, status?: number }} options
 * @returns {Promise<Measured>}
 */
export async function closedLoop(target, { connections, ms, status = 200 }) {
  const pool = poolFor(target, connections);
  const latencies = new Latencies();
  const begun = performance.now();
  const deadline = begun + ms;
  let failures = 0;
  const run = async () => {
    while (performance.now() < deadline) {
      const start = performance.now();
      const found = await send(pool, target);
      if (found === status) latencies.add(performance.now() - start);
      else failures += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, run));
  const seconds = (performance.now() - begun) / 1_000;
  await pool.destroy();
  return { ...latencies.summary(seconds), failures };
}

/**
 * Calls at a steady pace, whatever the other side does; latencies count from when a call was due. The calls of the first
 * half second are made but not counted.
 * @param {Target} target
 * @param {{ perSecond: number, ms: number, status?: number }} options
 * @returns {Promise<Measured>}
 */
export async function paced(target, { perSecond, ms, status = 200 }) {
  const pool = poolFor(target, 256);
  const latencies = new Latencies();
  const begun = performance.now();
  const leadIn = Math.floor((perSecond * LEAD_IN_MS) / 1_000);
  const total = leadIn + Math.max(1, Math.floor((perSecond * ms) / 1_000));
  let failures = 0;
  let sent = 0;
  let answered = 0;
  while (answered < total) {
    const due = Math.min(total, Math.floor(((performance.now() - begun) * perSecond) / 1_000));
    for (; sent < due; sent += 1) {
      const dueAt = begun + (sent * 1_000) / perSecond;
      const isCounted = sent >= leadIn;
      void send(pool, target).then((found) => {
        answered += 1;
        if (found !== status) failures += 1;
        else if (isCounted) latencies.add(performance.now() - dueAt);
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const seconds = (performance.now() - begun - LEAD_IN_MS) / 1_000;
  await pool.destroy();
  return { ...latencies.summary(seconds), failures };
}

/**
 * CPU time that a process has used, in µs: user and system.
 * @param {number | null} pid
 */
export function cpuMicros(pid) {
  if (pid === null) throw new Error('the process is not running');
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name, in brackets, may hold blanks.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND) * 1e6;
}

/** @param {Target} target @param {number} connections */
function poolFor(target, connections) {
  return new Pool(target.origin, {
    connections,
    pipelining: 1,
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  });
}

/**
 * One call, its body read and dropped.
 * @param {InstanceType<typeof Pool>} pool
 * @param {Target} target
 * @returns {Promise<number>} the status, or 0 when the call failed
 */
function send(pool, target) {
  return new Promise((resolve) => {
    let status = 0;
    pool.dispatch(
      { method: 'POST', path: target.path, headers: target.headers, body: target.body },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, found) => {
          status = found;
        },
        onResponseData: () => undefined,
        onResponseEnd: () => resolve(status),
        onResponseError: () => resolve(0),
      },
    );
  });
}

class Latencies {
  /** @type {number[]} */
  #values = [];

  /** @param {number} ms */
  add(ms) {
    this.#values.push(ms);
  }

  /** @param {number} seconds */
  summary(seconds) {
    const sorted = Float64Array.from(this.#values).sort();
    const at = (/** @type {number} */ share) =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
    return {
      calls: sorted.length,
      perSecond: sorted.length / seconds,
      p50_ms: at(0.5),
      p99_ms: at(0.99),
    };
  }
}
