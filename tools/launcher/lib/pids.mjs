// Small questions about processes that Node has no answer to.

import { readFileSync } from 'node:fs';

/**
 * Whether a process exists and is not a zombie.
 * @param {number} pid
 */
export function isRunning(pid) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it exists and belongs to someone else.
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM';
  }
  return statFields(pid)?.[0] !== 'Z';
}

/**
 * When a process began, in clock ticks since boot; null where /proc does not exist (macOS).
 * Together with the pid it names one process for good.
 * @param {number} pid
 */
export function startTimeOf(pid) {
  return statFields(pid)?.[19] ?? null;
}

/**
 * The fields of /proc/<pid>/stat after the command name, which may itself hold spaces and brackets.
 * @param {number} pid
 */
function statFields(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}

/**
 * Signals a process and all that it started (it must lead its own group), or only itself
 * where there is no such group.
 * @param {number} pid
 * @param {NodeJS.Signals} signal
 */
export function killGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    try {
      process.kill(pid, signal);
    } catch {
      // Already gone.
    }
  }
}

/**
 * Kills what an ended process left running in its group.
 * @param {number} leaderPid
 */
export function killRestOfGroup(leaderPid) {
  try {
    process.kill(-leaderPid, 'SIGKILL');
  } catch {
    // Nothing is left.
  }
}
