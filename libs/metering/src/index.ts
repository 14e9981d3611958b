export { connectKafka, type KafkaBrokerOptions } from './kafka-broker.js';
export type { MeteringLogger } from './logger.js';
export {
  type BrokerConsumer,
  type BrokerMessage,
  type BrokerRecord,
  type BrokerSlice,
  type ConsumeOptions,
  type MessageBroker,
  MessageRefusedError,
  type PartitionOffsets,
  type SliceContext,
  type SliceOutcome,
  type TopicSpec,
} from './message-broker.js';
export { type OutboxMessage, streamIdNumber } from './outbox-message.js';
export {
  brokerSink,
  connectMeteringRedis,
  type MeteringRedisOptions,
  type OutboxState,
  readOutboxes,
  refusalRelay,
  type RelayOptions,
  usageRelay,
  type UsageSink,
} from './outbox-relay.js';
export { pause, StoppedError, untilDone } from './retry.js';
export { type StreamEntry, StreamRelay, type StreamRelayOptions } from './stream-relay.js';
