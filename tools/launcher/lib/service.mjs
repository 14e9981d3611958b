// What every service looks like to its users.

/**
 * @typedef {object} Service
 * @property {string} name
 * @property {string} url
 * @property {number} port
 * @property {number | null} pid null when it is not ours or not running
 * @property {boolean} isExternal it was running before us: stop() leaves it alone
 * @property {string | null} logFile
 * @property {() => Promise<void>} stop
 * @property {(signal?: NodeJS.Signals) => Promise<void>} kill default SIGKILL
 * @property {() => Promise<void>} restart on the same directory and port
 */

/** @typedef {(line: string) => void} Log prints one line */

/**
 * @typedef {object} ServiceOptions
 * @property {string} dir data, settings and logs; created when missing
 * @property {number} port
 * @property {Log} log
 * @property {string} [externalUrl] use this one instead of starting our own
 * @property {(message: string) => void} [onUnexpectedExit]
 */

/**
 * @param {import('./processes.mjs').ManagedProcess} managed
 * @param {{ url: string, port: number }} address
 * @returns {Service}
 */
export function serviceOf(managed, { url, port }) {
  return {
    name: managed.name,
    url,
    port,
    get pid() {
      return managed.pid;
    },
    isExternal: false,
    logFile: managed.logFile,
    stop: () => managed.stop(),
    kill: (signal) => managed.kill(signal),
    restart: () => managed.restart(),
  };
}

/**
 * A service that someone else runs.
 * @param {string} name
 * @param {string} url
 * @param {number} port
 * @returns {Service}
 */
export function externalService(name, url, port) {
  const refuse = async () => {
    throw new Error(`${name} is not ours to stop: it was given by its address`);
  };
  return {
    name,
    url,
    port,
    pid: null,
    isExternal: true,
    logFile: null,
    stop: async () => {},
    kill: refuse,
    restart: refuse,
  };
}
