import type { Pool, PoolClient } from 'pg';

/**
 * Runs work in one transaction on one connection. When it throws, nothing of it stays; a connection on which not even
 * the rollback works is closed rather than reused.
 *
 * @param begin the statement that opens it, such as `begin isolation level repeatable read`
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
  begin = 'begin',
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query(begin);
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch((fault: Error) => {
      broken = fault;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}
