// Kills what a launcher left behind.
//
// A launcher can die in ways that run none of its code (SIGKILL, out of memory, a closed
// laptop lid over ssh). Its children then live on and hold ports and directories. This small
// process is started beside it and listens on a pipe: the kernel closes the pipe however the
// launcher ends, and whatever is still on the list at that moment is stopped here.
//
// Lines on standard input: "+ <pid> <gentle signal>" to add, "- <pid>" to take off.

import { createInterface } from 'node:readline';
import { isRunning, killGroup, startTimeOf } from './pids.mjs';

const GENTLE_MS = 10_000;
const POLL_MS = 100;

/** @type {Map<number, { signal: NodeJS.Signals, startTime: string | null }>} */
const children = new Map();

// The terminal's Ctrl-C is for the launcher; this process must outlive it.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
process.on('SIGHUP', () => {});

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const [action, pidText, signal] = line.split(' ');
  const pid = Number(pidText);
  if (!Number.isInteger(pid) || pid <= 1) return;
  if (action === '+') {
    children.set(pid, {
      signal: /** @type {NodeJS.Signals} */ (signal ?? 'SIGTERM'),
      startTime: startTimeOf(pid),
    });
  } else if (action === '-') {
    children.delete(pid);
  }
});

lines.on('close', async () => {
  // A process id can have been given to someone else since: the start time tells.
  const isOurs = (/** @type {number} */ pid) =>
    isRunning(pid) && startTimeOf(pid) === children.get(pid)?.startTime;

  const remaining = [...children.keys()].reverse();
  for (const pid of remaining) {
    if (!isOurs(pid)) continue;
    try {
      process.kill(pid, children.get(pid)?.signal ?? 'SIGTERM');
      // A stopped process acts on no signal but this one.
      process.kill(pid, 'SIGCONT');
    } catch {
      // It ended between the two lines.
    }
  }
  const deadline = Date.now() + GENTLE_MS;
  while (Date.now() < deadline && remaining.some(isOurs)) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  for (const pid of remaining) if (isOurs(pid)) killGroup(pid, 'SIGKILL');
  process.exit(0);
});
