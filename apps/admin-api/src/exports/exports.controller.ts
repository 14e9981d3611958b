import { open } from 'node:fs/promises';
import { isAbsolute, relative, resolve } from 'node:path';
import { Controller, Inject, StreamableFile, type OnApplicationBootstrap } from '@nestjs/common';
import { formatPico, newId, WeirError, type Clock } from '@weir/domain';
import type { ControlDatabase, Database, Prisma } from '@weir/persistence';
import { InjectLogger, Shutdown, type Logger } from '@weir/platform';
import type { Actor } from '../access/actor.js';
import { notFound } from '../access/reach.js';
import { UsageScope } from '../usage/usage-scope.js';
import type { AdminConfig } from '../config.js';
import { Changes } from '../control/changes.js';
import { beforeCursor, pageOf } from '../control/pages.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { ADMIN_CONFIG, CLOCK, DATABASE, EXPORT_QUEUE } from '../tokens.js';
import type { ExportQueue } from './export-queue.js';

type ExportView = AnswerOf<'getExport'>;
const requester = { requester: { select: { name: true } } } as const;
type ExportRow = Prisma.ExportJobGetPayload<{ include: typeof requester }>;

const requeueEveryMs = 5_000;
const requeuePerRound = 100;

@Controller()
export class ExportsController implements OnApplicationBootstrap {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(ADMIN_CONFIG) private readonly config: AdminConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(EXPORT_QUEUE) private readonly queue: ExportQueue,
    private readonly usageScope: UsageScope,
    private readonly changes: Changes,
    private readonly shutdown: Shutdown,
    @InjectLogger() private readonly logger: Logger,
  ) {}

  /** The row is the truth: a job that never reached Redis, or that Redis lost, is queued again from it. */
  onApplicationBootstrap(): void {
    let timer: NodeJS.Timeout | undefined;
    let round: Promise<void> = Promise.resolve();
    const next = (): void => {
      round = this.requeue().finally(() => {
        if (!this.shutdown.signal.aborted) timer = setTimeout(next, requeueEveryMs);
      });
    };
    next();
    this.shutdown.onClose('stop-intake', 'export requeue', async () => {
      clearTimeout(timer);
      await round;
    });
  }

  @Operation('createExport')
  async create(call: CallOf<'createExport'>): Promise<AnswerOf<'createExport'>> {
    const { actor, body } = call;
    const { kind, profile, ...filter } = body;
    const confined = await this.usageScope.confine(actor, filter);
    const view = await this.changes.run(call, async (tx, record, at) => {
      const { timeZone } = await tx.enterprise.findUniqueOrThrow({
        where: { id: actor.enterpriseId },
        select: { timeZone: true },
      });
      const row = await tx.exportJob.create({
        data: {
          id: newId(),
          enterpriseId: actor.enterpriseId,
          requestedBy: requesterOf(actor),
          kind,
          profile,
          request: { ...confined, timeZone },
          createdAt: at,
        },
        include: requester,
      });
      const after = exportView(row);
      record({ ...targetOf(after), action: 'export.created', before: null, after });
      return after;
    });
    await this.queue.add(view.id).catch((error: unknown) => {
      this.logger.warn({ err: error, export_id: view.id }, 'the export waits until Redis answers');
    });
    return view;
  }

  @Operation('listExports')
  async list({ actor, query }: CallOf<'listExports'>): Promise<AnswerOf<'listExports'>> {
    const rows = await this.database.prisma.exportJob.findMany({
      where: { AND: [exportsInReach(actor), beforeCursor(query.cursor)] },
      orderBy: { id: 'desc' },
      take: query.limit + 1,
      include: requester,
    });
    return pageOf(rows, query.limit, exportView);
  }

  @Operation('getExport')
  async get({ actor, id }: CallOf<'getExport'>): Promise<AnswerOf<'getExport'>> {
    return exportView(await requireExport(this.database.prisma, actor, id));
  }

  @Operation('cancelExport')
  async cancel(call: CallOf<'cancelExport'>): Promise<AnswerOf<'cancelExport'>> {
    const { actor, id } = call;
    return this.changes.run(call, async (tx, record, at) => {
      const before = exportView(await requireExport(tx, actor, id));
      // The worker moves the status meanwhile: only a job that has not ended can still be stopped.
      const stopped = await tx.exportJob.updateMany({
        where: { id, status: { in: ['queued', 'running'] } },
        data: { status: 'cancelled', finishedAt: at },
      });
      const after = exportView(await requireExport(tx, actor, id));
      if (stopped.count === 0) {
        throw new WeirError('conflict', `The export has ended already: ${after.status}.`, {
          status: after.status,
        });
      }
      record({ ...targetOf(after), action: 'export.cancelled', before, after });
      return after;
    });
  }

  @Operation('downloadExport')
  async download(call: CallOf<'downloadExport'>): Promise<AnswerOf<'downloadExport'>> {
    const { actor, id, reply } = call;
    const row = await requireExport(this.database.prisma, actor, id);
    if (row.status !== 'done' || row.fileName === null) {
      throw new WeirError('not_found', `The export has no file: it is ${row.status}.`, {
        status: row.status,
      });
    }
    const path = fileWithin(this.config.EXPORT_DIR, row.fileName);
    const file = await open(path).catch((error: NodeJS.ErrnoException) => {
      throw new WeirError(
        'not_found',
        'The file is no longer there. Export it again.',
        {},
        {
          cause: error,
        },
      );
    });
    const { size } = await file.stat();
    if (row.fileSha256 !== null) void reply.header('x-content-sha256', row.fileSha256);
    return new StreamableFile(file.createReadStream(), {
      type: 'text/csv; charset=utf-8',
      length: size,
      disposition: `attachment; filename="${downloadName(row)}"`,
    });
  }

  private async requeue(): Promise<void> {
    try {
      const waiting = await this.database.prisma.exportJob.findMany({
        where: {
          status: 'queued',
          createdAt: { lt: new Date(this.clock.now() - requeueEveryMs) },
        },
        orderBy: { id: 'asc' },
        take: requeuePerRound,
        select: { id: true },
      });
      for (const { id } of waiting) await this.queue.add(id);
    } catch (error) {
      this.logger.debug({ err: error }, 'waiting exports could not be queued');
    }
  }
}

