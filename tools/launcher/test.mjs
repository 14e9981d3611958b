// `npm test`: from a fresh clone to one line, "N passed, N failed, N skipped".
//
//   npm test -- --only check|unit|int|e2e   one part
//   npm test -- --only int -- outbox        only test files whose path contains "outbox"
//
// It brings its own services, on free ports and in a temporary directory, and leaves nothing running.
// With WEIR_REQUIRE_ALL_SERVICES=1 a service that cannot be had is a failure, not a reason to skip.

import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endInOrder } from './lib/ending.mjs';
import { repoDir } from './lib/paths.mjs';
import { freePorts } from './lib/ports.mjs';
import { isClosing, manageProcess, stopAllProcesses } from './lib/processes.mjs';
import { playwrightOutcome, vitestOutcome } from './lib/test-reports.mjs';
import {
  ensureBuilt,
  ensureDependencies,
  missingPrerequisite,
  packageBin,
  seconds,
} from './lib/workspace.mjs';
import { findChromium } from './services/chromium.mjs';
import { startKafka } from './services/kafka.mjs';
import { startPostgres } from './services/postgres.mjs';
import { startRedis, startRedisCluster } from './services/redis.mjs';

// The whole of it must be well below half an hour; a test that hangs must not hang the machine.
const WATCHDOG_MS = 25 * 60_000;

const PARTS = ['check', 'unit', 'int', 'e2e'];

/** @typedef {import('./lib/test-reports.mjs').Outcome} Outcome */

const begun = Date.now();
const log = (/** @type {string} */ line) => console.log(`[test] ${line}`);

const { only, filters } = readArguments(process.argv.slice(2));
const wants = (/** @type {string} */ part) => only === null || only === part;
const mustHaveAll = process.env.WEIR_REQUIRE_ALL_SERVICES === '1';

const missing = missingPrerequisite();
if (missing !== null) {
  log(missing);
  process.exit(1);
}

// Open to others: PostgreSQL runs as another user when we are root.
const tempDir = mkdtempSync(join(tmpdir(), 'weir-test-'));
chmodSync(tempDir, 0o711);
// What the tests themselves put aside goes with the rest.
const testTempDir = join(tempDir, 'tmp');
mkdirSync(testTempDir, { mode: 0o711 });
const logDir = join(tempDir, 'logs');

/** @type {{ part: string, outcome: Outcome }[]} */
const results = [];
let isFinished = false;
const end = endInOrder({
  log,
  // Interrupted: nobody will look at what is left.
  beforeExit: () => {
    if (!isFinished) rmSync(tempDir, { recursive: true, force: true });
  },
});
setTimeout(() => {
  void finish(`the tests did not end within ${WATCHDOG_MS / 60_000} minutes`);
}, WATCHDOG_MS).unref();

try {
  await run();
  await finish();
} catch (error) {
  await finish(/** @type {Error} */ (error).message);
}

async function run() {
  await ensureDependencies({ logDir, log });
  await ensureBuilt({ logDir, log, isForced: true });
  if (wants('check')) await runChecks();
  if (only === 'check') return;

  const serviceEnv = only === 'unit' ? {} : await startServices();
  if (wants('unit') || wants('int')) await runVitest(serviceEnv);
  if (wants('e2e')) await runPlaywright(serviceEnv);
}

/**
 * @param {string[]} args
 */
function readArguments(args) {
  const rest = args.filter((arg) => arg !== '--');
  const onlyIndex = rest.indexOf('--only');
  if (onlyIndex < 0) return { only: null, filters: rest };
  const [, part = ''] = rest.splice(onlyIndex, 2);
  if (!PARTS.includes(part)) {
    log(`--only takes one of: ${PARTS.join(', ')}`);
    process.exit(1);
  }
  return { only: part, filters: rest };
}

async function runChecks() {
  const reportFile = join(tempDir, 'check.json');
  await runTool('checks', [
    join(repoDir, 'tools', 'check.mjs'),
    '--no-unit',
    '--report',
    reportFile,
  ]);
  /** @type {{ name: string, ok: boolean }[] | null} */
  const report = readJson(reportFile);
  results.push({
    part: 'checks',
    outcome: {
      passed: report?.filter(({ ok }) => ok).length ?? 0,
      failures: report?.filter(({ ok }) => !ok).map(({ name }) => name) ?? [
        'the checks ended early',
      ],
      skips: [],
    },
  });
}

