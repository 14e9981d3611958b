// What the quota engine does per second, beside what Redis itself and a well-known rate limiter do in the same run.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { newId, shardOf, usageEventOf } from '../../libs/domain/dist/index.js';
import { connectQuotaRedis, createRedisEngine, EpochKeeper } from '../../libs/quota/dist/index.js';
import { logMachine, withServices } from './lib/bench-services.mjs';
import { seededRandom } from './lib/figures.mjs';

const CALLERS = [1, 32, 128];
const LEVELS = [4, 8];
/** Enterprises that the load is spread over, so that no cache is kinder than in earnest. */
const TENANTS = 16;
const SHARDS = 8;
const MODEL = 'demo-large';

/** The targets of 2 cores; printed beside what was reached. */
const TARGETS = {
  admits_per_s: 14_000,
  pairs_per_s: 7_500,
  admit_p50_ms_c1: 0.2,
  levels8_over_levels4: 1.7,
};

/** The taximeter as the gateway has it: the prompt and a first reserve, then chunk by chunk. */
const STREAMS = 50;
const FIRST_RESERVE_TOKENS = 1_024;
const CHUNK_TOKENS = 512;
const PROMPT_TOKENS = 100;

/**
 * @param {{ seconds: number, args: string[], log: (line: string) => void }} options
 * @returns what the last line of the output holds; `ok: false` when the overshoot passes its bound
 */
export async function run({ seconds, log }) {
  logMachine(log);
  return withServices({ names: ['redis'], log }, async ({ redis: server }) => {
    const sliceMs = Math.max(400, (seconds * 1_000) / 26);
    const bench = await EngineBench.open(server.url);
    try {
      const getPerS = await redisGetPerS(server.port);
      log(`redis-benchmark GET, 32 connections: ${getPerS} per second`);
      const rlflx = await rateLimiterFlexible(server.url, sliceMs);
      log(`rate-limiter-flexible, four sequential calls, 32 callers: ${rlflx} per second`);

      const rows = [];
      for (const levels of LEVELS) {
        for (const callers of CALLERS) {
          for (const kind of ['admit', 'pair', 'refusal']) {
            rows.push({
              kind,
              levels,
              callers,
              ...(await bench.measure(kind, levels, callers, sliceMs)),
            });
          }
        }
      }
      table(log, rows, getPerS);
      const scripts = await bench.scriptTimes();
      log(`server µs per script, 4 levels: ${JSON.stringify(scripts)}`);
      const overshoot = await bench.overshoot(log);

      const find = (kind, levels, callers) =>
        rows.find((row) => row.kind === kind && row.levels === levels && row.callers === callers);
      const result = {
        redis_get_per_s: getPerS,
        rlflx4_per_s: rlflx,
        admits_per_s: find('admit', 4, 32).perS,
        pairs_per_s: find('pair', 4, 32).perS,
        refusals_per_s: find('refusal', 4, 32).perS,
        admit_p50_ms_c1: find('admit', 4, 1).p50Ms,
        levels8_over_levels4: round(find('admit', 4, 32).perS / find('admit', 8, 32).perS, 2),
        overshoot_tokens_max: overshoot.max,
        overshoot_bound_tokens: overshoot.bound,
      };
      log(JSON.stringify({ rows, server_us_per_script: scripts, targets: TARGETS, result }));
      return overshoot.max <= overshoot.bound ? result : { ...result, ok: false };
    } finally {
      await bench.close();
    }
  });
}

class EngineBench {
  static async open(url) {
    const bench = new EngineBench(url);
    await bench.reset();
    return bench;
  }

  constructor(url) {
    this.url = url;
    this.redis = null;
    this.engine = null;
  }

  /**
   * Empty counters, no open leases and an engine that knows of none, so that each measurement begins alike: an engine
   * that has settled before would take the empty store for one that lost data, and send its last settlements again.
   */
  async reset() {
    await this.redis?.client.flushdb();
    await this.close();
    this.redis = connectQuotaRedis({
      url: this.url,
      prefix: 'bench',
      shardCount: SHARDS,
      commandTimeoutMs: 10_000,
    });
    await this.redis.ready();
    this.engine = createRedisEngine(this.redis);
    const keeper = new EpochKeeper(this.redis, {
      loadLedgerState: async () => null,
      loadSeeds: async () => [],
      republish: async () => undefined,
    });
    await keeper.ensureAll();
  }

