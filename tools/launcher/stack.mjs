// The whole of Weir on one machine: services, migrations, demo data and applications.
//
// Used by `npm start`, by the end-to-end tests, by the benchmarks and by the chaos tests: what they
// measure and break is put together in one way only.

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repoDir } from './lib/paths.mjs';
import { freePort, portOrFree } from './lib/ports.mjs';
import { manageProcess, runToEnd } from './lib/processes.mjs';
import { startKafka } from './services/kafka.mjs';
import { startPostgres } from './services/postgres.mjs';
import { startRedis } from './services/redis.mjs';

const FIXED_PORTS = {
  gateway: 4000,
  adminApi: 4001,
  worker: 4002,
  demoProvider: 4010,
  postgres: 4021,
  redis: 4022,
  kafka: 4023,
};

const APP_READY_MS = 60_000;
const MIGRATE_MS = 120_000;
const SEED_MS = 120_000;
const PROBE_MS = 2_000;

/** @typedef {import('./lib/processes.mjs').ManagedProcess} ManagedProcess */
/** @typedef {import('./lib/service.mjs').Service} Service */

/**
 * @typedef {object} StackOptions
 * @property {string} stateDir data, logs, keys and exports; a second start on it finds all of them again
 * @property {(line: string) => void} log
 * @property {'fixed' | 'free'} [ports] fixed: the documented ones, or a free one where one is taken;
 *   free: any, for stacks side by side. Default free
 * @property {'auto' | 'off'} [kafka] off: the pipeline runs direct, even where Kafka could be had; so does
 *   WEIR_KAFKA=off in the environment. Default auto
 * @property {{ gateways?: number, workers?: number }} [apps] how many of each; default one
 * @property {{ gateway?: Record<string, string>, worker?: Record<string, string>, adminApi?: Record<string, string>, demoProvider?: Record<string, string> }} [appEnv]
 *   settings on top of ours
 * @property {{ databaseUrl?: string | undefined, redisUrl?: string | undefined, kafkaBrokers?: string | undefined }} [external]
 *   services to use instead of starting our own
 * @property {boolean} [isThrowaway] the data need not survive a power cut
 * @property {(message: string) => void} [onUnexpectedExit] something died without having been asked to; default: it is logged
 * @property {string} [rootDir] where apps/ and tools/migrate.mjs are; default this repository
 */

/**
 * @typedef {object} Stack
 * @property {{ gateway: string, gateways: string[], adminApi: string, demoProvider: string }} urls
 *   the admin API also serves the console, at /
 * @property {Record<string, string>} env what a client or a test needs to reach the parts
 * @property {{ postgres: Service & { adminUrl: string }, redis: Service, kafka: Service | null }} services
 * @property {{ gateway: ManagedProcess[], worker: ManagedProcess[], adminApi: ManagedProcess, demoProvider: ManagedProcess }} processes
 * @property {any} demo what the seed printed: console login and demo keys
 * @property {() => Promise<void>} stop
 */

/**
 * @param {StackOptions} options
 * @returns {Promise<Stack>}
 */
