import type { Clock } from '@weir/domain';

/** A clock that stands until it is moved. */
export type ManualClock = Clock & {
  advance(ms: number): void;
  set(atMs: number): void;
};

/** @param startMs milliseconds since the Unix epoch, or a date text such as `2026-11-29T10:00:00Z` */
export function manualClock(startMs: number | string): ManualClock {
  let nowMs = typeof startMs === 'string' ? Date.parse(startMs) : startMs;
  return {
    now: () => nowMs,
    advance: (ms) => {
      nowMs += ms;
    },
    set: (atMs) => {
      nowMs = atMs;
    },
  };
}
