import { describe, expect, it } from 'vitest';
import { Underway } from './underway.js';

describe('Underway', () => {
  it('tells all who wait when the last one has ended, and not before', async () => {
    const underway = new Underway();
    await underway.idle();
    underway.begin();
    underway.begin();
    let told = 0;
    const waiting = [underway.idle(), underway.idle()].map((idle) => idle.then(() => (told += 1)));
    underway.end();
    await Promise.resolve();
    expect([underway.size, told]).toEqual([1, 0]);
    underway.end();
    await Promise.all(waiting);
    expect([underway.size, told]).toEqual([0, 2]);
  });
});
