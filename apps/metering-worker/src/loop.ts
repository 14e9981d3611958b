import { pause } from '@weir/metering';
import type { Logger } from '@weir/platform';

export type LoopOptions = {
  readonly name: string;
  /** Pause between the end of one run and the beginning of the next. */
  readonly everyMs: number;
  readonly logger: Logger;
  readonly run: (signal: AbortSignal) => Promise<void>;
};

/** Work that is done again and again. A run that fails is logged and does not end the loop; runs never overlap. */
export class Loop {
  private readonly stopping = new AbortController();
  private running: Promise<void> | null = null;
  private failures = 0;

  constructor(private readonly options: LoopOptions) {}

  start(): void {
    this.running ??= this.loop();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async loop(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await this.runOnce(signal);
      await pause(this.options.everyMs, signal);
    }
  }

  private async runOnce(signal: AbortSignal): Promise<void> {
    const { name, logger, run } = this.options;
    try {
      await run(signal);
      if (this.failures > 0) logger.info({ loop: name, failures: this.failures }, 'works again');
      this.failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      this.failures += 1;
      // The first of a row, then ever more rarely: an outage of an hour must not fill the log.
      if (Number.isInteger(Math.log2(this.failures))) {
        logger.warn({ err: error, loop: name, failures: this.failures }, 'failed; trying again');
      }
    }
  }
}
