import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, truncate } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';

/** A Redis of the test's own, to be stopped, killed and started again. */
export type OwnRedis = {
  readonly url: string;
  readonly port: number;
  /** SIGSTOP: it holds its connections and answers nothing. */
  freeze(): void;
  thaw(): void;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again on the same data, on data whose last bytes never reached the disk, or on none. */
  restart(options?: { emptied?: boolean; lostBytes?: number }): Promise<void>;
  close(): Promise<void>;
};

export async function startOwnRedis(): Promise<OwnRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'weir-quota-'));
  const port = await freePort();
  let server = await start(port, directory);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    freeze: () => void server.kill('SIGSTOP'),
    thaw: () => void server.kill('SIGCONT'),
    kill: () => end(server, 'SIGKILL'),
    async restart({ emptied = false, lostBytes = 0 } = {}) {
      const files = join(directory, 'appendonlydir');
      if (emptied) await rm(files, { recursive: true, force: true });
      else if (lostBytes > 0) await cutLast(files, lostBytes);
      server = await start(port, directory);
    },
    async close() {
      server.kill('SIGCONT');
      await end(server, 'SIGKILL');
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function start(port: number, directory: string): Promise<ChildProcess> {
  const settings = [
    '--port',
    String(port),
    '--dir',
    directory,
    '--save',
    '',
    '--appendonly',
    'yes',
  ];
  const server = spawn('redis-server', [...settings, '--bind', '127.0.0.1'], { stdio: 'ignore' });
  server.once('error', (error) => {
    throw new Error(`this suite needs redis-server on the PATH: ${error.message}`);
  });
  const deadline = Date.now() + 10_000;
  for (;;) {
    const client = new Redis({ port, lazyConnect: true, retryStrategy: () => null });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.ping();
      return server;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await delay(20);
    } finally {
      client.disconnect();
    }
  }
}

/** What a machine's crash does to the newest append-only file. */
async function cutLast(folder: string, bytes: number): Promise<void> {
  const name = (await readdir(folder)).find((each) => each.endsWith('.incr.aof'));
  if (name === undefined) throw new Error('there is no append-only file');
  const path = join(folder, name);
  const { size } = await stat(path);
  if (size <= bytes) throw new Error('the append-only file is shorter than what is to be lost');
  await truncate(path, size - bytes);
}

async function end(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exited = once(server, 'exit');
  server.kill(signal);
  await exited;
}

async function freePort(): Promise<number> {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const address = holder.address();
  if (address === null || typeof address === 'string') throw new Error('no free port');
  holder.close();
  await once(holder, 'close');
  return address.port;
}
