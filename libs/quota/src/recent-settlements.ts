import type { Actual, Lease } from './quota-engine.js';

/** A settlement that Redis has confirmed, kept for a while in case Redis loses it. */
export type RecentSettlement = {
  readonly lease: Lease;
  readonly actual: Actual;
  /** The usage event as JSON, outside of the heap: what lives for seconds there, the collector copies more than once. */
  readonly event: Buffer;
  /** The calendar fields to charge, as admit had them. */
  readonly descriptor: Buffer;
  readonly epoch: string;
  readonly seq: number;
  readonly atMs: number;
};

/** Redis' append-only file is written out every second; a failover may lose a little more. */
const keepMs = 15_000;
const maxKept = 50_000;
const slabBytes = 1024 * 1024;

/** The last seconds of settlements, oldest first; bounded in time and number. */
export class RecentSettlements {
  private entries: RecentSettlement[] = [];
  private first = 0;
  private slab = Buffer.alloc(0);
  private slabUsed = 0;

  /** The bytes of an event that may be added, in memory that goes when all of its neighbours are forgotten. */
  bytesOf(event: string): Buffer {
    const length = Buffer.byteLength(event);
    if (this.slab.length - this.slabUsed < length) {
      this.slab = Buffer.allocUnsafeSlow(Math.max(slabBytes, length));
      this.slabUsed = 0;
    }
    const start = this.slabUsed;
    this.slabUsed += this.slab.write(event, start);
    return this.slab.subarray(start, this.slabUsed);
  }

  add(entry: RecentSettlement): void {
    this.entries.push(entry);
    const oldest = entry.atMs - keepMs;
    while (
      this.first < this.entries.length &&
      ((this.entries[this.first]?.atMs ?? 0) < oldest || this.entries.length - this.first > maxKept)
    ) {
      this.first += 1;
    }
    // Moved in large steps, so that forgetting costs next to nothing per settlement.
    if (this.first > 1_024 && this.first * 2 > this.entries.length) {
      this.entries = this.entries.slice(this.first);
      this.first = 0;
    }
  }

  /** Takes out what one shard settled under other epochs than the one given. */
  takeOlderThan(shard: number, epoch: string): RecentSettlement[] {
    const taken: RecentSettlement[] = [];
    const kept: RecentSettlement[] = [];
    for (const entry of this.entries.slice(this.first)) {
      (entry.lease.shard === shard && entry.epoch !== epoch ? taken : kept).push(entry);
    }
    this.entries = kept;
    this.first = 0;
    return taken;
  }

  /** Puts back what could not be sent. */
  putBack(entries: readonly RecentSettlement[]): void {
    this.entries = [...entries, ...this.entries.slice(this.first)];
    this.first = 0;
  }

  get size(): number {
    return this.entries.length - this.first;
  }
}
