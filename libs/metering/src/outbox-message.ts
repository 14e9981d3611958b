import type { StreamEntry } from './stream-relay.js';

/** What the relay hands on: the event's text as it travels, and a number that identifies the entry within its shard. */
export type OutboxMessage = {
  readonly shard: number;
  readonly streamId: string;
  /** The event's id, or the entry's where it has none. */
  readonly key: string;
  readonly value: string;
};

/** Where `data` begins in an event's text. In JSON a quote inside of a string is escaped, so this can only be that key. */
const dataStart = '"data":{';

/**
 * Puts the position that the settle script gave into the event's text: `data.position`. By text, because parsing and
 * writing each event again would cost more than all else the relay does.
 *
 * An entry that is no event is handed on as the JSON of its fields: the ledger dead-letters it with all it has.
 */
export function outboxMessageOf(entry: StreamEntry): OutboxMessage {
  const { shard, streamId, fields } = entry;
  const { id, seq, epoch, event } = fields;
  const at = event?.indexOf(dataStart) ?? -1;
  if (
    id === undefined ||
    event === undefined ||
    at < 0 ||
    epoch === undefined ||
    !isSequence(seq)
  ) {
    return { shard, streamId, key: id ?? streamId, value: JSON.stringify(fields) };
  }
  const cut = at + dataStart.length;
  const position = `"position":{"shard":${shard},"epoch":${JSON.stringify(epoch)},"seq":${seq}},`;
  return { shard, streamId, key: id, value: event.slice(0, cut) + position + event.slice(cut) };
}

function isSequence(seq: string | undefined): seq is string {
  return seq !== undefined && /^[1-9]\d{0,15}$/.test(seq);
}

/** A stream entry's id as one number: Redis counts at most some thousands per millisecond. */
export function streamIdNumber(streamId: string): bigint {
  const [ms = '0', sequence = '0'] = streamId.split('-');
  return BigInt(ms) * 1_000_000n + BigInt(sequence);
}
