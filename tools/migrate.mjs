// Database migrations with Prisma's own engine as WebAssembly: offline, and compatible with
// `prisma migrate deploy` (same files, same _prisma_migrations table).
//
//   node tools/migrate.mjs apply        apply what is missing to DATABASE_URL
//   node tools/migrate.mjs new <name>   write a migration for what the schema has and the migrations do not
//   node tools/migrate.mjs check        exit 1 unless schema and migrations agree
//
// `new` and `check` replay the migrations into a shadow database beside DATABASE_URL, so they need the
// right to create one. What Prisma's schema cannot say (partitions, checks, exclusion constraints) is
// written into the migrations by hand and does not count as a difference.

import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const repoDir = join(dirname(fileURLToPath(import.meta.url)), '..');
const schemaFile = join(repoDir, 'prisma', 'schema.prisma');
const migrationsDir = join(repoDir, 'prisma', 'migrations');
const filters = { externalTables: [], externalEnums: [] };

/** Any number will do, as long as all of our migrators use the same one. */
const MIGRATION_LOCK = 7_405_321;
const LOCK_WAIT_MS = 120_000;

/**
 * Applies the migrations that the database does not have. Several callers at once are safe: one
 * applies, the others wait and find nothing to do.
 * @param {string} databaseUrl
 * @returns {Promise<string[]>} names of the migrations applied
 */
export async function applyMigrations(databaseUrl) {
  const { Client } = (await import('pg')).default;
  const lock = new Client({ connectionString: databaseUrl, connectionTimeoutMillis: 10_000 });
  await lock.connect();
  try {
    await lock.query(`set lock_timeout = ${LOCK_WAIT_MS}`);
    await lock.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    return await withEngine(databaseUrl, async (engine) => {
      const result = await engine.applyMigrations({ migrationsList: readMigrations(), filters });
      return result.appliedMigrationNames;
    });
  } finally {
    await lock.end();
  }
}

/**
 * What separates the migrations from the schema, as SQL; an empty text when they agree.
 * @param {string} databaseUrl
 * @returns {Promise<string>}
 */
export async function schemaDrift(databaseUrl) {
  return withEngine(databaseUrl, async (engine) => {
    const { stdout } = await engine.diff({
      from: { tag: 'migrations', ...readMigrations() },
      to: { tag: 'schemaDatamodel', files: schemaFiles() },
      script: true,
      exitCode: null,
      filters,
    });
    const script = (stdout ?? '').trim();
    return script === '-- This is an empty migration.' ? '' : script;
  });
}

/**
 * Writes the next migration.
 * @param {string} databaseUrl
 * @param {string} name
 * @returns {Promise<string | null>} the file, or null when there is nothing to migrate
 */
export async function writeMigration(databaseUrl, name) {
  if (!/^[a-z][a-z0-9_]*$/.test(name)) {
    throw new Error(`a migration's name has lower-case letters, digits and underscores: ${name}`);
  }
  const script = await schemaDrift(databaseUrl);
  if (script === '') return null;
  const stamp = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
  const dir = join(migrationsDir, `${stamp}_${name}`);
  mkdirSync(dir, { recursive: true });
  const file = join(dir, 'migration.sql');
  writeFileSync(file, `${script}\n`);
  return file;
}

/** @type {string | null} */
let lastPanic = null;
/** @type {Promise<any> | null} */
let engineModule = null;

/** The engine's code, once per process: its JavaScript side knows one instance only. */
function loadEngine() {
  engineModule ??= (async () => {
    const bindings = await import('@prisma/schema-engine-wasm/schema_engine_bg');
    const require = createRequire(import.meta.url);
    const wasmFile = join(
      dirname(require.resolve('@prisma/schema-engine-wasm')),
      'schema_engine_bg.wasm',
    );
    // The engine leaves the reason of a crash here.
    /** @type {any} */ (globalThis).PRISMA_WASM_PANIC_REGISTRY = {
      set_message: (/** @type {string} */ message) => {
        lastPanic = message;
      },
    };
    const { instance } = await WebAssembly.instantiate(readFileSync(wasmFile), {
      './schema_engine_bg.js': /** @type {any} */ (bindings),
    });
    bindings.__wbg_set_wasm(instance.exports);
    /** @type {any} */ (instance.exports).__wbindgen_start();
    return bindings;
  })();
  return engineModule;
}

/**
 * @template T
 * @param {string} databaseUrl
 * @param {(engine: any) => Promise<T>} work
 * @returns {Promise<T>}
 */
async function withEngine(databaseUrl, work) {
  const { bindMigrationAwareSqlAdapterFactory } = await import('@prisma/driver-adapter-utils');
  const { SchemaEngine } = await loadEngine();
  const factory = await adapterFactory(databaseUrl);
  const datamodels = schemaFiles().map(({ path, content }) => [path, content]);
  try {
    const engine = await SchemaEngine.new(
      { datamodels },
      () => {},
      bindMigrationAwareSqlAdapterFactory(/** @type {any} */ (factory)),
    );
    return await work(engine);
  } catch (error) {
    throw lastPanic === null
      ? error
      : new Error(`the schema engine crashed: ${lastPanic}`, { cause: error });
  } finally {
    await factory.close();
  }
}

