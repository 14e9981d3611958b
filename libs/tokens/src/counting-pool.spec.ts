import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { CountingPool, type CountingPoolOptions } from './counting-pool.js';
import { loadEncoding } from './encodings.js';
import { startCountingThread } from './start-counting-thread.js';

const HOSTILE = 'a'.repeat(400_000);
const HOSTILE_TOKENS = 50_000;
const pools: CountingPool[] = [];

function createPool(options: Partial<CountingPoolOptions> = {}) {
  const threads: Worker[] = [];
  const failures: string[] = [];
  const startThread = options.startThread ?? startCountingThread;
  const pool = new CountingPool({
    threads: 1,
    queue_jobs_max: 8,
    queue_chars_max: 10_000_000,
    answer_ms_max: 20_000,
    stuck_ms_max: 20_000,
    onFailure: (error) => failures.push(error.message),
    now: () => performance.now(),
    ...options,
    startThread: () => {
      const thread = startThread();
      threads.push(thread);
      return thread;
    },
  });
  pools.push(pool);
  return { pool, threads, failures };
}

const deafThread = () =>
  new Worker(`require('node:worker_threads').parentPort.on('message', () => {})`, { eval: true });
const brokenThread = () => new Worker('process.exit(7)', { eval: true });

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});

describe('counting on a worker thread', () => {
  it('counts exactly, one job after the other, on one thread', async () => {
    const { table } = await loadEncoding('o200k_base');
    const { pool, threads } = createPool();
    const counts = await Promise.all([
      pool.count(table, ['hello world', ' again']),
      pool.count(table, [HOSTILE]),
      pool.count(table, ['<|endoftext|>\ud800\ufeff']),
    ]);
    const { encoder } = await loadEncoding('o200k_base');
    expect(counts).toEqual([3, HOSTILE_TOKENS, encoder.count('<|endoftext|>\ud800\ufeff')]);
    expect(threads.length).toBe(1);
  });

  it('knows each encoding from the job that first needs it', async () => {
    const o200k = await loadEncoding('o200k_base');
    const cl100k = await loadEncoding('cl100k_base');
    const { pool } = createPool();
    const text = '数据平台按部门计费';
    expect(await pool.count(o200k.table, [text])).toBe(o200k.encoder.count(text));
    expect(await pool.count(cl100k.table, [text])).toBe(cl100k.encoder.count(text));
    expect(o200k.encoder.count(text)).not.toBe(cl100k.encoder.count(text));
  });

  it('gives no count for what the bounded queue cannot hold, and keeps the rest', async () => {
    const { table } = await loadEncoding('o200k_base');
    const { pool } = createPool({ queue_jobs_max: 2 });
    const counts = await Promise.all(Array.from({ length: 6 }, () => pool.count(table, [HOSTILE])));
    expect(counts).toEqual([
      HOSTILE_TOKENS,
      HOSTILE_TOKENS,
      HOSTILE_TOKENS,
      undefined,
      undefined,
      undefined,
    ]);
    expect(pool.stats()).toMatchObject({ queued: 0, running: 0 });
  });

  it('bounds the text that waits, too', async () => {
    const { table } = await loadEncoding('o200k_base');
    const { pool } = createPool({ queue_chars_max: HOSTILE.length + 10 });
    const counts = await Promise.all([
      pool.count(table, [HOSTILE]),
      pool.count(table, [HOSTILE]),
      pool.count(table, [HOSTILE]),
      pool.count(table, ['hello']),
    ]);
    expect(counts).toEqual([HOSTILE_TOKENS, HOSTILE_TOKENS, undefined, 1]);
  });

  it('gives no count when the answer is late, and the thread serves the next job', async () => {
    const { table } = await loadEncoding('o200k_base');
    const { pool, threads } = createPool({ answer_ms_max: 1 });
    // Both are late: one while it runs, one while it waits.
    const late = await Promise.all([pool.count(table, [HOSTILE]), pool.count(table, [HOSTILE])]);
    expect(late).toEqual([undefined, undefined]);
    await vi.waitUntil(() => pool.stats().running === 0, { timeout: 20_000 });
    expect(pool.stats()).toMatchObject({ queued: 0, threads: 1, threadFailures: 0 });
    expect(threads.length).toBe(1);
  });
});

describe('when a thread fails', () => {
  it('gives up its job only, and counts the next one on a new thread', async () => {
    const { table } = await loadEncoding('o200k_base');
    const { pool, threads, failures } = createPool();
    expect(await pool.count(table, ['hello'])).toBe(1);
    const lost = pool.count(table, [HOSTILE]);
    const waiting = pool.count(table, ['hello world']);
    await threads[0]!.terminate();
    expect(await lost).toBeUndefined();
    expect(await waiting).toBe(2);
    expect(threads.length).toBe(2);
    expect(failures).toEqual(['Counting thread ended with code 1']);
  });

  it('replaces a thread that does not come back from a job', async () => {
    const { table } = await loadEncoding('o200k_base');
    let started = 0;
    const { pool, threads, failures } = createPool({
      startThread: () => (started++ === 0 ? deafThread() : startCountingThread()),
      stuck_ms_max: 400,
      now: () => started * 60_000,
    });
    expect(await pool.count(table, ['hello'])).toBeUndefined();
    expect(failures).toEqual(['Counting thread ended with code 1']);
    // The restart pause has passed by the injected clock.
    started++;
    expect(await pool.count(table, ['hello'])).toBe(1);
    expect(threads.length).toBe(2);
  });

  it('does not start broken threads over and over: the pause doubles', async () => {
    const { table } = await loadEncoding('o200k_base');
    let now = 0;
    const { pool, threads, failures } = createPool({ startThread: brokenThread, now: () => now });
    const countMany = async () => {
      for (let i = 0; i < 5; i++) expect(await pool.count(table, ['hello'])).toBeUndefined();
    };
    await countMany();
    expect(threads.length).toBe(1);
    now = 100;
    await countMany();
    expect(threads.length).toBe(2);
    now = 200;
    await countMany();
    expect(threads.length).toBe(2);
    now = 300;
    await countMany();
    expect(threads.length).toBe(3);
    expect(failures).toEqual(Array(3).fill('Counting thread ended with code 7'));
  });
});

describe('closing', () => {
  it('lets the running job end, drops those that wait, and ends the thread', async () => {
    const { table } = await loadEncoding('o200k_base');
    const { pool, threads } = createPool();
    expect(await pool.count(table, ['hello'])).toBe(1);
    const running = pool.count(table, [HOSTILE]);
    const waiting = pool.count(table, ['hello']);
    const ended = new Promise((resolve) => threads[0]!.once('exit', resolve));
    await pool.close();
    expect(await running).toBe(HOSTILE_TOKENS);
    expect(await waiting).toBeUndefined();
    await ended;
    expect(await pool.count(table, ['hello'])).toBeUndefined();
    expect(threads.length).toBe(1);
  });
});