  /** Calls per second and the quantiles of one call's time, with `callers` that each wait for their answer. */
  async measure(kind, levels, callers, ms) {
    await this.reset();
    const tenants = Array.from({ length: TENANTS }, () => makeTenant(levels, kind === 'refusal'));
    const once = this.operation(kind);
    await load(tenants, callers, ms / 4, once);
    const before = await this.commandStats();
    const { times, elapsedMs } = await load(tenants, callers, ms, once);
    const after = await this.commandStats();
    times.sort((a, b) => a - b);
    return {
      perS: Math.round((times.length * 1_000) / elapsedMs),
      p50Ms: round(times[Math.floor(times.length / 2)], 3),
      p99Ms: round(times[Math.floor(times.length * 0.99)], 3),
      serverUs: round((after.usec - before.usec) / (after.calls - before.calls), 1),
    };
  }

  operation(kind) {
    const { engine } = this;
    if (kind === 'refusal') {
      return async (tenant) => expectOutcome(await engine.admit(callOf(tenant)), 'refused');
    }
    if (kind === 'admit') {
      return async (tenant) => expectOutcome(await engine.admit(callOf(tenant)), 'admitted');
    }
    return async (tenant) => {
      const { lease } = expectOutcome(await engine.admit(callOf(tenant)), 'admitted');
      const { actual, event } = settlementOf(tenant, lease);
      expectOutcome(await engine.settle(lease, actual, event), 'settled');
    };
  }

  /** Mean server time of each script by itself; renewals in batches of 100. */
  async scriptTimes() {
    await this.reset();
    const tenants = Array.from({ length: TENANTS }, () => makeTenant(4, false));
    const blocked = Array.from({ length: TENANTS }, () => makeTenant(4, true));
    const { engine } = this;
    const leases = [];
    const admit = async (tenant) => {
      leases.push({
        tenant,
        lease: expectOutcome(await engine.admit(callOf(tenant)), 'admitted').lease,
      });
    };
    const of = async (items, act) => {
      const before = await this.commandStats();
      await Promise.all(
        Array.from({ length: 8 }, async () => {
          for (let item = items.shift(); item !== undefined; item = items.shift()) await act(item);
        }),
      );
      const after = await this.commandStats();
      return round((after.usec - before.usec) / (after.calls - before.calls), 1);
    };
    const repeated = (from, count) =>
      Array.from({ length: count }, (_, index) => from[index % from.length]);
    const observed = { inputTokens: 10, outputTokens: 10, costNano: 100n };
    const times = {};
    times.admit = await of(repeated(tenants, 4_000), admit);
    times.refuse = await of(repeated(blocked, 2_000), async (tenant) => {
      expectOutcome(await engine.admit(callOf(tenant)), 'refused');
    });
    times.extend = await of(leases.slice(0, 1_000), ({ lease }) =>
      engine.extend(lease, { outputTokens: 10, costNano: 100n, observed }),
    );
    // A renewal goes by shard: one shard's leases make one script.
    const ofOneShard = leases.filter(({ lease }) => lease.shard === leases[0].lease.shard);
    const batches = Array.from({ length: Math.floor(ofOneShard.length / 100) }, (_, index) =>
      ofOneShard
        .slice(index * 100, index * 100 + 100)
        .map(({ lease }) => ({ lease, observed, leaseMs: 60_000 })),
    );
    times.renew_100 = await of(batches, (batch) => engine.renew(batch));
    times.void = await of(leases.splice(0, 1_000), ({ lease }) => engine.void(lease));
    times.settle = await of(leases, ({ tenant, lease }) => {
      const { actual, event } = settlementOf(tenant, lease);
      return engine.settle(lease, actual, event);
    });
    return times;
  }

