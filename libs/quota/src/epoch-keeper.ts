import { setTimeout as delay } from 'node:timers/promises';
import { newId, shardTag, WeirError } from '@weir/domain';
import { Cluster } from 'ioredis';
import { writeSeeds } from './counter-seeds.js';
import type { CounterSeed } from './quota-engine.js';
import type { Fence, QuotaRedis } from './quota-redis.js';

export type EpochKeeperOptions = {
  /** The newest epoch and the highest sequence number that the ledger has of a shard; null when it has none. */
  readonly loadLedgerState: (shard: number) => Promise<{ epoch: string; seq: number } | null>;
  /** The current periods' counters from the ledger's roll-ups. */
  readonly loadSeeds: (
    shard: number,
  ) => Promise<AsyncIterable<CounterSeed> | Iterable<CounterSeed>>;
  /** Publishes all policy documents of a shard anew. */
  readonly republish: (shard: number) => Promise<void>;
};

/** Whoever rebuilds a shard keeps saying so. One that says nothing for this long is presumed dead, and another takes over. */
const lockMs = 10_000;
const lockRenewMs = 3_000;
/** How long a caller waits for another's rebuild before it gives up for now. */
const waitMaxMs = 120_000;
const lockPollMs = 100;
const scanCount = 1_000;

type Condition = 'sound' | 'restarted' | 'lost';

/**
 * Decides whether a shard's data can be trusted, and rebuilds it where not.
 *
 * An epoch is declared on one server process. While it stands on another, scripts are not run (see
 * `QuotaRedis.confirmEpoch`), because a killed or failed-over Redis may have lost its last seconds:
 *
 * - `restarted`: the data is there and not older than what the ledger has seen. Counters and leases stay, a new epoch
 *   begins, and the gateways send their last seconds of settlements again.
 * - `lost`: there is no epoch, or the data is older than the ledger's. Counters and leases are wiped, the counters seeded
 *   from the roll-ups, the policies published, and only then the epoch set.
 */
export class EpochKeeper {
  constructor(
    private readonly redis: QuotaRedis,
    private readonly options: EpochKeeperOptions,
  ) {}

  /** Creates the shard's epoch where it is missing or not to be trusted. Idempotent; safe with several workers. */
  async ensure(shard: number): Promise<{ epoch: string; created: boolean }> {
    const deadline = performance.now() + waitMaxMs;
    for (;;) {
      const fence = await this.redis.fence(shard);
      this.checkShardCount(shard, fence);
      if ((await this.conditionOf(shard, fence)) === 'sound') {
        return { epoch: fence.epoch, created: false };
      }
      const token = newId();
      const { epochLock } = this.redis.keys(shard);
      if (
        await this.redis.withinTimeout(this.redis.client.set(epochLock, token, 'PX', lockMs, 'NX'))
      ) {
        const epoch = await this.holding(epochLock, token, () => this.rebuild(shard, token));
        if (epoch !== null) return { epoch, created: true };
      } else if (performance.now() > deadline) {
        throw new WeirError('quota_unavailable', `shard ${shard} is being rebuilt for too long`);
      } else {
        await delay(lockPollMs);
      }
    }
  }

  /** All shards at once: one that cannot be rebuilt does not keep the others closed. Rejects with the first fault. */
  async ensureAll(): Promise<void> {
    const results = await Promise.allSettled(
      Array.from({ length: this.redis.shardCount }, (_, shard) => this.ensure(shard)),
    );
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** Keeps the lock while the work runs, and gives it up when the work ends, also with a fault. */
  private async holding<T>(lock: string, token: string, work: () => Promise<T>): Promise<T> {
    const hold = (ms: number): Promise<unknown> =>
      this.redis.run('hold', [lock], [token, String(ms)]).catch((error: unknown) =>
        // Not held any longer at worst: then `declare` refuses, and the rebuild begins again.
        this.redis.logger.warn({ lock, error: String(error) }, 'a rebuild lock was not held'),
      );
    const renewal = setInterval(() => void hold(lockMs), lockRenewMs);
    try {
      return await work();
    } finally {
      clearInterval(renewal);
      await hold(0);
    }
  }

  private async conditionOf(shard: number, fence: Fence): Promise<Condition> {
    if (fence.epoch === '') return 'lost';
    const ledger = await this.options.loadLedgerState(shard);
    // Epoch ids are UUIDv7: a smaller one is older.
    const older =
      ledger !== null &&
      (fence.epoch < ledger.epoch || (fence.epoch === ledger.epoch && fence.seq < ledger.seq));
    if (older) return 'lost';
    return fence.sameRun ? 'sound' : 'restarted';
  }

  /** Null when the lock was lost on the way: someone else has taken over. */
  private async rebuild(shard: number, token: string): Promise<string | null> {
    const keys = this.redis.keys(shard);
    // Looked at again under the lock: another worker may have just finished.
    const fence = await this.redis.fence(shard);
    const condition = await this.conditionOf(shard, fence);
    if (condition === 'sound') return fence.epoch;
    let counted = { epoch: fence.epoch, seq: fence.seq };
    if (condition === 'lost') {
      if (!(await this.wipe(shard, token))) return null;
      counted = (await this.options.loadLedgerState(shard)) ?? { epoch: '', seq: 0 };
      await writeSeeds(this.redis, shard, await this.options.loadSeeds(shard));
      await this.options.republish(shard);
    }
    const epoch = newId();
    const reply = await this.redis.run(
      'declare',
      [keys.epoch, keys.meta, keys.seq, keys.epochLock],
      [epoch, token, String(this.redis.shardCount), counted.epoch, String(counted.seq)],
    );
    this.redis.logger.warn({ shard, epoch, condition, counted }, 'a new epoch was declared');
    return Number(reply) === 1 ? epoch : null;
  }

  /** False when the lock was lost on the way. The epoch goes first: nothing is charged from then on. */
  private async wipe(shard: number, token: string): Promise<boolean> {
    const { client, prefix } = this.redis;
    const keys = this.redis.keys(shard);
    const unlink = async (names: readonly string[]): Promise<boolean> =>
      Number(await this.redis.run('wipe', [keys.epochLock, ...names], [token])) === 1;
    if (!(await unlink([keys.epoch, keys.leases]))) return false;
    const nodes = client instanceof Cluster ? client.nodes('master') : [client];
    for (const kind of ['scope', 'lease']) {
      const match = `${globEscape(`${prefix}:${shardTag(shard)}:${kind}:`)}*`;
      for (const node of nodes) {
        let cursor = '0';
        do {
          const [next, found] = await node.scan(cursor, 'MATCH', match, 'COUNT', scanCount);
          cursor = next;
          if (found.length > 0 && !(await unlink(found))) return false;
        } while (cursor !== '0');
      }
    }
    return true;
  }

  private checkShardCount(shard: number, fence: Fence): void {
    if (fence.shardCount === null || fence.shardCount === this.redis.shardCount) return;
    throw new WeirError(
      'internal',
      `this installation was made with ${fence.shardCount} shards, the configuration says ${this.redis.shardCount}: the count decides where keys live and cannot change`,
      { shard },
    );
  }
}

function globEscape(text: string): string {
  return text.replace(/[[\]*?^\\]/g, '\\$&');
}
