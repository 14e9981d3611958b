import type { Clock } from '@weir/domain';
import {
  type MessageBroker,
  type OutboxState,
  readOutboxes,
  type RelayOptions,
} from '@weir/metering';
import { type Database, nextOffsets, noteSources } from '@weir/persistence';

/** Looks at what waits upstream of the ledger, and notes it in the books. */
export class SourceWatch {
  constructor(
    private readonly database: Database,
    private readonly broker: MessageBroker | null,
    private readonly relay: RelayOptions,
    private readonly clock: Clock,
    private readonly usageTopic: string,
  ) {}

  async note(): Promise<void> {
    const atMs = this.clock.now();
    const outboxes = await this.outboxes();
    // After the outboxes: what left them before was in Kafka by now, hence is counted here.
    const brokerLag = await this.brokerLag();
    await noteSources(this.database.pool, outboxes, brokerLag, atMs);
  }

  /** Whether everything that was charged on a shard is in the books. */
  async isDrained(shard: number): Promise<boolean> {
    const outbox = (await this.outboxes()).find((state) => state.shard === shard);
    return (outbox?.entries ?? 0) === 0 && (await this.brokerLag()) === 0n;
  }

  private outboxes(): Promise<OutboxState[]> {
    const { redis, prefix, shardCount } = this.relay;
    return readOutboxes(redis, prefix, shardCount);
  }

  /** Records in Kafka that the ledger has not booked. */
  async brokerLag(): Promise<bigint> {
    if (this.broker === null) return 0n;
    const ends = await this.broker.offsetsOf(this.usageTopic);
    const booked = await nextOffsets(this.database.pool, this.usageTopic);
    return ends.reduce((lag, { partition, low, high }) => {
      const next = booked.get(partition) ?? 0n;
      const from = next > low ? next : low;
      return high > from ? lag + high - from : lag;
    }, 0n);
  }
}
