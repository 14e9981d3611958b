import { expiredSettlement } from './expired-call.js';
import { type LeaseRecord, readLeaseRecord } from './lease-record.js';
import { packDoubles } from './limbs.js';
import type { QuotaRedis } from './quota-redis.js';
import { tombstoneMs, usedNumbers } from './redis-engine.js';

/**
 * Ends the leases of calls whose gateway has died or paused: frees the slot, charges by estimate and emits the event (see
 * {@link expiredSettlement}).
 */
export class LeaseReaper {
  constructor(
    private readonly redis: QuotaRedis,
    private readonly options: { readonly batch: number },
  ) {}

  /** Settles the expired leases of one shard, at most a batch. Returns how many. Two reapers never free one twice. */
  async reap(shard: number): Promise<number> {
    const keys = this.redis.keys(shard);
    const { reply } = await this.redis.runFenced(
      'expired',
      shard,
      [keys.leases],
      [String(this.options.batch), keys.leasePrefix],
    );
    const found = reply as readonly Buffer[];
    let reaped = 0;
    for (let at = 0; at + 1 < found.length; at += 2) {
      const [id, record] = [found[at]?.toString() ?? '', found[at + 1] ?? Buffer.alloc(0)];
      if (await this.settle(shard, id, readLeaseRecord(record))) reaped += 1;
    }
    return reaped;
  }

  private async settle(shard: number, id: string, record: LeaseRecord | null): Promise<boolean> {
    const keys = this.redis.keys(shard);
    const settlement =
      record === null
        ? null
        : expiredSettlement({
            id,
            draft: record.draft,
            periodId: record.periodId,
            reservedAtMs: record.reservedAtMs,
            endedAtMs: record.expiresAtMs,
            inputTokens: record.reserved.budgetInputTokens,
            observed: record.observed,
          });
    const { reply } = await this.redis.runFenced(
      'settle',
      shard,
      [keys.lease(id), keys.leases, keys.seq, keys.outbox],
      [
        keys.scopePrefix,
        settlement ? usedNumbers(settlement.actual) : packDoubles([0, 0, 0, 0, 0, 0]),
        settlement ? JSON.stringify(settlement.event) : '',
        id,
        String(tombstoneMs),
        '1',
      ],
    );
    return Buffer.isBuffer(reply) && reply[0] === 0x4f; /* O */
  }
}
