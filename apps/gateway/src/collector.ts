import { setFlagsFromString } from 'node:v8';

/**
 * Tells V8 how to collect the garbage of a process that makes many short calls. That decides how long the slowest of them
 * take; measurements and reasons are in docs/adr/0041-what-outlives-a-call.md. Called before the first call.
 */
export function tuneCollector(): void {
  // After a burst V8 would make parts of each call in old memory. They keep alive what they refer to: whole calls.
  setFlagsFromString('--no-allocation-site-pretenuring');
  // Hardly anything survives a call: waking other threads for it costs more than they help.
  setFlagsFromString('--no-parallel-scavenge');
  // Old memory may grow to four times what a full collection left, rather than to 1.3 times, before there is another one.
  setFlagsFromString('--heap-growing-percent=300');
}
