// Redis, the demo provider, the gateway, the same with its quotas off, and a bare proxy, with one enterprise
// whose limits are all set and never reached: what the benchmarks of the gateway need, and nothing else.

import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId, outboxKey } from '../../../libs/domain/dist/index.js';
import { SecretBox } from '../../../libs/platform/dist/index.js';
import { connectQuotaRedis, EpochKeeper, PolicyPublisher } from '../../../libs/quota/dist/index.js';
import { repoDir } from '../../launcher/lib/paths.mjs';
import { freePorts } from '../../launcher/lib/ports.mjs';
import { manageProcess } from '../../launcher/lib/processes.mjs';
import { startRedis } from '../../launcher/services/redis.mjs';

const SHARDS = 2;
const READY_MS = 30_000;
/** Nobody reads the usage events here: they must not fill the memory. */
const OUTBOX_KEPT = 5_000;
const TRIM_MS = 500;

/**
 * @param {(line: string) => void} log
 */
export async function startDataPlane(log) {
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-'));
  const [redisPort = 0, providerPort = 0, gatewayPort = 0, plainPort = 0, barePort = 0] =
    await freePorts(5);
  /** @type {(() => Promise<unknown>)[]} */
  const stops = [];
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const redisServer = await startRedis({ dir: join(dir, 'redis'), port: redisPort, log });
    stops.push(() => redisServer.stop());
    const redis = connectQuotaRedis({
      url: redisServer.url,
      shardCount: SHARDS,
      commandTimeoutMs: 5_000,
    });
    stops.push(() => redis.close());
    await redis.ready();
    // Where Redis has a machine of its own, it does not take the gateway's core when it rewrites its file.
    await redis.client.config('SET', 'auto-aof-rewrite-percentage', '0');
    await new EpochKeeper(redis, {
      loadLedgerState: async () => null,
      loadSeeds: async () => [],
      republish: async () => undefined,
    }).ensureAll();

    const providerKey = randomBytes(24).toString('base64url');
    const secretKey = randomBytes(32).toString('base64');
    const providerUrl = `http://127.0.0.1:${providerPort}`;
    const start = async (
      /** @type {string} */ name,
      /** @type {string} */ script,
      /** @type {number} */ port,
      /** @type {string} */ readyPath,
      /** @type {Record<string, string>} */ env,
      /** @type {string[]} */ nodeArgs = [],
    ) => {
      const managed = manageProcess({
        name,
        command: process.execPath,
        args: [...nodeArgs, join(repoDir, script)],
        cwd: repoDir,
        env: { PATH: process.env.PATH ?? '', HOST: '127.0.0.1', PORT: String(port), ...env },
        logFile: join(dir, `${name}.log`),
        readyMs: READY_MS,
        isReady: () => answers(`http://127.0.0.1:${port}${readyPath}`),
        onUnexpectedExit: log,
      });
      stops.push(() => managed.stop());
      await managed.start();
      return managed;
    };
    const common = { NODE_ENV: 'production', LOG_LEVEL: 'warn' };
    await start(
      'demo-provider',
      'apps/demo-provider/dist/main.js',
      providerPort,
      '/healthz',
      { ...common, DEMO_API_KEY: providerKey },
      // It stands for another machine: its collector shall not take the CPU from what is measured, neither in threads of its
      // own nor, for 50 ms at a time, in full collections because its bill has grown by a third.
      ['--single-threaded-gc', '--heap-growing-percent=300'],
    );
    const bare = await start('bare-proxy', 'tools/bench/lib/bare-proxy.mjs', barePort, '/', {
      ...common,
      UPSTREAM_URL: providerUrl,
      UPSTREAM_KEY: providerKey,
    });
    const settings = {
      ...common,
      REDIS_URL: redisServer.url,
      SHARD_COUNT: String(SHARDS),
      REDIS_COMMAND_TIMEOUT_MS: '1000',
      WEIR_SECRET_KEY: secretKey,
      UPSTREAM_ALLOW_PRIVATE: 'true',
    };
    const plain = await start(
      'quotas-off',
      'tools/bench/lib/quotas-off.mjs',
      plainPort,
      '/healthz',
      settings,
    );
    const gateway = await start(
      'gateway',
      'apps/gateway/dist/main.js',
      gatewayPort,
      '/readyz',
      settings,
    );

    const secrets = await publish(redis, `${providerUrl}/v1`, providerKey, secretKey);
    const trimmer = setInterval(() => {
      for (let shard = 0; shard < SHARDS; shard += 1) {
        redis.client
          .xtrim(outboxKey('weir', shard), 'MAXLEN', OUTBOX_KEPT)
          .catch((/** @type {Error} */ error) => log(error.message));
      }
    }, TRIM_MS);
    stops.push(async () => clearInterval(trimmer));

    const target = (
      /** @type {string} */ origin,
      /** @type {string} */ key,
      /** @type {object} */ body,
    ) => ({
      origin,
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo-small', messages, ...body }),
    });
    return {
      stopBare: () => bare.stop(),
      pids: { gateway: gateway.pid, plain: plain.pid, bare: bare.pid },
      gatewayUrl: `http://127.0.0.1:${gatewayPort}`,
      /** The same call to the upstream itself, through a bare proxy, with quotas off, and through the gateway. */
      targets: (/** @type {object} */ body) => ({
        direct: target(providerUrl, providerKey, body),
        bare: target(`http://127.0.0.1:${barePort}`, 'none', body),
        plain: target(`http://127.0.0.1:${plainPort}`, secrets.roomy, body),
        full: target(`http://127.0.0.1:${gatewayPort}`, secrets.roomy, body),
        refused: target(`http://127.0.0.1:${gatewayPort}`, secrets.exhausted, body),
      }),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const messages = [
  { role: 'system', content: 'You are a helpful assistant who answers in a few clear sentences.' },
  {
    role: 'user',
    content:
      'Explain in plain words why rivers meander, what makes the outer bank wear away faster than the inner one, and how people have tried to straighten rivers and with what result.',
  },
];

/** Every metric limited at every level, far above what is measured; and one user whose budget is used up. */
async function publish(
  /** @type {import('../../../libs/quota/dist/index.js').QuotaRedis} */ redis,
  /** @type {string} */ baseUrl,
  /** @type {string} */ providerKey,
  /** @type {string} */ secretKey,
) {
  const upstreamId = newId();
  const enterpriseId = newId();
  const departmentId = newId();
  const limit = (
    /** @type {import('../../../libs/domain/dist/index.js').Metric} */ metric,
    /** @type {import('../../../libs/domain/dist/index.js').Window | null} */ window,
    /** @type {string} */ amount,
  ) => ({ id: newId(), metric, window, amount, model: null, mode: /** @type {const} */ ('hard') });
  const roomy = () => [
    limit('requests', 'minute', '100000000'),
    limit('tokens', 'minute', '100000000000'),
    limit('concurrency', null, '1000000'),
    limit('tokens', 'month', '1000000000000000'),
    limit('cost', 'month', '1000000000000000000'),
  ];
  const user = (/** @type {string} */ name, /** @type {ReturnType<typeof roomy>} */ limits) => {
    const id = newId();
    const secret = `weir-bench-${newId()}`;
    return {
      secret,
      node: {
        id,
        level: /** @type {const} */ ('user'),
        parentId: departmentId,
        name,
        status: /** @type {const} */ ('active'),
        limits,
      },
      key: {
        id: newId(),
        enterpriseId,
        userId: id,
        name,
        sha256: createHash('sha256').update(secret).digest('hex'),
        status: /** @type {const} */ ('active'),
        expiresAt: null,
        allowedModels: null,
        limits: roomy(),
      },
    };
  };
  const users = [
    user('Roomy', roomy()),
    user('Exhausted', [...roomy(), limit('requests', 'month', '1')]),
  ];
  const [first, second] = users;
  if (first === undefined || second === undefined) throw new Error('two users are needed');
  await new PolicyPublisher(redis).publish(enterpriseId, {
    enterprise: {
      id: enterpriseId,
      name: 'Bench',
      timeZone: 'Europe/Berlin',
      currency: 'USD',
      settings: {
        windowOutputReservePercent: 50,
        onCapBeyondBudget: 'refuse',
        degradedMode: 'local',
        degradedBudgetSharePercent: 10,
        leaseMs: 60_000,
      },
      limits: roomy(),
      upstreams: [
        {
          id: upstreamId,
          name: 'Demo',
          dialect: 'openai',
          baseUrl,
          sealedApiKey: SecretBox.fromSetting(secretKey).seal(providerKey, upstreamId),
          connectTimeoutMs: 1_000,
          firstByteTimeoutMs: 30_000,
          idleTimeoutMs: 30_000,
          onClientGone: 'drain',
          enabled: true,
        },
      ],
      models: [
        {
          alias: 'demo-small',
          kind: 'chat',
          dialect: 'openai',
          contextWindowTokens: 128_000,
          maxOutputTokens: 4_096,
          defaultOutputReserve: 1_024,
          routes: [{ upstreamId, upstreamModel: 'demo-small', weight: 1, priority: 0 }],
          prices: [
            {
              id: newId(),
              model: 'demo-small',
              currency: 'USD',
              from: '2020-01-01T00:00:00.000Z',
              to: null,
              picoPerToken: { input: '500000', cachedInput: '50000', output: '1500000' },
              picoPerRequest: '0',
            },
          ],
          enabled: true,
        },
      ],
    },
    nodes: [
      {
        id: departmentId,
        level: 'department',
        parentId: null,
        name: 'Engineering',
        status: 'active',
        limits: roomy(),
      },
      ...users.map(({ node }) => node),
    ],
    keys: users.map(({ key }) => key),
  });
  return { roomy: first.secret, exhausted: second.secret };
}

/** @param {string} url */
async function answers(url) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(1_000) });
    await response.arrayBuffer();
    return response.status < 500;
  } catch {
    return false;
  }
}
