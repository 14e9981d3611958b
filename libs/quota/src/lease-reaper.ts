import { usageEventOf } from '@weir/domain';
import { estimatedCharge } from './estimated-charge.js';
import { type LeaseRecord, readLeaseRecord } from './lease-record.js';
import { limbsOf, limbsOfCount, packDoubles } from './limbs.js';
import type { Observed } from './quota-engine.js';
import type { QuotaRedis } from './quota-redis.js';
import { tombstoneMs } from './redis-engine.js';

/**
 * Ends the leases of calls whose gateway has died or paused: charges what was last observed, frees the slot and emits an
 * event with status `expired`, marked as estimated.
 *
 * Where nothing was observed, the prompt as it was reserved is charged and no output: the call was admitted and most
 * likely sent, and a call that was sent is never free.
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
    const settlement = record === null ? null : expiredSettlement(id, record);
    const { reply } = await this.redis.runFenced(
      'settle',
      shard,
      [keys.lease(id), keys.leases, keys.seq, keys.outbox],
      [
        keys.scopePrefix,
        settlement?.used ?? packDoubles([0, 0, 0, 0, 0, 0]),
        settlement?.event ?? '',
        id,
        String(tombstoneMs),
        '1',
      ],
    );
    return Buffer.isBuffer(reply) && reply[0] === 0x4f; /* O */
  }
}

function expiredSettlement(id: string, record: LeaseRecord): { used: Buffer; event: string } {
  const observed: Observed = record.observed ?? {
    inputTokens: record.reserved.budgetInputTokens,
    outputTokens: 0,
    costNano: 0n,
  };
  const charge = estimatedCharge(record.draft.price, observed);
  const reservedAt = new Date(record.reservedAtMs).toISOString();
  const event = usageEventOf(id, {
    ...record.draft,
    kind: 'usage',
    adjusts: null,
    usage: charge.usage,
    costPico: charge.costPico.toString(),
    costNano: charge.costNano.toString(),
    periodId: record.periodId,
    reservedAt,
    startedAt: reservedAt,
    firstTokenAt: null,
    endedAt: new Date(record.expiresAtMs).toISOString(),
    status: 'expired',
    estimated: true,
    late: false,
  });
  return {
    used: packDoubles([
      ...limbsOfCount(observed.inputTokens),
      ...limbsOfCount(observed.outputTokens),
      ...limbsOf(charge.costNano),
    ]),
    event: JSON.stringify(event),
  };
}
