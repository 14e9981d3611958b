import { type UsageEvent, usageEventSchema } from '@weir/domain';
import { testTenant, usageEvent } from '@weir/testing';
import { describe, expect, it } from 'vitest';
import { checkUsageEvent } from './usage-event-check.js';

const at = Date.parse('2026-11-29T12:00:00Z');
const valid = (): UsageEvent => {
  const event = usageEvent(testTenant(), at);
  const position = { shard: 3, epoch: '0199d000-0000-7000-8000-000000000009', seq: 7 };
  return { ...event, data: { ...event.data, position } };
};

/** What an event must not hold somewhere, or may hold elsewhere. */
const strangers: readonly unknown[] = [
  undefined,
  null,
  '',
  'x',
  'ok',
  '12',
  '-12',
  '1.5',
  '2026-11',
  '2026-02-30T00:00:00Z',
  '2026-11-29T12:00:00+08:00',
  '2026-11-29T12:00:00.123Z',
  'f47ac10b-58cc-4372-a567-0e02b2c3d479',
  '0199d000-0000-7000-8000-000000000001',
  '９',
  0,
  1,
  -1,
  1.5,
  2 ** 53,
  true,
  [],
  {},
  [{}],
  { id: 'x' },
];

type Json = Record<string, unknown>;

/** Every place in the event, as the keys that lead to it. */
function placesOf(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, each]) => placesOf(each, [...path, key]))];
}

const objectsOf = (event: UsageEvent): string[][] =>
  placesOf(event).filter((path) => {
    const value = path.reduce<unknown>((holder, key) => (holder as Json)[key], event);
    return typeof value === 'object' && value !== null;
  });

function changed(path: readonly string[], value: unknown): unknown {
  const [key, ...rest] = path;
  const event = structuredClone(valid()) as unknown as Json;
  if (key === undefined) return value;
  let holder = event;
  for (const step of [key, ...rest].slice(0, -1)) holder = holder[step] as Json;
  const last = path.at(-1) ?? '';
  if (value === undefined) delete holder[last];
  else holder[last] = value;
  return event;
}

describe('checking usage events', () => {
  it('says the same as the domain’s schema, whatever stands wherever', () => {
    let refused = 0;
    let accepted = 0;
    for (const path of placesOf(valid())) {
      for (const value of strangers) {
        const event = changed(path, value);
        const expected = usageEventSchema.safeParse(event).success;
        expect(checkUsageEvent(event).ok, `${path.join('.')} = ${JSON.stringify(value)}`).toBe(
          expected,
        );
        if (expected) accepted += 1;
        else refused += 1;
      }
    }
    for (const path of objectsOf(valid())) {
      const event = changed([...path, 'more'], 1);
      expect(checkUsageEvent(event).ok, `${path.join('.')} with more`).toBe(
        usageEventSchema.safeParse(event).success,
      );
    }
    expect(refused).toBeGreaterThan(1_000);
    expect(accepted).toBeGreaterThan(100);
  });

  it('counts tags and their length as the domain does', () => {
    const withTags = (tags: Record<string, string>) => ({
      ...valid(),
      data: { ...valid().data, tags },
    });
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`t${index}`, 'x']));
    expect(checkUsageEvent(withTags({ team: 'search' })).ok).toBe(true);
    expect(checkUsageEvent(withTags(many)).ok).toBe(false);
    expect(checkUsageEvent(withTags({ team: 'x'.repeat(257) })).ok).toBe(false);
  });

  it('says what is wrong, and where', () => {
    const event = changed(['data', 'usage', 'input'], -1);
    expect(checkUsageEvent(event)).toMatchObject({
      ok: false,
      reason: expect.stringContaining('data.usage.input') as string,
    });
  });
});
