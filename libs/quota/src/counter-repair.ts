import { WeirError } from '@weir/domain';
import { calendarField, readCalendarRecord } from './counter-fields.js';
import { limbsOf, packDoubles } from './limbs.js';
import type { QuotaRedis } from './quota-redis.js';

/** What one scope has used in one period; or, signed, what is to be added to it. Cost in nano-currency. */
export type CounterFigures = {
  readonly requests: bigint;
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
  readonly costNano: bigint;
};

/** Where a shard stood when its counters were compared with the books. */
export type ShardPosition = { readonly epoch: string; readonly seq: number };

export type Repair = {
  /** The same repair again changes nothing. */
  readonly id: string;
  readonly shard: number;
  readonly scopeId: string;
  readonly periodId: string;
  /** null: all models together. */
  readonly model: string | null;
  /** The counter as it was read: used, without what is reserved. */
  readonly expected: CounterFigures;
  readonly difference: CounterFigures;
  /** As it was before the counter was read. */
  readonly position: ShardPosition;
};

export type RepairResult =
  /** `before`: the counter as it was found when the repair was first applied. */
  | { readonly outcome: 'applied' | 'repeated'; readonly before: CounterFigures }
  /** Nothing was changed: another epoch, an event or another repair since, an open lease, or the counter would be less than nothing. */
  | { readonly outcome: 'other-epoch' | 'moved' | 'in-use' | 'negative' };

/** Corrects a counter that differs from the ledger. The ledger is never corrected this way. */
export class CounterRepair {
  constructor(private readonly redis: QuotaRedis) {}

  /** @throws WeirError `quota_unavailable` while the shard's data cannot be trusted */
  async position(shard: number): Promise<ShardPosition> {
    const epoch = await this.redis.confirmEpoch(shard);
    const fence = await this.redis.fence(shard);
    if (fence.epoch !== epoch) {
      throw new WeirError('quota_unavailable', `shard ${shard} is changing its epoch`, { shard });
    }
    return { epoch, seq: fence.seq };
  }

  /** @throws WeirError `quota_unavailable`: the repair may have been applied or not; the same id tells */
  async apply(repair: Repair): Promise<RepairResult> {
    const { position, expected, difference } = repair;
    const keys = this.redis.keys(repair.shard);
    const reply = (await this.redis.run(
      'correct',
      [keys.epoch, keys.seq, keys.scope(repair.scopeId)],
      [
        position.epoch,
        String(position.seq),
        calendarField(repair.periodId, repair.model),
        repairField(repair.id),
        packFigures(difference),
        packFigures(expected),
      ],
    )) as Buffer;
    const outcome = outcomes[reply.toString('latin1', 0, 1)];
    if (outcome === undefined) throw new Error('correct.lua gave an answer that is not one of its');
    if (outcome !== 'applied' && outcome !== 'repeated') return { outcome };
    return { outcome, before: figuresOf(reply.subarray(1)) };
  }

  /** What an earlier repair found before it was applied; null when it never was, or was lost with its counter. */
  async find(shard: number, scopeId: string, id: string): Promise<CounterFigures | null> {
    const key = this.redis.keys(shard).scope(scopeId);
    const before = await this.redis.withinTimeout(
      this.redis.client.hgetBuffer(key, repairField(id)),
    );
    return before === null ? null : figuresOf(before);
  }
}

function figuresOf(record: Buffer): CounterFigures {
  const { requests, inputTokens, outputTokens, costNano } = readCalendarRecord(record);
  return { requests, inputTokens, outputTokens, costNano };
}

function packFigures(figures: CounterFigures): Buffer {
  return packDoubles([
    Number(figures.requests),
    ...limbsOf(figures.inputTokens),
    ...limbsOf(figures.outputTokens),
    ...limbsOf(figures.costNano),
  ]);
}

const outcomes: Readonly<Record<string, RepairResult['outcome']>> = {
  E: 'other-epoch',
  D: 'repeated',
  C: 'moved',
  R: 'in-use',
  N: 'negative',
  O: 'applied',
};

/** Beside the counters of the scope, so that the memory of a repair is lost only together with what it repaired. */
function repairField(id: string): string {
  return `repair|${id}`;
}