/**
 * Prisma's adapter for pg, with three faults around migrations corrected:
 * - it cuts a script at every semicolon, also inside of function bodies, and spreads the pieces over several
 *   connections; here a script is one simple query on one connection, hence also one transaction;
 * - given a connection string, its shadow database is the real one;
 * - it does not know PostgreSQL's internal type "char", which the engine's own catalogue queries return.
 * @param {string} databaseUrl
 */
async function adapterFactory(databaseUrl) {
  const pg = (await import('pg')).default;
  const { PrismaPg } = await import('@prisma/adapter-pg');
  const { ColumnTypeEnum } = await import('@prisma/driver-adapter-utils');
  /** @type {(() => Promise<void>)[]} */
  const closers = [];

  /** @param {string} url */
  const open = async (url) => {
    const pool = new pg.Pool({
      connectionString: url,
      connectionTimeoutMillis: 10_000,
      allowExitOnIdle: true,
      max: 2,
    });
    const adapter = /** @type {any} */ (await new PrismaPg(pool).connect());
    adapter.executeScript = async (/** @type {string} */ script) => {
      await pool.query(script);
    };
    const { performIO, queryRaw } = Object.getPrototypeOf(Object.getPrototypeOf(adapter));
    adapter.queryRaw = async (/** @type {any} */ query) => {
      /** @type {number[]} */
      let charColumns = [];
      const reader = Object.create(adapter, {
        performIO: {
          value: async () => {
            const result = await performIO.call(adapter, query);
            charColumns = result.fields.flatMap(
              (/** @type {any} */ field, /** @type {number} */ index) =>
                field.dataTypeID === pg.types.builtins.CHAR ? [index] : [],
            );
            for (const index of charColumns) {
              result.fields[index].dataTypeID = pg.types.builtins.TEXT;
            }
            return result;
          },
        },
      });
      const result = await queryRaw.call(reader, query);
      for (const index of charColumns) result.columnTypes[index] = ColumnTypeEnum.Character;
      return result;
    };
    let isOpen = true;
    const close = async () => {
      if (!isOpen) return;
      isOpen = false;
      await pool.end();
    };
    closers.push(close);
    adapter.dispose = close;
    return adapter;
  };

  return {
    provider: /** @type {const} */ ('postgres'),
    adapterName: '@prisma/adapter-pg',
    connect: () => open(databaseUrl),
    async connectToShadowDb() {
      const database = `weir_shadow_${randomUUID().replaceAll('-', '')}`;
      await runOnce(databaseUrl, `create database ${database}`);
      const url = new URL(databaseUrl);
      url.pathname = `/${database}`;
      const adapter = await open(url.href);
      const closePool = adapter.dispose;
      let isDropped = false;
      adapter.dispose = async () => {
        if (isDropped) return;
        isDropped = true;
        await closePool();
        await runOnce(databaseUrl, `drop database ${database}`);
      };
      closers.push(adapter.dispose);
      return adapter;
    },
    async close() {
      for (const close of closers.reverse()) await close();
    },
  };
}

/**
 * @param {string} databaseUrl
 * @param {string} statement
 */
async function runOnce(databaseUrl, statement) {
  const { Client } = (await import('pg')).default;
  const client = new Client({ connectionString: databaseUrl, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

function schemaFiles() {
  return [{ path: schemaFile, content: readFileSync(schemaFile, 'utf8') }];
}

function readMigrations() {
  const names = readdirSync(migrationsDir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  return {
    baseDir: migrationsDir,
    lockfile: {
      path: 'migration_lock.toml',
      content: readFileSync(join(migrationsDir, 'migration_lock.toml'), 'utf8'),
    },
    shadowDbInitScript: '',
    migrationDirectories: names.map((name) => ({
      path: name,
      migrationFile: {
        path: 'migration.sql',
        content: {
          tag: 'ok',
          value: readFileSync(join(migrationsDir, name, 'migration.sql'), 'utf8'),
        },
      },
    })),
  };
}

/** @param {string[]} args */
async function main([command, name]) {
  const databaseUrl = process.env.DATABASE_URL;
  if (!databaseUrl) throw new Error('set DATABASE_URL to the PostgreSQL database to work on');
  switch (command) {
    case 'apply': {
      const applied = await applyMigrations(databaseUrl);
      console.log(
        applied.length === 0 ? 'the database is up to date' : `applied ${applied.join(', ')}`,
      );
      return;
    }
    case 'new': {
      const file = await writeMigration(databaseUrl, name ?? '');
      console.log(
        file === null ? 'schema and migrations agree: nothing to write' : `wrote ${file}`,
      );
      return;
    }
    case 'check': {
      const drift = await schemaDrift(databaseUrl);
      if (drift !== '') throw new Error(`schema and migrations differ; missing:\n${drift}`);
      console.log('schema and migrations agree');
      return;
    }
    default:
      throw new Error('usage: node tools/migrate.mjs apply | new <name> | check');
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    await main(process.argv.slice(2));
    // The engine leaves a timer of ten seconds behind.
    process.exit(0);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}
