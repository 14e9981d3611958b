import { newId } from '@weir/domain';
import type { Pool, PoolClient } from 'pg';
import { compare } from './rollup-deltas.js';

export type AlarmKind =
  | 'offset-gap'
  | 'offset-rewind'
  | 'sequence-hole'
  | 'cost-mismatch'
  | 'conflict'
  | 'reconcile-drift';

/** Something that a person must look at. `subject` says what of: raising it again adds to the same row. */
export type Alarm = {
  readonly kind: AlarmKind;
  readonly subject: string;
  readonly details: Readonly<Record<string, unknown>>;
};

/**
 * Raises alarms, or raises them again. An open alarm keeps the time it was first raised, takes the newest details and
 * counts (`details.count`); a cleared one opens anew.
 */
export async function raiseAlarms(
  client: Pool | PoolClient,
  alarms: readonly Alarm[],
  nowMs: number,
): Promise<void> {
  const bySubject = new Map<string, { alarm: Alarm; count: number }>();
  for (const alarm of alarms) {
    const key = `${alarm.kind}|${alarm.subject}`;
    bySubject.set(key, { alarm, count: (bySubject.get(key)?.count ?? 0) + 1 });
  }
  const sorted = [...bySubject.entries()].sort(([a], [b]) => compare(a, b));
  for (const [, { alarm, count }] of sorted) {
    await client.query(
      `insert into ledger_alarm as a (id, kind, subject, details, raised_at)
       values ($1, $2, $3, $4::jsonb || jsonb_build_object('count', $5::int), $6)
       on conflict (kind, subject) do update set
         details = excluded.details || jsonb_build_object('count',
           $5::int + case when a.cleared_at is null then coalesce((a.details ->> 'count')::int, 0) else 0 end),
         raised_at = case when a.cleared_at is null then a.raised_at else excluded.raised_at end,
         cleared_at = null`,
      [
        newId(nowMs),
        alarm.kind,
        alarm.subject,
        JSON.stringify(alarm.details),
        count,
        new Date(nowMs),
      ],
    );
  }
}

/** Marks an alarm as over. Returns whether it was open. */
export async function clearAlarm(
  client: Pool | PoolClient,
  kind: AlarmKind,
  subject: string,
  nowMs: number,
): Promise<boolean> {
  const { rowCount } = await client.query(
    `update ledger_alarm set cleared_at = $3 where kind = $1 and subject = $2 and cleared_at is null`,
    [kind, subject, new Date(nowMs)],
  );
  return (rowCount ?? 0) > 0;
}

export type OpenAlarm = Alarm & { readonly id: string; readonly raisedAt: Date };

/** Open alarms, the newest first, at most `limit`. */
export async function openAlarms(pool: Pool, limit: number): Promise<OpenAlarm[]> {
  const { rows } = await pool.query<OpenAlarm>(
    `select id, kind, subject, details, raised_at as "raisedAt" from ledger_alarm
     where cleared_at is null order by raised_at desc limit $1`,
    [limit],
  );
  return rows;
}
