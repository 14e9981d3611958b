import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newId, parseDecimal } from '@weir/domain';
import { UsageLedger } from '@weir/persistence';
import {
  createTestDatabase,
  numbered,
  openTestRedis,
  type TestTenant,
  testTenant,
  usageEvent,
  waitFor,
} from '@weir/testing';
import { Queue } from 'bullmq';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openHarness, type WorkerHarness } from '../testing/worker-harness.js';
import { exportQueueName, queueConnection } from './job-queues.js';
import { ExportCancelled, ExportImpossible, runUsageExport } from './usage-export.js';

const zone = 'Asia/Shanghai';
let harness: WorkerHarness;
let queue: Queue;
let tenant: TestTenant;
let userId: string;
let seq = 0;

beforeAll(async () => {
  harness = await openHarness({ database: await createTestDatabase(), redis: openTestRedis() }, []);
  queue = new Queue(exportQueueName, {
    connection: queueConnection(harness.redis.url),
    prefix: harness.redis.prefix,
  });
});
afterAll(async () => {
  await queue.close();
  await harness.close();
});

let worker: { stop(): Promise<void> } | null = null;
beforeEach(async () => {
  tenant = testTenant();
  userId = newId();
  const { id, name } = tenant.enterprise;
  await harness.database.prisma.enterprise.create({
    data: { id, name, timeZone: zone, currency: 'USD', settings: {} },
  });
  const department = await harness.database.prisma.department.create({
    data: { id: newId(), enterpriseId: id, name: 'Finance' },
  });
  await harness.database.prisma.user.create({
    data: { id: userId, enterpriseId: id, departmentId: department.id, name: 'Fin' },
  });
});
afterEach(async () => {
  await worker?.stop();
  worker = null;
});

async function book(count: number, atMs: (index: number) => number, of = tenant) {
  const events = Array.from({ length: count }, (_, index) =>
    numbered(usageEvent(of, atMs(index), { usage: { input: index + 1 } }), (seq += 1)),
  );
  await new UsageLedger(harness.database.pool).bookSlice({
    topic: 'test',
    partition: 0,
    order: 'unfenced',
    records: events.map((event, index) => ({
      offset: BigInt(index),
      key: null,
      value: Buffer.from(JSON.stringify(event)),
    })),
  });
  return events;
}

const shanghai = (text: string) => Date.parse(`${text}+08:00`);

async function createExport(request: Record<string, unknown> = {}, profile = 'excel') {
  const { id } = await harness.database.prisma.exportJob.create({
    data: {
      id: newId(),
      enterpriseId: tenant.enterprise.id,
      requestedBy: userId,
      kind: 'usage-csv',
      profile,
      request: { from: '2026-11-01', to: '2026-12-01', timeZone: zone, ...request },
    },
  });
  return id;
}

const jobOf = (id: string) =>
  harness.database.prisma.exportJob.findUniqueOrThrow({ where: { id } });
const enqueue = (id: string, attempts = 3) =>
  queue.add(
    'export',
    { exportId: id },
    { jobId: id, attempts, backoff: { type: 'fixed', delay: 10 } },
  );
const finished = (id: string) =>
  waitFor('the export has ended', async () => {
    const job = await jobOf(id);
    return ['done', 'failed', 'cancelled'].includes(job.status) && job;
  });
const options = () => ({
  database: harness.database,
  exportDir: harness.exportDir,
  shardCount: 4,
  clock: { now: () => Date.now() },
  batchSize: 7,
});
const noProgress = () => Promise.resolve();

/** Cells of one column of a file without quoted cells. */
function columnOf(text: string, name: string): string[] {
  const [header = '', ...lines] = text.replace('\ufeff', '').trimEnd().split(/\r?\n/);
  const index = header.split(',').indexOf(name);
  return lines.map((line) => line.split(',')[index] ?? '');
}

