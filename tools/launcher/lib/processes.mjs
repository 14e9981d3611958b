// Child processes with a log file, a readiness check, and no way to be left behind.
//
// Every child leads its own process group: the terminal's Ctrl-C reaches only the launcher,
// which then stops its children in order. The reaper (reaper.mjs) covers the launcher's own
// sudden death.

import { spawn } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { killGroup, killRestOfGroup } from './pids.mjs';

const STOP_MS = 15_000;
const POLL_MS = 50;
// A compiler or npm says what is wrong well before its last line.
const RUN_LINES = 40;
const LOG_BYTES_MAX = 20 * 1024 * 1024;

/** Those that run, in the order of their start. @type {Set<ManagedProcess>} */
const running = new Set();
let hasClosed = false;

/**
 * @typedef {object} ProcessSpec
 * @property {string} name
 * @property {string} command
 * @property {string[]} args
 * @property {string} logFile standard output and error are appended here
 * @property {'log' | 'terminal'} [output] terminal: they are shown instead. Default log
 * @property {NodeJS.ProcessEnv} [env] the whole environment of the child; default: ours
 * @property {string} [cwd]
 * @property {number} [uid]
 * @property {number} [gid]
 * @property {NodeJS.Signals} [stopSignal] asks for an orderly end; default SIGTERM
 * @property {number} [stopMs] how long that may take before SIGKILL
 * @property {() => Promise<boolean>} [isReady] polled until true
 * @property {number} [readyMs] how long to poll
 * @property {() => Promise<void>} [beforeStart]
 * @property {() => Promise<void>} [afterKill] cleans up what a SIGKILL leaves (other processes, lock files)
 * @property {() => Promise<void>} [afterStop] puts away what is only needed between two starts
 * @property {(message: string) => void} [onUnexpectedExit] called when it ends without having been asked to
 */

/**
 * @typedef {object} ManagedProcess
 * @property {string} name
 * @property {string} logFile
 * @property {number | null} pid null while it is not running
 * @property {() => Promise<void>} start starts it and waits until it is ready
 * @property {(signal?: NodeJS.Signals) => Promise<void>} kill default SIGKILL; resolves once the
 *   process has ended, or at once for a signal that does not end it (SIGSTOP, SIGCONT, SIGUSR…)
 * @property {() => Promise<void>} restart stops it if it runs, then starts it with the same settings
 * @property {() => Promise<void>} stop
 * @property {() => Promise<{ code: number | null, signal: NodeJS.Signals | null }>} ended
 */

/** @type {import('node:child_process').ChildProcess | null} */
let reaper = null;

