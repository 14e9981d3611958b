import { monthById, newId, type ScopeLevel } from '@weir/domain';
import type { Pool } from 'pg';
import { clearAlarm, raiseAlarms } from '../ledger/alarms.js';
import { inTransaction } from '../transaction.js';
import { type ScopeSums, scopeSumsFromRollups, scopeSumsFromRows } from './scope-sums.js';

export type BookedFigures = {
  readonly requests: bigint;
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
  readonly costNano: bigint;
};

/** One scope's month in the books: from the rows, and from the roll-ups. They must agree. */
export type BookedScope = {
  readonly scopeId: string;
  readonly level: ScopeLevel;
  /** As last seen in use. */
  readonly name: string | null;
  readonly ledger: BookedFigures;
  /** Of quarters, days and months the first that differs from the ledger; where none does, what all of them say. */
  readonly rollup: BookedFigures;
};

const minus = (a: BookedFigures, b: BookedFigures): BookedFigures => ({
  requests: a.requests - b.requests,
  inputTokens: a.inputTokens - b.inputTokens,
  outputTokens: a.outputTokens - b.outputTokens,
  costNano: a.costNano - b.costNano,
});
const isZero = ({ requests, inputTokens, outputTokens, costNano }: BookedFigures) =>
  requests === 0n && inputTokens === 0n && outputTokens === 0n && costNano === 0n;

const nothing: BookedFigures = { requests: 0n, inputTokens: 0n, outputTokens: 0n, costNano: 0n };

/**
 * Sums of a month per scope, for comparing with the counters (`engine.peek`, without what is reserved): rows by the
 * period that they were charged to, roll-ups (of quarters, days and months) by the month's bounds in the enterprise's zone. One snapshot.
 */
export async function reconcile(
  pool: Pool,
  enterpriseId: string,
  periodId: string,
): Promise<BookedScope[]> {
  return inTransaction(
    pool,
    async (client) => {
      // It reads every row of a month.
      await client.query('set local statement_timeout = 0');
      const enterprise = await client.query<{ name: string; zone: string }>(
        'select name, time_zone as zone from enterprise where id = $1',
        [enterpriseId],
      );
      const zone = enterprise.rows[0]?.zone ?? 'UTC';
      const month = monthById(periodId, zone);
      const rows = await scopeSumsFromRows(client, enterpriseId, periodId);
      const range = {
        enterpriseId,
        timeZone: zone,
        fromMs: month.startsAt,
        toMs: month.endsAt,
      };
      const rollups: (readonly ScopeSums[])[] = [];
      for (const finest of ['hour', 'day', 'month'] as const) {
        rollups.push(await scopeSumsFromRollups(client, range, finest));
      }
      const dimensions = await client.query<{ kind: ScopeLevel; id: string; name: string }>(
        `select kind, id, name from usage_dimension where enterprise_id = $1 and kind in ('department', 'user', 'key')`,
        [enterpriseId],
      );
      const known = new Map<string, { level: ScopeLevel; name: string | null }>(
        dimensions.rows.map(({ id, kind, name }) => [id, { level: kind, name }]),
      );
      known.set(enterpriseId, { level: 'enterprise', name: enterprise.rows[0]?.name ?? null });
      const ofAll = (sums: readonly ScopeSums[]) =>
        new Map(sums.filter(({ model }) => model === null).map((sum) => [sum.scopeId, sum]));
      const ledger = ofAll(rows);
      const sums = rollups.map(ofAll);
      const scopeIds = new Set([ledger, ...sums].flatMap((each) => [...each.keys()]));
      return [...scopeIds].map((scopeId) => {
        const figures = ledger.get(scopeId) ?? nothing;
        const said = sums.map((each) => each.get(scopeId) ?? nothing);
        return {
          scopeId,
          level: known.get(scopeId)?.level ?? 'department',
          name: known.get(scopeId)?.name ?? null,
          ledger: figures,
          rollup: said.find((each) => !isZero(minus(each, figures))) ?? figures,
        };
      });
    },
    'begin isolation level repeatable read read only',
  );
}

export type Drift = {
  readonly scopeId: string;
  readonly level: ScopeLevel;
  /** Counter minus ledger, and roll-up minus ledger. */
  readonly counter: BookedFigures;
  readonly rollup: BookedFigures;
};

/** Scopes whose counter or roll-up differs from the ledger. A scope that has no counter counts as zero. */
export function findDrift(
  booked: readonly BookedScope[],
  counters: ReadonlyMap<string, BookedFigures>,
): Drift[] {
  const seen = new Map(booked.map((scope) => [scope.scopeId, scope]));
  const drifts: Drift[] = [];
  for (const scopeId of new Set([...seen.keys(), ...counters.keys()])) {
    const scope = seen.get(scopeId);
    const ledger = scope?.ledger ?? nothing;
    const counter = minus(counters.get(scopeId) ?? nothing, ledger);
    const rollup = minus(scope?.rollup ?? nothing, ledger);
    if (isZero(counter) && isZero(rollup)) continue;
    drifts.push({ scopeId, level: scope?.level ?? 'department', counter, rollup });
  }
  return drifts;
}

/**
 * Records a comparison. Drift raises an alarm when nothing was under way (`settled`), and its end clears it: while
 * events travel, a counter is ahead of the books by right.
 */
export async function recordReconciliation(
  pool: Pool,
  run: {
    enterpriseId: string;
    periodId: string;
    scopes: number;
    drifts: readonly Drift[];
    settled: boolean;
    atMs: number;
  },
): Promise<string> {
  const id = newId(run.atMs);
  const details = JSON.stringify(run.drifts, (_key, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
  await pool.query(
    `insert into reconcile_run (id, enterprise_id, period_id, at, scopes, drifted, settled, details)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      id,
      run.enterpriseId,
      run.periodId,
      new Date(run.atMs),
      run.scopes,
      run.drifts.length,
      run.settled,
      details,
    ],
  );
  if (!run.settled) return id;
  const subject = `${run.enterpriseId}/${run.periodId}`;
  if (run.drifts.length === 0) await clearAlarm(pool, 'reconcile-drift', subject, run.atMs);
  else {
    await raiseAlarms(
      pool,
      [{ kind: 'reconcile-drift', subject, details: { runId: id, scopes: run.drifts.length } }],
      run.atMs,
    );
  }
  return id;
}
