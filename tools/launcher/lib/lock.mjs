// One launcher at a time for one state directory.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isRunning, startTimeOf } from './pids.mjs';

/**
 * @param {string} file
 * @returns {{ holder: number } | { release: () => void }} the process that holds it, or the lock
 */
export function takeLock(file) {
  mkdirSync(dirname(file), { recursive: true });
  const mine = JSON.stringify({ pid: process.pid, startTime: startTimeOf(process.pid) });
  // The second attempt is for a lock whose holder died without giving it back.
  for (let attempt = 0; attempt < 2; attempt += 1) {
    try {
      writeFileSync(file, mine, { flag: 'wx' });
      return { release: () => rmSync(file, { force: true }) };
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error;
    }
    const holder = readHolder(file);
    if (holder !== null && isRunning(holder.pid) && startTimeOf(holder.pid) === holder.startTime) {
      return { holder: holder.pid };
    }
    rmSync(file, { force: true });
  }
  throw new Error(`The lock ${file} cannot be taken`);
}

/**
 * @param {string} file
 * @returns {{ pid: number, startTime: string | null } | null}
 */
function readHolder(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}
