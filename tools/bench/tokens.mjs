import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { createTokenCounter } from '../../libs/tokens/dist/index.js';

const MODEL = 'gpt-4o';
/** js-tiktoken takes minutes to days for some inputs. */
const REFERENCE_MS_MAX = 3_000;
const START_MS_MAX = 30_000;

const chinese = (chars) =>
  String.fromCharCode(...Array.from({ length: chars }, (_, i) => 0x4e00 + ((i * 7_919) % 20_000)));
const english = 'The quick brown fox jumps over the lazy dog, and the clerk writes it down. ';
const base64 = (bytes) =>
  Buffer.from(Uint8Array.from({ length: bytes }, (_, i) => (i * i * 31 + i) % 251)).toString(
    'base64',
  );

/** The inputs of an ordinary day, and those that a stranger would try first. */
const INPUTS = JSON.parse(
  // As a request body gives them: flat strings, not concatenations to be joined on first use.
  JSON.stringify([
    ['1,500 tokens of English', english.repeat(94)],
    ['16 KB of English', english.repeat(218)],
    ['1 MB of English', english.repeat(13_900)],
    ['500 Chinese characters, no punctuation', chinese(500)],
    ['2,000 Chinese characters, no punctuation', chinese(2_000)],
    ['10,000 Chinese characters, no punctuation', chinese(10_000)],
    ['30,000 Chinese characters, no punctuation', chinese(30_000)],
    ['10,000 × "a"', 'a'.repeat(10_000)],
    ['100,000 × "a"', 'a'.repeat(100_000)],
    ['1 MB × "a"', 'a'.repeat(1_000_000)],
    ['100,000 spaces', ' '.repeat(100_000)],
    ['100,000 newlines', '\n'.repeat(100_000)],
    ['50,000 emoji', '😀'.repeat(50_000)],
    ['100,000 Thai characters', 'สวัสดีครับผม'.repeat(8_334)],
    ['special tokens', '<|endoftext|>'.repeat(500)],
    ['5 MB of base64 as text', base64(3_750_000)],
    [
      '5 MB of base64 as a picture',
      [{ type: 'image_url', image_url: { url: `data:image/png;base64,${base64(3_750_000)}` } }],
    ],
  ]),
);

const REFERENCE_THREAD = `
  const { parentPort } = require('node:worker_threads');
  const load = require('node:module').createRequire(${JSON.stringify(import.meta.url)});
  const { Tiktoken } = load('js-tiktoken/lite');
  const ranks = load('js-tiktoken/ranks/o200k_base');
  const encoder = new Tiktoken(ranks.default ?? ranks);
  parentPort.postMessage('ready');
  parentPort.on('message', (text) => {
    const start = performance.now();
    const tokens = encoder.encode(text, [], []).length;
    parentPort.postMessage({ tokens, ms: performance.now() - start });
  });`;

/** Counts with js-tiktoken itself on a thread that is ended when it takes too long. */
function createReference() {
  let thread;
  /** The thread's next message, or undefined after `ms_max`. */
  const nextMessage = (ms_max) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => settle(resolve, undefined), ms_max);
      const onMessage = (message) => settle(resolve, message);
      const onError = (error) => settle(reject, error);
      function settle(done, value) {
        clearTimeout(timer);
        thread.off('message', onMessage).off('error', onError);
        done(value);
      }
      thread.on('message', onMessage).on('error', onError);
    });
  return {
    async count(text) {
      if (!thread) {
        thread = new Worker(REFERENCE_THREAD, { eval: true });
        await nextMessage(START_MS_MAX);
      }
      const reply = nextMessage(REFERENCE_MS_MAX);
      thread.postMessage(text);
      const result = await reply;
      if (!result) await this.close();
      return result;
    },
    async close() {
      await thread?.terminate();
      thread = undefined;
    },
  };
}

/**
 * Time and count per input beside js-tiktoken's own, then the event-loop delay while all inputs
 * are counted over and over.
 * @param options.seconds length of the event-loop part
 * @param options.log writes one line of the table
 * @returns `exact` is true when js-tiktoken counts the same, null when it did not finish in 3 s
 *   or the input is no text, false for an estimate
 */
export async function run({ seconds = 10, log = console.log } = {}) {
  const failures = [];
  const counter = createTokenCounter({ onFailure: (error) => failures.push(error) });
  const reference = createReference();
  try {
    await counter.warmUp();
    const cases = [];
    log(row(['input', 'ms', 'tokens', 'method', 'js-tiktoken ms', 'tokens']));
    for (const [name, content] of INPUTS) {
      const result = await measure(counter, reference, name, content);
      cases.push(result);
      log(
        row([
          name,
          result.ms.toFixed(1),
          result.tokens,
          result.method,
          result.js_tiktoken_ms?.toFixed(1) ?? (result.is_text ? `> ${REFERENCE_MS_MAX}` : '-'),
          result.js_tiktoken_tokens ?? '-',
        ]),
      );
    }
    const loop = await eventLoopDelay(counter, seconds);
    log(
      `event-loop delay over ${loop.counts} counts: p99 ${loop.p99_ms.toFixed(1)} ms, max ${loop.max_ms.toFixed(1)} ms`,
    );
    if (failures.length > 0) throw new AggregateError(failures, 'Counting threads failed');
    return {
      event_loop_delay_p99_ms: loop.p99_ms,
      event_loop_delay_max_ms: loop.max_ms,
      counts: loop.counts,
      cases,
    };
  } finally {
    await reference.close();
    await counter.close();
  }
}

async function measure(counter, reference, name, content) {
  const isText = typeof content === 'string';
  const start = performance.now();
  const count = isText
    ? await counter.countText(MODEL, content)
    : await counter.countChat(MODEL, { messages: [{ role: 'user', content }] });
  const ms = performance.now() - start;
  const own = isText ? await reference.count(content) : undefined;
  return {
    name,
    ms: round(ms),
    tokens: count.tokens,
    exact: count.method === 'estimate' ? false : own ? own.tokens === count.tokens : null,
    method: count.method,
    is_text: isText,
    js_tiktoken_ms: own ? round(own.ms) : null,
    js_tiktoken_tokens: own ? own.tokens : null,
  };
}

async function eventLoopDelay(counter, seconds) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const end = performance.now() + seconds * 1_000;
  let counts = 0;
  delay.enable();
  while (performance.now() < end) {
    for (const [, content] of INPUTS) {
      await counter.countChat(MODEL, { messages: [{ role: 'user', content }] });
      counts++;
      await nextTurn();
    }
  }
  delay.disable();
  return { p99_ms: round(delay.percentile(99) / 1e6), max_ms: round(delay.max / 1e6), counts };
}

function row([name, ...columns]) {
  return name.padEnd(44) + columns.map((column) => String(column).padStart(15)).join('');
}

function round(ms) {
  return Math.round(ms * 100) / 100;
}
