import { usageEventSchema } from '@weir/domain';
import { testTenant, usageEvent } from '@weir/testing';
import { describe, expect, it } from 'vitest';
import { outboxMessageOf, streamIdNumber } from './outbox-message.js';

const atMs = Date.parse('2026-11-29T10:00:00Z');

function entryOf(event: { id: string }, fields: Record<string, string> = {}) {
  return {
    shard: 3,
    streamId: '1764410400000-0',
    fields: { id: event.id, seq: '42', epoch: 'e"1', event: JSON.stringify(event), ...fields },
  };
}

describe('an outbox entry', () => {
  it('becomes the event with its position, valid by the schema', () => {
    const event = usageEvent(testTenant(), atMs);
    const message = outboxMessageOf(entryOf(event));
    const parsed = usageEventSchema.parse(JSON.parse(message.value));
    expect(parsed).toEqual({
      ...event,
      data: { ...event.data, position: { shard: 3, epoch: 'e"1', seq: 42 } },
    });
    expect(message.key).toBe(event.id);
  });

  it('is not misled by a tenant who writes the mark into a name or a tag', () => {
    const hostile = '"data":{"position":{"shard":9}}';
    const tenant = testTenant({ user: { id: testTenant().user.id, name: hostile } });
    const event = usageEvent(tenant, atMs, { tags: { data: hostile, [hostile]: '{' } });
    const parsed = JSON.parse(outboxMessageOf(entryOf(event)).value);
    expect(parsed.data.position).toEqual({ shard: 3, epoch: 'e"1', seq: 42 });
    expect(parsed.data.user.name).toBe(hostile);
  });

  it('keeps its position whatever the order of the keys', () => {
    const { data, ...envelope } = usageEvent(testTenant(), atMs);
    const parsed = JSON.parse(
      outboxMessageOf(entryOf({ data, ...envelope } as { id: string })).value,
    );
    expect(parsed.data.position.seq).toBe(42);
    expect(parsed.id).toBe(envelope.id);
  });

  it.each([
    ['no event', { event: 'not json' }],
    ['no sequence number', { seq: '' }],
    ['a sequence number of zero', { seq: '0' }],
  ])('with %s travels on with all it has, for the ledger to dead-letter', (_name, fields) => {
    const entry = entryOf(usageEvent(testTenant(), atMs), fields);
    expect(JSON.parse(outboxMessageOf(entry).value)).toEqual(entry.fields);
  });
});

describe("a stream entry's id as a number", () => {
  it('keeps the order and is unique', () => {
    const ids = ['1764410400000-0', '1764410400000-1', '1764410400000-999', '1764410400001-0'];
    const numbers = ids.map(streamIdNumber);
    expect(new Set(numbers).size).toBe(ids.length);
    expect([...numbers].sort((a, b) => (a < b ? -1 : 1))).toEqual(numbers);
  });
});
