import { randomUUID } from 'node:crypto';
import {
  type Admin,
  CompressionTypes,
  type EachBatchPayload,
  Kafka,
  type KafkaMessage,
  type logCreator,
  logLevel,
  Partitioners,
  type Producer,
} from 'kafkajs';
import type { MeteringLogger } from './logger.js';
import {
  type BrokerConsumer,
  type BrokerMessage,
  type BrokerRecord,
  type ConsumeOptions,
  type MessageBroker,
  MessageRefusedError,
  type PartitionOffsets,
  type TopicSpec,
} from './message-broker.js';

export type KafkaBrokerOptions = {
  /** `host:port` of one or more brokers. */
  readonly brokers: readonly string[];
  readonly clientId: string;
  readonly logger: MeteringLogger;
  /** How long a member may be silent before its partitions go to another one. */
  readonly sessionTimeoutMs?: number;
};

const requestTimeoutMs = 30_000;
/** Bytes that one fetch brings per partition: some thousand events. */
const fetchBytesMax = 4 * 1024 * 1024;
const fetchWaitMs = 100;
/** Partitions whose slices are handled at the same time. */
const partitionsAtOnce = 3;

/** Errors that name the message, not the moment. https://kafka.apache.org/protocol#protocol_error_codes */
const refusals = new Set([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_RECORD',
  'CORRUPT_MESSAGE',
]);

/** Kafka through kafkajs. Connects on first use. */
export function connectKafka(options: KafkaBrokerOptions): MessageBroker {
  return new KafkaBroker(options);
}

class KafkaBroker implements MessageBroker {
  private readonly kafka: Kafka;
  private readonly consumers = new Set<BrokerConsumer>();
  private readonly knownTopics = new Set<string>();
  private admin: Promise<Admin> | null = null;
  private producer: Promise<Producer> | null = null;

  constructor(private readonly options: KafkaBrokerOptions) {
    this.kafka = new Kafka({
      clientId: options.clientId,
      brokers: [...options.brokers],
      logLevel: logLevel.INFO,
      logCreator: logTo(options.logger),
      connectionTimeout: 5_000,
      requestTimeout: requestTimeoutMs,
      retry: { initialRetryTime: 100, retries: 5, maxRetryTime: 3_000 },
    });
  }

  async ensureTopics(topics: readonly TopicSpec[]): Promise<void> {
    const admin = await this.connectedAdmin();
    const existing = new Set(await admin.listTopics());
    const missing = topics.filter(({ topic }) => !existing.has(topic));
    if (missing.length === 0) return;
    // Two workers may do this at once: kafkajs answers false for a topic that exists by now.
    await admin.createTopics({
      waitForLeaders: true,
      topics: missing.map(({ topic, partitions, retentionMs }) => ({
        topic,
        numPartitions: partitions,
        configEntries: [
          { name: 'retention.ms', value: String(retentionMs) },
          // Retention goes by arrival: an event of last month that arrives today must not be deleted tomorrow.
          { name: 'message.timestamp.type', value: 'LogAppendTime' },
        ],
      })),
    });
  }

  async produce(topic: string, messages: readonly BrokerMessage[]): Promise<void> {
    if (messages.length === 0) return;
    const producer = await this.connectedProducer();
    try {
      await producer.send({
        topic,
        acks: -1,
        timeout: requestTimeoutMs,
        compression: CompressionTypes.None,
        messages: messages.map(({ key, value }) => ({
          key,
          value: typeof value === 'string' ? value : Buffer.from(value),
        })),
      });
    } catch (error) {
      throw isRefusal(error) ? new MessageRefusedError(error) : error;
    }
  }

