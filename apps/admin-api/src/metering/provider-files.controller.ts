import { Controller, Inject } from '@nestjs/common';
import { WeirError, type Clock } from '@weir/domain';
import {
  importProviderFile,
  matchProviderFile,
  ProviderFileError,
  type Database,
  type MatchFigures,
  type MatchItem,
  type Prisma,
  type ProviderFileDialect,
} from '@weir/persistence';
import { notFound } from '../access/reach.js';
import { Changes } from '../control/changes.js';
import { beforeCursor, pageOf } from '../control/pages.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { CLOCK, DATABASE } from '../tokens.js';

type FileView = AnswerOf<'importProviderFile'>;

/** What the providers say was used, against the books. */
@Controller()
export class ProviderFilesController {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly changes: Changes,
  ) {}

  @Operation('listProviderFiles')
  async list({
    actor,
    query,
  }: CallOf<'listProviderFiles'>): Promise<AnswerOf<'listProviderFiles'>> {
    const rows = await this.database.prisma.providerImport.findMany({
      where: { enterpriseId: actor.enterpriseId, ...beforeCursor(query.cursor) },
      orderBy: { id: 'desc' },
      take: query.limit + 1,
    });
    return pageOf(rows, query.limit, fileView);
  }

  @Operation('importProviderFile')
  async importFile(call: CallOf<'importProviderFile'>): Promise<FileView> {
    const { actor, body } = call;
    const { enterpriseId } = actor;
    const { prisma, pool } = this.database;
    const upstream = await prisma.upstream.findFirst({
      where: { id: body.upstreamId, enterpriseId },
      select: { id: true },
    });
    if (upstream === null) throw notFound('upstream', body.upstreamId);
    const { importId } = await importProviderFile(pool, {
      enterpriseId,
      providerId: upstream.id,
      dialect: body.dialect,
      fileName: body.fileName,
      text: body.content,
      atMs: this.clock.now(),
    }).catch((error: unknown) => {
      if (!(error instanceof ProviderFileError)) throw error;
      throw new WeirError('invalid_request', error.message, { faults: error.faults });
    });
    // The same file again finds its import, so a call that failed before this entry is made good by another.
    return this.changes.run(call, async (tx, record) => {
      const after = fileView(
        await tx.providerImport.findUniqueOrThrow({ where: { id: importId } }),
      );
      record({
        targetType: 'provider-file',
        targetId: after.id,
        targetName: after.fileName,
        action: 'provider-file.imported',
        before: null,
        after,
      });
      return after;
    });
  }

  @Operation('matchProviderFile')
  async match({ actor, id }: CallOf<'matchProviderFile'>): Promise<AnswerOf<'matchProviderFile'>> {
    const file = await this.database.prisma.providerImport.findFirst({
      where: { id, enterpriseId: actor.enterpriseId },
      select: { id: true },
    });
    if (file === null) throw notFound('provider file', id);
    const report = await matchProviderFile(this.database.pool, file.id);
    return {
      matched: report.matched,
      differing: report.differing.map((item) => ({
        ...itemView(item),
        theirs: figuresView(item.theirs),
        ours: figuresView(item.ours),
      })),
      onlyTheirs: report.onlyTheirs.map((item) => ({
        ...itemView(item),
        theirs: figuresView(item.theirs),
      })),
      onlyOurs: report.onlyOurs.map((item) => ({
        ...itemView(item),
        ours: figuresView(item.ours),
      })),
      truncated: report.truncated,
    };
  }
}

function fileView(row: Prisma.ProviderImportGetPayload<object>): FileView {
  return {
    id: row.id,
    upstreamId: row.providerId,
    dialect: row.dialect as ProviderFileDialect,
    fileName: row.fileName,
    sha256: row.fileSha256,
    lines: row.rows,
    createdAt: row.createdAt.toISOString(),
  };
}

function itemView({ requestId, model, startsAt, endsAt }: MatchItem) {
  return {
    requestId,
    model,
    startsAt: startsAt?.toISOString() ?? null,
    endsAt: endsAt?.toISOString() ?? null,
  };
}

function figuresView(figures: MatchFigures) {
  return {
    requests: figures.requests?.toString() ?? null,
    inputTokens: figures.inputTokens.toString(),
    cachedTokens: figures.cachedTokens.toString(),
    outputTokens: figures.outputTokens.toString(),
  };
}
