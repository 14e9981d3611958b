import { newId } from '@weir/domain';
import {
  createTestDatabase,
  numbered,
  type TestDatabase,
  testTenant,
  usageEvent,
} from '@weir/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../database.js';
import { type Slice, UsageLedger } from './usage-ledger.js';

let testDatabase: TestDatabase;
let database: Database;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url, poolMax: 4 });
  // Fails once, or ends the connection of whoever books, when told to: in the middle of a transaction, or at its end.
  await database.pool.query(`
    create table planted_fault (kind text not null);
    create function planted_fault() returns trigger language plpgsql as $$
    declare kind text;
    begin
      select f.kind into kind from planted_fault f limit 1;
      if kind = 'fails' then
        raise exception 'planted' using errcode = '57P03';
      elsif kind = 'dies' then
        perform pg_terminate_backend(pg_backend_pid());
        perform pg_sleep(0.05);
      end if;
      return null;
    end $$;
  `);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

async function books(enterpriseId: string) {
  const { rows } = await database.pool.query(
    `select (select count(*)::int from usage_event where enterprise_id = $1) as rows,
       (select coalesce(sum(requests), 0)::int from usage_rollup where enterprise_id = $1) as quarters,
       (select coalesce(sum(requests), 0)::int from usage_rollup_day where enterprise_id = $1) as days,
       (select coalesce(sum(requests), 0)::int from usage_rollup_month where enterprise_id = $1) as months,
       (select coalesce(sum(cost_pico), 0)::text from usage_rollup where enterprise_id = $1) as pico`,
    [enterpriseId],
  );
  return rows[0];
}

describe.each([
  ['after the row was written', 'usage_event', ''],
  ['between the row and its roll-ups', 'usage_rollup_day', ''],
  ['before the offset was moved', 'ledger_offset', ''],
  ['at the commit itself', 'usage_rollup_month', 'constraint'],
] as const)('a booking that breaks %s', (_name, table, constraint) => {
  it.each(['fails', 'dies'])(
    '(the server %s) leaves nothing, and is one row and a roll-up of 1 when tried again',
    async (kind) => {
      const when = constraint === '' ? '' : 'deferrable initially deferred for each row';
      await database.pool.query(`
      create ${constraint} trigger planted after insert or update on ${table} ${when}
        execute function planted_fault();
      insert into planted_fault values ('${kind}')`);
      try {
        const tenant = testTenant();
        const event = numbered(usageEvent(tenant, Date.parse('2026-11-29T10:00:00Z')), 1, {
          epoch: newId(),
        });
        const slice: Slice = {
          topic: `usage-${newId()}`,
          partition: 0,
          order: 'fenced',
          records: [
            { offset: 0n, key: Buffer.from(event.id), value: Buffer.from(JSON.stringify(event)) },
          ],
        };
        const ledger = new UsageLedger(database.pool);
        await expect(ledger.bookSlice(slice)).rejects.toThrow();
        const none = { rows: 0, quarters: 0, days: 0, months: 0, pico: '0' };
        expect(await books(tenant.enterprise.id)).toEqual(none);
        await database.pool.query('delete from planted_fault');
        // By the same ledger, which has seen the id and its names before, and by another.
        expect(await ledger.bookSlice(slice)).toMatchObject({ booked: 1, deadLetters: 0 });
        const other = new UsageLedger(database.pool);
        expect(await other.bookSlice({ ...slice, order: 'unfenced' })).toMatchObject({ booked: 0 });
        expect(await books(tenant.enterprise.id)).toEqual({
          rows: 1,
          quarters: 1,
          days: 1,
          months: 1,
          pico: event.data.costPico,
        });
      } finally {
        await database.pool.query(`delete from planted_fault; drop trigger planted on ${table}`);
      }
    },
  );
});