  async consume(options: ConsumeOptions): Promise<BrokerConsumer> {
    const sessionTimeout = this.options.sessionTimeoutMs ?? 30_000;
    const consumer = this.kafka.consumer({
      groupId: options.group,
      sessionTimeout,
      rebalanceTimeout: 60_000,
      heartbeatInterval: Math.min(3_000, sessionTimeout / 3),
      maxBytesPerPartition: fetchBytesMax,
      maxWaitTimeInMs: fetchWaitMs,
      allowAutoTopicCreation: false,
    });
    const stopping = new AbortController();
    let lastAnswerAtMs = Date.now();
    let isDead = false;
    const die = (error: Error): void => {
      if (isDead || stopping.signal.aborted) return;
      isDead = true;
      options.onFatal(error);
    };
    const noteAnswer = (): void => {
      lastAnswerAtMs = Date.now();
    };
    consumer.on(consumer.events.HEARTBEAT, noteAnswer);
    consumer.on(consumer.events.FETCH, noteAnswer);
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      // kafkajs restarts by itself after what it holds to be passing; all else would leave a consumer that does nothing.
      if (!payload.restart) die(payload.error);
    });
    const askedAgain = new Set<string>();

    await consumer.connect();
    await consumer.subscribe({ topics: [...options.topics], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: partitionsAtOnce,
      eachBatch: async (payload) => {
        try {
          await this.handleBatch(
            payload,
            options,
            stopping.signal,
            askedAgain,
            (topic, partition, offset) =>
              consumer.seek({ topic, partition, offset: offset.toString() }),
          );
        } catch (error) {
          // Stopped in the middle: what is not marked as done is read by the next one.
          if (stopping.signal.aborted) return;
          // A rebalance or a lost connection is kafkajs's to deal with. Anything else is a fault of ours, which it would
          // log and then never fetch again.
          if (!isOfKafka(error)) die(error instanceof Error ? error : new Error(String(error)));
          throw error;
        }
      },
    });
    const handle: BrokerConsumer = {
      silentMs: () => Date.now() - lastAnswerAtMs,
      stop: async () => {
        if (stopping.signal.aborted) return;
        stopping.abort();
        this.consumers.delete(handle);
        await consumer.disconnect();
      },
    };
    this.consumers.add(handle);
    return handle;
  }

  /** Cuts what a fetch brought into slices, and marks each as done only after it was handled. */
  private async handleBatch(
    payload: EachBatchPayload,
    options: ConsumeOptions,
    signal: AbortSignal,
    askedAgain: Set<string>,
    seek: (topic: string, partition: number, offset: bigint) => void,
  ): Promise<void> {
    const { batch, isRunning, isStale, heartbeat, resolveOffset } = payload;
    const { topic, partition } = batch;
    for (let start = 0; start < batch.messages.length; start += options.sliceMax) {
      if (!isRunning() || isStale() || signal.aborted) return;
      const messages = batch.messages.slice(start, start + options.sliceMax);
      const records = messages.map(toRecord);
      const [first] = records;
      const last = records.at(-1);
      if (first === undefined || last === undefined) return;
      const isGapFinal = [...askedAgain].some((key) => key.startsWith(`${topic}/${partition}/`));
      const outcome = await options.handle(
        { topic, partition, records, isGapFinal },
        { heartbeat, signal },
      );
      if (outcome !== 'done') {
        askedAgain.add(`${topic}/${partition}/${outcome.readAgainFrom}`);
        seek(topic, partition, outcome.readAgainFrom);
        return;
      }
      askedAgain.forEach((key) => {
        if (key.startsWith(`${topic}/${partition}/`)) askedAgain.delete(key);
      });
      resolveOffset(last.offset.toString());
      await heartbeat();
    }
    // A hint for the next one who gets the partition; the database knows better.
    await payload.commitOffsetsIfNecessary(payload.uncommittedOffsets());
  }

  async readAgain(options: Parameters<MessageBroker['readAgain']>[0]): Promise<void> {
    const { topic } = options;
    const admin = await this.connectedAdmin();
    const pending = new Map<number, bigint>();
    const starts = new Map<number, bigint>();
    for (const { partition, low, high } of await this.offsetsOf(topic)) {
      const asked = options.from.get(partition) ?? low;
      const start = asked < low ? low : asked;
      if (start >= high) continue;
      starts.set(partition, start);
      pending.set(partition, high);
    }
    if (pending.size === 0) return;
    const groupId = `weir-replay-${randomUUID()}`;
    const consumer = this.kafka.consumer({ groupId, maxBytesPerPartition: fetchBytesMax });
    try {
      await consumer.connect();
      await consumer.subscribe({ topics: [topic], fromBeginning: true });
      await new Promise<void>((resolve, reject) => {
        consumer.on(consumer.events.CRASH, ({ payload }) => {
          if (!payload.restart) reject(payload.error);
        });
        consumer
          .run({
            autoCommit: false,
            eachBatchAutoResolve: false,
            eachBatch: async ({ batch, resolveOffset, heartbeat }) => {
              const start = starts.get(batch.partition);
              const end = pending.get(batch.partition);
              const records = batch.messages
                .map(toRecord)
                .filter(
                  ({ offset }) =>
                    start !== undefined && end !== undefined && offset >= start && offset < end,
                );
              for (let at = 0; at < records.length; at += options.sliceMax) {
                const slice = records.slice(at, at + options.sliceMax);
                await options.handle({
                  topic,
                  partition: batch.partition,
                  records: slice,
                  isGapFinal: true,
                });
                await heartbeat();
              }
              const last = BigInt(batch.lastOffset());
              resolveOffset(last.toString());
              if (end !== undefined && last + 1n >= end) pending.delete(batch.partition);
              if (pending.size === 0) resolve();
            },
          })
          .then(() => {
            for (const [partition, offset] of starts) {
              consumer.seek({ topic, partition, offset: offset.toString() });
            }
          }, reject);
      });
    } finally {
      await consumer.disconnect();
      await admin.deleteGroups([groupId]).catch((error: unknown) => {
        this.options.logger.warn(
          { err: error, groupId },
          'the group of a replay could not be removed',
        );
      });
    }
  }

  /**
   * A topic that is not there yet is never asked for: kafkajs remembers every topic that a client was asked about, and two
   * questions at once can make it keep a missing one for good. From then on all that the client does fails, even to
   * create that topic.
   */
  async offsetsOf(topic: string): Promise<PartitionOffsets[]> {
    const admin = await this.connectedAdmin();
    if (!this.knownTopics.has(topic)) {
      if (!(await admin.listTopics()).includes(topic)) {
        throw new Error(`the topic ${topic} does not exist yet`);
      }
      this.knownTopics.add(topic);
    }
    const offsets = await admin.fetchTopicOffsets(topic);
    return offsets.map(({ partition, low, high }) => ({
      partition,
      low: BigInt(low),
      high: BigInt(high),
    }));
  }

  async close(): Promise<void> {
    for (const consumer of [...this.consumers]) await consumer.stop();
    const [producer, admin] = await Promise.allSettled([this.producer, this.admin]);
    if (producer.status === 'fulfilled') await producer.value?.disconnect();
    if (admin.status === 'fulfilled') await admin.value?.disconnect();
  }

  private connectedAdmin(): Promise<Admin> {
    this.admin ??= connected(this.kafka.admin()).catch((error: unknown) => {
      this.admin = null;
      throw error;
    });
    return this.admin;
  }

  private connectedProducer(): Promise<Producer> {
    this.producer ??= connected(
      this.kafka.producer({
        allowAutoTopicCreation: false,
        createPartitioner: Partitioners.DefaultPartitioner,
      }),
    ).catch((error: unknown) => {
      this.producer = null;
      throw error;
    });
    return this.producer;
  }
}

