import { hostname } from 'node:os';
import { outboxKey, refusalStreamKey } from '@weir/domain';
import { Cluster, Redis } from 'ioredis';
import type { MeteringLogger } from './logger.js';
import { type MessageBroker, MessageRefusedError } from './message-broker.js';
import { type OutboxMessage, outboxMessageOf } from './outbox-message.js';
import { type StreamEntry, StreamRelay } from './stream-relay.js';

/**
 * Where usage goes from the outbox: to Kafka, or straight to the ledger where there is none. Resolves once the
 * messages are safe; rejects to have the same ones again.
 */
export type UsageSink = { deliver(messages: readonly OutboxMessage[]): Promise<void> };

/** Puts messages on a topic. What the broker refuses for its size goes to the dead letters, the rest goes on. */
export function brokerSink(
  broker: MessageBroker,
  { topic, deadLetterTopic }: { topic: string; deadLetterTopic: string },
  logger: MeteringLogger,
): UsageSink {
  const deliver = async (messages: readonly OutboxMessage[]): Promise<void> => {
    try {
      await broker.produce(topic, messages);
    } catch (error) {
      if (!(error instanceof MessageRefusedError)) throw error;
      if (messages.length > 1) {
        const middle = messages.length >> 1;
        await deliver(messages.slice(0, middle));
        await deliver(messages.slice(middle));
        return;
      }
      const [message] = messages;
      if (message === undefined) return;
      const { shard, streamId, key, value } = message;
      logger.error(
        { err: error, shard, stream_id: streamId, event_id: key },
        'the broker refuses an event',
      );
      // In pieces: the whole is what the broker refuses.
      const pieces = value.match(/[\s\S]{1,200000}/g) ?? [];
      for (const [index, text] of pieces.entries()) {
        const piece = { shard, streamId, piece: index + 1, of: pieces.length, text };
        await broker.produce(deadLetterTopic, [{ key, value: JSON.stringify(piece) }]);
      }
    }
  };
  return { deliver };
}

export type MeteringRedisOptions = {
  readonly url: string;
  readonly cluster?: boolean;
  readonly logger: MeteringLogger;
};

/** A connection for the relays. Commands wait for a lost connection only briefly; the relay tries again. */
export function connectMeteringRedis(options: MeteringRedisOptions): Redis | Cluster {
  const commandTimeout = 10_000;
  const retryStrategy = (attempt: number): number => Math.min(attempt * 100, 2_000);
  const client =
    options.cluster === true
      ? new Cluster([options.url], {
          clusterRetryStrategy: retryStrategy,
          redisOptions: { commandTimeout },
        })
      : new Redis(options.url, { commandTimeout, retryStrategy, maxRetriesPerRequest: 3 });
  client.on('error', (error: Error) => options.logger.warn({ err: error }, 'redis connection'));
  return client;
}

export type RelayOptions = {
  readonly redis: Redis | Cluster;
  readonly prefix: string;
  readonly shardCount: number;
  readonly logger: MeteringLogger;
  readonly batchMax?: number;
  readonly claimIdleMs?: number;
  readonly onDelivered?: (count: number) => void;
};

/** The relay of usage events: outbox → sink. */
export function usageRelay(options: RelayOptions, sink: UsageSink): StreamRelay {
  return relayOf(options, outboxKey, 'usage', (entries) =>
    sink.deliver(entries.map(outboxMessageOf)),
  );
}

/** The relay of refused and failed calls. Their entries carry the event alone. */
export function refusalRelay(options: RelayOptions, sink: UsageSink): StreamRelay {
  return relayOf(options, refusalStreamKey, 'refusals', (entries) =>
    sink.deliver(
      entries.map(({ shard, streamId, fields }) => ({
        shard,
        streamId,
        key: streamId,
        value: fields['event'] ?? JSON.stringify(fields),
      })),
    ),
  );
}

function relayOf(
  options: RelayOptions,
  keyOf: (prefix: string, shard: number) => string,
  purpose: string,
  deliver: (entries: readonly StreamEntry[]) => Promise<void>,
): StreamRelay {
  return new StreamRelay({
    redis: options.redis,
    streams: Array.from({ length: options.shardCount }, (_, shard) => ({
      shard,
      key: keyOf(options.prefix, shard),
    })),
    group: `weir-${purpose}`,
    consumer: `${hostname()}-${process.pid}-${Math.random().toString(36).slice(2, 10)}`,
    batchMax: options.batchMax ?? 500,
    claimIdleMs: options.claimIdleMs ?? 30_000,
    deliver,
    logger: options.logger,
    ...(options.onDelivered && { onDelivered: options.onDelivered }),
  });
}

export type OutboxState = {
  readonly shard: number;
  /** Entries not yet removed: unread, or in a relay's hand. */
  readonly entries: number;
  /** When the oldest of them was written, milliseconds since the Unix epoch. */
  readonly oldestAtMs: number | null;
};

/** How much waits in each shard's outbox. */
export async function readOutboxes(
  redis: Redis | Cluster,
  prefix: string,
  shardCount: number,
): Promise<OutboxState[]> {
  const shards = Array.from({ length: shardCount }, (_, shard) => shard);
  return Promise.all(
    shards.map(async (shard) => {
      const key = outboxKey(prefix, shard);
      const [entries, oldest] = await Promise.all([
        redis.xlen(key),
        redis.xrange(key, '-', '+', 'COUNT', 1),
      ]);
      const id = oldest[0]?.[0];
      return { shard, entries, oldestAtMs: id === undefined ? null : Number(id.split('-')[0]) };
    }),
  );
}
