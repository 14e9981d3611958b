import { ConfigError } from './config.js';
import type { Logger } from './logger.js';

/** The part of `process` that the end of an app needs. Tests pass their own. */
export type ProcessHost = {
  on(event: string, listener: (argument: unknown) => void): unknown;
  exit(code: number): void;
};

/**
 * Ties an app to the end of its process: SIGTERM and SIGINT close it and end with 0, or with 1 when closing takes longer
 * than `boundMs`; a second signal ends at once; an unhandled rejection or uncaught exception is logged, closes the app
 * and ends with 1.
 */
export function endWithProcess(
  options: { logger: Logger; boundMs: number; close: () => Promise<void> },
  host: ProcessHost = process,
): void {
  const { logger, boundMs } = options;
  let closing = false;
  let exitCode = 0;

  const end = (reason: string): void => {
    if (closing) return;
    closing = true;
    logger.info({ reason }, 'shutting down');
    setTimeout(() => {
      logger.error({ bound_ms: boundMs }, 'the shutdown took too long and was cut off');
      host.exit(1);
    }, boundMs).unref();
    options.close().then(
      () => {
        logger.info('closed');
        host.exit(exitCode);
      },
      (error: unknown) => {
        logger.error({ err: error }, 'the shutdown failed');
        host.exit(1);
      },
    );
  };
  const endOnSignal = (signal: string): void => {
    if (closing) {
      logger.warn({ signal }, 'ended at once: it was closing already');
      host.exit(1);
      return;
    }
    end(signal);
  };
  const endOnFault = (error: unknown, fault: string): void => {
    logger.fatal({ err: error }, fault);
    exitCode = 1;
    end(fault);
  };
  for (const signal of ['SIGTERM', 'SIGINT']) host.on(signal, () => endOnSignal(signal));
  host.on('unhandledRejection', (error) => endOnFault(error, 'unhandled rejection'));
  host.on('uncaughtException', (error) => endOnFault(error, 'uncaught exception'));
}

/** Runs an app's `main`: a configuration fault is printed as a list for people, all else as an error; exit code 1. */
export async function runMain(main: () => Promise<unknown>): Promise<void> {
  try {
    await main();
  } catch (error) {
    const text =
      error instanceof ConfigError
        ? error.message
        : String(error instanceof Error ? error.stack : error);
    process.stderr.write(`${text}\n`);
    process.exit(1);
  }
}
