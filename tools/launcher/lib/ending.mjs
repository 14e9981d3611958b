// How a launcher ends when it is told to: on Ctrl-C, on SIGTERM, and on a fault of its own.

import { killAllProcesses, stopAllProcesses } from './processes.mjs';

// npm and the terminal both pass Ctrl-C on: two signals this close together are one wish.
const SAME_WISH_MS = 1_000;

/**
 * @param {{ log: (line: string) => void, beforeExit?: () => void }} options `beforeExit` runs last, once
 * @returns {(code: number, reason?: string) => Promise<never>} ends the launcher after all its children
 */
export function endInOrder({ log, beforeExit }) {
  let askedAt = 0;
  /** @type {Promise<never> | null} */
  let ending = null;

  const end = (/** @type {number} */ code, reason = '') => {
    ending ??= (async () => {
      askedAt = Date.now();
      if (reason !== '') log(reason);
      await stopAllProcesses();
      beforeExit?.();
      return process.exit(code);
    })();
    return ending;
  };

  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.on(signal, async () => {
      if (ending === null) {
        void end(130, 'stopping (again to stop at once)');
      } else if (Date.now() - askedAt > SAME_WISH_MS) {
        await killAllProcesses();
        beforeExit?.();
        process.exit(130);
      }
    });
  }
  const onFault = (/** @type {unknown} */ fault) => {
    // What fails because everything is being stopped is no news.
    if (ending === null)
      void end(1, fault instanceof Error ? (fault.stack ?? fault.message) : String(fault));
  };
  process.on('uncaughtException', onFault);
  process.on('unhandledRejection', onFault);
  return end;
}
