// Debian packages, for the servers that npm has none of.

import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findOnPath } from './commands.mjs';
import { runToEnd } from './processes.mjs';

const INSTALL_MS = 8 * 60_000;
const UPDATE_MS = 3 * 60_000;

// Debian asks this script before it starts the service of a package just installed; 101 means no.
const POLICY_FILE = '/usr/sbin/policy-rc.d';

/** Whether packages can be installed here without asking anyone. */
export function canInstallPackages() {
  return (
    process.platform === 'linux' &&
    process.getuid?.() === 0 &&
    existsSync('/etc/debian_version') &&
    findOnPath('apt-get') !== null
  );
}

/** @type {Promise<boolean>} */
let lastInstallation = Promise.resolve(true);

/**
 * Installs packages without letting their services start; one installation at a time, because apt-get
 * and the policy file are there only once.
 * @param {string[]} packages
 * @param {{ dir: string, log: (line: string) => void }} options
 * @returns {Promise<boolean>} false when it failed; the reason has then been logged
 */
export function installPackages(packages, { dir, log }) {
  lastInstallation = lastInstallation.then(() => installNow(packages, { dir, log }));
  return lastInstallation;
}

/**
 * @param {string[]} packages
 * @param {{ dir: string, log: (line: string) => void }} options
 */
async function installNow(packages, { dir, log }) {
  log(`installing ${packages.join(', ')} with apt-get (log: ${dir}/apt-*.log)`);
  const hasPolicy = existsSync(POLICY_FILE);
  if (!hasPolicy) writeFileSync(POLICY_FILE, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  const apt = (/** @type {string[]} */ args, /** @type {number} */ timeoutMs) =>
    runToEnd({
      name: `apt-get ${args[0]}`,
      command: 'apt-get',
      // Another launcher may be installing at this moment.
      args: ['-o', 'DPkg::Lock::Timeout=180', ...args],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      logFile: join(dir, `apt-${args[0]}.log`),
      timeoutMs,
    });
  const install = ['install', '-y', '--no-install-recommends', ...packages];
  try {
    try {
      await apt(install, INSTALL_MS);
    } catch {
      // On a fresh image the lists of packages are empty or too old.
      await apt(['update'], UPDATE_MS);
      await apt(install, INSTALL_MS);
    }
    return true;
  } catch (error) {
    log(/** @type {Error} */ (error).message);
    return false;
  } finally {
    if (!hasPolicy) rmSync(POLICY_FILE, { force: true });
  }
}