async function connected<T extends { connect(): Promise<void> }>(client: T): Promise<T> {
  await client.connect();
  return client;
}

function toRecord(message: KafkaMessage): BrokerRecord {
  return { offset: BigInt(message.offset), key: message.key, value: message.value };
}

function isRefusal(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { type } = cause as { type?: unknown };
    if (typeof type === 'string' && refusals.has(type)) return true;
  }
  return false;
}

function isOfKafka(error: unknown): boolean {
  return error instanceof Error && error.name.startsWith('KafkaJS');
}

/** What kafkajs says about ordinary rebalances and reconnects at ERROR is not an operator's business. */
const passing =
  /rebalanc|not aware of this member|Connection error|Connection timeout|ECONNREFUSED|coordinator/i;

function logTo(logger: MeteringLogger): logCreator {
  return () =>
    ({ level, log: { message, timestamp: _timestamp, logger: _logger, ...details } }) => {
      const { error, stack: _stack, ...rest } = details;
      const fields = { kafka: { ...rest, error } };
      const isPassing = passing.test(`${message} ${String(error)}`);
      if (level === logLevel.ERROR && !isPassing) logger.error(fields, message);
      else if (level === logLevel.ERROR || level === logLevel.WARN) logger.warn(fields, message);
      else logger.debug(fields, message);
    };
}