  /**
   * Streams without a cap on a hard budget that holds only part of them. Each meters itself, extends chunk by chunk and
   * ends when refused; what the provider has produced until the stop reaches it is billed all the same.
   */
  async overshoot(log) {
    const bound = STREAMS * CHUNK_TOKENS;
    let max = 0;
    for (let round_ = 0; round_ < 5; round_ += 1) {
      await this.reset();
      const budget =
        STREAMS * (PROMPT_TOKENS + FIRST_RESERVE_TOKENS) + 20 * CHUNK_TOKENS + round_ * 137;
      const tenant = makeTenant(4, false, [limitOf('tokens', 'month', BigInt(budget))]);
      await Promise.all(
        Array.from({ length: STREAMS }, (_, index) => this.stream(tenant, index + round_)),
      );
      const [enterprise] = await this.engine.peek({
        shard: tenant.shard,
        enterpriseId: tenant.enterpriseId,
        timeZone: 'UTC',
        scopes: tenant.path,
      });
      const over = Number(enterprise.month.tokens) - budget;
      if (enterprise.month.reservedTokens !== 0n) throw new Error('a stream left a reservation');
      log(
        `overshoot: ${STREAMS} streams on ${budget} tokens used ${enterprise.month.tokens} (${over} over)`,
      );
      max = Math.max(max, over);
    }
    return { max: Math.max(0, max), bound };
  }

  async stream(tenant, seed) {
    const random = seededRandom(seed);
    const call = callOf(tenant, PROMPT_TOKENS, FIRST_RESERVE_TOKENS);
    const result = await this.engine.admit(call);
    if (result.outcome !== 'admitted') return;
    let granted = FIRST_RESERVE_TOKENS;
    let produced = 0;
    for (;;) {
      produced += 1 + Math.floor(random() * 40);
      if (granted - produced > CHUNK_TOKENS / 4) continue;
      const observed = { inputTokens: PROMPT_TOKENS, outputTokens: produced, costNano: 0n };
      const more = await this.engine.extend(result.lease, {
        outputTokens: CHUNK_TOKENS,
        costNano: 0n,
        observed,
      });
      if (more.outcome !== 'granted') break;
      granted += CHUNK_TOKENS;
    }
    // The stop takes effect upstream within less than a chunk; a provider bills what it has produced by then.
    produced += Math.floor(random() * CHUNK_TOKENS);
    const { actual, event } = settlementOf(tenant, result.lease, PROMPT_TOKENS, produced);
    expectOutcome(await this.engine.settle(result.lease, actual, event), 'settled');
  }

  async commandStats() {
    const info = await this.redis.client.info('commandstats');
    const [, calls = '0', usec = '0'] = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(info) ?? [];
    return { calls: Number(calls), usec: Number(usec) };
  }

  async close() {
    await this.redis?.close();
  }
}

/** Every caller calls, waits, and calls again until the time is over. */
async function load(tenants, callers, ms, once) {
  const times = [];
  const begun = performance.now();
  const end = begun + ms;
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let index = caller; ; index += 1) {
        const start = performance.now();
        if (start >= end) return;
        await once(tenants[index % tenants.length]);
        times.push(performance.now() - start);
      }
    }),
  );
  return { times, elapsedMs: performance.now() - begun };
}

async function redisGetPerS(port) {
  const args = ['-p', String(port), '-t', 'get', '-n', '200000', '-c', '32', '-q', '--csv'];
  const { stdout } = await promisify(execFile)('redis-benchmark', args, { timeout: 60_000 });
  const figures = /"GET","([\d.]+)"/.exec(stdout);
  if (!figures) throw new Error(`redis-benchmark printed no figure: ${stdout}`);
  return Math.round(Number(figures[1]));
}

/** What four levels cost with a limiter that knows one metric: four calls after one another, each atomic by itself. */
async function rateLimiterFlexible(url, ms) {
  const client = new Redis(url);
  const limiters = ['enterprise', 'department', 'user', 'key'].map(
    (keyPrefix) =>
      new RateLimiterRedis({ storeClient: client, keyPrefix, points: 1_000_000_000, duration: 60 }),
  );
  const keys = Array.from({ length: TENANTS }, () => newId());
  const once = async (key) => {
    for (const limiter of limiters) await limiter.consume(key, 1);
  };
  try {
    await load(keys, 32, ms / 4, once);
    const { times, elapsedMs } = await load(keys, 32, ms, once);
    return Math.round((times.length * 1_000) / elapsedMs);
  } finally {
    client.disconnect();
  }
}

