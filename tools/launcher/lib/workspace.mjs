// Dependencies and build, brought up to date only when something changed.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findOnPath } from './commands.mjs';
import { cacheDir, repoDir } from './paths.mjs';
import { runToEnd } from './processes.mjs';

const INSTALL_MS = 15 * 60_000;
const GENERATE_MS = 5 * 60_000;
const BUILD_MS = 10 * 60_000;

const STAMP_FILE = join(cacheDir, 'build.json');

/** Nx without its background server, its cloud and its full-screen display. */
export const nxEnv = { NX_DAEMON: 'false', NX_NO_CLOUD: 'true', NX_TUI: 'false' };

/** @returns {string | null} what is missing on this machine and what to do about it */
export function missingPrerequisite() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    return `Node ${process.versions.node} is too old: install Node 20.19 or newer.`;
  }
  if (process.platform === 'win32') return 'Windows is not supported directly: use WSL.';
  return null;
}

/**
 * Runs `npm ci` unless the installed packages are those of the lock file.
 * @param {{ logDir: string, log: (line: string) => void }} options
 */
export async function ensureDependencies({ logDir, log }) {
  if (areDependenciesInstalled()) return;
  log('installing dependencies (npm ci; about two minutes the first time)');
  const begun = Date.now();
  await runToEnd({
    name: 'npm ci',
    ...npmCommand(['ci', '--include=dev', '--no-audit', '--no-fund']),
    cwd: repoDir,
    logFile: join(logDir, 'npm-ci.log'),
    timeoutMs: INSTALL_MS,
  });
  log(`dependencies are installed (${seconds(begun)})`);
}

/**
 * npm records what it installed in node_modules/.package-lock.json: compared with the lock file, it
 * tells more than a time stamp of ours could.
 */
function areDependenciesInstalled() {
  const installedFile = join(repoDir, 'node_modules', '.package-lock.json');
  if (!existsSync(installedFile)) return false;
  const readPackages = (/** @type {string} */ file) =>
    /** @type {Record<string, { version?: string, link?: boolean, optional?: boolean }>} */ (
      JSON.parse(readFileSync(file, 'utf8')).packages
    );
  const installed = readPackages(installedFile);
  const wanted = readPackages(join(repoDir, 'package-lock.json'));
  return Object.entries(wanted).every(([path, { version, link, optional }]) => {
    // Packages for other platforms are in the lock file and rightly not installed.
    if (!path.includes('node_modules/') || optional) return true;
    const found = installed[path];
    return found !== undefined && found.version === version && found.link === link;
  });
}

/**
 * A command line tool of an installed package, to be run with Node.
 * @param {string} name
 */
export function packageBin(name) {
  return join(repoDir, 'node_modules', '.bin', name);
}

/** @param {string[]} args */
function npmCommand(args) {
  // Under `npm start` this is the npm that runs us, which need not be the first on PATH.
  const cli = process.env.npm_execpath;
  if (cli?.endsWith('npm-cli.js')) return { command: process.execPath, args: [cli, ...args] };
  return { command: findOnPath('npm') ?? 'npm', args };
}

/**
 * Generates and builds unless the sources are those of the last build.
 * @param {{ logDir: string, log: (line: string) => void, isForced?: boolean }} options
 */
export async function ensureBuilt({ logDir, log, isForced = false }) {
  const stamp = readStamp();
  const isFresh = stamp?.hash === hashSources() && stamp.outputs.every((dir) => existsSync(dir));
  if (isFresh && !isForced) return;

  const begun = Date.now();
  log('generating and building');
  await runToEnd({
    name: 'generate',
    command: process.execPath,
    args: [join(repoDir, 'tools', 'generate.mjs')],
    cwd: repoDir,
    logFile: join(logDir, 'generate.log'),
    timeoutMs: GENERATE_MS,
  });
  // Taken before the build: what is edited during it counts as changed the next time.
  const hash = hashSources();
  await runToEnd({
    name: 'build',
    command: process.execPath,
    args: [packageBin('nx'), 'run-many', '-t', 'build'],
    cwd: repoDir,
    env: { ...process.env, ...nxEnv },
    logFile: join(logDir, 'build.log'),
    timeoutMs: BUILD_MS,
  });
  mkdirSync(cacheDir, { recursive: true });
  writeFileSync(STAMP_FILE, JSON.stringify({ hash, outputs: findOutputs() }));
  log(`generated and built (${seconds(begun)})`);
}

/** @returns {{ hash: string, outputs: string[] } | null} */
function readStamp() {
  try {
    return JSON.parse(readFileSync(STAMP_FILE, 'utf8'));
  } catch {
    return null;
  }
}

function findOutputs() {
  return ['apps', 'libs'].flatMap((group) =>
    readdirSync(join(repoDir, group))
      .map((project) => join(repoDir, group, project, 'dist'))
      .filter((dir) => existsSync(dir)),
  );
}

/** A hash of everything that generation and build read, content and all: a few megabytes. */
function hashSources() {
  const hash = createHash('sha256');
  const ignored = new Set([
    'node_modules',
    'dist',
    'test-results',
    'playwright-report',
    'coverage',
  ]);
  const visit = (/** @type {string} */ path) => {
    const full = join(repoDir, path);
    const entries = readdirSync(full, { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entry.isDirectory() && !ignored.has(entry.name)) visit(join(path, entry.name));
      else if (entry.isFile() && !/\.(tsbuildinfo|md)$/.test(entry.name))
        add(join(path, entry.name));
    }
  };
  const add = (/** @type {string} */ path) => {
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(repoDir, path)))
      .update('\0');
  };
  for (const dir of ['apps', 'libs', 'prisma', 'tools/generate']) {
    if (existsSync(join(repoDir, dir))) visit(dir);
  }
  for (const file of ['package.json', 'package-lock.json', 'nx.json', 'tsconfig.base.json']) {
    if (existsSync(join(repoDir, file))) add(file);
  }
  return hash.digest('hex');
}

/** @param {number} begun */
export function seconds(begun) {
  return `${((Date.now() - begun) / 1000).toFixed(1)} s`;
}
