import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyMigrations, schemaDrift } from './migrate.mjs';

const adminUrl = process.env['WEIR_TEST_DATABASE_URL'] ?? '';
const name = `weir_test_${randomUUID().replaceAll('-', '')}`;
let url: string;

async function run<T extends pg.QueryResultRow>(statement: string, on = adminUrl): Promise<T[]> {
  const client = new pg.Client({ connectionString: on });
  await client.connect();
  try {
    return (await client.query<T>(statement)).rows;
  } finally {
    await client.end();
  }
}

describe('migrations', () => {
  beforeAll(async () => {
    if (adminUrl === '') throw new Error('WEIR_TEST_DATABASE_URL is not set: run `npm test`');
    await run(`create database ${name}`);
    const target = new URL(adminUrl);
    target.pathname = `/${name}`;
    url = target.href;
  });
  afterAll(async () => {
    await run(`drop database if exists ${name} with (force)`);
  });

  it('are applied once to an empty database, also when several processes start at the same time', async () => {
    const applied = await Promise.all([applyMigrations(url), applyMigrations(url)]);
    expect(applied.flat().length).toBeGreaterThan(0);
    expect(new Set(applied.flat()).size).toBe(applied.flat().length);
    expect(await applyMigrations(url)).toEqual([]);
    const rows = await run<{ n: number }>(
      'select count(*)::int as n from _prisma_migrations where finished_at is not null',
      url,
    );
    expect(rows[0]?.n).toBe(applied.flat().length);
    // A function body with semicolons came through whole.
    await run(`select weir_ensure_usage_partition('2026-11-30T23:59:59Z')`, url);
  });

  it('agree with the schema, partitions or not, and leave no shadow database behind', async () => {
    expect(await schemaDrift(url)).toBe('');
    const rows = await run<{ datname: string }>(
      `select datname from pg_database where datname like 'weir_shadow_%'`,
    );
    const before = new Set(rows.map(({ datname }) => datname));
    expect(await schemaDrift(url)).toBe('');
    const after = await run<{ datname: string }>(
      `select datname from pg_database where datname like 'weir_shadow_%'`,
    );
    expect(after.filter(({ datname }) => !before.has(datname))).toEqual([]);
  });
});
