import { describe, expect, it } from 'vitest';
import { instantOfId, isId, newId } from './ids.js';
import { shardOf, shardTag } from './redis-keys.js';

describe('ids', () => {
  it('carry the instant at which they were made', () => {
    const at = Date.parse('2026-11-29T12:34:56.789Z');
    expect(instantOfId(newId(at))).toBe(at);
  });

  it('cannot carry a brace into a Redis key', () => {
    expect(isId(newId())).toBe(true);
    for (const text of ['{s01}', `${newId()}}`, newId().toUpperCase(), '']) {
      expect(isId(text), text).toBe(false);
    }
    expect(() => instantOfId('f47ac10b-58cc-4372-a567-0e02b2c3d479')).toThrow(/not a UUIDv7/);
  });

  it('spread enterprises over all shards, each always on the same', () => {
    const shards = new Set<number>();
    for (let index = 0; index < 500; index += 1) {
      const id = newId();
      const shard = shardOf(id, 8);
      expect(shardOf(id, 8)).toBe(shard);
      shards.add(shard);
    }
    expect(shards.size).toBe(8);
    expect(shardTag(7)).toBe('{s07}');
  });
});
