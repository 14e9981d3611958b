import { type Clock, shardOf } from '@weir/domain';
import { pause } from '@weir/metering';
import {
  type Database,
  ledgerStateOf,
  loadScopeCounters,
  publishPolicies,
} from '@weir/persistence';
import type { Logger } from '@weir/platform';
import { EpochKeeper, LeaseReaper, PolicyPublisher, type QuotaRedis } from '@weir/quota';
import type { WorkerMetrics } from '../worker-metrics.js';
import type { SourceWatch } from './source-watch.js';

const reapBatch = 200;
/** Reaped at most per shard and round, so that one shard's flood does not keep the others waiting. */
const reapRoundsMax = 20;
const drainWaitMaxMs = 30_000;
const drainPollMs = 100;

/** Keeps the counters in Redis sound: reaps leases, and rebuilds what was lost from the books. */
export class CounterKeeper {
  private readonly reaper: LeaseReaper;
  private readonly epochs: EpochKeeper;
  private readonly publisher: PolicyPublisher;

  constructor(
    private readonly redis: QuotaRedis,
    private readonly database: Database,
    private readonly sources: SourceWatch,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly metrics: WorkerMetrics,
  ) {
    this.reaper = new LeaseReaper(redis, { batch: reapBatch });
    this.publisher = new PolicyPublisher(redis);
    this.epochs = new EpochKeeper(redis, {
      loadLedgerState: (shard) => this.loadLedgerState(shard),
      loadSeeds: (shard) =>
        Promise.resolve(
          loadScopeCounters(database.pool, shard, redis.shardCount, this.clock.now()),
        ),
      republish: (shard) => this.republish(shard),
    });
  }

  /** Settles the leases that have run out, on every shard. */
  async reap(signal: AbortSignal): Promise<void> {
    let firstFault: unknown;
    for (let shard = 0; shard < this.redis.shardCount && !signal.aborted; shard += 1) {
      try {
        for (let round = 0; round < reapRoundsMax; round += 1) {
          const reaped = await this.reaper.reap(shard);
          this.metrics.reaped.inc(reaped);
          if (reaped < reapBatch) break;
        }
      } catch (error) {
        // A shard that is being rebuilt must not keep the others' slots.
        firstFault ??= error;
      }
    }
    if (firstFault !== undefined) throw firstFault;
  }

  ensureEpochs(): Promise<void> {
    return this.epochs.ensureAll();
  }

  /**
   * Where the ledger stands. A shard without an epoch is being rebuilt: nothing is charged on it, so that what is still
   * on its way to the books ends; it must be in before the counters are taken from them, or it would be in neither.
   */
  private async loadLedgerState(shard: number) {
    const hasEpoch = await this.redis.client.exists(this.redis.keys(shard).epoch);
    if (hasEpoch === 0) await this.waitUntilDrained(shard);
    return ledgerStateOf(this.database.pool, shard);
  }

  private async waitUntilDrained(shard: number): Promise<void> {
    const waited = AbortSignal.timeout(drainWaitMaxMs);
    let fault: unknown;
    while (!waited.aborted) {
      try {
        if (await this.sources.isDrained(shard)) return;
      } catch (error) {
        // A broker that cannot say yet (a topic just made has no leader for a moment) has not said that nothing is left.
        fault = error;
      }
      await pause(drainPollMs, waited);
    }
    this.logger.warn(
      { shard, waited_ms: drainWaitMaxMs, err: fault },
      'the counters are rebuilt although events are still on their way to the books: they will be short by these',
    );
  }

  private async republish(shard: number): Promise<void> {
    const enterprises = await this.database.prisma.enterprise.findMany({ select: { id: true } });
    for (const { id } of enterprises) {
      if (shardOf(id, this.redis.shardCount) !== shard) continue;
      await publishPolicies(this.database.prisma, this.publisher, id, {
        all: true,
        nowMs: this.clock.now(),
      });
    }
  }
}
