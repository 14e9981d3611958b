// Services of their own for the benchmarks, in a temporary directory that goes with them.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
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
