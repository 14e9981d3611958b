export type BreakerState = 'closed' | 'half_open' | 'open';

export type BreakerOptions = {
  /** Failures in a row that open the circuit. */
  readonly failures: number;
  /** How often an open circuit is probed. */
  readonly probeEveryMs: number;
  /** Resolves when the dependency answers again; rejects while it does not. Must be bounded in time. */
  readonly probe: () => Promise<void>;
  readonly onChange: (state: BreakerState) => void;
};

/**
 * A circuit breaker that probes in the background, so that no caller pays for finding out: while it is open everyone
 * falls back at once, and it closes when a probe has succeeded.
 */
export class CircuitBreaker {
  private current: BreakerState = 'closed';
  private failuresInRow = 0;
  private timer: NodeJS.Timeout | null = null;
  private stopped = false;

  constructor(private readonly options: BreakerOptions) {}

  get state(): BreakerState {
    return this.current;
  }

  /** Whether the dependency may be asked. */
  get allows(): boolean {
    return this.current === 'closed';
  }

  succeeded(): void {
    this.failuresInRow = 0;
  }

  failed(): void {
    this.failuresInRow += 1;
    if (this.current === 'closed' && this.failuresInRow >= this.options.failures) this.open();
  }

  stop(): void {
    this.stopped = true;
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }

  private open(): void {
    this.change('open');
    this.schedule();
  }

  private schedule(): void {
    if (this.stopped) return;
    this.timer = setTimeout(() => void this.probe(), this.options.probeEveryMs);
    this.timer.unref();
  }

  private async probe(): Promise<void> {
    this.change('half_open');
    try {
      await this.options.probe();
    } catch {
      // Expected while the dependency is away: that it failed is the answer.
      this.change('open');
      this.schedule();
      return;
    }
    this.failuresInRow = 0;
    this.change('closed');
  }

  private change(state: BreakerState): void {
    if (this.stopped || this.current === state) return;
    this.current = state;
    this.options.onChange(state);
  }
}
