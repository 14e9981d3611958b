import { readFileSync } from 'node:fs';

/**
 * Milliseconds that this thread has had, without those in which it was ready to run but other
 * processes held the processors: what a test of our own speed has to measure, as its neighbours
 * are other tests. Linux tells the waiting time (proc(5), schedstat); elsewhere it counts as ours.
 */
export function threadTime_ms(): number {
  return performance.now() - waited_ms();
}

function waited_ms(): number {
  try {
    const [, waited_ns] = readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ');
    return Number(waited_ns) / 1e6;
  } catch {
    return 0;
  }
}
