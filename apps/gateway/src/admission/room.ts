import { requestedOf, type Remaining, type Reservation } from '@weir/quota';

/**
 * Whether the limits have so much left beside an admitted call that a next one like it is admitted even while this one's
 * reservation still stands: as much again of every amount, and at least half of every limit on what runs at a time, since
 * calls that run at a time may all be followed by their next.
 */
export function leavesRoom(remaining: readonly Remaining[], reserve: Reservation): boolean {
  return remaining.every((left) =>
    left.metric === 'concurrency'
      ? left.remaining * 2n >= left.limit
      : left.remaining >= requestedOf(left, reserve),
  );
}
