import { PrismaPg } from '@prisma/adapter-pg';
import { Pool } from 'pg';
import { PrismaClient } from './generated/prisma/client.js';

export type DatabaseOptions = {
  /** `postgresql://user:password@host:port/database`. */
  url: string;
  /** Most connections at once; further callers wait. Prisma and the bulk writes share them. */
  poolMax: number;
  /** How long to wait for a connection, then reject. */
  connectTimeoutMs?: number;
  /** How long one statement may run before the server cancels it; 0 for no bound. */
  statementTimeoutMs?: number;
  /** How long to wait for one answer, also from a server that has gone silent; none unless given. */
  queryTimeoutMs?: number;
  /** Name shown in pg_stat_activity. */
  applicationName?: string;
  /** Told of connections that break while idle. Without it they are only replaced. */
  onConnectionError?: (error: Error) => void;
};

export type Database = {
  readonly prisma: PrismaClient;
  readonly pool: Pool;
  /** Closes all connections, after the queries that run. */
  close(): Promise<void>;
};

/** One pool of connections for Prisma (control plane) and for plain SQL (the books). Connects on first use. */
export function openDatabase(options: DatabaseOptions): Database {
  const pool = new Pool({
    connectionString: options.url,
    max: options.poolMax,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    statement_timeout: options.statementTimeoutMs ?? 60_000,
    ...(options.queryTimeoutMs !== undefined && { query_timeout: options.queryTimeoutMs }),
    application_name: options.applicationName ?? 'weir',
    // A peer that has gone without a word is noticed.
    keepAlive: true,
  });
  // Without a listener a broken idle connection would end the process.
  pool.on('error', (error) => options.onConnectionError?.(error));
  // Likewise one that breaks while it is lent out: whoever has it learns of it by its query.
  pool.on('connect', (client) => client.on('error', () => undefined));
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) });
  return {
    prisma,
    pool,
    close: async () => {
      await prisma.$disconnect();
      await pool.end();
    },
  };
}
