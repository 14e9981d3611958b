import { Controller, Inject } from '@nestjs/common';
import {
  formatNano,
  periodAt,
  scopeLevels,
  shardOf,
  WeirError,
  type Clock,
  type ScopeLevel,
} from '@weir/domain';
import {
  meteringStatus,
  readProgress,
  reconcile,
  type BookedFigures,
  type Database,
  type MeteringStatus,
} from '@weir/persistence';
import type { QuotaRedis, ScopeUsage } from '@weir/quota';
import { z } from 'zod';
import type { ControlConfig } from '../config.js';
import { beforeCursor, pageOf } from '../control/pages.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { LiveCounters } from '../organisation/live-counters.js';
import { CLOCK, CONTROL_CONFIG, DATABASE, LIVE_REDIS } from '../tokens.js';

type StatusView = AnswerOf<'getMeteringStatus'>;
type ScopeView = AnswerOf<'getReconciliation'>['scopes'][number];
type Named = { id: string; level: ScopeLevel; name: string };

/** Of one comparison, in an answer. */
const driftsShown = 100;
/** As `recordReconciliation` stores them. */
const figuresSchema = z
  .object({
    requests: z.string(),
    inputTokens: z.string(),
    outputTokens: z.string(),
    costNano: z.string(),
  })
  .transform(({ costNano, ...counts }) => ({ ...counts, cost: formatNano(BigInt(costNano)) }));
const driftsSchema = z.array(
  z.object({
    scopeId: z.string(),
    level: z.enum(scopeLevels),
    counter: figuresSchema,
    rollup: figuresSchema,
  }),
);

const nothing: BookedFigures = { requests: 0n, inputTokens: 0n, outputTokens: 0n, costNano: 0n };
const levelOrder: readonly ScopeLevel[] = ['enterprise', 'department', 'user', 'key'];

