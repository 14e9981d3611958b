// `npm run bench -- smoke`: the whole of Weir on this machine, and calls through the gateway beside the
// same calls to the upstream itself. A first look: `bench -- gateway` measures the gateway alone, and with care.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { signIn } from '../launcher/lib/admin-api.mjs';
import { startStack } from '../launcher/stack.mjs';
import { closedLoop, paced } from './lib/load.mjs';

const CONNECTIONS = 32;
const WARM_UP_MS = 4_000;
const PHASES = 4;
/** Policies travel from the admin API to the gateway within two seconds. */
const IN_FORCE_MS = 10_000;

/**
 * @param {{ seconds: number, log: (line: string) => void }} options
 */
export async function run({ seconds, log }) {
  const stateDir = mkdtempSync(join(tmpdir(), 'weir-smoke-'));
  const stack = await startStack({ stateDir, log, kafka: 'off', isThrowaway: true });
  try {
    const secret = await makeKey(stack);
    const call = (/** @type {string} */ origin, /** @type {string} */ key) => ({
      origin,
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'demo-small',
        max_tokens: 100,
        messages: [{ role: 'user', content: 'Explain in plain words why rivers meander.' }],
      }),
    });
    const direct = call(stack.urls.demoProvider, stack.env.DEMO_API_KEY ?? '');
    const gateway = call(stack.urls.gateway, secret);
    await untilServed(gateway);

    const ms = (seconds * 1_000) / PHASES;
    await closedLoop(direct, { connections: CONNECTIONS, ms: WARM_UP_MS });
    await closedLoop(gateway, { connections: CONNECTIONS, ms: WARM_UP_MS });
    const directMost = await closedLoop(direct, { connections: CONNECTIONS, ms });
    const gatewayMost = await closedLoop(gateway, { connections: CONNECTIONS, ms });
    log(`at half of the gateway's ${Math.round(gatewayMost.perSecond)} calls/s`);
    const perSecond = gatewayMost.perSecond / 2;
    const directHalf = await paced(direct, { perSecond, connections: CONNECTIONS, ms });
    const gatewayHalf = await paced(gateway, { perSecond, connections: CONNECTIONS, ms });

    const failures = [directMost, gatewayMost, directHalf, gatewayHalf].reduce(
      (sum, each) => sum + each.failures,
      0,
    );
    if (failures > 0) log(`${failures} calls failed`);
    return {
      ok: failures === 0,
      calls_per_s: Math.round(gatewayMost.perSecond),
      direct_calls_per_s: Math.round(directMost.perSecond),
      added_p50_ms: rounded(gatewayHalf.p50_ms - directHalf.p50_ms),
      added_p99_ms: rounded(gatewayHalf.p99_ms - directHalf.p99_ms),
    };
  } finally {
    await stack.stop();
    rmSync(stateDir, { recursive: true, force: true });
  }
}

/**
 * A key in a department of its own, made as an administrator would, and nothing above it that refuses: a benchmark would
 * only measure the demo's limits.
 * @param {import('../launcher/stack.mjs').Stack} stack
 * @returns {Promise<string>} its secret
 */
async function makeKey({ urls, demo }) {
  const ask = await signIn(urls.adminApi, demo.console);
  const department = await ask('POST', '/departments', { name: 'Benchmark' });
  const { alsoLimitedBy } = await ask('GET', `/nodes/${department.id}`);
  for (const { limits } of alsoLimitedBy) {
    for (const { id, version } of limits) {
      await ask('PATCH', `/limits/${id}`, { amount: null }, version);
    }
  }
  const user = await ask('POST', '/users', {
    departmentId: department.id,
    kind: 'service',
    name: 'Load',
  });
  return (await ask('POST', '/keys', { userId: user.id, name: 'load' })).secret;
}

/** @param {{ origin: string, path: string, headers: Record<string, string>, body: string }} target */
async function untilServed({ origin, path, headers, body }) {
  const deadline = performance.now() + IN_FORCE_MS;
  for (;;) {
    const response = await fetch(origin + path, { method: 'POST', headers, body });
    const text = await response.text();
    if (response.status === 200) return;
    if (performance.now() > deadline) {
      throw new Error(`the new key was not served in time: ${response.status} ${text}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** @param {number} ms */
function rounded(ms) {
  return Number(ms.toFixed(2));
}