/** @param {string} line */
function tellReaper(line) {
  if (reaper === null) {
    reaper = spawn(process.execPath, [fileURLToPath(new URL('./reaper.mjs', import.meta.url))], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    // Neither the reaper nor its pipe may keep a finished launcher alive.
    reaper.unref();
    /** @type {any} */ (reaper.stdin).unref();
    reaper.stdin?.on('error', () => {});
    reaper.on('error', () => {});
  }
  reaper.stdin?.write(`${line}\n`);
}

const ENDING_SIGNALS = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGABRT', 'SIGHUP']);

/**
 * @param {ProcessSpec} spec
 * @returns {ManagedProcess}
 */
export function manageProcess(spec) {
  /** @type {import('node:child_process').ChildProcess | null} */
  let child = null;
  /** @type {Promise<{ code: number | null, signal: NodeJS.Signals | null }>} */
  let end = Promise.resolve({ code: null, signal: null });
  let isEndExpected = false;
  // Until it is ready, start() itself reports its end.
  let isStarting = false;

  function launch() {
    // Ctrl-C may come while a start is under way: what is not started need not be stopped.
    if (hasClosed) throw new Error(`${spec.name} is not started: the launcher is closing`);
    mkdirSync(dirname(spec.logFile), { recursive: true });
    // State lives for months: a log must not.
    if ((statSync(spec.logFile, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES_MAX) {
      renameSync(spec.logFile, `${spec.logFile}.1`);
    }
    const logFd = openSync(spec.logFile, 'a', 0o600);
    isEndExpected = false;
    const started = spawn(spec.command, spec.args, {
      cwd: spec.cwd,
      env: spec.env ?? process.env,
      uid: spec.uid,
      gid: spec.gid,
      detached: true,
      stdio:
        spec.output === 'terminal' ? ['ignore', 'inherit', 'inherit'] : ['ignore', logFd, logFd],
    });
    closeSync(logFd);
    const pid = started.pid;
    if (pid !== undefined) tellReaper(`+ ${pid} ${spec.stopSignal ?? 'SIGTERM'}`);
    child = started;
    running.add(managed);
    end = new Promise((resolve) => {
      let isSettled = false;
      const settle = (/** @type {number | null} */ code, /** @type {any} */ signal, cause = '') => {
        if (isSettled) return;
        isSettled = true;
        if (pid !== undefined) tellReaper(`- ${pid}`);
        if (child === started) child = null;
        running.delete(managed);
        resolve({ code, signal });
        if (!isEndExpected && !isStarting) {
          const how = cause || (signal ? `ended by ${signal}` : `ended with code ${code}`);
          spec.onUnexpectedExit?.(`${spec.name} ${how}. ${lastLines(spec.logFile)}`);
        }
      };
      started.once('exit', (code, signal) => settle(code, signal));
      started.once('error', (error) =>
        settle(null, null, `could not be started: ${error.message}`),
      );
    });
  }

  async function start() {
    if (child !== null) return;
    await spec.beforeStart?.();
    launch();
    if (spec.isReady === undefined) return;
    isStarting = true;
    try {
      await untilReady(spec.isReady);
    } finally {
      isStarting = false;
    }
  }

  /** @param {() => Promise<boolean>} isReady */
  async function untilReady(isReady) {
    const readyMs = spec.readyMs ?? 30_000;
    const deadline = Date.now() + readyMs;
    while (Date.now() < deadline) {
      if (child === null) {
        throw new Error(`${spec.name} ended before it was ready. ${lastLines(spec.logFile)}`);
      }
      if (await isReady()) return;
      await sleep(POLL_MS);
    }
    await endInOrder();
    throw new Error(
      `${spec.name} was not ready within ${readyMs / 1000} s. ${lastLines(spec.logFile)}`,
    );
  }

  /** @param {NodeJS.Signals} [signal] */
  async function kill(signal = 'SIGKILL') {
    const pid = child?.pid;
    if (pid === undefined) return;
    if (!ENDING_SIGNALS.has(signal)) {
      killGroup(pid, signal);
      return;
    }
    isEndExpected = true;
    if (signal === 'SIGKILL') killGroup(pid, signal);
    else child?.kill(signal);
    await end;
    await spec.afterKill?.();
  }

  async function endInOrder() {
    const pid = child?.pid;
    if (pid === undefined) return;
    isEndExpected = true;
    child?.kill(spec.stopSignal ?? 'SIGTERM');
    // A process that was frozen with SIGSTOP acts on no other signal until it is let go.
    child?.kill('SIGCONT');
    const hasEnded = await Promise.race([
      end.then(() => true),
      sleep(spec.stopMs ?? STOP_MS, false, { ref: false }),
    ]);
    if (!hasEnded) await kill('SIGKILL');
    // What it started itself must not outlive it either.
    else killRestOfGroup(pid);
  }

  /** @type {ManagedProcess} */
  const managed = {
    name: spec.name,
    logFile: spec.logFile,
    get pid() {
      return child?.pid ?? null;
    },
    start,
    kill,
    async stop() {
      await endInOrder();
      await spec.afterStop?.();
    },
    async restart() {
      await endInOrder();
      await start();
    },
    ended: () => end,
  };
  return managed;
}

/**
 * Stops everything that runs, the last started first, and lets nothing new start.
 * For the end of the launcher.
 */
export async function stopAllProcesses() {
  hasClosed = true;
  for (const managed of [...running].reverse()) await managed.stop();
}

/** Whether the launcher is on its way out. */
export function isClosing() {
  return hasClosed;
}

/** Kills everything at once: for someone who will not wait for an orderly end. */
export async function killAllProcesses() {
  hasClosed = true;
  await Promise.all([...running].map((managed) => managed.kill('SIGKILL')));
}

/**
 * Runs a command to its end with its output in a log file of its own, which holds the latest run only.
 * @param {ProcessSpec & { timeoutMs: number }} spec
 * @returns {Promise<void>} rejects with the last lines of the log when it fails or takes too long
 */
export async function runToEnd(spec) {
  rmSync(spec.logFile, { force: true });
  const child = manageProcess(spec);
  await child.start();
  const timer = new AbortController();
  const result = await Promise.race([
    child.ended(),
    sleep(spec.timeoutMs, null, { signal: timer.signal }).catch(() => null),
  ]);
  timer.abort();
  if (result === null) {
    await child.kill('SIGKILL');
    throw new Error(
      `${spec.name} took longer than ${spec.timeoutMs / 1000} s. ${lastLines(spec.logFile, RUN_LINES)}`,
    );
  }
  if (result.code !== 0)
    throw new Error(`${spec.name} failed. ${lastLines(spec.logFile, RUN_LINES)}`);
}

/**
 * The end of a log file, in a sentence that names the file.
 * @param {string} logFile
 */
export function lastLines(logFile, count = 15) {
  let text = '';
  try {
    text = readFileSync(logFile, 'utf8').trimEnd();
  } catch {
    // It never wrote a line.
  }
  if (text === '') return `Its log is empty: ${logFile}`;
  const lines = text.split('\n').slice(-count);
  return `Last lines of ${logFile}:\n${lines.map((line) => `    ${line}`).join('\n')}`;
}
