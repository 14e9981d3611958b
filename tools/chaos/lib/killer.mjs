// SIGKILL for the parts of a running stack, in an order that a seed decides, and the restarts after it.

import { setTimeout as sleep } from 'node:timers/promises';

const GAP_MS_MIN = 400;
const GAP_MS_MAX = 3_000;
const DOWN_AT_ONCE_MAX = 2;
const WATCH_MS = 250;
const RESTART_ATTEMPTS_MAX = 5;

/**
 * @typedef {object} Target
 * @property {string} name
 * @property {string} kind
 * @property {() => number | null} pid
 * @property {(signal: 'SIGKILL') => Promise<void>} kill
 * @property {() => Promise<void>} restart
 */

/**
 * Every process of the stack that the test may kill. Parts of one kind are hit as often as those of any other.
 *
 * @param {import('../../launcher/stack.mjs').Stack} stack
 * @returns {Target[]}
 */
export function targetsOf({ processes, services }) {
  const target = (kind, part, name = part.name) => ({
    name,
    kind,
    pid: () => part.pid,
    kill: (signal) => part.kill(signal),
    restart: () => part.restart(),
  });
  return [
    ...processes.gateway.map((part) => target('gateway', part)),
    ...processes.worker.map((part) => target('worker', part)),
    target('kafka', services.kafka),
    target('postgres', services.postgres),
    target('redis', services.redis),
  ];
}

/**
 * Kills and restarts until told to stop. What ends by itself is restarted too, as any supervisor would: a worker whose
 * consumer is dead ends on purpose.
 *
 * @param {{ targets: Target[], random: () => number, log: (line: string) => void }} options
 */
export function startKiller({ targets, random, log }) {
  /** @type {{ name: string, kind: string, atMs: number }[]} */
  const kills = [];
  const ownEnds = [];
  const restarting = new Map();
  const faults = [];
  const begunMs = Date.now();
  let isKilling = true;
  let isWatching = true;

  const restart = async (target) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await target.restart();
        return;
      } catch (error) {
        // What it needs may be down itself.
        if (attempt >= RESTART_ATTEMPTS_MAX) throw error;
        log(`${target.name} did not come up (attempt ${attempt}): ${firstLine(error)}`);
      }
    }
  };
  const bringBack = (target, before = async () => {}) => {
    const work = before()
      .then(() => restart(target))
      .catch((error) => faults.push(error))
      .finally(() => restarting.delete(target));
    restarting.set(target, work);
  };

  /** One of each kind in turn, in a new order each round. */
  const kinds = [...new Set(targets.map(({ kind }) => kind))];
  let round = [];
  const nextTarget = () => {
    if (round.length === 0) round = shuffled(kinds, random);
    const kind = round.shift();
    const candidates = targets.filter(
      (target) => target.kind === kind && !restarting.has(target) && target.pid() !== null,
    );
    return candidates[Math.floor(random() * candidates.length)] ?? null;
  };

  const killing = (async () => {
    while (isKilling) {
      await sleep(GAP_MS_MIN + random() * (GAP_MS_MAX - GAP_MS_MIN));
      if (!isKilling || restarting.size >= DOWN_AT_ONCE_MAX) continue;
      const target = nextTarget();
      if (target === null) continue;
      const atMs = Date.now();
      kills.push({ name: target.name, kind: target.kind, atMs });
      log(`${((atMs - begunMs) / 1_000).toFixed(1)} s: SIGKILL ${target.name} (${target.pid()})`);
      bringBack(target, () => target.kill('SIGKILL'));
    }
  })();
  const watching = (async () => {
    while (isWatching) {
      for (const target of targets) {
        if (target.pid() !== null || restarting.has(target)) continue;
        ownEnds.push({ name: target.name, atMs: Date.now() });
        log(`${target.name} has ended by itself; it is started again`);
        bringBack(target);
      }
      await sleep(WATCH_MS);
    }
  })();

  return {
    kills,
    /** What ended without having been killed. */
    ownEnds,
    /** No more kills; resolves once all that was killed is up again. */
    async stopKilling() {
      isKilling = false;
      await killing;
      await Promise.all(restarting.values());
      if (faults.length > 0) throw new AggregateError(faults, 'parts of the stack do not restart');
    },
    /** Nothing is restarted from now on. */
    async stopWatching() {
      isWatching = false;
      await watching;
      await Promise.all(restarting.values());
    },
  };
}

function shuffled(values, random) {
  const result = [...values];
  for (let at = result.length - 1; at > 0; at -= 1) {
    const other = Math.floor(random() * (at + 1));
    [result[at], result[other]] = [result[other], result[at]];
  }
  return result;
}

function firstLine(error) {
  return String(error.message ?? error).split('\n')[0];
}
