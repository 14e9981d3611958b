// Calls at a steady rate, whatever becomes of them, and what their caller knows of each.

import { setTimeout as sleep } from 'node:timers/promises';

const CALL_MS_MAX = 60_000;
const TICK_MS = 20;
/** Beyond it the rate is not kept: a caller that waits for dead gateways would otherwise hold ever more calls open. */
const OPEN_CALLS_MAX = 500;

const PROMPTS = [
  'Write two sentences about the river that our town is named after.',
  '请用两句话介绍一下我们公司的新产品，以及它和去年的版本有什么不同。',
  'Summarise the minutes of the last meeting for those who could not come, in plain words.',
];

/**
 * @typedef {object} ChaosCall what the caller knows of a call
 * @property {string} requestId
 * @property {number} gateway which one it was sent to
 * @property {number} startedMs
 * @property {number | null} endedMs
 * @property {number | null} status null: no head came
 * @property {'open' | 'whole' | 'broken' | 'refused' | 'unreachable'} outcome `whole`: the answer came to its end;
 *   `broken`: it broke off after its head; `unreachable`: no answer at all
 * @property {string | null} reason
 */

/**
 * Sends calls, half of them streamed, to the gateways in turn with the keys in turn.
 *
 * @param {{ gateways: string[], keys: string[], callsPerSecond: number, random: () => number, label: string }} options
 */
export function startTraffic({ gateways, keys, callsPerSecond, random, label }) {
  /** @type {Map<string, ChaosCall>} */
  const calls = new Map();
  const open = new Set();
  let isStopping = false;

  const sendOne = (index) => {
    const gateway = index % gateways.length;
    const isStreamed = random() < 0.5;
    const call = {
      requestId: `${label}-${String(index).padStart(6, '0')}`,
      gateway,
      startedMs: Date.now(),
      endedMs: null,
      status: null,
      outcome: 'open',
      reason: null,
    };
    calls.set(call.requestId, call);
    const request = {
      model: random() < 0.7 ? 'demo-small' : 'demo-large',
      stream: isStreamed,
      messages: [{ role: 'user', content: PROMPTS[index % PROMPTS.length] }],
      ...(random() < 0.7 && { max_tokens: 16 + Math.floor(random() * 100) }),
    };
    const done = makeCall(call, {
      url: `${gateways[gateway]}/v1/chat/completions`,
      key: keys[index % keys.length],
      request,
    }).finally(() => {
      call.endedMs = Date.now();
      open.delete(done);
    });
    open.add(done);
  };

  const running = (async () => {
    const begunMs = Date.now();
    for (let sent = 0; !isStopping;) {
      const due = Math.floor(((Date.now() - begunMs) * callsPerSecond) / 1_000);
      for (; sent < due && open.size < OPEN_CALLS_MAX; sent += 1) sendOne(sent);
      await sleep(TICK_MS);
    }
  })();

  return {
    calls,
    /** Sends no more, and waits for those under way. */
    async stop() {
      isStopping = true;
      await running;
      await Promise.all(open);
    },
  };
}

/** Makes one call and notes how it went. Never rejects: a broken call is what this is about. */
async function makeCall(call, { url, key, request }) {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'x-request-id': call.requestId,
      },
      body: JSON.stringify(request),
      signal: AbortSignal.timeout(CALL_MS_MAX),
    });
    call.status = response.status;
    const text = await response.text();
    if (response.status !== 200) {
      call.outcome = 'refused';
      call.reason = text.slice(0, 300);
    } else {
      call.outcome = isComplete(text, request.stream) ? 'whole' : 'broken';
    }
  } catch (error) {
    call.outcome = call.status === null ? 'unreachable' : 'broken';
    call.reason = String(error.cause?.code ?? error.message);
  }
}

function isComplete(text, isStreamed) {
  if (isStreamed) return text.trimEnd().endsWith('data: [DONE]');
  return JSON.parse(text).choices?.length > 0;
}
