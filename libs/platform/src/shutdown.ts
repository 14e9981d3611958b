import type { Logger } from './logger.js';

/**
 * The order in which an app lets go:
 * - `stop-intake`: take no new work of your own (consumers, timers, job workers). HTTP requests still run.
 * - `drain`: HTTP is closed; write out what is buffered.
 * - `disconnect`: close connections and pools.
 */
export type ShutdownPhase = 'stop-intake' | 'drain' | 'disconnect';

type Step = { name: string; close: () => Promise<void> | void };

/** Ordered, bounded closing. Within a phase the steps run in reverse order of registration, one after another. */
export class Shutdown {
  private readonly steps: Record<ShutdownPhase, Step[]> = {
    'stop-intake': [],
    drain: [],
    disconnect: [],
  };
  private readonly started = new AbortController();

  constructor(
    private readonly logger: Logger,
    private readonly stepTimeoutMs = 5_000,
  ) {}

  /** Aborts when the shutdown begins, so that loops and waits can end early. */
  get signal(): AbortSignal {
    return this.started.signal;
  }

  onClose(phase: ShutdownPhase, name: string, close: () => Promise<void> | void): void {
    this.steps[phase].push({ name, close });
  }

  /** Called by the platform, once the app begins to close. */
  begin(): void {
    if (!this.started.signal.aborted) this.started.abort(new Error('shutting down'));
  }

  /** Runs one phase. A step that throws or hangs is logged and does not keep the others from closing. */
  async runPhase(phase: ShutdownPhase): Promise<void> {
    // Taken out first: a second close must not run a step again.
    for (const step of this.steps[phase].splice(0).reverse()) {
      try {
        await within(this.stepTimeoutMs, (async () => step.close())());
      } catch (error) {
        this.logger.error({ err: error, phase, step: step.name }, 'a step of the shutdown failed');
      }
    }
  }
}

async function within(timeoutMs: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`did not end within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
}
