import { createTestDatabase, type TestDatabase } from '@weir/testing';
import { Pool } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BinaryValues, elementTypes, UnwritableValueError } from './binary-values.js';

let testDatabase: TestDatabase;
let pool: Pool;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  pool = new Pool({ connectionString: testDatabase.url, max: 2 });
});
afterAll(async () => {
  await pool.end();
  await testDatabase.drop();
});

/** What PostgreSQL makes of values in one column, as texts. */
async function copied(type: string, write: (values: BinaryValues) => void, count: number) {
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query(`create temp table t (n serial, v ${type}) on commit drop`);
    const values = new BinaryValues(1);
    values.copyHeader();
    write(values);
    values.copyTrailer();
    const copy = client.query(copyFrom('copy t (v) from stdin (format binary)'));
    await pipeline([values.bytes()], copy);
    expect(copy.rowCount).toBe(count);
    const { rows } = await client.query<{ v: string | null }>(
      'select v::text as v from t order by n',
    );
    return rows.map(({ v }) => v);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

/** The same values, written in binary and read as texts, by PostgreSQL itself. */
async function expectSame<T>(
  type: string,
  cells: readonly T[],
  write: (values: BinaryValues, cell: T) => void,
  textOf: (cell: T) => string = String,
): Promise<void> {
  const seen = await copied(
    type,
    (values) => {
      for (const cell of cells) {
        values.row(1);
        write(values, cell);
      }
    },
    cells.length,
  );
  const { rows } = await pool.query<{ v: string }>(
    `select v::${type}::text as v from unnest($1::text[]) with ordinality as u (v, n) order by n`,
    [cells.map(textOf)],
  );
  expect(seen).toEqual(rows.map(({ v }) => v));
}

describe('values in the binary format mean what their texts mean', () => {
  it('whole numbers of every size, to the last digit', async () => {
    const digits = Array.from({ length: 38 }, (_, index) => '9'.repeat(index + 1));
    const tens = Array.from({ length: 38 }, (_, index) => `1${'0'.repeat(index)}`);
    const mixed = [
      '0',
      '00',
      '-0',
      '-1',
      '0010',
      '10000',
      '100000000',
      '123400005678',
      '-90071992547409931234',
    ];
    const all = [...mixed, ...digits, ...tens, ...digits.map((text) => `-${text}`)];
    await expectSame('numeric(38,0)', all, (values, cell) => values.numeric(cell));
    await expectSame('numeric(38,0)', all.map(BigInt), (values, cell) => values.numeric(cell));
    const ints = [0, 1, -1, 255, 32_767, -32_768, 65_536, 2 ** 31 - 1, -(2 ** 31)];
    await expectSame('smallint', ints.slice(0, 6), (values, cell) => values.int2(cell));
    await expectSame('int', ints, (values, cell) => values.int4(cell));
    const longs = [...ints, 2 ** 32, -(2 ** 32) - 1, 2 ** 53 - 1, -(2 ** 53 - 1)];
    await expectSame<number | bigint>(
      'bigint',
      [...longs, 2n ** 63n - 1n, -(2n ** 63n), 7n],
      (values, cell) => values.int8(cell),
    );
  });

  it('instants to the millisecond, before and after 2000 and 1970, and far off', async () => {
    const instants = [
      '2026-11-29T10:00:00.123Z',
      '1999-12-31T23:59:59.999Z',
      '2000-01-01T00:00:00.000Z',
      '1969-12-31T23:59:59.001Z',
      '0001-01-01T00:00:00.000Z',
      '9999-12-31T23:59:59.999Z',
    ];
    await expectSame('timestamptz(3)', instants, (values, cell) =>
      values.timestamptz(Date.parse(cell)),
    );
  });

  it('ids, texts of any alphabet, truth values and JSON', async () => {
    const ids = ['0199d000-0000-7000-8000-0000000000ff', 'F47AC10B-58CC-4372-A567-0E02B2C3D479'];
    await expectSame('uuid', ids, (values, cell) => values.uuid(cell));
    const texts = [
      '',
      'ok',
      'a\\b"c{,}\t\n',
      'Zürich',
      '研发部',
      '🜁',
      'x'.repeat(100_000),
      'ü'.repeat(49),
    ];
    await expectSame('text', texts, (values, cell) => values.text(cell));
    await expectSame('boolean', [true, false], (values, cell) => values.bool(cell));
    const json = [{}, { a: 'ü"\\' }, { n: [1, null] }].map((value) => JSON.stringify(value));
    await expectSame('jsonb', json, (values, cell) => values.jsonb(cell));
  });

  it('arrays, as columns and as parameters, and what is NULL', async () => {
    const ids = ['0199d000-0000-7000-8000-0000000000ff', 'f47ac10b-58cc-4372-a567-0e02b2c3d479'];
    expect(
      await copied(
        'uuid[]',
        (values) => {
          for (const cell of [ids, ids.slice(1), []]) {
            values.row(1);
            values.uuids(cell);
          }
          values.row(1);
          values.null();
        },
        4,
      ),
    ).toEqual([`{${ids.join(',')}}`, `{${ids[1]}}`, '{}', null]);
    expect(
      await copied(
        'text[]',
        (values) => {
          values.row(1);
          values.texts(['研发', 'a "b"', '']);
        },
        1,
      ),
    ).toEqual(['{研发,"a \\"b\\"",""}']);
    const costs = new BinaryValues();
    costs.array(elementTypes.numeric, 2);
    costs.numeric(-(10n ** 30n));
    costs.numeric('40000');
    const none = new BinaryValues();
    none.array(elementTypes.int8, 0);
    const { rows } = await pool.query(
      'select $1::numeric[]::text as costs, $2::bigint[]::text as none',
      [costs.bytes(), none.bytes()],
    );
    expect(rows).toEqual([{ costs: `{-1${'0'.repeat(30)},40000}`, none: '{}' }]);
  });

  it('refuses what a column cannot hold, with the code that PostgreSQL has for it', () => {
    const refused: [(values: BinaryValues) => void, string][] = [
      [(values) => values.int2(32_768), '22003'],
      [(values) => values.int4(2 ** 31), '22003'],
      [(values) => values.int4(Number.NaN), '22003'],
      [(values) => values.int8(2 ** 53), '22003'],
      [(values) => values.int8(2n ** 63n), '22003'],
      [(values) => values.timestamptz(Date.parse('not a date')), '22P02'],
      [(values) => values.numeric('1.5'), '22P02'],
      [(values) => values.numeric('1e3'), '22P02'],
      [(values) => values.uuid('0199d000-0000-7000-8000-0000000000f'), '22P02'],
      [(values) => values.uuid('0199d000-0000-7000-8000-0000000000fff'), '22P02'],
      [(values) => values.uuid('0199d000-0000-7000-8000-0000000000fg'), '22P02'],
      [(values) => values.uuid('0199d000-0000-7000-8000-0000000000é1'), '22P02'],
    ];
    for (const [write, code] of refused) {
      let thrown: unknown;
      try {
        write(new BinaryValues());
      } catch (error) {
        thrown = error;
      }
      expect(thrown, String(write)).toBeInstanceOf(UnwritableValueError);
      expect(thrown).toMatchObject({ code });
    }
  });
});
