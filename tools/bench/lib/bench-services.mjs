// Services of their own for the benchmarks, in a temporary directory that goes with them.

import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../../launcher/lib/ports.mjs';
import { startKafka } from '../../launcher/services/kafka.mjs';
import { startPostgres } from '../../launcher/services/postgres.mjs';
import { startRedis } from '../../launcher/services/redis.mjs';
import { applyMigrations } from '../../migrate.mjs';

const starters = { postgres: startPostgres, redis: startRedis, kafka: startKafka };

/**
 * Starts the services named, applies the migrations, runs the work and removes all of it again, whatever happens.
 * PostgreSQL runs with its own durability (fsync on), as an installation does.
 *
 * @template T
 * @param {{ names: ('postgres' | 'redis' | 'kafka')[], log: (line: string) => void }} options
 * @param {(services: { dir: string, postgres: any, redis: any, kafka: any }) => Promise<T>} work
 *   `kafka` is null where none can be had
 * @returns {Promise<T>}
 */
export async function withServices({ names, log }, work) {
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-'));
  // PostgreSQL does not run as root, and its user must get through.
  chmodSync(dir, 0o711);
  const ports = await freePorts(names.length);
  const started = [];
  try {
    const services = { dir, postgres: null, redis: null, kafka: null };
    for (const [index, name] of names.entries()) {
      const service = await starters[name]({ dir: join(dir, name), port: ports[index], log });
      if (service !== null) started.push(service);
      services[name] = service;
    }
    if (services.postgres !== null) await applyMigrations(services.postgres.url);
    return await work(services);
  } finally {
    for (const service of started.reverse()) await service.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Says how busy the machine was before us: figures taken beside other work are worth less. */
export function logMachine(log) {
  const [oneMinute = 0] = loadavg();
  const count = cpus().length;
  log(`${count} cores (${cpus()[0]?.model ?? 'unknown'}), load average ${oneMinute.toFixed(1)}`);
  if (oneMinute > count)
    log('the machine is busy with other work: do not compare these figures with others');
}

/**
 * The whole number after an option, such as 8000 in `--keys 8000`.
 *
 * @param {readonly string[]} args
 * @param {string} name
 * @param {number} byDefault
 */
export function numberOption(args, name, byDefault) {
  const index = args.indexOf(name);
  if (index < 0) return byDefault;
  const value = Number(args[index + 1]);
  if (!Number.isInteger(value) || value < 0) throw new RangeError(`${name} wants a whole number`);
  return value;
}

const TICKS_PER_SECOND = 100;

/**
 * Processor time that a process and its children have used so far, in seconds. Unlike the time on the clock it hardly
 * depends on what else the machine does.
 *
 * @param {number} pid
 * @returns {number | null} null where there is no /proc
 */
export function cpuSecondsOf(pid) {
  if (!existsSync('/proc/self/stat')) return null;
  let ticks = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    let line;
    try {
      line = readFileSync(`/proc/${name}/stat`, 'utf8');
    } catch {
      // It has ended in between.
      continue;
    }
    // After the name, which may hold anything but ends with the last parenthesis: state, parent, …, user, system.
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
    if (Number(name) !== pid && Number(fields[1]) !== pid) continue;
    ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks / TICKS_PER_SECOND;
}