/** @returns {Promise<Record<string, string>>} what the tests need to reach them */
async function startServices() {
  const from = Date.now();
  const [postgresPort = 0, redisPort = 0, clusterPort = 0, kafkaPort = 0] = await freePorts(4);
  let kafkaReason = '';
  const onUnexpectedExit = log;
  const options = (/** @type {string} */ name, /** @type {number} */ port) => ({
    dir: join(tempDir, name),
    port,
    log,
    onUnexpectedExit,
  });
  const [postgres, redis, cluster, kafka, chromium] = await Promise.all([
    startPostgres({ ...options('postgres', postgresPort), isThrowaway: true }),
    startRedis(options('redis', redisPort)),
    startRedisCluster(options('redis-cluster', clusterPort)),
    startKafka({
      ...options('kafka', kafkaPort),
      isThrowaway: true,
      log: (line) => {
        kafkaReason = line;
        log(line);
      },
    }),
    wants('e2e') ? findChromium({ dir: logDir, log }) : null,
  ]);
  log(`services are up (${seconds(from)})`);
  if (kafka === null && mustHaveAll) {
    results.push({ part: 'services', outcome: { passed: 0, failures: [kafkaReason], skips: [] } });
  }
  return {
    WEIR_TEST_DATABASE_URL: postgres.adminUrl,
    WEIR_TEST_REDIS_URL: redis.url,
    WEIR_TEST_REDIS_CLUSTER_URL: cluster.url,
    // The stack of the end-to-end tests need not find out a second time that there is no Kafka.
    ...(kafka === null
      ? { WEIR_KAFKA: 'off', WEIR_TEST_KAFKA_MISSING: kafkaReason }
      : { WEIR_TEST_KAFKA_BROKERS: kafka.url }),
    ...(chromium && { CHROMIUM_PATH: chromium }),
  };
}

/** @param {Record<string, string>} serviceEnv */
async function runVitest(serviceEnv) {
  const reportFile = join(tempDir, 'vitest.json');
  const code = await runTool(
    'vitest',
    [
      packageBin('vitest'),
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile=${reportFile}`,
      ...(only === 'unit' ? ['--exclude', '**/*.int.spec.ts'] : []),
      ...(only === 'int' && filters.length === 0 ? ['.int.spec.'] : []),
      ...filters,
    ],
    serviceEnv,
  );
  const reasonFor = (/** @type {string} */ file) =>
    serviceEnv.WEIR_TEST_KAFKA_MISSING && readFileSync(file, 'utf8').includes('KAFKA')
      ? serviceEnv.WEIR_TEST_KAFKA_MISSING
      : 'the test gives no reason';
  results.push({
    part: 'unit and integration tests',
    outcome: vitestOutcome(readJson(reportFile), code, { repoDir, reasonFor }),
  });
}

/** @param {Record<string, string>} serviceEnv */
async function runPlaywright(serviceEnv) {
  const config = join(repoDir, 'apps', 'e2e', 'playwright.config.ts');
  const reportFile = join(tempDir, 'playwright.json');
  const code = existsSync(config)
    ? await runTool(
        'playwright',
        [
          packageBin('playwright'),
          'test',
          '-c',
          config,
          '--reporter=list,json',
          ...(only === 'e2e' ? filters : []),
        ],
        {
          ...serviceEnv,
          PLAYWRIGHT_JSON_OUTPUT_FILE: reportFile,
          PLAYWRIGHT_JSON_OUTPUT_NAME: reportFile,
        },
      )
    : 1;
  results.push({
    part: 'end-to-end tests',
    outcome: playwrightOutcome(readJson(reportFile), code),
  });
}

/**
 * @param {string} name
 * @param {string[]} args
 * @param {Record<string, string>} [env]
 * @returns {Promise<number>} the exit code
 */
async function runTool(name, args, env = {}) {
  console.log('');
  log(name);
  const tool = manageProcess({
    name,
    command: process.execPath,
    args,
    cwd: repoDir,
    env: { ...process.env, NX_DAEMON: 'false', TMPDIR: testTempDir, ...env },
    logFile: join(logDir, `${name}.log`),
    output: 'terminal',
  });
  await tool.start();
  return (await tool.ended()).code ?? 1;
}

/** @param {string} file */
function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

/**
 * Stops everything, sums up, and ends the process with the line that counts.
 * @param {string} [failure] why the run was cut short
 */
async function finish(failure) {
  // The watchdog, or Ctrl-C, ends the tools that are being waited for; what follows from that is no result.
  if (isFinished || isClosing()) return;
  isFinished = true;
  const failures = results.flatMap(({ part, outcome }) =>
    outcome.failures.map((name) => `${part}: ${name}`),
  );
  if (failure !== undefined) failures.push(failure);
  const skips = results.flatMap(({ part, outcome }) =>
    outcome.skips.map(({ name, reason }) => `${part}: ${name} (${reason})`),
  );
  const passed = results.reduce((sum, { outcome }) => sum + outcome.passed, 0);
  if (passed + failures.length + skips.length === 0) failures.push('no test ran');

  // The services' own last words belong above the result.
  await stopAllProcesses();
  console.log('');
  for (const { part, outcome } of results) {
    log(
      `${part}: ${outcome.passed} passed, ${outcome.failures.length} failed, ${outcome.skips.length} skipped`,
    );
  }
  for (const name of skips) log(`skipped  ${name}`);
  for (const name of failures) log(`FAILED   ${name}`);
  if (failures.length === 0) rmSync(tempDir, { recursive: true, force: true });
  else log(`logs and data are kept in ${tempDir}`);
  log(`took ${seconds(begun)}`);
  console.log(`${passed} passed, ${failures.length} failed, ${skips.length} skipped`);
  await end(failures.length === 0 ? 0 : 1);
}
