import { randomUUID } from 'node:crypto';
import { kafkaBrokersOrNull, waitFor } from '@weir/testing';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { connectKafka } from './kafka-broker.js';
import type { BrokerSlice, MessageBroker } from './message-broker.js';
import { brokerSink } from './outbox-relay.js';

const brokers = kafkaBrokersOrNull();
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const unexpected = (error: Error) => {
  throw error;
};

describe.skipIf(brokers === null)('Kafka', () => {
  let broker: MessageBroker;
  let topic: string;
  let group: string;

  beforeAll(() => {
    broker = connectKafka({ brokers: brokers ?? [], clientId: 'test', logger: silent });
  });
  afterAll(async () => {
    await broker.close();
  });
  beforeEach(async () => {
    topic = `test-${randomUUID()}`;
    group = `group-${randomUUID()}`;
    await broker.ensureTopics([{ topic, partitions: 3, retentionMs: 3_600_000 }]);
  });

  const messages = (count: number, from = 0) =>
    Array.from({ length: count }, (_, index) => ({
      key: `key-${from + index}`,
      value: `value-${from + index}`,
    }));
  const valuesOf = (slices: readonly BrokerSlice[]) =>
    slices.flatMap(({ records }) =>
      records.map(({ value }) => Buffer.from(value ?? []).toString()),
    );
  const expected = (count: number) =>
    messages(count)
      .map(({ value }) => value)
      .sort();

  it('makes a topic once, also when two ask for it at the same time', async () => {
    const specs = [{ topic: `test-${randomUUID()}`, partitions: 2, retentionMs: 1_000 }];
    const other = connectKafka({ brokers: brokers ?? [], clientId: 'other', logger: silent });
    await Promise.all([broker.ensureTopics(specs), other.ensureTopics(specs)]);
    expect(await broker.offsetsOf(specs[0]?.topic ?? '')).toHaveLength(2);
    await other.close();
  });

  it('can still make a topic that was asked about before it was there', async () => {
    const late = `test-${randomUUID()}`;
    const fresh = connectKafka({ brokers: brokers ?? [], clientId: 'fresh', logger: silent });
    const asked = await Promise.allSettled([fresh.offsetsOf(late), fresh.offsetsOf(late)]);
    expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await fresh.ensureTopics([{ topic: late, partitions: 2, retentionMs: 1_000 }]);
    expect(await fresh.offsetsOf(late)).toHaveLength(2);
    await fresh.close();
  });

  it('brings every message to a consumer that starts after they were sent, in slices', async () => {
    await broker.produce(topic, messages(250));
    const slices: BrokerSlice[] = [];
    const consumer = await broker.consume({
      topics: [topic],
      group,
      sliceMax: 40,
      onFatal: unexpected,
      handle: async (slice) => {
        slices.push(slice);
        return 'done';
      },
    });
    await waitFor('all read', () => valuesOf(slices).length === 250);
    expect(valuesOf(slices).sort()).toEqual(expected(250));
    expect(Math.max(...slices.map(({ records }) => records.length))).toBeLessThanOrEqual(40);
    await consumer.stop();
  });

  it('brings what was not marked as done to the next consumer of the group', async () => {
    await broker.produce(topic, messages(60));
    let seen = 0;
    const first = await broker.consume({
      topics: [topic],
      group,
      sliceMax: 100,
      onFatal: unexpected,
      handle: (slice, { signal }) => {
        seen += slice.records.length;
        // Like a process that dies in the middle of its transaction.
        return new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('killed')));
        });
      },
    });
    await waitFor('the first has some', () => seen > 0);
    await first.stop();
    const slices: BrokerSlice[] = [];
    const second = await broker.consume({
      topics: [topic],
      group,
      sliceMax: 100,
      onFatal: unexpected,
      handle: async (slice) => {
        slices.push(slice);
        return 'done';
      },
    });
    await waitFor('the second has all', () => valuesOf(slices).length === 60);
    expect(valuesOf(slices).sort()).toEqual(expected(60));
    await second.stop();
  });

  it('reports a handler that throws a TypeError, once, instead of standing still', async () => {
    await broker.produce(topic, messages(30));
    const fatal: Error[] = [];
    const consumer = await broker.consume({
      topics: [topic],
      group,
      sliceMax: 5,
      onFatal: (error) => void fatal.push(error),
      handle: async () => {
        const broken = undefined as unknown as { length: number };
        return broken.length > 0 ? 'done' : 'done';
      },
    });
    await waitFor('the report', () => fatal.length > 0);
    expect(fatal[0]).toBeInstanceOf(TypeError);
    await consumer.stop();
    expect(fatal).toHaveLength(1);
  });

  it('reads again from where it is told, and says so when that is gone for good', async () => {
    await broker.produce(
      topic,
      messages(20).map((message) => ({ ...message, key: 'one-partition' })),
    );
    const starts: { from: bigint; isGapFinal: boolean }[] = [];
    let hasSentBack = false;
    const consumer = await broker.consume({
      topics: [topic],
      group,
      sliceMax: 10,
      onFatal: unexpected,
      handle: async ({ records, isGapFinal }) => {
        const from = records[0]?.offset ?? -1n;
        starts.push({ from, isGapFinal });
        if (from === 10n && !hasSentBack) {
          hasSentBack = true;
          return { readAgainFrom: 5n };
        }
        return 'done';
      },
    });
    await waitFor('all', () => starts.some(({ from }) => from === 15n));
    expect(starts).toEqual([
      { from: 0n, isGapFinal: false },
      { from: 10n, isGapFinal: false },
      { from: 5n, isGapFinal: true },
      { from: 15n, isGapFinal: false },
    ]);
    await consumer.stop();
  });

  it('shows where retention has eaten messages: the first offset it brings is above the last one seen', async () => {
    const sent = messages(20).map((message) => ({ ...message, key: 'one-partition' }));
    await broker.produce(topic, sent);
    const filled = (await broker.offsetsOf(topic)).find(({ high }) => high === 20n);
    const admin = new Kafka({ brokers: brokers ?? [], logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    await admin.fetchTopicOffsets(topic);
    await admin.deleteTopicRecords({
      topic,
      partitions: [{ partition: filled?.partition ?? 0, offset: '12' }],
    });
    await admin.disconnect();
    const starts: { from: bigint; isGapFinal: boolean }[] = [];
    const consumer = await broker.consume({
      topics: [topic],
      group,
      sliceMax: 100,
      onFatal: unexpected,
      handle: async ({ records, isGapFinal }) => {
        const from = records[0]?.offset ?? -1n;
        starts.push({ from, isGapFinal });
        // What the ledger does: its next offset is 4.
        return isGapFinal ? 'done' : { readAgainFrom: 4n };
      },
    });
    await waitFor('the final answer', () => starts.some(({ isGapFinal }) => isGapFinal));
    expect(starts).toEqual([
      { from: 12n, isGapFinal: false },
      { from: 12n, isGapFinal: true },
    ]);
    await consumer.stop();
  });

  it('reads a topic again from any offset without touching the group', async () => {
    await broker.produce(topic, messages(90));
    const offsets = await broker.offsetsOf(topic);
    const again: BrokerSlice[] = [];
    const from = new Map(offsets.map(({ partition, high }) => [partition, high / 2n]));
    await broker.readAgain({
      topic,
      from,
      sliceMax: 7,
      handle: async (slice) => void again.push(slice),
    });
    const wanted = offsets.reduce((sum, { high }) => sum + high - high / 2n, 0n);
    expect(BigInt(valuesOf(again).length)).toBe(wanted);
    const all: BrokerSlice[] = [];
    await broker.readAgain({
      topic,
      from: new Map(),
      sliceMax: 1_000,
      handle: async (slice) => void all.push(slice),
    });
    expect(valuesOf(all).sort()).toEqual(expected(90));
  });

  it('keeps a message that the broker refuses for its size, in pieces, and delivers its neighbours', async () => {
    const deadLetterTopic = `test-dlq-${randomUUID()}`;
    await broker.ensureTopics([{ topic: deadLetterTopic, partitions: 1, retentionMs: 3_600_000 }]);
    const huge = 'x'.repeat(1_200_000);
    const key = randomUUID();
    const outbox = [...messages(4), { key, value: huge }, ...messages(4, 4)];
    await brokerSink(broker, { topic, deadLetterTopic }, silent).deliver(
      outbox.map((message, index) => ({ ...message, shard: 0, streamId: `1-${index}` })),
    );
    const sent: BrokerSlice[] = [];
    const read = (from: string) =>
      broker.readAgain({
        topic: from,
        from: new Map(),
        sliceMax: 1_000,
        handle: async (slice) => void sent.push(slice),
      });
    await read(topic);
    // At least once: what went along with the huge one is sent again.
    expect([...new Set(valuesOf(sent))].sort()).toEqual(expected(8));
    sent.length = 0;
    await read(deadLetterTopic);
    const pieces = sent
      .flatMap(({ records }) => records)
      .filter((record) => Buffer.from(record.key ?? []).toString() === key)
      .map(({ value }) => JSON.parse(Buffer.from(value ?? []).toString()));
    expect(pieces.map(({ text }) => text).join('')).toBe(huge);
  });
});
