import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { requireService } from './services.js';

export type TestDatabase = {
  readonly url: string;
  /** Ends what is still connected, and removes the database. */
  drop(): Promise<void>;
};

const migrationsDir = join(import.meta.dirname, '..', '..', '..', 'prisma', 'migrations');

/** A database of its own with all migrations applied, on the server that WEIR_TEST_DATABASE_URL leads to. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const adminUrl = requireService('WEIR_TEST_DATABASE_URL');
  const name = `weir_test_${randomUUID().replaceAll('-', '')}`;
  await run(adminUrl, [`create database ${name}`]);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  const entries = await readdir(migrationsDir, { withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  const scripts = await Promise.all(
    names.map((migration) => readFile(join(migrationsDir, migration, 'migration.sql'), 'utf8')),
  );
  await run(url.href, scripts);
  return {
    url: url.href,
    drop: () => run(adminUrl, [`drop database if exists ${name} with (force)`]),
  };
}

async function run(url: string, statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
