/** Waits, or returns early when aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}

/** Raised by {@link untilDone} when it is told to stop before the work was done. */
export class StoppedError extends Error {
  constructor(cause?: unknown) {
    super('stopped before it was done', { cause });
    this.name = 'StoppedError';
  }
}

/**
 * Tries until it succeeds, with growing pauses: for work that must not be given up, such as a batch that the broker
 * or the database cannot take now. Memory stays at that one batch.
 *
 * @throws StoppedError once the signal aborts; what `isWorthRetrying` says no to, at once
 */
export async function untilDone<T>(
  work: () => Promise<T>,
  options: {
    signal: AbortSignal;
    firstPauseMs: number;
    pauseMaxMs: number;
    /** Told of each failure. */
    onFailure: (error: unknown, failures: number) => void;
    isWorthRetrying?: (error: unknown) => boolean;
    /** Called at least every `pauseMaxMs` while it waits: a sign of life to whoever watches. May throw to stop. */
    whileWaiting?: () => Promise<void>;
  },
): Promise<T> {
  let pauseMs = options.firstPauseMs;
  for (let failures = 1; ; failures += 1) {
    if (options.signal.aborted) throw new StoppedError();
    try {
      return await work();
    } catch (error) {
      if (options.isWorthRetrying?.(error) === false) throw error;
      options.onFailure(error, failures);
      if (options.signal.aborted) throw new StoppedError(error);
    }
    await pause(pauseMs, options.signal);
    await options.whileWaiting?.();
    pauseMs = Math.min(pauseMs * 2, options.pauseMaxMs);
  }
}