@Controller()
export class MeteringController {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(CONTROL_CONFIG) private readonly config: ControlConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(LIVE_REDIS) private readonly redis: Pick<QuotaRedis, 'fence'>,
    private readonly counters: LiveCounters,
  ) {}

  @Operation('getMeteringStatus')
  async getStatus({ actor }: CallOf<'getMeteringStatus'>): Promise<AnswerOf<'getMeteringStatus'>> {
    return this.statusOf(actor.enterpriseId);
  }

  @Operation('getReconciliation')
  async getReconciliation({
    actor,
  }: CallOf<'getReconciliation'>): Promise<AnswerOf<'getReconciliation'>> {
    const { enterpriseId } = actor;
    const { timeZone } = await this.database.prisma.enterprise.findUniqueOrThrow({
      where: { id: enterpriseId },
      select: { timeZone: true },
    });
    const nowMs = this.clock.now();
    const { id: periodId } = periodAt('month', nowMs, timeZone);
    const booked = new Map(
      (await reconcile(this.database.pool, enterpriseId, periodId)).map((scope) => [
        scope.scopeId,
        scope,
      ]),
    );
    const named = await this.namedScopes(enterpriseId);
    for (const scope of booked.values()) {
      if (named.has(scope.scopeId)) continue;
      // In the books, but no row has it: it still has to balance.
      named.set(scope.scopeId, {
        id: scope.scopeId,
        level: scope.level,
        name: scope.name ?? scope.scopeId,
      });
    }
    const live = await this.counters.read(
      { id: enterpriseId, timeZone },
      [...named.values()].map((scope) => ({ ...scope, limits: [] })),
    );
    if (live === null) {
      throw new WeirError(
        'quota_unavailable',
        'The counters cannot be read now, so there is nothing to compare the books with.',
        { retry_after_seconds: 5 },
      );
    }
    const scopes: ScopeView[] = [];
    for (const scope of named.values()) {
      const counter = counterOf(live.get(scope.id));
      const ledger = booked.get(scope.id)?.ledger ?? nothing;
      const rollup = booked.get(scope.id)?.rollup ?? nothing;
      const isUntouched = [counter, ledger, rollup].every((figures) => isSame(figures, nothing));
      if (isUntouched && scope.level !== 'enterprise') continue;
      scopes.push({
        ...scope,
        counter: bookView(counter),
        ledger: bookView(ledger),
        rollup: bookView(rollup),
        difference: formatNano(counter.costNano - ledger.costNano),
      });
    }
    scopes.sort(
      (left, right) =>
        levelOrder.indexOf(left.level) - levelOrder.indexOf(right.level) ||
        left.name.localeCompare(right.name, 'en') ||
        left.id.localeCompare(right.id, 'en'),
    );
    return {
      periodId,
      at: new Date(nowMs).toISOString(),
      balanced: scopes.every(
        ({ counter, ledger, rollup }) => isSameView(counter, ledger) && isSameView(rollup, ledger),
      ),
      scopes,
      metering: await this.statusOf(enterpriseId),
    };
  }

  @Operation('listReconcileRuns')
  async listRuns({
    actor,
    query,
  }: CallOf<'listReconcileRuns'>): Promise<AnswerOf<'listReconcileRuns'>> {
    const rows = await this.database.prisma.reconcileRun.findMany({
      where: { enterpriseId: actor.enterpriseId, ...beforeCursor(query.cursor) },
      orderBy: { id: 'desc' },
      take: query.limit + 1,
    });
    return pageOf(rows, query.limit, (row) => ({
      id: row.id,
      periodId: row.periodId,
      at: row.at.toISOString(),
      scopes: row.scopes,
      drifted: row.drifted,
      settled: row.settled,
      drifts: driftsSchema.parse(row.details).slice(0, driftsShown),
    }));
  }

  private async statusOf(enterpriseId: string): Promise<StatusView> {
    const shard = shardOf(enterpriseId, this.config.SHARD_COUNT);
    const status = await meteringStatus(this.database.pool, { shard });
    return {
      completeUpTo: status.completeUpTo?.toISOString() ?? null,
      lagEvents: (await this.lagOf(shard, status)).toString(),
      holes: status.holes.map(({ shard: at, epoch, fromSeq, toSeq }) => ({
        shard: at,
        epoch,
        fromSeq: fromSeq.toString(),
        toSeq: toSeq.toString(),
      })),
      deadLetters: status.deadLetters,
      conflicts: status.conflicts,
      alarms: status.alarms.map(({ kind, subject, raisedAt }) => ({
        kind,
        subject,
        raisedAt: raisedAt.toISOString(),
      })),
    };
  }

  /**
   * Events that were charged but are not in the books: the shard's last number, less what the ledger has of that
   * numbering. It holds with the worker stopped, too. With Redis away, what the worker saw last.
   */
  private async lagOf(shard: number, status: MeteringStatus): Promise<bigint> {
    let last: { epoch: string; seq: number };
    try {
      last = await this.redis.fence(shard);
    } catch {
      return status.lagEvents;
    }
    const line = (await readProgress(this.database.pool)).find(
      (each) => each.shard === shard && each.epoch === last.epoch,
    );
    if (line === undefined) return BigInt(last.seq);
    const missing = status.holes
      .filter((hole) => hole.shard === shard && hole.epoch === last.epoch)
      .reduce((sum, hole) => sum + hole.toSeq - hole.fromSeq + 1, 0);
    return BigInt(Math.max(0, last.seq - line.highestSeq) + missing);
  }

  /** All nodes, deleted ones too: what they used this month is still counted. */
  private async namedScopes(enterpriseId: string): Promise<Map<string, Named>> {
    const { prisma } = this.database;
    const where = { enterpriseId };
    const select = { id: true, name: true } as const;
    const enterprise = await prisma.enterprise.findUniqueOrThrow({
      where: { id: enterpriseId },
      select,
    });
    const levels = [
      { level: 'enterprise', rows: [enterprise] },
      { level: 'department', rows: await prisma.department.findMany({ where, select }) },
      { level: 'user', rows: await prisma.user.findMany({ where, select }) },
      { level: 'key', rows: await prisma.apiKey.findMany({ where, select }) },
    ] as const;
    return new Map(
      levels.flatMap(({ level, rows }) =>
        rows.map(({ id, name }) => [id, { id, level, name }] as const),
      ),
    );
  }
}

function counterOf(usage: ScopeUsage | undefined): BookedFigures {
  if (usage === undefined) return nothing;
  const { requests, inputTokens, outputTokens, costNano } = usage.month;
  return { requests, inputTokens, outputTokens, costNano };
}

function isSame(left: BookedFigures, right: BookedFigures): boolean {
  return isSameView(bookView(left), bookView(right));
}

function isSameView(left: ScopeView['ledger'], right: ScopeView['ledger']): boolean {
  return (
    left.requests === right.requests && left.tokens === right.tokens && left.cost === right.cost
  );
}

function bookView(figures: BookedFigures): ScopeView['ledger'] {
  return {
    requests: figures.requests.toString(),
    tokens: (figures.inputTokens + figures.outputTokens).toString(),
    cost: formatNano(figures.costNano),
  };
}
