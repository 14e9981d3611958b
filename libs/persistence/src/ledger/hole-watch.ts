import type { Pool } from 'pg';
import { clearAlarm, openAlarms, raiseAlarms } from './alarms.js';
import { findHoles, readProgress } from './progress-tables.js';

const rangesNamed = 20;
const alarmsRead = 1_000;

/**
 * Alarms numbers that have been missing for longer than `graceMs` while later ones have arrived, by name, and clears
 * the alarm once they are there.
 *
 * @returns how many lines have such a hole
 */
export async function watchHoles(pool: Pool, nowMs: number, graceMs: number): Promise<number> {
  const open = new Set<string>();
  for (const line of await readProgress(pool)) {
    if (line.holeSince === null || nowMs - line.holeSince.getTime() < graceMs) continue;
    const subject = `${line.shard}/${line.epoch}`;
    const missing = await findHoles(pool, line, rangesNamed);
    if (missing.length === 0) continue;
    open.add(subject);
    const details = { shard: line.shard, epoch: line.epoch, missing, highest: line.highestSeq };
    await raiseAlarms(pool, [{ kind: 'sequence-hole', subject, details }], nowMs);
  }
  for (const alarm of await openAlarms(pool, alarmsRead)) {
    if (alarm.kind !== 'sequence-hole' || open.has(alarm.subject)) continue;
    await clearAlarm(pool, 'sequence-hole', alarm.subject, nowMs);
  }
  return open.size;
}
