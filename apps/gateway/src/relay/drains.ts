/**
 * Streams that are read on after their client has left, so that the upstream's usage is charged rather than an estimate.
 * Bounded in number and time: an upstream must not be able to hold this process's memory.
 */
export class Drains {
  private running = 0;

  constructor(
    private readonly countMax: number,
    private readonly msMax: number,
  ) {}

  get size(): number {
    return this.running;
  }

  /**
   * @param cut called when the time is up
   * @returns what to call when the stream has ended, or null when there is no room: then abort it.
   */
  begin(cut: () => void): (() => void) | null {
    if (this.running >= this.countMax || this.msMax === 0) return null;
    this.running += 1;
    const timer = setTimeout(cut, this.msMax);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      clearTimeout(timer);
      this.running -= 1;
    };
  }
}
