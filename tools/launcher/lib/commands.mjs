// Finding programs, and short commands whose output matters.

import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * The full path of the first of these programs that PATH knows.
 * @param {...string} names
 * @returns {string | null}
 */
export function findOnPath(...names) {
  for (const name of names) {
    for (const directory of (process.env.PATH ?? '').split(delimiter)) {
      if (directory === '') continue;
      const candidate = join(directory, name);
      try {
        accessSync(candidate, constants.X_OK);
        return candidate;
      } catch {
        // Not in this directory.
      }
    }
  }
  return null;
}

/**
 * Runs a short command; never throws.
 * @param {string} command
 * @param {string[]} args
 * @param {{ timeoutMs?: number, env?: NodeJS.ProcessEnv, cwd?: string, uid?: number, gid?: number }} [options]
 * @returns {Promise<{ ok: boolean, output: string }>} standard output and error together
 */
export function tryCommand(command, args, { timeoutMs = 10_000, ...options } = {}) {
  return new Promise((resolve) => {
    execFile(
      command,
      args,
      { ...options, timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: 16 * 1024 * 1024 },
      (error, stdout, stderr) => resolve({ ok: error === null, output: `${stdout}${stderr}` }),
    );
  });
}
