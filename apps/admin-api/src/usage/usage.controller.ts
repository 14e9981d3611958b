import { Controller, Inject } from '@nestjs/common';
import { formatPico, shardOf, WeirError } from '@weir/domain';
import {
  findRequest,
  meteringStatus,
  usageSummary,
  type Database,
  type UsageFigures,
  type UsageGrouping,
} from '@weir/persistence';
import { DateTime } from 'luxon';
import type { Actor } from '../access/actor.js';
import type { ControlConfig } from '../config.js';
import { fieldFault } from '../control/field-fault.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { CONTROL_CONFIG, DATABASE } from '../tokens.js';
import { UsageScope } from './usage-scope.js';

type FiguresView = AnswerOf<'getUsage'>['totals'];

@Controller()
export class UsageController {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(CONTROL_CONFIG) private readonly config: ControlConfig,
    private readonly usageScope: UsageScope,
  ) {}

  @Operation('getUsage')
  async getUsage({ actor, query }: CallOf<'getUsage'>): Promise<AnswerOf<'getUsage'>> {
    const { prisma, pool } = this.database;
    const { from, to, groupBy, granularity, ...filters } = await this.usageScope.confine(
      actor,
      query,
    );
    const enterprise = await prisma.enterprise.findUniqueOrThrow({
      where: { id: actor.enterpriseId },
      select: { timeZone: true, currency: true },
    });
    const range = {
      from: localMidnight(from, enterprise.timeZone),
      to: localMidnight(to, enterprise.timeZone),
    };
    // Read first: what it says is in the books must be in the sums that follow.
    const { completeUpTo } = await meteringStatus(pool, {
      shard: shardOf(actor.enterpriseId, this.config.SHARD_COUNT),
    });
    const summary = await usageSummary(pool, {
      enterpriseId: actor.enterpriseId,
      timeZone: enterprise.timeZone,
      ...range,
      groupBy,
      granularity,
      filters,
    });
    if (summary.truncated) {
      throw fieldFault(
        'granularity',
        `there are more than ${summary.rows.length} rows`,
        'Choose a coarser granularity, a shorter range, or export the usage.',
      );
    }
    const visible = summary.rows.filter(({ groupId }) => isVisible(actor, groupBy, groupId));
    const names = await this.groups(groupBy, actor.enterpriseId, [
      ...new Set(visible.flatMap(({ groupId }) => (groupId === null ? [] : [groupId]))),
    ]);
    return {
      timeZone: enterprise.timeZone,
      currency: enterprise.currency,
      from: range.from.toISOString(),
      to: range.to.toISOString(),
      rows: visible.map((row) => {
        const group = row.groupId === null ? undefined : names.get(row.groupId);
        return {
          groupId: row.groupId,
          groupName: group?.name ?? row.groupName ?? row.groupId,
          deleted: row.groupId !== null && group?.isLiving !== true,
          period: row.period,
          ...figuresView(row.figures),
        };
      }),
      totals: figuresView(summary.totals),
      completeUpTo: completeUpTo?.toISOString() ?? null,
    };
  }

  @Operation('getRequest')
  async getRequest({ actor, query }: CallOf<'getRequest'>): Promise<AnswerOf<'getRequest'>> {
    const found = await findRequest(this.database.pool, actor.enterpriseId, query.id);
    const seen = await this.withinReach(actor, found);
    const [first] = seen.attempts;
    if (first === undefined && seen.refusals.length === 0) {
      throw new WeirError(
        'not_found',
        'No call with this id is in the books. A call that has just ended appears within seconds.',
        { id: query.id },
      );
    }
    return {
      requestId: first?.requestId ?? query.id,
      attempts: seen.attempts.map((attempt) => ({
        eventId: attempt.eventId,
        at: attempt.reservedAt.toISOString(),
        department: attempt.departmentNames.join(' / '),
        user: attempt.userName,
        key: attempt.keyName,
        model: attempt.modelServed,
        provider: attempt.providerName,
        route: attempt.route,
        status: attempt.status,
        estimated: attempt.estimated,
        late: attempt.late,
        inputTokens: attempt.inputTokens.toString(),
        outputTokens: attempt.outputTokens.toString(),
        cost: formatPico(attempt.costPico),
        startedAt: attempt.startedAt.toISOString(),
        firstTokenAt: attempt.firstTokenAt?.toISOString() ?? null,
        endedAt: attempt.endedAt.toISOString(),
      })),
      refusals: seen.refusals.map((refusal) => ({
        at: refusal.at.toISOString(),
        outcome: refusal.outcome,
        code: refusal.code,
        scopeLevel: refusal.scopeLevel,
        scopeName: refusal.scopeName,
        metric: refusal.metric,
      })),
    };
  }

  /** Leaves out what is not the caller's to see: by the department and user at the time of the call. */
  private async withinReach(
    actor: Actor,
    found: Awaited<ReturnType<typeof findRequest>>,
  ): Promise<Awaited<ReturnType<typeof findRequest>>> {
    const { reach, enterpriseId } = actor;
    if (reach.kind === 'enterprise') return found;
    const { prisma } = this.database;
    const attempts = await prisma.usageEventRow.findMany({
      where: {
        enterpriseId,
        eventId: { in: found.attempts.map(({ eventId }) => eventId) },
        ...(reach.kind === 'self'
          ? { userId: reach.userId }
          : { departmentIds: { has: reach.topId } }),
      },
      select: { eventId: true },
    });
    const refusals = await prisma.refusalRow.findMany({
      where: {
        enterpriseId,
        id: { in: found.refusals.map(({ id }) => id) },
        ...(reach.kind === 'self'
          ? { userId: reach.userId }
          : { departmentId: { in: [...reach.departmentIds] } }),
      },
      select: { id: true },
    });
    const attemptIds = new Set(attempts.map(({ eventId }) => eventId));
    const refusalIds = new Set(refusals.map(({ id }) => id));
    return {
      attempts: found.attempts.filter(({ eventId }) => attemptIds.has(eventId)),
      refusals: found.refusals.filter(({ id }) => refusalIds.has(id)),
    };
  }

  /** Today's names of the groups, and whether they still exist. History keeps the name of what does not. */
  private async groups(
    groupBy: UsageGrouping,
    enterpriseId: string,
    ids: string[],
  ): Promise<ReadonlyMap<string, { name: string; isLiving: boolean }>> {
    const { prisma } = this.database;
    const where = { enterpriseId, id: { in: ids } };
    const select = { id: true, name: true, status: true } as const;
    switch (groupBy) {
      case 'none':
        return new Map();
      case 'department':
        return groupsOf(await prisma.department.findMany({ where, select }));
      case 'user':
        return groupsOf(await prisma.user.findMany({ where, select }));
      case 'key':
        return groupsOf(await prisma.apiKey.findMany({ where, select }));
      case 'provider': {
        const rows = await prisma.upstream.findMany({ where, select: { id: true, name: true } });
        return groupsOf(rows);
      }
      case 'model': {
        const rows = await prisma.model.findMany({
          where: { enterpriseId, alias: { in: ids } },
          select: { alias: true },
        });
        return groupsOf(rows.map(({ alias }) => ({ id: alias, name: alias })));
      }
    }
  }
}

function groupsOf(rows: readonly { id: string; name: string; status?: string }[]) {
  return new Map(
    rows.map(({ id, name, status }) => [id, { name, isLiving: status !== 'deleted' }]),
  );
}

/** A call counts for every department on its path; those above a manager's own are not the manager's to see. */
function isVisible(actor: Actor, groupBy: UsageGrouping, groupId: string | null): boolean {
  if (groupBy !== 'department' || actor.reach.kind !== 'subtree' || groupId === null) return true;
  return actor.reach.departmentIds.has(groupId);
}

/** The start of a local date. Where the clocks go forward at midnight the day starts later. */
export function localMidnight(date: string, timeZone: string): Date {
  return DateTime.fromISO(date, { zone: timeZone }).startOf('day').toJSDate();
}

export function figuresView(figures: UsageFigures): FiguresView {
  return {
    requests: figures.requests.toString(),
    inputTokens: figures.inputTokens.toString(),
    cachedInputTokens: figures.cachedInputTokens.toString(),
    outputTokens: figures.outputTokens.toString(),
    tokens: figures.tokens.toString(),
    cost: formatPico(figures.costPico),
  };
}