function limitOf(metric, window, amount) {
  return { id: newId(), metric, window, amount, model: null, mode: 'hard' };
}

/** A path with a money budget, a token rate, a request rate and a concurrency limit at every level. */
function makeTenant(levels, blocked, enterpriseLimits = []) {
  const names = [
    'enterprise',
    ...Array.from({ length: levels - 3 }, () => 'department'),
    'user',
    'key',
  ];
  const enterpriseId = newId();
  const path = names.map((level, index) => ({
    level,
    id: index === 0 ? enterpriseId : newId(),
    name: level,
    limits: [
      limitOf('cost', 'month', 1_000_000_000_000_000_000n),
      limitOf('tokens', 'minute', 1_000_000_000_000n),
      limitOf('requests', 'minute', 1_000_000_000n),
      limitOf('concurrency', null, blocked && level === 'key' ? 0n : 1_000_000n),
      ...(index === 0 ? enterpriseLimits : []),
    ],
  }));
  const ref = ({ id, name }) => ({ id, name });
  return {
    enterpriseId,
    shard: shardOf(enterpriseId, SHARDS),
    path,
    draft: {
      enterprise: ref(path[0]),
      departments: path.slice(1, -2).map(ref),
      user: ref(path.at(-2)),
      key: ref(path.at(-1)),
      currency: 'USD',
      modelAsked: MODEL,
      modelServed: MODEL,
      provider: { id: newId(), name: 'demo' },
      route: '/v1/chat/completions',
      streamed: true,
      requestId: newId(),
      attempt: 1,
      price: {
        id: newId(),
        picoPerToken: { input: '2500000', output: '10000000' },
        picoPerRequest: '0',
      },
      queueWaitMs: 0,
      tags: {},
    },
  };
}

function callOf({ enterpriseId, shard, path, draft }, input = 100, output = 400) {
  return {
    leaseId: newId(),
    shard,
    enterpriseId,
    timeZone: 'UTC',
    policyVersion: 0,
    path,
    model: MODEL,
    reserve: {
      windowInputTokens: input,
      windowOutputTokens: output / 2,
      budgetInputTokens: input,
      budgetOutputTokens: output,
      costNano: BigInt(input) * 2_500n + BigInt(output) * 10_000n,
    },
    leaseMs: 60_000,
    draft,
  };
}

function settlementOf({ draft }, lease, input = 100, output = 250) {
  const costNano = BigInt(input) * 2_500n + BigInt(output) * 10_000n;
  const at = new Date(lease.reservedAtMs).toISOString();
  const none = {
    cachedInput: 0,
    cacheWrite: 0,
    audioInput: 0,
    imageInput: 0,
    reasoning: 0,
    audioOutput: 0,
  };
  return {
    actual: { inputTokens: input, outputTokens: output, costNano },
    event: usageEventOf(lease.id, {
      ...draft,
      kind: 'usage',
      adjusts: null,
      usage: { ...none, input, output },
      costPico: (costNano * 1_000n).toString(),
      costNano: costNano.toString(),
      periodId: lease.periodId,
      reservedAt: at,
      startedAt: at,
      firstTokenAt: at,
      endedAt: at,
      status: 'ok',
      estimated: false,
      late: false,
    }),
  };
}

function expectOutcome(result, outcome) {
  if (result.outcome !== outcome) throw new Error(`expected ${outcome}, got ${result.outcome}`);
  return result;
}

function table(log, rows, getPerS) {
  log('what     levels callers     per s  p50 ms  p99 ms  server µs  share of GET');
  for (const { kind, levels, callers, perS, p50Ms, p99Ms, serverUs } of rows) {
    log(
      [
        kind.padEnd(8),
        String(levels).padStart(6),
        String(callers).padStart(7),
        String(perS).padStart(9),
        p50Ms.toFixed(3).padStart(7),
        p99Ms.toFixed(3).padStart(7),
        serverUs.toFixed(1).padStart(10),
        `${round((perS / getPerS) * 100, 1)} %`.padStart(13),
      ].join(' '),
    );
  }
}

function round(value, digits) {
  return Number(value.toFixed(digits));
}
