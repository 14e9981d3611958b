// Benchmarks and chaos tests: files that export `run({ seconds, args, log })` and return a result.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { endInOrder } from './ending.mjs';
import { repoDir, stateDir } from './paths.mjs';
import { stopAllProcesses } from './processes.mjs';
import { ensureBuilt, ensureDependencies } from './workspace.mjs';

/**
 * Prints the result as JSON on the last line of standard output; all else goes to standard error.
 * The exit code is 1 when the result says `ok: false`.
 * @param {{ command: 'bench' | 'chaos', secondsDefault: number }} options
 */
export async function runNamedScript({ command, secondsDefault }) {
  const log = (/** @type {string} */ line) => console.error(`[${command}] ${line}`);
  const scriptDir = join(repoDir, 'tools', command);
  const names = existsSync(scriptDir)
    ? readdirSync(scriptDir)
        .filter((file) => file.endsWith('.mjs'))
        .map((file) => file.slice(0, -'.mjs'.length))
    : [];

  const args = process.argv.slice(2);
  const secondsIndex = args.indexOf('--seconds');
  const [, secondsText] = secondsIndex < 0 ? [] : args.splice(secondsIndex, 2);
  const seconds = secondsText === undefined ? secondsDefault : Number(secondsText);
  const [name = '', ...rest] = args;
  if (!names.includes(name) || !(seconds > 0)) {
    log(
      `usage: npm run ${command} -- <name> [--seconds N]; names: ${names.join(', ') || 'none yet'}`,
    );
    process.exit(1);
  }

  const end = endInOrder({ log });
  try {
    const logDir = join(stateDir, 'logs');
    await ensureDependencies({ logDir, log });
    await ensureBuilt({ logDir, log });
    const { run } = await import(pathToFileURL(join(scriptDir, `${name}.mjs`)).href);
    const result = await run({ seconds, args: rest, log });
    // A script that forgot a part must not leave it running.
    await stopAllProcesses();
    console.log(JSON.stringify(result));
    await end(result?.ok === false ? 1 : 0);
  } catch (error) {
    await end(1, /** @type {Error} */ (error).stack);
  }
}
