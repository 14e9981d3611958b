import { describe, expect, it } from 'vitest';
import { Roster } from './roster.js';

describe('Roster', () => {
  it('holds what was added and not removed, and uses places again', () => {
    const roster = new Roster<{ name: string }>();
    const names = () => [...roster].map(({ name }) => name).sort();
    const places = ['a', 'b', 'c'].map((name) => roster.add({ name }));
    expect(new Set(places).size).toBe(3);
    expect(names()).toEqual(['a', 'b', 'c']);
    roster.remove(places[1] ?? -1);
    expect(names()).toEqual(['a', 'c']);
    expect(roster.size).toBe(2);
    expect(roster.add({ name: 'd' })).toBe(places[1]);
    expect(names()).toEqual(['a', 'c', 'd']);
  });

  it('can be walked through while its items go', () => {
    const roster = new Roster<{ place: number }>();
    for (let count = 0; count < 10; count += 1) {
      const item = { place: -1 };
      item.place = roster.add(item);
    }
    let seen = 0;
    for (const { place } of roster) {
      seen += 1;
      roster.remove(place);
    }
    expect([seen, roster.size]).toEqual([10, 0]);
  });
});
