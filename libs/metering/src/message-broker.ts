/** A message to the broker. `value` is bytes or text; the time is the broker's own at arrival. */
export type BrokerMessage = { readonly key: string; readonly value: string | Uint8Array };

/** A message as it stands in the broker's log. */
export type BrokerRecord = {
  readonly offset: bigint;
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
};

/** Consecutive messages of one partition, oldest first, never empty. */
export type BrokerSlice = {
  readonly topic: string;
  readonly partition: number;
  readonly records: readonly BrokerRecord[];
  /** The broker was asked for what is missing before this slice, and does not have it. */
  readonly isGapFinal: boolean;
};

/** `read-again`: continue from that offset instead; this slice is not done. */
export type SliceOutcome = 'done' | { readonly readAgainFrom: bigint };

export type SliceContext = {
  /** A sign of life. Call it every few seconds during long work. Rejects when the partition is no longer ours. */
  heartbeat(): Promise<void>;
  /** Aborts when the consumer stops. */
  readonly signal: AbortSignal;
};

export type ConsumeOptions = {
  readonly topics: readonly string[];
  readonly group: string;
  /** Most messages per slice. */
  readonly sliceMax: number;
  /**
   * Resolves once the slice is safe. Must deal with what is worth trying again by itself: whatever it throws ends the
   * consumer, through `onFatal`.
   */
  readonly handle: (slice: BrokerSlice, context: SliceContext) => Promise<SliceOutcome>;
  /** The consumer is dead and does not come back: end the process. Called once. */
  readonly onFatal: (error: Error) => void;
};

export type BrokerConsumer = {
  /** Ends after the slice in hand. */
  stop(): Promise<void>;
  /** Milliseconds since the broker last heard from us and answered, or since the start. */
  silentMs(): number;
};

export type TopicSpec = {
  readonly topic: string;
  readonly partitions: number;
  readonly retentionMs: number;
};

export type PartitionOffsets = {
  readonly partition: number;
  readonly low: bigint;
  readonly high: bigint;
};

/** All that the rest of Weir knows of Kafka. */
export type MessageBroker = {
  /** Makes the topics that are missing. Topics that exist stay as they are. */
  ensureTopics(topics: readonly TopicSpec[]): Promise<void>;
  /** Resolves once every in-sync replica has the messages; rejects when that is not known. */
  produce(topic: string, messages: readonly BrokerMessage[]): Promise<void>;
  consume(options: ConsumeOptions): Promise<BrokerConsumer>;
  /**
   * Reads a topic from given offsets (partitions that are not named: from their beginning) up to where it ends now.
   * Leaves no trace in any group.
   */
  readAgain(options: {
    readonly topic: string;
    readonly from: ReadonlyMap<number, bigint>;
    readonly sliceMax: number;
    readonly handle: (slice: BrokerSlice) => Promise<void>;
  }): Promise<void>;
  offsetsOf(topic: string): Promise<PartitionOffsets[]>;
  close(): Promise<void>;
};

/** The broker refuses a message for what it is: sending it again cannot help. */
export class MessageRefusedError extends Error {
  constructor(cause: unknown) {
    super(
      `the broker refuses the message: ${cause instanceof Error ? cause.message : String(cause)}`,
      {
        cause,
      },
    );
    this.name = 'MessageRefusedError';
  }
}
