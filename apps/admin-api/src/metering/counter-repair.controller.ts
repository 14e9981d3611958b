import { Controller, Inject } from '@nestjs/common';
import {
  formatNano,
  newId,
  periodAt,
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
} from '@weir/persistence';
import {
  CounterRepair,
  type CounterFigures,
  type QuotaRedis,
  type RepairResult,
  type ShardPosition,
} from '@weir/quota';
import { notFound } from '../access/reach.js';
import type { ControlConfig } from '../config.js';
import { Changes, type ChangeBy } from '../control/changes.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { LiveCounters } from '../organisation/live-counters.js';
import { CLOCK, CONTROL_CONFIG, DATABASE, LIVE_REDIS } from '../tokens.js';

type Scope = { readonly id: string; readonly level: ScopeLevel; readonly name: string };

/** What the worker saw longer ago says nothing of now. */
const statusAgeMaxMs = 60_000;
/** Unfinished repairs of one scope that are looked after at a time. */
const unfinishedMax = 20;
const nothing: BookedFigures = { requests: 0n, inputTokens: 0n, outputTokens: 0n, costNano: 0n };

/** Sets a counter right that differs from the ledger. The ledger is never changed this way. */
@Controller()
export class CounterRepairController {
  private readonly repairs: CounterRepair;

  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(CONTROL_CONFIG) private readonly config: ControlConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(LIVE_REDIS) redis: QuotaRedis,
    private readonly counters: LiveCounters,
    private readonly changes: Changes,
  ) {
    this.repairs = new CounterRepair(redis);
  }

  /**
   * The row is written before the counter is touched, and marked once it was: a crash in between leaves a row that says
   * what was meant, and the next repair of the scope finds out whether it was done.
   */
  @Operation('repairCounter')
  async repair(call: CallOf<'repairCounter'>): Promise<AnswerOf<'repairCounter'>> {
    const { enterpriseId } = call.actor;
    const { prisma, pool } = this.database;
    const { timeZone } = await prisma.enterprise.findUniqueOrThrow({
      where: { id: enterpriseId },
      select: { timeZone: true },
    });
    const scope = await this.scopeOf(enterpriseId, call.body.scopeId);
    const shard = shardOf(enterpriseId, this.config.SHARD_COUNT);
    const periodId = periodAt('month', this.clock.now(), timeZone).id;
    // In this order: what is charged after the position was read makes the repair be refused.
    const position = await this.repairs.position(shard);
    await this.finishEarlier(call, shard, scope);
    await this.requireAllBooked(shard, position);
    const booked = await reconcile(pool, enterpriseId, periodId);
    const ledger = booked.find(({ scopeId }) => scopeId === scope.id)?.ledger ?? nothing;
    const before = await this.counterAtRest({ id: enterpriseId, timeZone }, scope, periodId);
    const difference = minus(ledger, before);
    const view = { scopeId: scope.id, periodId, before: figuresView(before) };
    if (Object.values(difference).every((value) => value === 0n)) {
      return { ...view, repairId: null, after: view.before };
    }
    const id = newId(this.clock.now());
    await prisma.counterRepair.create({
      data: {
        id,
        enterpriseId,
        scopeId: scope.id,
        window: 'month',
        periodId,
        requests: difference.requests,
        inputTokens: difference.inputTokens,
        outputTokens: difference.outputTokens,
        costNano: difference.costNano.toString(),
        reason: call.body.reason,
        requestedBy: call.actor.name,
        createdAt: new Date(this.clock.now()),
      },
    });
    const result = await this.repairs.apply({
      id,
      shard,
      scopeId: scope.id,
      periodId,
      model: null,
      expected: before,
      difference,
      position,
    });
    if (result.outcome !== 'applied' && result.outcome !== 'repeated') {
      await prisma.counterRepair.delete({ where: { id } });
      throw refused(refusals[result.outcome], result.outcome);
    }
    await this.finish(call, id, scope, before);
    return { ...view, repairId: id, after: figuresView(ledger) };
  }

  private async scopeOf(enterpriseId: string, id: string): Promise<Scope> {
    const { prisma } = this.database;
    const where = { id, enterpriseId };
    const select = { id: true, name: true } as const;
    if (id === enterpriseId) {
      const row = await prisma.enterprise.findUniqueOrThrow({ where: { id }, select });
      return { ...row, level: 'enterprise' };
    }
    const department = await prisma.department.findFirst({ where, select });
    if (department !== null) return { ...department, level: 'department' };
    const user = await prisma.user.findFirst({ where, select });
    if (user !== null) return { ...user, level: 'user' };
    const key = await prisma.apiKey.findFirst({ where, select });
    if (key !== null) return { ...key, level: 'key' };
    throw notFound('scope', id);
  }

  /** Only when everything that was charged is booked, a difference is one. */
  private async requireAllBooked(shard: number, position: ShardPosition): Promise<void> {
    const { pool } = this.database;
    const status = await meteringStatus(pool, { shard });
    const source = status.sources.find((each) => each.shard === shard);
    const ageMs = this.clock.now() - (source?.checkedAt.getTime() ?? 0);
    if (source === undefined || ageMs > statusAgeMaxMs) {
      throw refused(
        'Whether events are under way is not known: the metering worker has not looked lately.',
        'unknown-lag',
      );
    }
    const line = (await readProgress(pool)).find(
      (each) => each.shard === shard && each.epoch === position.epoch,
    );
    const isBehind = (line?.highestSeq ?? 0) < position.seq;
    if (isBehind || source.outboxEntries > 0n || source.brokerLag > 0n) {
      throw refused('Events are under way to the ledger. Try again once the lag is 0.', 'lag');
    }
    if (status.holes.length > 0) {
      throw refused('Events are missing in the ledger: the counter may be right.', 'holes');
    }
  }

  private async counterAtRest(
    enterprise: { id: string; timeZone: string },
    scope: Scope,
    periodId: string,
  ): Promise<CounterFigures> {
    const live = await this.counters.read(enterprise, [{ ...scope, limits: [] }]);
    const usage = live?.get(scope.id);
    if (usage === undefined) {
      throw new WeirError('quota_unavailable', 'The counters cannot be read now.', {
        retry_after_seconds: 5,
      });
    }
    const { requests, inputTokens, outputTokens, costNano, ...month } = usage.month;
    if (month.periodId !== periodId) throw refused(refusals.moved, 'moved');
    if (usage.inFlight > 0 || month.reservedTokens > 0n || month.reservedCostNano > 0n) {
      throw refused(refusals['in-use'], 'in-use');
    }
    return { requests, inputTokens, outputTokens, costNano };
  }

  private async finishEarlier(by: ChangeBy, shard: number, scope: Scope): Promise<void> {
    const unfinished = await this.database.prisma.counterRepair.findMany({
      where: { enterpriseId: by.actor.enterpriseId, scopeId: scope.id, appliedAt: null },
      orderBy: { id: 'desc' },
      take: unfinishedMax,
      select: { id: true },
    });
    for (const { id } of unfinished) {
      const before = await this.repairs.find(shard, scope.id, id);
      if (before !== null) await this.finish(by, id, scope, before);
    }
  }

  private async finish(
    by: ChangeBy,
    id: string,
    scope: Scope,
    before: CounterFigures,
  ): Promise<void> {
    await this.changes.run(by, async (tx, record, at) => {
      const marked = await tx.counterRepair.updateMany({
        where: { id, appliedAt: null },
        data: { appliedAt: at },
      });
      // Another call has finished it meanwhile.
      if (marked.count === 0) return;
      const row = await tx.counterRepair.findUniqueOrThrow({ where: { id } });
      const after: CounterFigures = {
        requests: before.requests + row.requests,
        inputTokens: before.inputTokens + row.inputTokens,
        outputTokens: before.outputTokens + row.outputTokens,
        costNano: before.costNano + BigInt(row.costNano.toFixed(0)),
      };
      const { periodId, reason, requestedBy } = row;
      record({
        targetType: 'counter',
        targetId: scope.id,
        targetName: scope.name,
        action: 'counter.repaired',
        before: { periodId, ...figuresView(before) },
        after: { periodId, ...figuresView(after), repairId: id, reason, requestedBy },
      });
    });
  }
}

type Refusal = Exclude<RepairResult['outcome'], 'applied' | 'repeated'>;
const refusals: Readonly<Record<Refusal, string>> = {
  'other-epoch': 'The counters were rebuilt meanwhile. Compare again.',
  moved: 'The counter has changed meanwhile. Compare again.',
  'in-use': 'Calls are under way. Try again when none is.',
  negative: 'The counter would become less than nothing.',
};

function refused(message: string, reason: string): WeirError {
  return new WeirError('conflict', message, { reason });
}

function minus(left: CounterFigures, right: CounterFigures): CounterFigures {
  return {
    requests: left.requests - right.requests,
    inputTokens: left.inputTokens - right.inputTokens,
    outputTokens: left.outputTokens - right.outputTokens,
    costNano: left.costNano - right.costNano,
  };
}

function figuresView(figures: CounterFigures): AnswerOf<'repairCounter'>['before'] {
  return {
    requests: figures.requests.toString(),
    inputTokens: figures.inputTokens.toString(),
    outputTokens: figures.outputTokens.toString(),
    cost: formatNano(figures.costNano),
  };
}
