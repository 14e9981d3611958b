// Load on one HTTP endpoint, measured at the caller's side.

import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { LeanClient } from './lean-client.mjs';

// The load shall not take more of the CPU than it must from what it measures.
setFlagsFromString('--no-parallel-scavenge');
setFlagsFromString('--no-concurrent-marking');
setFlagsFromString('--heap-growing-percent=300');

const TICKS_PER_SECOND = 100;
const TIMEOUT_MS = 30_000;
/** What a paced run meets at its beginning, such as upstream connections that are still to be made, is not what a steady pace costs. */
const LEAD_IN_MS = 500;

/** @typedef {import('./lean-client.mjs').Target} Target */

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
  const client = new LeanClient(target, { connectionsMax: connections, timeoutMs: TIMEOUT_MS });
  const latencies = new Latencies();
  const begun = performance.now();
  let failures = 0;
  let running = connections;
  await new Promise((resolve) => {
    const onAnswer = (/** @type {number} */ found, /** @type {number} */ sentAt) => {
      const now = performance.now();
      if (found === status) latencies.add(now - sentAt);
      else failures += 1;
      if (now < begun + ms) client.send(now, onAnswer);
      else if ((running -= 1) === 0) resolve(undefined);
    };
    for (let each = 0; each < connections; each += 1) client.send(performance.now(), onAnswer);
  });
  const seconds = (performance.now() - begun) / 1_000;
  client.close();
  return { ...latencies.summary(seconds), failures };
}

/**
 * Calls at a steady pace over a number of connections, whatever the other side does; latencies count from when a call was
 * due, also of one that waits for a connection. The connections stand before the first call: to make one costs as much as
 * a call, and would come just when the other side is behind already. The calls of the first half second are made but not
 * counted.
 * @param {Target} target
 * @param {{ perSecond: number, connections: number, ms: number, status?: number }} options
 * @returns {Promise<Measured>}
 */
export async function paced(target, { perSecond, connections, ms, status = 200 }) {
  const client = new LeanClient(target, { connectionsMax: connections, timeoutMs: TIMEOUT_MS });
  await client.open();
  const latencies = new Latencies();
  const begun = performance.now();
  const leadIn = Math.floor((perSecond * LEAD_IN_MS) / 1_000);
  const total = leadIn + Math.max(1, Math.floor((perSecond * ms) / 1_000));
  let failures = 0;
  let sent = 0;
  let answered = 0;
  await new Promise((resolve) => {
    const onAnswer = (/** @type {number} */ found, /** @type {number} */ index) => {
      const dueAt = begun + (index * 1_000) / perSecond;
      if (found !== status) failures += 1;
      else if (index >= leadIn) latencies.add(performance.now() - dueAt);
      answered += 1;
      if (answered === total) resolve(undefined);
    };
    const pacemaker = setInterval(() => {
      const due = Math.min(total, Math.floor(((performance.now() - begun) * perSecond) / 1_000));
      for (; sent < due; sent += 1) client.send(sent, onAnswer);
      if (sent === total) clearInterval(pacemaker);
    }, 1);
  });
  const seconds = (performance.now() - begun - LEAD_IN_MS) / 1_000;
  client.close();
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
