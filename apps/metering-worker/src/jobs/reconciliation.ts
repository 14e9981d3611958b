import { type Clock, periodAt, type PolicyScope, shardOf } from '@weir/domain';
import {
  type BookedFigures,
  type Database,
  findDrift,
  reconcile,
  recordReconciliation,
} from '@weir/persistence';
import type { QuotaEngine } from '@weir/quota';

export type ReconciliationOptions = {
  readonly database: Database;
  readonly engine: QuotaEngine;
  readonly shardCount: number;
  readonly clock: Clock;
  /** Whether everything charged on a shard is in the books: only then a difference means something. */
  readonly isDrained: (shard: number) => Promise<boolean>;
};

const scopesPerPeek = 200;

/** Compares the counters of the current month with the books, for every enterprise, and records what was found. */
export async function reconcileAll(options: ReconciliationOptions): Promise<number> {
  const enterprises = await options.database.prisma.enterprise.findMany({
    select: { id: true, timeZone: true },
    orderBy: { id: 'asc' },
  });
  let drifted = 0;
  for (const { id, timeZone } of enterprises) {
    drifted += await reconcileEnterprise(options, id, timeZone);
  }
  return drifted;
}

async function reconcileEnterprise(
  { database, engine, shardCount, clock, isDrained }: ReconciliationOptions,
  enterpriseId: string,
  timeZone: string,
): Promise<number> {
  const atMs = clock.now();
  const shard = shardOf(enterpriseId, shardCount);
  const periodId = periodAt('month', atMs, timeZone).id;
  const wasDrained = await isDrained(shard);
  const before = await reconcile(database.pool, enterpriseId, periodId);
  const scopes: PolicyScope[] = before.map(({ scopeId, level, name }) => ({
    level,
    id: scopeId,
    name: name ?? '',
    limits: [],
  }));
  const counters = new Map<string, BookedFigures>();
  for (let at = 0; at < scopes.length; at += scopesPerPeek) {
    const usages = await engine.peek({
      shard,
      enterpriseId,
      timeZone,
      scopes: scopes.slice(at, at + scopesPerPeek),
    });
    for (const { scopeId, month } of usages) counters.set(scopeId, month);
  }
  // The books again: equal before and after the look at the counters means that nothing was booked in between.
  const after = await reconcile(database.pool, enterpriseId, periodId);
  const isStill = JSON.stringify(before, bigintText) === JSON.stringify(after, bigintText);
  const figures = new Map(
    [...counters].map(([scopeId, { requests, inputTokens, outputTokens, costNano }]) => [
      scopeId,
      { requests, inputTokens, outputTokens, costNano },
    ]),
  );
  const drifts = findDrift(before, figures);
  const settled = wasDrained && isStill && (await isDrained(shard));
  await recordReconciliation(database.pool, {
    enterpriseId,
    periodId,
    scopes: scopes.length,
    drifts,
    settled,
    atMs,
  });
  return settled ? drifts.length : 0;
}

function bigintText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
