import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { type Clock, formatNano, formatPico, shardOf } from '@weir/domain';
import {
  type Database,
  meteringStatus,
  type UsageFilters,
  type UsageRowsSnapshot,
  withUsageRows,
} from '@weir/persistence';
import { DateTime } from 'luxon';
import { z } from 'zod';
import { csvHeader, csvLines, type CsvProfile } from './usage-csv.js';

/** What the admin API writes into an export's `request`: local dates of the zone, `to` exclusive. */
const requestSchema = z.object({
  from: z.iso.date(),
  to: z.iso.date(),
  timeZone: z.string(),
  departmentId: z.uuid().optional(),
  userId: z.uuid().optional(),
  keyId: z.uuid().optional(),
  model: z.string().optional(),
});
type ExportRequest = z.infer<typeof requestSchema>;

export type ExportOptions = {
  readonly database: Database;
  readonly exportDir: string;
  readonly shardCount: number;
  readonly clock: Clock;
  readonly batchSize?: number;
  /** How often progress is written and cancelling noticed; half a second unless given. */
  readonly progressEveryMs?: number;
};

/** Raised when a person has cancelled the export: nothing to report, nothing to try again. */
export class ExportCancelled extends Error {
  constructor() {
    super('the export was cancelled');
    this.name = 'ExportCancelled';
  }
}

/** The export cannot succeed, however often it is tried. */
export class ExportImpossible extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ExportImpossible';
  }
}

type Totals = { rows: bigint; costPico: bigint; costNano: bigint; tokens: bigint };

const progressEveryMs = 500;

/**
 * Writes the rows of one export to a file, from one snapshot, under a name of its own until it is whole. The same rows
 * give the same bytes. Memory holds one batch.
 *
 * @param onProgress told of rows written and in all, now and then
 * @throws ExportCancelled, ExportImpossible, or what a database or a disk throws
 */
export async function runUsageExport(
  exportId: string,
  options: ExportOptions,
  onProgress: (done: bigint, total: bigint) => Promise<void>,
): Promise<void> {
  const { database, clock, shardCount } = options;
  const { prisma } = database;
  const job = await prisma.exportJob.findUnique({ where: { id: exportId } });
  if (job === null) throw new ExportImpossible(`there is no export ${exportId}`);
  if (job.status === 'cancelled') throw new ExportCancelled();
  // Delivered a second time after it was finished.
  if (job.status === 'done') return;
  if (job.kind !== 'usage-csv') throw new ExportImpossible(`unknown kind of export: ${job.kind}`);
  const parsed = requestSchema.safeParse(job.request);
  if (!parsed.success) throw new ExportImpossible('the request of the export cannot be read');
  const request = parsed.data;
  const profile: CsvProfile = job.profile === 'machine' ? 'machine' : 'excel';
  await prisma.exportJob.updateMany({
    where: { id: exportId, status: { in: ['queued', 'running', 'failed'] } },
    data: { status: 'running', startedAt: new Date(clock.now()), rowsDone: 0n, failure: null },
  });

  const bounds = boundsOf(request);
  // Read before the snapshot: what is complete by then is in it.
  const shard = shardOf(job.enterpriseId, shardCount);
  const { completeUpTo } = await meteringStatus(database.pool, { shard });
  const fileName = `usage_${request.from}_${request.to}_${exportId}.csv`;
  const range = { enterpriseId: job.enterpriseId, ...bounds, filters: filtersOf(request) };
  const written = await withUsageRows(database.pool, range, (snapshot) =>
    writeFileFrom(snapshot, { exportId, fileName, profile, request, options, onProgress }),
  );
  const manifest = {
    export: exportId,
    file: fileName,
    sha256: written.sha256,
    profile,
    enterpriseId: job.enterpriseId,
    from: bounds.from.toISOString(),
    to: bounds.to.toISOString(),
    timeZone: request.timeZone,
    filter: filtersOf(request),
    completeUpTo: completeUpTo?.toISOString() ?? null,
    rows: written.totals.rows.toString(),
    tokens: written.totals.tokens.toString(),
    cost: formatPico(written.totals.costPico),
    costCharged: formatNano(written.totals.costNano),
  };
  await writeFile(
    join(options.exportDir, `${fileName}.manifest.json`),
    `${JSON.stringify(manifest, null, 2)}\n`,
  );
  const { count } = await prisma.exportJob.updateMany({
    where: { id: exportId, status: 'running' },
    data: {
      status: 'done',
      rowsDone: written.totals.rows,
      rowsTotal: written.totals.rows,
      totalPico: written.totals.costPico.toString(),
      totalNano: written.totals.costNano.toString(),
      completeUpTo,
      fileName,
      fileSha256: written.sha256,
      finishedAt: new Date(clock.now()),
    },
  });
  if (count === 0) {
    await removeFiles(options.exportDir, fileName);
    throw new ExportCancelled();
  }
}

