// `npm start`: from a fresh clone to a running Weir with demo data.
//
// Only Node's own modules are imported until the dependencies are installed.

import { join } from 'node:path';
import { endInOrder } from './lib/ending.mjs';
import { takeLock } from './lib/lock.mjs';
import { stateDir } from './lib/paths.mjs';
import { ensureBuilt, ensureDependencies, missingPrerequisite, seconds } from './lib/workspace.mjs';
import { startStack } from './stack.mjs';

const begun = Date.now();
const log = (/** @type {string} */ line) => console.log(`[weir] ${line}`);

const missing = missingPrerequisite();
if (missing !== null) {
  log(missing);
  process.exit(1);
}
const lock = takeLock(join(stateDir, 'start.lock'));
if ('holder' in lock) {
  log(`already running (process ${lock.holder}): stop that one first, with Ctrl-C in its terminal`);
  process.exit(1);
}
const end = endInOrder({
  log,
  beforeExit: () => {
    lock.release();
    log('stopped');
  },
});

try {
  const logDir = join(stateDir, 'logs');
  await ensureDependencies({ logDir, log });
  await ensureBuilt({ logDir, log });
  const stack = await startStack({
    stateDir,
    log,
    ports: 'fixed',
    external: {
      databaseUrl: process.env.DATABASE_URL,
      redisUrl: process.env.REDIS_URL,
      kafkaBrokers: process.env.KAFKA_BROKERS,
    },
    // A demo that has lost a part would only confuse: say what died, and stop.
    onUnexpectedExit: (message) => void end(1, message),
  });
  log(`started in ${seconds(begun)}; logs are in ${logDir}`);
  welcome(stack);
  console.log('ready');
  // Nothing else would keep this process alive where all services run elsewhere.
  setInterval(() => {}, 60_000);
} catch (error) {
  await end(1, /** @type {Error} */ (error).message);
}

/** @param {import('./stack.mjs').Stack} stack */
function welcome({ urls, demo }) {
  const { email, password } = demo.console ?? {};
  const key = demo.keys?.[0];
  const body = JSON.stringify({
    model: 'demo-small',
    stream: true,
    messages: [{ role: 'user', content: 'Tell me about weirs.' }],
  });
  console.log(`
  Console    ${urls.adminApi}
  Login      ${email}  /  ${password}
  Demo key   ${key?.secret}  (${key?.name}, ${key?.department})

  A streamed chat completion, counted and billed:

  curl -N ${urls.gateway}/v1/chat/completions -H 'authorization: Bearer ${key?.secret}' -H 'content-type: application/json' -d '${body}'
`);
}
