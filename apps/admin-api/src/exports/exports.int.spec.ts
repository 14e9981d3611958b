import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apiSchemas } from '@weir/domain';
import { openDatabase, type Database } from '@weir/persistence';
import {
  createTestDatabase,
  openTestRedis,
  waitFor,
  type TestDatabase,
  type TestRedis,
} from '@weir/testing';
import { Queue } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp, type TestClient } from '../testing/test-app.js';
import { makeTestWorld, signInAll, type TestWorld } from '../testing/test-world.js';
import { exportQueueName } from './export-queue.js';

let database: TestDatabase;
let redis: TestRedis;
let db: Database;
let test: TestApp;
let world: TestWorld;
let finance: TestClient;
let manager: TestClient;
let folder: string;
let queue: Queue;

const body = { kind: 'usage-csv', from: '2026-11-01', to: '2026-12-01' };

beforeAll(async () => {
  database = await createTestDatabase();
  redis = openTestRedis();
  folder = await mkdtemp(join(tmpdir(), 'weir-exports-'));
  db = openDatabase({ url: database.url, poolMax: 2 });
  test = await startTestApp({
    databaseUrl: database.url,
    redisUrl: redis.url,
    redisPrefix: redis.prefix,
    settings: { EXPORT_DIR: join(folder, 'exports') },
  });
  world = await makeTestWorld(test.app, 'acme');
  ({ finance, manager } = await signInAll(test, world));
  const { hostname, port } = new URL(redis.url);
  queue = new Queue(exportQueueName, {
    prefix: redis.prefix,
    connection: { host: hostname, port: Number(port) },
  });
});
afterAll(async () => {
  await queue?.close();
  await test?.close();
  await db?.close();
  await redis?.close();
  await database?.drop();
  await rm(folder, { recursive: true, force: true });
});

describe('an export', () => {
  it('is a row and one job of the same id, with the zone and filter that the file is made by', async () => {
    const answer = await finance.call('createExport', {
      body: { ...body, profile: 'machine', departmentId: world.marketing },
    });
    expect(answer.status).toBe(202);
    const made = apiSchemas.exportSchema.parse(answer.body);
    expect(made).toMatchObject({
      status: 'queued',
      profile: 'machine',
      requestedBy: 'The finance',
      rowsDone: '0',
      rowsTotal: null,
      request: {
        from: '2026-11-01',
        to: '2026-12-01',
        departmentId: world.marketing,
        timeZone: 'Asia/Shanghai',
      },
    });
    const job = await queue.getJob(made.id);
    expect(job?.data).toEqual({ exportId: made.id });
    expect((await finance.call('getExport', { id: made.id })).body).toEqual(made);
    expect((await finance.call('listExports')).body.items[0]).toEqual(made);
  });

  it("of a manager covers the manager's department, even where no department is named", async () => {
    const made = (await manager.call('createExport', { body })).body;
    expect(made.request.departmentId).toBe(world.marketing);
    const items = (await manager.call('listExports')).body.items;
    expect(items.map(({ id }: { id: string }) => id)).toEqual([made.id]);
  });

  it('that no queue has is queued again from its row', async () => {
    const made = (await finance.call('createExport', { body })).body;
    await (await queue.getJob(made.id))?.remove();
    await db.prisma.exportJob.update({
      where: { id: made.id },
      data: { createdAt: new Date(Date.now() - 60_000) },
    });
    await waitFor('the job is back', async () => queue.getJob(made.id), 15_000);
  });

  it('can be cancelled until it has ended, and says so afterwards', async () => {
    const { id } = (await finance.call('createExport', { body })).body;
    const cancelled = await finance.call('cancelExport', { id });
    expect(cancelled.body).toMatchObject({ status: 'cancelled' });
    const again = await finance.call('cancelExport', { id });
    expect(again.status).toBe(409);
    expect(again.body.error.details.status).toBe('cancelled');
  });

  it.each([
    [{ from: '2026-11-02', to: '2026-11-02' }, 'to'],
    [{ from: '29.11.2026' }, 'from'],
    [{ kind: 'everything' }, 'kind'],
  ])('with %o is refused by field', async (rest, field) => {
    const answer = await finance.call('createExport', { body: { ...body, ...rest } });
    expect(answer.status).toBe(422);
    expect(answer.body.error.details.fields[0].path).toBe(field);
  });
});

describe('the file of an export', () => {
  const bytes = Buffer.from('\uFEFF"部门","cost"\r\n"市场",1.50\r\n', 'utf8');
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  async function finished(fileName: string | null): Promise<string> {
    const { id } = (await finance.call('createExport', { body })).body;
    await db.prisma.exportJob.update({
      where: { id },
      data: {
        status: 'done',
        fileName,
        fileSha256: sha256,
        rowsDone: 1n,
        rowsTotal: 1n,
        totalPico: '1500000000000',
        finishedAt: new Date(),
      },
    });
    return id;
  }
  beforeAll(async () => {
    await rm(join(folder, 'exports'), { recursive: true, force: true });
    await mkdir(join(folder, 'exports'), { recursive: true });
    await writeFile(join(folder, 'exports', 'usage.csv'), bytes);
    await writeFile(join(folder, 'secret.txt'), 'not for you');
  });

  it('comes byte for byte, as a download, with its name, size and checksum', async () => {
    const id = await finished('usage.csv');
    const answer = await finance.call('downloadExport', { id });
    expect(answer.status).toBe(200);
    expect(answer.text).toBe(bytes.toString('utf8'));
    expect(answer.headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': 'attachment; filename="usage.csv"',
      'content-length': String(bytes.length),
      'x-content-sha256': sha256,
      'x-content-type-options': 'nosniff',
    });
    expect((await finance.call('getExport', { id })).body).toMatchObject({
      totalCost: '1.50',
      rowsTotal: '1',
      fileSha256: sha256,
    });
  });

  it.each([['../secret.txt'], [''], ['gone.csv'], ['/etc/hostname'], [null]])(
    'named %j is not there',
    async (fileName) => {
      const answer = await finance.call('downloadExport', { id: await finished(fileName) });
      expect(answer.status).toBe(404);
      expect(answer.text).not.toContain('not for you');
    },
  );

  it('is not there before the export is done', async () => {
    const { id } = (await finance.call('createExport', { body })).body;
    const answer = await finance.call('downloadExport', { id });
    expect(answer.status).toBe(404);
    expect(answer.body.error.details.status).toBe('queued');
  });
});
