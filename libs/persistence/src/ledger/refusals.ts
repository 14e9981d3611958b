import { type RefusalEvent, refusalEventSchema } from '@weir/domain';
import type { Pool } from 'pg';
import { inTransaction } from '../transaction.js';
import { plainArray, textArray } from './array-literal.js';
import { storeDeadLetters } from './dead-letters.js';
import { compare } from './rollup-deltas.js';
import type { DeadRecord, SourceRecord } from './usage-record.js';

/**
 * Stores refused and failed calls, each once by its id. What is none is dead-lettered. They are for operators and in
 * no sum.
 */
export async function bookRefusals(
  pool: Pool,
  source: { topic: string; partition: number; records: readonly SourceRecord[] },
  nowMs: number,
): Promise<{ booked: number; deadLetters: number }> {
  const events = new Map<string, RefusalEvent>();
  const dead: DeadRecord[] = [];
  for (const record of source.records) {
    try {
      const event = refusalEventSchema.parse(
        JSON.parse(Buffer.from(record.value ?? []).toString('utf8')),
      );
      events.set(event.id.toLowerCase(), event);
    } catch (error) {
      dead.push({ source: record, reason: `not a refusal: ${String(error)}` });
    }
  }
  const rows = [...events.values()].sort((a, b) => compare(a.id, b.id));
  return inTransaction(pool, async (client) => {
    const { rowCount } = await client.query({
      name: 'weir_insert_refusals',
      text: `insert into refusal (id, enterprise_id, at, request_id, department_id, user_id, key_id, model, route,
          outcome, code, scope_level, scope_id, scope_name, metric, "window", retry_after_ms)
        select * from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[], $5::uuid[], $6::uuid[], $7::uuid[],
          $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::uuid[], $14::text[], $15::text[],
          $16::text[], $17::bigint[])
        on conflict (id) do nothing`,
      values: [
        plainArray(rows.map(({ id }) => id)),
        plainArray(rows.map(({ enterprise }) => enterprise.id)),
        plainArray(rows.map(({ at }) => at)),
        textArray(rows.map(({ requestId }) => clean(requestId))),
        plainArray(rows.map(({ departments }) => departments.at(-1)?.id ?? null)),
        plainArray(rows.map(({ user }) => user.id)),
        plainArray(rows.map(({ key }) => key.id)),
        textArray(rows.map(({ model }) => clean(model))),
        textArray(rows.map(({ route }) => clean(route))),
        textArray(rows.map(({ outcome }) => outcome)),
        textArray(rows.map(({ code }) => clean(code))),
        textArray(rows.map(({ scope }) => scope?.level ?? null)),
        plainArray(rows.map(({ scope }) => scope?.id ?? null)),
        textArray(rows.map(({ scope }) => (scope === null ? null : clean(scope.name)))),
        textArray(rows.map(({ metric }) => metric)),
        textArray(rows.map(({ window }) => window)),
        plainArray(
          rows.map(({ retryAfterMs }) => (retryAfterMs === null ? null : Math.ceil(retryAfterMs))),
        ),
      ],
    });
    await storeDeadLetters(client, source, dead, nowMs);
    return { booked: rowCount ?? 0, deadLetters: dead.length };
  });
}

/** A refused call may carry whatever the caller wrote as its model: short enough for an index, and no NUL. */
function clean(text: string): string {
  return text.replaceAll('\0', '').slice(0, 512);
}

/** Deletes refusals older than that. Returns how many. */
export async function dropOldRefusals(pool: Pool, beforeMs: number): Promise<number> {
  const { rowCount } = await pool.query('delete from refusal where at < $1', [new Date(beforeMs)]);
  return rowCount ?? 0;
}
