import { beforeEach, describe, expect, it } from 'vitest';
import { AdaptiveLimit } from './adaptive-limit.js';

describe('AdaptiveLimit', () => {
  let now = 0;
  let limit: AdaptiveLimit;
  beforeEach(() => {
    now = 0;
    limit = new AdaptiveLimit(() => now);
  });

  /** Rounds of as many calls as there is room for, each with the given time to the first token. */
  function rounds(
    count: number,
    firstTokenMs: (inFlight: number) => number,
    promptTokens = 100,
  ): void {
    for (let round = 0; round < count; round += 1) {
      const calls = [];
      while (limit.hasRoom) calls.push(limit.begin());
      const ms = firstTokenMs(calls.length);
      for (const call of calls) {
        call.sample({ kind: 'first_token', ms, promptTokens });
        call.end();
      }
      now += 1_000;
    }
  }

  it('grows while first tokens come as usual, and settles where they begin to come late', () => {
    // This upstream serves 60 at once; beyond, they wait for each other.
    rounds(40, (inFlight) => 100 * Math.max(1, inFlight / 60));
    expect(limit.current).toBeGreaterThan(50);
    expect(limit.current).toBeLessThan(200);
  });

  it('does not grow while less than half of it is used', () => {
    for (let call = 0; call < 500; call += 1) {
      const { sample, end } = limit.begin();
      sample({ kind: 'first_token', ms: 100, promptTokens: 100 });
      end();
    }
    expect(limit.current).toBe(20);
  });

  it('drops at once on overload, by one step for a burst, and never below its least', () => {
    const calls = Array.from({ length: 20 }, () => limit.begin());
    for (const call of calls) call.sample({ kind: 'overloaded' });
    expect(limit.current).toBe(14);
    for (let burst = 0; burst < 20; burst += 1) {
      now += 1_000;
      limit.begin().sample({ kind: 'overloaded' });
    }
    expect(limit.current).toBe(4);
  });

  it('takes clients who leave and whole answers for no sign of anything', () => {
    const calls = Array.from({ length: 20 }, () => limit.begin());
    expect(limit.hasRoom).toBe(false);
    for (const call of calls) call.end();
    expect(limit.current).toBe(20);
    expect(limit.inFlight).toBe(0);
  });

  it('does not take long prompts for a slow upstream', () => {
    rounds(10, () => 100, 100);
    const before = limit.current;
    rounds(10, () => 4_000, 60_000);
    expect(limit.current).toBeGreaterThanOrEqual(before);
  });

  it('holds a slot to the end of the call, beyond its first token, and frees it once', () => {
    const call = limit.begin();
    call.sample({ kind: 'first_token', ms: 100, promptTokens: 100 });
    expect(limit.inFlight).toBe(1);
    call.end();
    call.end();
    expect(limit.inFlight).toBe(0);
  });
});
