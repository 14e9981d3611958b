import {
  type BrokerConsumer,
  type ConsumeOptions,
  brokerSink,
  type MessageBroker,
  refusalRelay,
  type RelayOptions,
  type StreamRelay,
  untilDone,
  usageRelay,
} from '@weir/metering';
import type { Logger } from '@weir/platform';
import type { Booking } from '../booking.js';
import { topicsOf, type WorkerConfig } from '../config.js';

const sideTopicPartitions = 2;
const startPauseMs = 250;
const startPauseMaxMs = 5_000;

/** The topics as we want them where they do not exist yet. */
export function topicSpecs(config: WorkerConfig) {
  const topics = topicsOf(config);
  const retentionMs = config.KAFKA_RETENTION_HOURS * 3_600_000;
  return [
    { topic: topics.usage, partitions: config.KAFKA_PARTITIONS, retentionMs },
    { topic: topics.deadLetters, partitions: 1, retentionMs },
    { topic: topics.refusals, partitions: sideTopicPartitions, retentionMs },
  ];
}

export type PipelineParts = {
  readonly config: WorkerConfig;
  readonly logger: Logger;
  readonly broker: MessageBroker | null;
  readonly relay: RelayOptions;
  readonly booking: Booking;
  /** A consumer is dead for good: the process must end, so that another one takes its partitions. */
  readonly onFatal: (error: Error) => void;
};

/**
 * The way of usage from the outbox to the books: the relay and ledger roles as far as this process has them. With a
 * broker the two meet in Kafka; without one the ledger reads the outbox itself.
 */
export class Pipeline {
  private readonly relays: StreamRelay[] = [];
  private readonly consumers: BrokerConsumer[] = [];
  private readonly stopping = new AbortController();
  private starting: Promise<void> | null = null;
  private hasStarted = false;

  constructor(private readonly parts: PipelineParts) {}

  /** Starts in the background and goes on trying: Kafka may come up later than we do. */
  start(): void {
    const { config, logger, onFatal } = this.parts;
    this.starting ??= untilDone(() => this.startParts(), {
      signal: this.stopping.signal,
      firstPauseMs: startPauseMs,
      pauseMaxMs: startPauseMaxMs,
      onFailure: (error, failures) => {
        logger.warn(
          { err: error, failures, brokers: config.KAFKA_BROKERS },
          'Kafka is not there yet',
        );
      },
    })
      .then(() => {
        this.hasStarted = true;
      })
      .catch((error: unknown) => {
        if (!this.stopping.signal.aborted) onFatal(error as Error);
      });
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.starting;
    await Promise.all(this.relays.map((relay) => relay.stop()));
    await Promise.all(this.consumers.map((consumer) => consumer.stop()));
  }

  /** Whether relays and consumers run; not so while Kafka was never there. */
  get isRunning(): boolean {
    return this.hasStarted;
  }

  /** Longest silence of a consumer; null when this process has none. */
  silentMs(): number | null {
    const silences = this.consumers.map((consumer) => consumer.silentMs());
    return silences.length === 0 ? null : Math.max(...silences);
  }

  private async startParts(): Promise<void> {
    const { config, broker } = this.parts;
    const has = (role: 'relay' | 'ledger') => config.WORKER_ROLES.includes(role);
    if (broker === null) {
      if (has('ledger')) this.startDirect();
      return;
    }
    if (!has('relay') && !has('ledger')) return;
    await broker.ensureTopics(topicSpecs(config));
    if (has('ledger')) await this.startConsumers(broker);
    if (has('relay')) this.startRelays(broker);
  }

  private startDirect(): void {
    const { relay, booking } = this.parts;
    this.relays.push(
      usageRelay(relay, booking.usageSink()),
      refusalRelay({ ...relay, onDelivered: () => undefined }, booking.refusalSink()),
    );
    for (const one of this.relays) one.start();
  }

  private startRelays(broker: MessageBroker): void {
    const { config, relay, logger } = this.parts;
    const topics = topicsOf(config);
    const sink = (topic: string) =>
      brokerSink(broker, { topic, deadLetterTopic: topics.deadLetters }, logger);
    this.relays.push(
      usageRelay(relay, sink(topics.usage)),
      refusalRelay({ ...relay, onDelivered: () => undefined }, sink(topics.refusals)),
    );
    for (const one of this.relays) one.start();
  }

  private async startConsumers(broker: MessageBroker): Promise<void> {
    const { config, booking, onFatal } = this.parts;
    const topics = topicsOf(config);
    const common = { sliceMax: config.LEDGER_SLICE_MAX, onFatal };
    const wanted: Omit<ConsumeOptions, keyof typeof common>[] = [
      {
        topics: [topics.usage],
        group: `${config.REDIS_PREFIX}-ledger`,
        handle: (slice, context) => booking.usageSlice(slice, context),
      },
      {
        topics: [topics.refusals, topics.deadLetters],
        group: `${config.REDIS_PREFIX}-refusals`,
        handle: (slice, context) => booking.sideSlice(slice, context),
      },
    ];
    // Those that were started before a failure stay.
    for (const options of wanted.slice(this.consumers.length)) {
      this.consumers.push(await broker.consume({ ...common, ...options }));
    }
  }
}
