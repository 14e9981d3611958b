/**
 * Bounded cache in two generations: when the young one is full it becomes the old one, and what
 * was not asked for since is dropped. As good as LRU here, at the price of one or two look-ups.
 */
export class RecentCounts {
  private young = new Map<string, number>();
  private old = new Map<string, number>();

  /** @param entriesMax bound of both generations together */
  constructor(private readonly entriesMax: number) {}

  get(piece: string): number | undefined {
    const found = this.young.get(piece);
    if (found !== undefined) return found;
    const older = this.old.get(piece);
    if (older !== undefined) this.set(piece, older);
    return older;
  }

  set(piece: string, tokens: number): void {
    if (this.young.size >= this.entriesMax / 2) {
      this.old = this.young;
      this.young = new Map();
    }
    this.young.set(piece, tokens);
  }

  get size(): number {
    return this.young.size + this.old.size;
  }
}