async function writeFileFrom(
  snapshot: UsageRowsSnapshot,
  job: {
    exportId: string;
    fileName: string;
    profile: CsvProfile;
    request: ExportRequest;
    options: ExportOptions;
    onProgress: (done: bigint, total: bigint) => Promise<void>;
  },
): Promise<{ sha256: string; totals: Totals }> {
  const { exportId, fileName, profile, request, options, onProgress } = job;
  const { prisma } = options.database;
  await mkdir(options.exportDir, { recursive: true });
  const partFile = join(options.exportDir, `.${fileName}.${randomUUID()}.part`);
  const stream = createWriteStream(partFile, { flags: 'wx' });
  const ended = finished(stream);
  // Awaited at the end; until then a full disk must not be an unhandled rejection.
  ended.catch(() => undefined);
  const hash = createHash('sha256');
  const write = async (chunk: string): Promise<void> => {
    const bytes = Buffer.from(chunk, 'utf8');
    hash.update(bytes);
    if (stream.errored) throw stream.errored;
    if (stream.write(bytes)) return;
    await new Promise<void>((resolve, reject) => {
      stream.once('drain', resolve);
      stream.once('error', reject);
    });
  };
  try {
    const totals: Totals = { rows: 0n, costPico: 0n, costNano: 0n, tokens: 0n };
    await write(csvHeader(profile));
    let reportedAtMs = Number.NEGATIVE_INFINITY;
    for await (const batch of snapshot.batches(options.batchSize ?? 5_000)) {
      await write(csvLines(batch, profile, request.timeZone));
      for (const row of batch) {
        totals.rows += 1n;
        totals.costPico += row.costPico;
        totals.costNano += row.costNano;
        totals.tokens +=
          row.inputTokens +
          row.cachedInputTokens +
          row.cacheWriteTokens +
          row.audioInputTokens +
          row.imageInputTokens +
          row.outputTokens +
          row.audioOutputTokens;
      }
      if (performance.now() - reportedAtMs < (options.progressEveryMs ?? progressEveryMs)) continue;
      reportedAtMs = performance.now();
      const { count } = await prisma.exportJob.updateMany({
        where: { id: exportId, status: 'running' },
        data: { rowsDone: totals.rows, rowsTotal: snapshot.count },
      });
      if (count === 0) throw new ExportCancelled();
      await onProgress(totals.rows, snapshot.count);
    }
    if (totals.rows !== snapshot.count) {
      throw new Error(`read ${totals.rows} rows where ${snapshot.count} were counted`);
    }
    stream.end();
    await ended;
    await rename(partFile, join(options.exportDir, fileName));
    return { sha256: hash.digest('hex'), totals };
  } catch (error) {
    stream.destroy();
    await rm(partFile, { force: true });
    throw error;
  }
}

async function removeFiles(dir: string, fileName: string): Promise<void> {
  await rm(join(dir, fileName), { force: true });
  await rm(join(dir, `${fileName}.manifest.json`), { force: true });
}

function boundsOf({ from, to, timeZone }: ExportRequest): { from: Date; to: Date } {
  const start = DateTime.fromISO(from, { zone: timeZone }).startOf('day');
  const end = DateTime.fromISO(to, { zone: timeZone }).startOf('day');
  if (!start.isValid || !end.isValid) throw new ExportImpossible(`unknown time zone: ${timeZone}`);
  return { from: start.toJSDate(), to: end.toJSDate() };
}

function filtersOf({ departmentId, userId, keyId, model }: ExportRequest): UsageFilters {
  return {
    ...(departmentId !== undefined && { departmentId }),
    ...(userId !== undefined && { userId }),
    ...(keyId !== undefined && { keyId }),
    ...(model !== undefined && { model }),
  };
}

/** Marks an export as failed, with a reason for a person. A cancelled one stays cancelled. */
export async function failExport(
  { database, clock }: Pick<ExportOptions, 'database' | 'clock'>,
  exportId: string,
  reason: string,
): Promise<void> {
  await database.prisma.exportJob.updateMany({
    where: { id: exportId, status: { in: ['queued', 'running'] } },
    data: { status: 'failed', failure: reason, finishedAt: new Date(clock.now()) },
  });
}