export async function startStack({
  stateDir,
  log,
  ports = 'free',
  kafka: kafkaMode = 'auto',
  apps = {},
  appEnv = {},
  external = {},
  isThrowaway = false,
  onUnexpectedExit = log,
  rootDir = repoDir,
}) {
  const logDir = join(stateDir, 'logs');
  const exportDir = join(stateDir, 'exports');
  const spoolDir = join(stateDir, 'spool');
  mkdirSync(logDir, { recursive: true });
  // As root, PostgreSQL runs as another user and must get through; what is secret in here is 0600.
  if (process.getuid?.() === 0) chmodSync(stateDir, 0o711);
  mkdirSync(exportDir, { recursive: true });

  /** Groups in the order of their start; those of one group are stopped together. @type {{ stop: () => Promise<void> }[][]} */
  const started = [];
  const stop = async () => {
    for (const group of started.splice(0).reverse()) {
      await Promise.allSettled(group.map((part) => part.stop()));
    }
  };
  const portFor = async (/** @type {keyof typeof FIXED_PORTS} */ part, index = 0) => {
    if (ports === 'free' || index > 0) return freePort();
    const port = await portOrFree(FIXED_PORTS[part]);
    if (port !== FIXED_PORTS[part]) log(`port ${FIXED_PORTS[part]} is taken: ${part} uses ${port}`);
    return port;
  };

  try {
    const services = await startServices();
    const { postgres, redis, kafka } = services;

    const secretKey = process.env.WEIR_SECRET_KEY || keptSecret(join(stateDir, 'secret-key'));
    const demoApiKey = keptSecret(join(stateDir, 'demo-provider-key'));
    const common = {
      NODE_ENV: process.env.NODE_ENV ?? 'development',
      LOG_LEVEL: process.env.LOG_LEVEL ?? 'info',
      WEIR_SECRET_KEY: secretKey,
      REDIS_URL: redis.url,
      // Providers on this machine: the demo's, and one of your own. Otherwise private addresses are refused.
      UPSTREAM_ALLOW_PRIVATE: 'true',
    };

    await runToEnd({
      name: 'migrations',
      command: process.execPath,
      args: [join(rootDir, 'tools', 'migrate.mjs'), 'apply'],
      cwd: rootDir,
      env: { ...inheritedEnv(), ...common, DATABASE_URL: postgres.url },
      logFile: join(logDir, 'migrate.log'),
      timeoutMs: MIGRATE_MS,
    });
    log('migrations are applied');

    const demoProviderPort = await portFor('demoProvider');
    const demoProviderUrl = urlOf(demoProviderPort);
    const demoProvider = manageApp('demo-provider', 'demo-provider', demoProviderPort, {
      ...common,
      DEMO_API_KEY: demoApiKey,
      ...appEnv.demoProvider,
    });
    started.push([demoProvider]);
    const [demo] = await Promise.all([
      seed({
        ...common,
        DATABASE_URL: postgres.url,
        DEMO_PROVIDER_URL: demoProviderUrl,
        DEMO_API_KEY: demoApiKey,
        SEED_STATE_FILE: join(stateDir, 'seed.json'),
      }),
      demoProvider.start(),
    ]);
    log('demo data is in place');

    const adminApiPort = await portFor('adminApi');
    const adminApiUrl = urlOf(adminApiPort);
    const gatewayPorts = [];
    for (let index = 0; index < (apps.gateways ?? 1); index += 1) {
      gatewayPorts.push(await portFor('gateway', index));
    }
    const gatewayUrls = gatewayPorts.map(urlOf);

    const adminApi = manageApp('admin-api', 'admin-api', adminApiPort, {
      ...common,
      DATABASE_URL: postgres.url,
      CONSOLE_DIR: join(rootDir, 'apps', 'console', 'dist'),
      EXPORT_DIR: exportDir,
      ...appEnv.adminApi,
    });
    const workers = [];
    for (let index = 0; index < (apps.workers ?? 1); index += 1) {
      workers.push(
        manageApp(
          'metering-worker',
          nameOf('metering-worker', index),
          await portFor('worker', index),
          {
            ...common,
            DATABASE_URL: postgres.url,
            KAFKA_BROKERS: kafka?.url ?? '',
            WORKER_ROLES: 'relay,ledger,jobs',
            EXPORT_DIR: exportDir,
            ...appEnv.worker,
          },
        ),
      );
    }
    const gateways = gatewayPorts.map((port, index) =>
      manageApp('gateway', nameOf('gateway', index), port, {
        ...common,
        ADMIN_API_URL: adminApiUrl,
        SPOOL_DIR: spoolDir,
        ...appEnv.gateway,
      }),
    );
    started.push([adminApi, ...workers], gateways);
    await Promise.all([adminApi, ...workers, ...gateways].map((app) => app.start()));

    return {
      urls: {
        gateway: gatewayUrls[0] ?? '',
        gateways: gatewayUrls,
        adminApi: adminApiUrl,
        demoProvider: demoProviderUrl,
      },
      env: {
        ...common,
        DATABASE_URL: postgres.url,
        KAFKA_BROKERS: kafka?.url ?? '',
        DEMO_PROVIDER_URL: demoProviderUrl,
        DEMO_API_KEY: demoApiKey,
        EXPORT_DIR: exportDir,
      },
      services,
      processes: { gateway: gateways, worker: workers, adminApi, demoProvider },
      demo,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }

  async function startServices() {
    const options = async (
      /** @type {'postgres' | 'redis' | 'kafka'} */ name,
      /** @type {string | undefined} */ externalUrl,
    ) => ({
      dir: join(stateDir, name),
      port: externalUrl ? 0 : await portFor(name),
      log,
      onUnexpectedExit,
      ...(externalUrl && { externalUrl }),
    });
    const begun = Date.now();
    const results = await Promise.allSettled([
      startPostgres({ ...(await options('postgres', external.databaseUrl)), isThrowaway }),
      startRedis(await options('redis', external.redisUrl)),
      kafkaMode === 'off' || process.env.WEIR_KAFKA === 'off'
        ? null
        : startKafka({ ...(await options('kafka', external.kafkaBrokers)), isThrowaway }),
    ]);
    // What did start must be stopped even if another did not.
    started.push(
      results.flatMap((result) =>
        result.status === 'fulfilled' && result.value !== null ? [result.value] : [],
      ),
    );
    const failed = results.find((result) => result.status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
    const [postgres, redis, kafka] = results.map((result) =>
      result.status === 'fulfilled' ? result.value : null,
    );
    log(
      `${kafka ? 'postgres, redis and kafka are' : 'postgres and redis are'} up (${((Date.now() - begun) / 1000).toFixed(1)} s)`,
    );
    return /** @type {Stack['services']} */ ({ postgres, redis, kafka });
  }

  /**
   * @param {string} app
   * @param {string} name
   * @param {number} port
   * @param {Record<string, string>} env
   */
  function manageApp(app, name, port, env) {
    return manageProcess({
      name,
      command: process.execPath,
      args: [join(rootDir, 'apps', app, 'dist', 'main.js')],
      cwd: rootDir,
      env: { ...inheritedEnv(), HOST: '127.0.0.1', PORT: String(port), ...env },
      logFile: join(logDir, `${name}.log`),
      readyMs: APP_READY_MS,
      isReady: () => isAppReady(port),
      onUnexpectedExit,
    });
  }

  /**
   * @param {Record<string, string>} env
   * @returns {Promise<any>}
   */
  async function seed(env) {
    const script = join(rootDir, 'apps', 'admin-api', 'dist', 'seed-demo.js');
    const { failure, stdout, stderr } = await new Promise((resolve) => {
      execFile(
        process.execPath,
        [script],
        {
          cwd: rootDir,
          env: { ...inheritedEnv(), ...env },
          timeout: SEED_MS,
          killSignal: 'SIGKILL',
        },
        (error, out, err) => resolve({ failure: error, stdout: out, stderr: err }),
      );
    });
    const lines = stdout.trim().split('\n');
    // The last line holds secrets, which have no place in a log.
    const logFile = join(logDir, 'seed.log');
    writeFileSync(logFile, `${lines.slice(0, -1).join('\n')}\n${stderr}`, { mode: 0o600 });
    if (failure)
      throw new Error(`The demo data could not be made: see ${logFile}\n${stderr.trim()}`);
    try {
      return JSON.parse(lines.at(-1) ?? '');
    } catch {
      throw new Error(`The demo data's last line is not JSON: see ${logFile}`);
    }
  }
}

/**
 * Our own environment, without what would reach the wrong part: the gateway must not learn of the
 * database, and npm's own variables are of no use to anyone.
 */
function inheritedEnv() {
  const hidden = /^(npm_|WEIR_TEST_|DATABASE_URL$|KAFKA_BROKERS$|REDIS_URL$|HOST$|PORT$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !hidden.test(name)));
}

/**
 * A random key of 32 bytes in base64, made once and kept.
 * @param {string} file
 */
function keptSecret(file) {
  if (!existsSync(file)) writeFileSync(file, randomBytes(32).toString('base64'), { mode: 0o600 });
  chmodSync(file, 0o600);
  return readFileSync(file, 'utf8').trim();
}

/** @param {number} port */
async function isAppReady(port) {
  try {
    const response = await fetch(`${urlOf(port)}/readyz`, {
      signal: AbortSignal.timeout(PROBE_MS),
    });
    // `degraded` is 200 too: it serves, but its limits are not shared or its counters not yet made.
    const readiness = /** @type {{ status?: string }} */ (await response.json());
    return response.status === 200 && readiness.status === 'ready';
  } catch {
    return false;
  }
}

/** @param {number} port */
function urlOf(port) {
  return `http://127.0.0.1:${port}`;
}

/**
 * @param {string} app
 * @param {number} index
 */
function nameOf(app, index) {
  return index === 0 ? app : `${app}-${index + 1}`;
}
