/** SQLSTATE classes, https://www.postgresql.org/docs/current/errcodes-appendix.html */
const dataClasses = new Set(['22', '23', '54']);

function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null;
}

/** The data itself is at fault: trying again cannot help. */
export function isDataFault(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && dataClasses.has(state.slice(0, 2));
}

/** Raised by weir_ensure_usage_partition for a month that retention has dropped. */
export function isDroppedMonth(error: unknown): boolean {
  return sqlState(error) === 'WE001';
}

/** The partition that a row belongs to is not there. PostgreSQL reports it as a violated check. */
export function isMissingPartition(error: unknown): boolean {
  return (
    sqlState(error) === '23514' && /no partition of relation/.test((error as Error).message ?? '')
  );
}

const transientStates = /^(08|53|57|58|25006|40|55P03|XX)/;

/**
 * The database is away, overloaded, restarting, or has rolled back for another transaction's sake: the same
 * transaction may succeed later.
 */
export function isTransientFault(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== null) return transientStates.test(state);
  // pg's own errors and the socket's carry no SQLSTATE.
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (typeof code === 'string' && /^E[A-Z]+$/.test(code)) return true;
  return (
    typeof message === 'string' &&
    /connection terminated|query read timeout|timeout exceeded when trying to connect|client has encountered a connection error|connection error and is not queryable/i.test(
      message,
    )
  );
}

/** The message that PostgreSQL gave, for a dead letter's reason. */
export function faultText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
