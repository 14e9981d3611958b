import type { Logger } from '@weir/platform';
import type { QuotaEngine } from '@weir/quota';
import type { LiveCall } from './live-call.js';
import { Roster } from './roster.js';

const tickMs = 500;
/** Leases per renewal command, so that none holds the store for long. */
const batchMax = 256;

/**
 * Heartbeats: a call that runs longer than a third of its lease is renewed, in batches, together with what it has used
 * so far. Short calls, nearly all of them, never cost a renewal.
 */
export class LeaseKeeper {
  private readonly calls = new Roster<LiveCall>();
  private timer: NodeJS.Timeout | undefined;
  private renewing = false;

  constructor(
    private readonly engine: QuotaEngine,
    private readonly logger: Logger,
    private readonly now: () => number = () => performance.now(),
  ) {}

  start(): void {
    this.timer ??= setInterval(() => void this.renewDue(), tickMs).unref();
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  get size(): number {
    return this.calls.size;
  }

  track(call: LiveCall): void {
    call.place ??= this.calls.add(call);
    call.renewalDueMs = this.now() + call.leaseMs / 3;
  }

  untrack(call: LiveCall): void {
    if (call.place === null) return;
    this.calls.remove(call.place);
    call.place = null;
  }

  /** Renews all that is due. A failure is tried again at the next tick; two ticks of a lease may fail without harm. */
  async renewDue(): Promise<void> {
    if (this.renewing) return;
    this.renewing = true;
    try {
      const now = this.now();
      const due = [...this.calls].filter(({ renewalDueMs }) => renewalDueMs <= now);
      for (let start = 0; start < due.length; start += batchMax) {
        await this.renew(due.slice(start, start + batchMax));
      }
    } finally {
      this.renewing = false;
    }
  }

  private async renew(calls: readonly LiveCall[]): Promise<void> {
    try {
      const alive = await this.engine.renew(
        calls.map((call) => ({
          lease: call.lease,
          observed: call.observed(),
          leaseMs: call.leaseMs,
        })),
      );
      for (const call of calls) {
        if (call.place === null) continue;
        if (alive.has(call.lease.id)) {
          this.track(call);
          continue;
        }
        // It has expired and was charged; the call goes on and its settlement will be a late one.
        this.untrack(call);
        this.logger.warn(
          { lease: call.lease.id, request_id: call.draft.requestId },
          'a lease expired under a running call',
        );
      }
    } catch (error) {
      this.logger.warn(
        { err: error, leases: calls.length },
        'leases could not be renewed; trying again',
      );
    }
  }
}
