// A Redis (or Valkey) server of our own, set up the way the product needs it: nothing evicted,
// every write in the append-only file.

import { mkdirSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findOnPath } from '../lib/commands.mjs';
import { canInstallPackages, installPackages } from '../lib/debian.mjs';
import { freePort } from '../lib/ports.mjs';
import { lastLines, manageProcess } from '../lib/processes.mjs';
import { externalService, serviceOf } from '../lib/service.mjs';

const READY_MS = 20_000;
const COMMAND_MS = 2_000;

/**
 * @param {import('../lib/service.mjs').ServiceOptions} options
 * @returns {Promise<import('../lib/service.mjs').Service>}
 */
export async function startRedis({ externalUrl, ...options }) {
  if (externalUrl) {
    const url = new URL(externalUrl);
    return externalService('redis', externalUrl, Number(url.port || 6379));
  }
  const server = await manageRedis('redis', options, []);
  await server.start();
  return serviceOf(server, { url: `redis://127.0.0.1:${options.port}`, port: options.port });
}

/**
 * A cluster of one node that owns all 16384 slots: it refuses a script whose keys are in different
 * slots, as any cluster does, and that is what the tests need it for.
 * @param {import('../lib/service.mjs').ServiceOptions} options
 * @returns {Promise<import('../lib/service.mjs').Service>}
 */
export async function startRedisCluster(options) {
  const server = await manageRedis('redis-cluster', options, [
    ...['--cluster-enabled', 'yes'],
    ...['--cluster-config-file', 'nodes.conf'],
    // By default this is the port plus 10000, which may be beyond the last one.
    ...['--cluster-port', String(await freePort())],
    ...['--cluster-announce-ip', '127.0.0.1'],
  ]);
  await server.start();
  const { port } = options;
  const info = await redisCommand(port, 'CLUSTER INFO');
  if (!info.includes('cluster_slots_assigned:16384')) {
    await redisCommand(port, 'CLUSTER ADDSLOTSRANGE 0 16383');
  }
  const deadline = Date.now() + READY_MS;
  while (!(await redisCommand(port, 'CLUSTER INFO')).includes('cluster_state:ok')) {
    if (Date.now() > deadline) {
      await server.stop();
      throw new Error(`redis-cluster did not form. ${lastLines(server.logFile)}`);
    }
    await sleep(50);
  }
  return serviceOf(server, { url: `redis://127.0.0.1:${port}`, port });
}

/**
 * @param {string} name
 * @param {import('../lib/service.mjs').ServiceOptions} options
 * @param {string[]} extraSettings
 */
async function manageRedis(name, { dir, port, log, onUnexpectedExit }, extraSettings) {
  mkdirSync(join(dir, 'logs'), { recursive: true });
  const command = await findServer(join(dir, 'logs'), log);
  return manageProcess({
    name,
    command,
    args: [
      ...['--port', String(port)],
      ...['--bind', '127.0.0.1'],
      ...['--dir', dir],
      ...['--appendonly', 'yes'],
      ...['--appendfsync', 'everysec'],
      // Each call writes some 6 KB to it: with the usual 64 MB it would be rewritten every few seconds, by a process that
      // takes the CPU from this one. 512 MB are read back in about two seconds.
      ...['--auto-aof-rewrite-min-size', '512mb'],
      // The append-only file is the only record: no snapshots beside it.
      ...['--save', ''],
      // Counters and the outbox may never be dropped to make room.
      ...['--maxmemory-policy', 'noeviction'],
      ...extraSettings,
    ],
    cwd: dir,
    logFile: join(dir, 'logs', `${name}.log`),
    readyMs: READY_MS,
    // While it reads its file back it answers -LOADING.
    isReady: async () => (await redisCommand(port, 'PING')) === '+PONG',
    ...(onUnexpectedExit && { onUnexpectedExit }),
  });
}

/**
 * @param {string} logDir
 * @param {(line: string) => void} log
 */
async function findServer(logDir, log) {
  const names = ['redis-server', 'valkey-server'];
  let command = findOnPath(...names);
  if (command === null && canInstallPackages()) {
    await installPackages(['redis-server'], { dir: logDir, log });
    command = findOnPath(...names);
  }
  if (command === null) {
    throw new Error(
      'No redis-server or valkey-server on PATH. Install Redis 7 (for example `apt-get install redis-server` or `brew install redis`), or set REDIS_URL to a running one.',
    );
  }
  return command;
}

/**
 * One command over a connection of its own, in Redis's inline form: the launcher needs no client for this.
 * @param {number} port
 * @param {string} command
 * @returns {Promise<string>} the reply as it came, without its last line break; empty when there is none
 */
function redisCommand(port, command) {
  return new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port });
    let reply = '';
    const finish = () => {
      socket.destroy();
      resolve(reply.trimEnd());
    };
    socket.setTimeout(COMMAND_MS, finish);
    socket.once('error', finish);
    socket.once('close', finish);
    // QUIT makes the server close the connection after its reply, which marks the reply's end.
    socket.once('connect', () => socket.write(`${command}\r\nQUIT\r\n`));
    socket.on('data', (chunk) => {
      reply += chunk.toString('utf8');
    });
  }).then((reply) => String(reply).replace(/\r\n\+OK$|^\+OK$/, ''));
}
