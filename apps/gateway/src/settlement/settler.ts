import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from '@weir/platform';
import type { Lease, QuotaEngine, SettleResult } from '@weir/quota';
import type { GatewayMetrics } from '../observe/gateway-metrics.js';
import type { CallEnd, Charge, LiveCall } from './live-call.js';
import type { LeaseKeeper } from './lease-keeper.js';
import { Underway } from './underway.js';

/** The end of an answer waits no longer than this for its settlement. */
const answerWaitMs = 20;
/** Settlements that the store did not take are tried again, up to this many and this long; then the reaper has them. */
const retriesMax = 10_000;
const retryPauseMs = 250;
const retryPauseMsMax = 5_000;
const retryForMs = 10 * 60_000;

type Unsettled = {
  readonly lease: Lease;
  readonly run: () => Promise<SettleResult | void>;
  readonly since: number;
  attempts: number;
  dueMs: number;
};

/**
 * Ends leases: each exactly once from this process, whichever way its call ends, and again and again while the store is
 * away. A settlement that is lost with this process is made by the reaper, from the lease's own record.
 */
export class Settler {
  private readonly unsettled = new Map<string, Unsettled>();
  private readonly running = new Underway();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly engine: QuotaEngine,
    private readonly keeper: LeaseKeeper,
    private readonly metrics: GatewayMetrics,
    private readonly logger: Logger,
    /** Told of each lease that has come to its end in the store: what it held is free. */
    private readonly onFreed: (enterpriseId: string) => void = () => undefined,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /**
   * Ends a call and resolves when it is settled, or after 20 ms, whichever comes first: the next call of a caller with a
   * concurrency of one must pass, and no caller waits on a slow store. Only the first end of a call counts.
   *
   * @param until `sent` where the limits leave room for that next call anyway: resolves as soon as the settlement is on
   * its way, before which no answer goes out.
   */
  async end(
    call: LiveCall,
    end: CallEnd,
    until: 'settled' | 'sent' = 'settled',
  ): Promise<Charge | null> {
    if (!call.markEnded()) return null;
    this.keeper.untrack(call);
    const charge = call.charge(end);
    this.metrics.callEnded(call, end, charge);
    if (charge.kind === 'usage' && charge.clamped) {
      this.logger.warn(
        { request_id: call.draft.requestId, provider: call.draft.provider.name },
        'the provider reported a usage that contradicts itself; it was clamped',
      );
    }
    const settled =
      charge.kind === 'nothing'
        ? this.start(call.lease, () => this.engine.void(call.lease))
        : this.start(call.lease, () => this.engine.settle(call.lease, charge.actual, charge.event));
    // What the engine is given in one turn of the event loop has left when the next one begins.
    await (until === 'sent' ? nextTurn() : this.within(settled));
    return charge;
  }

  /** Frees a lease of a call that never reached an upstream. */
  async release(
    lease: Pick<Lease, 'id' | 'shard' | 'enterpriseId'> & Partial<Lease>,
  ): Promise<void> {
    await this.within(this.start(lease as Lease, () => this.engine.void(lease)));
  }

  async releaseCall(call: LiveCall): Promise<void> {
    if (!call.markEnded()) return;
    this.keeper.untrack(call);
    await this.release(call.lease);
  }

  get pending(): number {
    return this.unsettled.size + this.running.size;
  }

  /** For the shutdown: waits for what runs and tries what is left once more. Bounded by the engine's own timeouts. */
  async flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    await this.running.idle();
    const left = [...this.unsettled.values()];
    this.unsettled.clear();
    for (const each of left) void this.start(each.lease, each.run);
    await this.running.idle();
    clearTimeout(this.timer);
    if (this.unsettled.size > 0) {
      this.logger.error(
        { unsettled: this.unsettled.size },
        'calls are left unsettled; the reaper will charge what was last observed',
      );
    }
  }

  /** Never rejects: what fails is tried again later. */
  private async start(lease: Lease, run: () => Promise<SettleResult | void>): Promise<void> {
    this.running.begin();
    try {
      const result = await run();
      this.unsettled.delete(lease.id);
      if (result !== undefined) this.metrics.settled(result.outcome);
      this.onFreed(lease.enterpriseId);
    } catch (error) {
      this.retryLater(lease, run, error);
    } finally {
      this.running.end();
    }
  }

  private retryLater(lease: Lease, run: () => Promise<SettleResult | void>, error: unknown): void {
    const now = this.now();
    const known = this.unsettled.get(lease.id);
    if (known === undefined && this.unsettled.size >= retriesMax) {
      this.metrics.settlementLeft();
      this.logger.error(
        { err: error, lease: lease.id },
        'a settlement was left to the reaper: too many wait',
      );
      return;
    }
    const entry = known ?? { lease, run, since: now, attempts: 0, dueMs: 0 };
    if (now - entry.since > retryForMs) {
      this.unsettled.delete(lease.id);
      this.metrics.settlementLeft();
      this.logger.error(
        { err: error, lease: lease.id },
        'a settlement was left to the reaper: it failed for too long',
      );
      return;
    }
    entry.dueMs = now + Math.min(retryPauseMsMax, retryPauseMs * 2 ** entry.attempts);
    entry.attempts += 1;
    this.unsettled.set(lease.id, entry);
    this.timer ??= setTimeout(() => this.retryDue(), retryPauseMs).unref();
  }

  private retryDue(): void {
    this.timer = undefined;
    const now = this.now();
    for (const entry of this.unsettled.values()) {
      if (entry.dueMs <= now) {
        entry.dueMs = Number.POSITIVE_INFINITY;
        void this.start(entry.lease, entry.run);
      }
    }
    if (this.unsettled.size > 0)
      this.timer = setTimeout(() => this.retryDue(), retryPauseMs).unref();
  }

  private within(work: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, answerWaitMs);
      work.then(() => {
        clearTimeout(timer);
        resolve();
      }, reject);
    });
  }
}
