import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { takeLock } from './lock.mjs';
import { isRunning } from './pids.mjs';
import { freePorts, isListening, portOrFree } from './ports.mjs';
import { manageProcess } from './processes.mjs';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'weir-launcher-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A child that runs a line of JavaScript and then stays. */
function child(script: string, extra: Partial<Parameters<typeof manageProcess>[0]> = {}) {
  return manageProcess({
    name: 'child',
    command: process.execPath,
    args: ['-e', `${script}; setInterval(() => {}, 1000)`],
    logFile: join(dir, 'child.log'),
    ...extra,
  });
}

const logHas = (text: string) => async () =>
  readFileSync(join(dir, 'child.log'), 'utf8').includes(text);

describe('a managed process', () => {
  it('keeps its place through kill and restart: new pid, same log', async () => {
    const managed = child('console.log("up")', { isReady: logHas('up') });
    await managed.start();
    const firstPid = managed.pid;
    await managed.kill('SIGKILL');
    expect(managed.pid).toBeNull();
    await managed.restart();
    expect(managed.pid).not.toBeNull();
    expect(managed.pid).not.toBe(firstPid);
    await managed.stop();
    expect(isRunning(firstPid ?? 0)).toBe(false);
  });

  it('is killed when it does not heed the request to stop', async () => {
    const managed = child('process.on("SIGTERM", () => {}); console.log("deaf")', {
      isReady: logHas('deaf'),
      stopMs: 200,
    });
    await managed.start();
    const ended = managed.ended();
    await managed.stop();
    expect(await ended).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('can be stopped while it is frozen', async () => {
    const managed = child('console.log("up")', { isReady: logHas('up') });
    await managed.start();
    await managed.kill('SIGSTOP');
    const ended = managed.ended();
    await managed.stop();
    expect(await ended).toEqual({ code: null, signal: 'SIGTERM' });
  });

  it('reports an end that nobody asked for, with the last lines of its log, and no other', async () => {
    const onUnexpectedExit = vi.fn();
    const asked = child('', { onUnexpectedExit });
    await asked.start();
    await asked.stop();
    expect(onUnexpectedExit).not.toHaveBeenCalled();

    const dying = child('console.error("out of ink"); process.exit(3)', { onUnexpectedExit });
    await dying.start();
    await dying.ended();
    expect(onUnexpectedExit).toHaveBeenCalledOnce();
    expect(onUnexpectedExit.mock.calls[0]?.[0]).toMatch(/child ended with code 3.*out of ink/s);
  });

  it('fails its start, once and with the last lines of its log, when it ends before it is ready', async () => {
    const onUnexpectedExit = vi.fn();
    const failing = child('console.error("no paper"); process.exit(1)', {
      onUnexpectedExit,
      isReady: async () => false,
    });
    await expect(failing.start()).rejects.toThrow(/before it was ready.*no paper/s);
    expect(onUnexpectedExit).not.toHaveBeenCalled();
  });

  it('does not outlive a launcher that is killed without warning', async () => {
    const module = pathToFileURL(fileURLToPath(new URL('./processes.mjs', import.meta.url))).href;
    const launcher = spawn(process.execPath, [
      '--input-type=module',
      '-e',
      `import { manageProcess } from ${JSON.stringify(module)};
       const managed = manageProcess({ name: 'child', command: process.execPath,
         args: ['-e', 'setInterval(() => {}, 1000)'], logFile: ${JSON.stringify(join(dir, 'child.log'))} });
       await managed.start();
       console.log(managed.pid);
       setInterval(() => {}, 1000);`,
    ]);
    const childPid = await new Promise<number>((resolve) =>
      launcher.stdout.once('data', (chunk: Buffer) => resolve(Number(chunk.toString()))),
    );
    expect(isRunning(childPid)).toBe(true);
    launcher.kill('SIGKILL');
    await vi.waitFor(() => expect(isRunning(childPid)).toBe(false), { timeout: 10_000 });
  });
});

describe('the lock', () => {
  it('names its holder, and is free again once released', () => {
    const file = join(dir, 'lock');
    const lock = takeLock(file);
    expect(takeLock(file)).toEqual({ holder: process.pid });
    if ('release' in lock) lock.release();
    expect(takeLock(file)).toHaveProperty('release');
  });
});

describe('ports', () => {
  it('are all different, and a taken one is replaced', async () => {
    const ports = await freePorts(5);
    expect(new Set(ports).size).toBe(5);
    const [port = 0] = ports;
    const server = child(
      `require("net").createServer().listen(${port}, "127.0.0.1", () => console.log("up"))`,
      { isReady: logHas('up') },
    );
    expect(await portOrFree(port)).toBe(port);
    await server.start();
    expect(await isListening(port)).toBe(true);
    expect(await portOrFree(port)).not.toBe(port);
    await server.stop();
  });
});
