// The same HTTP request again and again, at the least cost for the sender: it runs on the cores of what it measures, and
// its pauses would count as theirs. A general client (undici) takes more than twice the CPU, a third of it to collect its
// garbage. This one reads what servers here answer, and nothing else: a head with a content-length, or a chunked body.

import { connect } from 'node:net';

const READ_BYTES = 64 * 1024;
const HEAD_END = '\r\n\r\n';
const CHUNKED_END = '\r\n0\r\n\r\n';
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;
const CHUNKED = /\r\ntransfer-encoding: *chunked/i;

/**
 * @typedef {object} Target
 * @property {string} origin
 * @property {string} path
 * @property {Record<string, string>} headers
 * @property {string} body
 */

/** @typedef {(status: number, tag: number) => void} OnAnswer the status, or 0 when the call failed; and its own tag */

/** Posts one target over keep-alive connections, one call at a time on each. */
export class LeanClient {
  /** @type {Connection[]} */
  #idle = [];
  /** @type {Set<Connection>} */
  #open = new Set();
  /** @type {{ tag: number, onAnswer: OnAnswer }[]} */
  #waiting = [];
  #options;
  #connectionsMax;

  /**
   * @param {Target} target
   * @param {{ connectionsMax: number, timeoutMs: number }} options a connection that is silent for this long during a
   *   call is closed, and the call has failed
   */
  constructor({ origin, path, headers, body }, { connectionsMax, timeoutMs }) {
    const { host, hostname, port } = new URL(origin);
    const head = Object.entries({
      host,
      'content-length': Buffer.byteLength(body),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#connectionsMax = connectionsMax;
    this.#options = {
      host: hostname,
      port: Number(port),
      timeoutMs,
      request: Buffer.from(`POST ${path} HTTP/1.1\r\n${head.join('')}\r\n${body}`),
      // What is read is looked at before anything else is read: one piece of memory does for all.
      readInto: Buffer.alloc(READ_BYTES),
      onFree: (/** @type {Connection} */ connection) => this.#freed(connection),
      onClosed: (/** @type {Connection} */ connection) => this.#closed(connection),
    };
  }

  /** Makes all connections at once, rather than each when it is first needed; resolves when they stand or have failed. */
  async open() {
    const made = [];
    while (this.#open.size < this.#connectionsMax) {
      const connection = this.#connect();
      this.#idle.push(connection);
      made.push(connection.made());
    }
    await Promise.all(made);
  }

  /** Sends the request, at once or when a connection is free. @param {number} tag @param {OnAnswer} onAnswer */
  send(tag, onAnswer) {
    const connection =
      this.#idle.pop() ?? (this.#open.size < this.#connectionsMax ? this.#connect() : undefined);
    if (connection === undefined) this.#waiting.push({ tag, onAnswer });
    else connection.send(tag, onAnswer);
  }

  /** What is still under way has failed. */
  close() {
    this.#connectionsMax = 0;
    for (const { tag, onAnswer } of this.#waiting.splice(0)) onAnswer(0, tag);
    for (const connection of this.#open) connection.close();
  }

  #connect() {
    const connection = new Connection(this.#options);
    this.#open.add(connection);
    return connection;
  }

  /** @param {Connection} connection */
  #freed(connection) {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(connection);
    else connection.send(next.tag, next.onAnswer);
  }

  /** @param {Connection} connection */
  #closed(connection) {
    this.#open.delete(connection);
    const index = this.#idle.indexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
    const next = this.#open.size < this.#connectionsMax ? this.#waiting.shift() : undefined;
    if (next !== undefined) this.#connect().send(next.tag, next.onAnswer);
  }
}

class Connection {
  #socket;
  #options;
  /** @type {OnAnswer | null} */
  #onAnswer = null;
  #tag = 0;
  /** Of the answer that is coming in: 0 until its head is whole. */
  #status = 0;
  /** What of the head has come, when it comes in pieces. */
  #head = '';
  /** Of the body, what is still to come; null where it is chunked. @type {number | null} */
  #bytesLeft = 0;
  /** The last characters of a chunked body; before it, those of the head. */
  #tail = '';

  /**
   * @param {object} options
   * @param {string} options.host
   * @param {number} options.port
   * @param {number} options.timeoutMs
   * @param {Buffer} options.request
   * @param {Buffer} options.readInto
   * @param {(connection: Connection) => void} options.onFree
   * @param {(connection: Connection) => void} options.onClosed
   */
  constructor(options) {
    this.#options = options;
    const { host, port, timeoutMs, readInto } = options;
    this.#socket = connect({
      host,
      port,
      noDelay: true,
      onread: {
        buffer: readInto,
        callback: (length) => {
          this.#read(length);
          // Read on.
          return true;
        },
      },
    });
    this.#socket.setTimeout(timeoutMs, () => this.close());
    this.#socket.on('error', () => this.close());
    this.#socket.on('close', () => {
      options.onClosed(this);
      this.#answer(0);
    });
  }

  /** Resolves when the connection stands or has failed. @returns {Promise<void>} */
  made() {
    return new Promise((resolve) => {
      this.#socket.once('connect', resolve).once('close', resolve);
    });
  }

  /** @param {number} tag @param {OnAnswer} onAnswer */
  send(tag, onAnswer) {
    this.#tag = tag;
    this.#onAnswer = onAnswer;
    this.#socket.write(this.#options.request);
  }

  close() {
    this.#socket.destroy();
  }

  /** @param {number} length */
  #read(length) {
    const { readInto } = this.#options;
    const bodyAt = this.#status === 0 ? this.#readHead(length) : 0;
    if (bodyAt === null) return;
    if (this.#bytesLeft === null) {
      // The end of a chunked body may come in two pieces.
      const last = readInto.latin1Slice(Math.max(bodyAt, length - CHUNKED_END.length), length);
      this.#tail = (this.#tail + last).slice(-CHUNKED_END.length);
      if (this.#tail !== CHUNKED_END) return;
    } else {
      this.#bytesLeft -= length - bodyAt;
      if (this.#bytesLeft > 0) return;
    }
    const status = this.#status;
    this.#status = 0;
    this.#answer(status);
    this.#options.onFree(this);
  }

  /** @param {number} length @returns {number | null} where the body begins, null while the head is not whole */
  #readHead(length) {
    const { readInto } = this.#options;
    const before = this.#head.length;
    const text = this.#head + readInto.latin1Slice(0, length);
    const end = text.indexOf(HEAD_END);
    this.#head = end < 0 ? text : '';
    if (end < 0) return null;
    const head = text.slice(0, end);
    const contentLength = CONTENT_LENGTH.exec(head)?.[1];
    if (contentLength === undefined && !CHUNKED.test(head)) {
      throw new Error(`an answer that this client cannot read: ${head}`);
    }
    this.#status = Number(head.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
    this.#bytesLeft = contentLength === undefined ? null : Number(contentLength);
    this.#tail = '\r\n';
    return end + HEAD_END.length - before;
  }

  /** @param {number} status */
  #answer(status) {
    const onAnswer = this.#onAnswer;
    this.#onAnswer = null;
    onAnswer?.(status, this.#tag);
  }
}