describe('an export', () => {
  it('writes every row of the local days once, in order, with a total that is the sum of its cost column and of the ledger', async () => {
    const inside = await book(40, (index) => shanghai('2026-11-01T00:00:00') + index * 60_000);
    await book(3, (index) => shanghai('2026-10-31T23:59:59.999') - index);
    await book(5, () => shanghai('2026-11-10T00:00:00'), testTenant());
    worker = harness.start({ WORKER_ROLES: 'jobs' });
    const id = await createExport();
    await enqueue(id);
    const job = await finished(id);
    expect(job).toMatchObject({ status: 'done', rowsDone: 40n, rowsTotal: 40n, failure: null });

    const bytes = await readFile(join(harness.exportDir, job.fileName ?? ''));
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(job.fileSha256);
    const text = bytes.toString('utf8');
    expect(columnOf(text, 'event_id')).toEqual(inside.map((event) => event.id));
    const sum = columnOf(text, 'cost').reduce((total, cell) => total + parseDecimal(cell, 12), 0n);
    const expected = inside.reduce((total, { data }) => total + BigInt(data.costPico), 0n);
    expect(sum).toBe(expected);
    expect(job.totalPico?.toFixed(0)).toBe(expected.toString());
    const manifest = JSON.parse(
      await readFile(join(harness.exportDir, `${job.fileName}.manifest.json`), 'utf8'),
    );
    expect(manifest).toMatchObject({
      sha256: job.fileSha256,
      rows: '40',
      timeZone: zone,
      from: '2026-10-31T16:00:00.000Z',
      to: '2026-11-30T16:00:00.000Z',
    });
  });

  it('gives the same bytes each time, in batches of any size, and holds the filter', async () => {
    await book(30, (index) => shanghai('2026-11-05T00:00:00') - (index % 4));
    const sales = { ...tenant, departments: [{ id: newId(), name: 'Sales' }] };
    await book(9, () => shanghai('2026-11-06T00:00:00'), sales);
    const files: (string | null)[] = [];
    for (const batchSize of [1, 7, 30, 1_000]) {
      const id = await createExport({}, 'machine');
      await runUsageExport(id, { ...options(), batchSize }, noProgress);
      files.push((await jobOf(id)).fileSha256);
    }
    expect(new Set(files).size).toBe(1);
    const filtered = await createExport({ departmentId: sales.departments[0]?.id });
    await runUsageExport(filtered, options(), noProgress);
    expect(await jobOf(filtered)).toMatchObject({ status: 'done', rowsDone: 9n });
  });

  it('is a file with a header alone where there are no rows', async () => {
    const id = await createExport({}, 'machine');
    await runUsageExport(id, options(), noProgress);
    const job = await jobOf(id);
    expect(job).toMatchObject({ status: 'done', rowsDone: 0n });
    expect(job.totalPico?.toFixed(0)).toBe('0');
    const text = await readFile(join(harness.exportDir, job.fileName ?? ''), 'utf8');
    expect(text.split('\n')).toHaveLength(2);
  });

  it('stops when it is cancelled in the middle, and leaves no file behind', async () => {
    await book(50, (index) => shanghai('2026-11-07T00:00:00') + index);
    const id = await createExport();
    let reports = 0;
    await expect(
      runUsageExport(id, { ...options(), progressEveryMs: 0 }, async () => {
        reports += 1;
        await harness.database.prisma.exportJob.update({
          where: { id },
          data: { status: 'cancelled' },
        });
      }),
    ).rejects.toBeInstanceOf(ExportCancelled);
    // It was noticed with the next of the eight batches.
    expect(reports).toBe(1);
    expect((await jobOf(id)).status).toBe('cancelled');
    expect((await readdir(harness.exportDir)).filter((name) => name.includes(id))).toEqual([]);
    await expect(runUsageExport(id, options(), noProgress)).rejects.toBeInstanceOf(ExportCancelled);
  });

  it('fails with a reason when its request cannot be read, without trying again', async () => {
    worker = harness.start({ WORKER_ROLES: 'jobs' });
    const id = await createExport({ timeZone: 'Mars/Olympus' });
    await enqueue(id);
    expect(await finished(id)).toMatchObject({
      status: 'failed',
      failure: 'unknown time zone: Mars/Olympus',
    });
    await expect(runUsageExport(newId(), options(), noProgress)).rejects.toBeInstanceOf(
      ExportImpossible,
    );
  });

  it('is tried again when the disk refuses, then fails with a reason, and succeeds when it is asked for anew', async () => {
    await book(5, () => shanghai('2026-11-08T00:00:00'));
    worker = harness.start({ WORKER_ROLES: 'jobs', EXPORT_DIR: '/dev/null/exports' });
    const id = await createExport();
    await enqueue(id, 2);
    const failed = await finished(id);
    expect(failed).toMatchObject({ status: 'failed' });
    expect(failed.failure).toContain('2 times');
    await worker.stop();
    await runUsageExport(id, options(), noProgress);
    expect(await jobOf(id)).toMatchObject({ status: 'done', rowsDone: 5n, failure: null });
  });

  it('that is marked as running although no queue knows it is queued again', async () => {
    await book(5, () => shanghai('2026-11-09T00:00:00'));
    const id = await createExport();
    await harness.database.prisma.exportJob.update({ where: { id }, data: { status: 'running' } });
    worker = harness.start({ WORKER_ROLES: 'jobs' });
    expect(await finished(id)).toMatchObject({ status: 'done', rowsDone: 5n });
  });
});