function targetOf(view: ExportView) {
  return { targetType: 'export', targetId: view.id, targetName: view.kind } as const;
}

function requesterOf(actor: Actor): string {
  if (actor.userId === null) throw new WeirError('forbidden', 'Only a user can start an export.');
  return actor.userId;
}

/** Owner, admin and finance see all exports; others only their own, which hold what they were allowed to see. */
function exportsInReach(actor: Actor): Prisma.ExportJobWhereInput {
  const { enterpriseId, reach } = actor;
  return reach.kind === 'enterprise'
    ? { enterpriseId }
    : { enterpriseId, requestedBy: requesterOf(actor) };
}

async function requireExport(db: ControlDatabase, actor: Actor, id: string): Promise<ExportRow> {
  const row = await db.exportJob.findFirst({
    where: { AND: [{ id }, exportsInReach(actor)] },
    include: requester,
  });
  if (row === null) throw notFound('export', id);
  return row;
}

function exportView(row: ExportRow): ExportView {
  return {
    id: row.id,
    kind: row.kind,
    profile: row.profile,
    request: row.request as Record<string, unknown>,
    status: row.status as ExportView['status'],
    rowsDone: row.rowsDone.toString(),
    rowsTotal: row.rowsTotal?.toString() ?? null,
    totalCost: row.totalPico === null ? null : formatPico(BigInt(row.totalPico.toFixed(0))),
    completeUpTo: row.completeUpTo?.toISOString() ?? null,
    fileName: row.fileName,
    fileSha256: row.fileSha256,
    failure: row.failure,
    requestedBy: row.requester.name,
    createdAt: row.createdAt.toISOString(),
    finishedAt: row.finishedAt?.toISOString() ?? null,
  };
}

/** The row's name comes from our own worker; should it ever not, it still leads nowhere else. */
export function fileWithin(folder: string, fileName: string): string {
  const path = resolve(folder, fileName);
  const inside = relative(resolve(folder), path);
  if (inside === '' || inside.startsWith('..') || isAbsolute(inside)) {
    throw new WeirError('not_found', 'The export has no file.');
  }
  return path;
}

function downloadName(row: ExportRow): string {
  return (row.fileName ?? 'export.csv').replace(/^.*[\\/]/, '').replaceAll(/[^\w.-]/g, '_');
}
