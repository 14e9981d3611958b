// Ports on the loopback interface.

import { connect, createServer } from 'node:net';

/**
 * A port that was free a moment ago.
 * @returns {Promise<number>}
 */
export async function freePort() {
  const [port] = await freePorts(1);
  return /** @type {number} */ (port);
}

/**
 * Different free ports: all are held until the last is found, so that none is given twice.
 * @param {number} count
 * @returns {Promise<number[]>}
 */
export async function freePorts(count) {
  const servers = await Promise.all(Array.from({ length: count }, () => listen(0)));
  const ports = servers.map((server) => {
    const address = server?.address();
    if (address === null || typeof address !== 'object') throw new Error('no free port');
    return address.port;
  });
  await Promise.all(servers.map((server) => new Promise((done) => server?.close(done))));
  return ports;
}

/**
 * The wanted port if nothing listens there, else a free one.
 * @param {number} wanted
 */
export async function portOrFree(wanted) {
  const server = await listen(wanted);
  if (server === null) return freePort();
  await new Promise((done) => server.close(done));
  return wanted;
}

/**
 * @param {number} port
 * @returns {Promise<import('node:net').Server | null>} null when the port is taken
 */
function listen(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => resolve(server));
  });
}

/**
 * Whether something accepts connections.
 * @param {number} port
 * @returns {Promise<boolean>}
 */
export function isListening(port, host = '127.0.0.1', timeoutMs = 500) {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const finish = (/** @type {boolean} */ answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(timeoutMs, () => finish(false));
    socket.once('connect', () => finish(true));
    socket.once('error', () => finish(false));
  });
}
