import {
  type BrokerSlice,
  type OutboxMessage,
  type SliceContext,
  type SliceOutcome,
  streamIdNumber,
  untilDone,
  type UsageSink,
} from '@weir/metering';
import { bookRefusals, type Database, isTransientFault, UsageLedger } from '@weir/persistence';
import type { Clock } from '@weir/domain';
import type { Logger } from '@weir/platform';
import type { WorkerMetrics } from './worker-metrics.js';

const firstPauseMs = 100;
const pauseMaxMs = 3_000;
const heartbeatEveryMs = 2_000;

/** Brings records to the books, from Kafka or from the outbox, and waits out a database that is away. */
export class Booking {
  private readonly ledger: UsageLedger;

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly logger: Logger,
    private readonly metrics: WorkerMetrics,
    private readonly deadLetterTopic: string,
  ) {
    this.ledger = new UsageLedger(database.pool, { clock });
  }

  /** Books a slice of the usage topic. Only the record of what was done in the database moves on. */
  async usageSlice(slice: BrokerSlice, context: SliceContext): Promise<SliceOutcome> {
    const result = await this.patiently(context, () =>
      this.timed(() =>
        this.ledger.bookSlice({
          topic: slice.topic,
          partition: slice.partition,
          records: slice.records,
          order: 'fenced',
          acceptGap: slice.isGapFinal,
        }),
      ),
    );
    if (result.outcome === 'gap') {
      const { topic, partition } = slice;
      this.logger.warn({ topic, partition, from: String(result.nextOffset) }, 'reading again');
      return { readAgainFrom: result.nextOffset };
    }
    return 'done';
  }

  /** Stores a slice of refusals, or of what the broker refused to carry. */
  async sideSlice(slice: BrokerSlice, context: SliceContext): Promise<SliceOutcome> {
    await this.patiently(context, async () => {
      if (slice.topic === this.deadLetterTopic) {
        // None of them is an event: the ledger keeps each as a dead letter.
        await this.ledger.bookSlice({ ...slice, order: 'unfenced' });
        return;
      }
      const { booked, deadLetters } = await bookRefusals(
        this.database.pool,
        slice,
        this.clock.now(),
      );
      this.metrics.ledgerRecords.inc({ outcome: 'refusal' }, booked);
      this.metrics.ledgerRecords.inc({ outcome: 'dead_letter' }, deadLetters);
    });
    return 'done';
  }

  /** Without Kafka: straight from the outbox. */
  usageSink(): UsageSink {
    return {
      deliver: async (messages) => {
        for (const [shard, records] of byShard(messages)) {
          await this.timed(() =>
            this.ledger.bookSlice({
              topic: 'outbox',
              partition: shard,
              records,
              order: 'unfenced',
            }),
          );
        }
      },
    };
  }

  refusalSink(): UsageSink {
    return {
      deliver: async (messages) => {
        for (const [shard, records] of byShard(messages)) {
          const { booked } = await bookRefusals(
            this.database.pool,
            { topic: 'refusals', partition: shard, records },
            this.clock.now(),
          );
          this.metrics.ledgerRecords.inc({ outcome: 'refusal' }, booked);
        }
      },
    };
  }

  private async timed<T extends Awaited<ReturnType<UsageLedger['bookSlice']>>>(
    book: () => Promise<T>,
  ): Promise<T> {
    const end = this.metrics.commitSeconds.startTimer();
    const result = await book();
    end();
    if (result.outcome === 'booked') {
      this.metrics.ledgerRecords.inc({ outcome: 'booked' }, result.booked);
      this.metrics.ledgerRecords.inc({ outcome: 'repeated' }, result.repeated);
      this.metrics.ledgerRecords.inc({ outcome: 'conflict' }, result.conflicts);
      this.metrics.ledgerRecords.inc({ outcome: 'dead_letter' }, result.deadLetters);
    }
    return result;
  }

  /**
   * Tries until the database takes it; the broker hears from us meanwhile, and no further slice is read, so that memory
   * stays where it is. A fault that is not the database's passing state ends the consumer, and with it the process.
   */
  private async patiently<T>(context: SliceContext, work: () => Promise<T>): Promise<T> {
    const beat = setInterval(() => {
      // A rebalance shows at the next heartbeat that is waited for.
      context.heartbeat().catch(() => undefined);
    }, heartbeatEveryMs);
    try {
      return await untilDone(work, {
        signal: context.signal,
        firstPauseMs,
        pauseMaxMs,
        isWorthRetrying: isTransientFault,
        whileWaiting: () => context.heartbeat(),
        onFailure: (error, failures) => {
          this.logger.warn(
            { err: error, failures },
            'the database does not take the slice; trying again',
          );
        },
      });
    } finally {
      clearInterval(beat);
    }
  }
}

function byShard(messages: readonly OutboxMessage[]) {
  const groups = new Map<number, { offset: bigint; key: Buffer; value: Buffer }[]>();
  for (const { shard, streamId, key, value } of messages) {
    const group = groups.get(shard) ?? [];
    groups.set(shard, group);
    group.push({
      offset: streamIdNumber(streamId),
      key: Buffer.from(key),
      value: Buffer.from(value),
    });
  }
  return groups;
}
