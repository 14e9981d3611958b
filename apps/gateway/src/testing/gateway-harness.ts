import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  limitFromDocument,
  newId,
  outboxKey,
  refusalStreamKey,
  shardOf,
  systemClock,
  type LimitDocument,
  type PolicyScope,
  type RefusalEvent,
  type UnnumberedUsageEvent,
  type UpstreamDocument,
} from '@weir/domain';
import { createLogger, createWeirApp, SecretBox } from '@weir/platform';
import {
  connectQuotaRedis,
  createRedisEngine,
  EpochKeeper,
  PolicyPublisher,
  type QuotaEngine,
  type QuotaRedis,
  type ScopeUsage,
} from '@weir/quota';
import { expect } from 'vitest';
import { gatewayConfigSchema, type GatewayConfig } from '../config.js';
import { gatewayApp } from '../gateway-app.js';
import { upstream, world, type World, type WorldOptions } from './documents.js';

/** One line of the demo provider's own bill. */
export type BillEntry = {
  readonly request_id: string | null;
  readonly prompt_tokens: number;
  readonly cached_tokens: number;
  readonly output_tokens: number;
  readonly streamed: boolean;
  readonly outcome: 'finished' | 'client_aborted' | 'fault' | 'refused';
  readonly cost_pico: string;
};

type CallOptions = {
  /** Directives to the demo provider. */
  readonly demo?: string;
  readonly requestId?: string;
  readonly signal?: AbortSignal;
  readonly headers?: Record<string, string>;
  /** Another gateway than the harness' own. */
  readonly gatewayUrl?: string;
};

type ListeningProvider = {
  listen(options: { host: string; port: number }): Promise<string>;
  close(): Promise<void>;
};
type ProviderModule = {
  createProvider(options: object): ListeningProvider;
};

const providerKey = 'demo-provider-key';

/** Tests fail rather than skip where Redis is missing: nothing here means anything without it. */
export function redisUrl(): string {
  // eslint-disable-next-line no-restricted-syntax -- tests are told by the launcher where their services are
  const url = process.env['WEIR_TEST_REDIS_URL'];
  if (url === undefined || url === '') {
    throw new Error(
      'WEIR_TEST_REDIS_URL is not set: start a Redis and point it there (npm test does both)',
    );
  }
  return url;
}

/** A gateway on a real Redis in front of a real demo provider, all over HTTP, with keys of its own. */
export class GatewayHarness {
  private constructor(
    private readonly gateway: RunningGateway,
    private readonly startGateway: (settings: Partial<GatewayConfig>) => Promise<RunningGateway>,
    readonly providerUrl: string,
    readonly prefix: string,
    readonly redis: QuotaRedis,
    readonly engine: QuotaEngine,
    private readonly publisher: PolicyPublisher,
    private readonly secretBox: SecretBox,
    private readonly provider: ListeningProvider,
  ) {}

  static async start(settings: Partial<GatewayConfig> = {}): Promise<GatewayHarness> {
    const prefix = `gw-${randomBytes(6).toString('hex')}`;
    const secretKey = randomBytes(32).toString('base64');
    const redis = connectQuotaRedis({
      url: redisUrl(),
      prefix,
      shardCount: 2,
      commandTimeoutMs: 2_000,
    });
    await redis.ready();
    await new EpochKeeper(redis, {
      loadLedgerState: () => Promise.resolve(null),
      loadSeeds: () => Promise.resolve([]),
      republish: () => Promise.resolve(),
    }).ensureAll();
    const provider = await startDemoProvider();
    const newGateway = (own: Partial<GatewayConfig>): Promise<RunningGateway> =>
      startGateway(prefix, secretKey, { ...settings, ...own });
    return new GatewayHarness(
      await newGateway({}),
      newGateway,
      provider.url,
      prefix,
      redis,
      createRedisEngine(redis),
      new PolicyPublisher(redis),
      SecretBox.fromSetting(secretKey),
      provider.server,
    );
  }

  get url(): string {
    return this.gateway.url;
  }

  /** A second gateway for the same callers, on the same Redis. It is the caller's to close. */
  startAnother(settings: Partial<GatewayConfig>): Promise<RunningGateway> {
    return this.startGateway(settings);
  }

  /** Closes the gateway alone, as SIGTERM does. */
  async closeGateway(): Promise<void> {
    await this.gateway.close();
  }

  async close(): Promise<void> {
    await this.gateway.close();
    await this.provider.close();
    const keys = await this.redis.client.keys(`${this.prefix}:*`);
    if (keys.length > 0) await this.redis.client.del(...keys);
    await this.redis.close();
  }

  /** An upstream at the demo provider with its key sealed. */
  demoUpstream(more: Partial<UpstreamDocument> = {}): UpstreamDocument {
    const bare = upstream(`${this.providerUrl}/v1`, more);
    return { ...bare, sealedApiKey: this.secretBox.seal(providerKey, bare.id) };
  }

  /** Publishes an enterprise with one department, user and key. */
  async publish(options: Partial<WorldOptions> = {}): Promise<World> {
    const made = world({ upstreams: [this.demoUpstream()], ...options });
    await this.publisher.publish(made.enterprise.id, {
      enterprise: made.enterprise,
      nodes: [made.department, made.user],
      keys: [made.key],
    });
    return made;
  }

  /** Adds another user with a key to the department, with limits of their own like those of the first. */
  async publishColleague(world: World, name: string): Promise<World> {
    const own = (limits: readonly LimitDocument[]) =>
      limits.map((each) => ({ ...each, id: newId() }));
    const user = { ...world.user, id: newId(), name, limits: own(world.user.limits) };
    const secret = `weir-test-${newId()}`;
    const sha256 = createHash('sha256').update(secret).digest('hex');
    const limits = own(world.key.limits);
    const key = { ...world.key, id: newId(), userId: user.id, sha256, limits };
    await this.publisher.publish(world.enterprise.id, { nodes: [user], keys: [key] });
    return { ...world, user, key, secret };
  }

  /** A figure of the gateway's own metrics. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const found = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1];
    if (found === undefined) throw new Error(`there is no metric ${name}`);
    return Number(found);
  }

  /** Replaces the limits of the department. */
  async publishDepartmentLimits(world: World, limits: readonly LimitDocument[]): Promise<void> {
    await this.publisher.publish(world.enterprise.id, {
      nodes: [{ ...world.department, limits: [...limits] }],
    });
  }

  /** Replaces the limits of the user. */
  async publishUserLimits(world: World, limits: readonly LimitDocument[]): Promise<void> {
    await this.publisher.publish(world.enterprise.id, {
      nodes: [{ ...world.user, limits: [...limits] }],
    });
  }

  /** A newer policy version of which no gateway is told, as when the notification is lost. */
  async bumpVersionSilently(world: World): Promise<void> {
    const scope = this.redis.keys(this.shardOf(world)).scope(world.enterprise.id);
    await this.redis.client.hincrby(scope, 'v', 1);
  }

  /** What the engine itself says of every scope on the path. */
  async peek(world: World): Promise<readonly ScopeUsage[]> {
    return this.engine.peek({
      shard: this.shardOf(world),
      enterpriseId: world.enterprise.id,
      timeZone: world.enterprise.timeZone,
      scopes: pathOf(world),
    });
  }

  /** Waits until no call holds a slot or a reservation at any level, and gives the counters as they are then. */
  untilNothingHeld(world: World): Promise<readonly ScopeUsage[]> {
    return until(async () => {
      const usages = await this.peek(world);
      const isFree = usages.every(
        ({ inFlight, month }) =>
          inFlight === 0 && month.reservedTokens === 0n && month.reservedCostNano === 0n,
      );
      return isFree && usages;
    }, 'all reservations to be freed');
  }

  /** A streamed call, request id `holder`, that holds a slot until it is told to end. */
  async holdSlot(world: World, path = '/v1/chat/completions'): Promise<() => Promise<void>> {
    const stop = new AbortController();
    const demo = 'output_tokens=1000;tokens_per_second=20';
    const isAnthropic = path === '/v1/messages';
    const answer = await this.post(
      path,
      world,
      {
        model: 'small',
        messages: [{ role: 'user', content: 'Tell me of rivers.' }],
        stream: true,
        max_tokens: 1_000,
        ...(isAnthropic ? { metadata: { user_id: `demo:${demo}` } } : {}),
      },
      { ...(isAnthropic ? {} : { demo }), requestId: 'holder', signal: stop.signal },
    );
    expect(answer.status).toBe(200);
    return async () => {
      stop.abort();
      // Held on to until here: fetch cuts off an answer that nobody can read any more.
      await answer.text().catch(() => undefined);
      await this.untilNothingHeld(world);
    };
  }

  /** The events that settle appended for this enterprise, oldest first. */
  async events(world: World): Promise<UnnumberedUsageEvent[]> {
    const entries = await this.redis.client.xrange(
      outboxKey(this.prefix, this.shardOf(world)),
      '-',
      '+',
    );
    return entries
      .map(
        ([, fields]) =>
          JSON.parse(fields[fields.indexOf('event') + 1] ?? '') as UnnumberedUsageEvent,
      )
      .filter((event) => event.subject === world.enterprise.id);
  }

  async refusals(world: World): Promise<RefusalEvent[]> {
    const entries = await this.redis.client.xrange(
      refusalStreamKey(this.prefix, this.shardOf(world)),
      '-',
      '+',
    );
    return entries
      .map(([, fields]) => JSON.parse(fields[1] ?? '') as RefusalEvent)
      .filter((event) => event.enterprise.id === world.enterprise.id);
  }

  /** The demo provider's bill of the requests with these ids. */
  async bill(requestIds: readonly string[]): Promise<BillEntry[]> {
    const response = await fetch(`${this.providerUrl}/demo/bill/entries?limit=10000`, {
      headers: { authorization: `Bearer ${providerKey}` },
    });
    const { entries } = (await response.json()) as { entries: BillEntry[] };
    const wanted = new Set(requestIds);
    return entries.filter((entry) => entry.request_id !== null && wanted.has(entry.request_id));
  }

  /** Sends a chat completion; `demo` are directives to the demo provider. */
  async chat(
    world: World,
    body: Record<string, unknown> = {},
    options: CallOptions = {},
  ): Promise<Response> {
    return this.post(
      '/v1/chat/completions',
      world,
      { model: 'small', messages: [{ role: 'user', content: 'Tell me of rivers.' }], ...body },
      options,
    );
  }

  async post(
    path: string,
    world: World,
    body: Record<string, unknown>,
    options: CallOptions = {},
  ): Promise<Response> {
    return fetch((options.gatewayUrl ?? this.url) + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${world.secret}`,
        'content-type': 'application/json',
        ...(options.requestId === undefined ? {} : { 'x-request-id': options.requestId }),
        ...options.headers,
      },
      body: JSON.stringify({
        ...body,
        ...(options.demo === undefined ? {} : { user: `demo:${options.demo}` }),
      }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
  }

  private shardOf(world: World): number {
    return shardOf(world.enterprise.id, 2);
  }
}

export type RunningGateway = { readonly url: string; close(): Promise<void> };

async function startGateway(
  prefix: string,
  secretKey: string,
  settings: Partial<GatewayConfig>,
): Promise<RunningGateway> {
  const spoolDir = await mkdtemp(join(tmpdir(), 'weir-spool-'));
  const config = {
    ...gatewayConfigSchema.parse({
      REDIS_URL: redisUrl(),
      REDIS_PREFIX: prefix,
      SHARD_COUNT: '2',
      // Two cores run tests, provider and Redis at once: a pause of theirs is no failure of Redis.
      REDIS_COMMAND_TIMEOUT_MS: '2000',
      WEIR_SECRET_KEY: secretKey,
      UPSTREAM_ALLOW_PRIVATE: 'true',
      PORT: '0',
      SHUTDOWN_GRACE_MS: '2000',
      SPOOL_DIR: spoolDir,
    }),
    ...settings,
  };
  const { module, options } = gatewayApp(config, createLogger({ name: 'test', level: 'error' }));
  const app = await createWeirApp(module, options);
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      await app.close();
      await rm(spoolDir, { recursive: true, force: true });
    },
  };
}

async function startDemoProvider(): Promise<{ url: string; server: ListeningProvider }> {
  // By path: an app is no library of another, but the test wants the very provider that people run.
  const path = new URL('../../../demo-provider/src/provider.ts', import.meta.url).pathname;
  const { createProvider } = (await import(/* @vite-ignore */ path)) as ProviderModule;
  const server = createProvider({
    apiKey: providerKey,
    logger: createLogger({ name: 'demo-provider', level: 'error' }),
    clock: systemClock,
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  return { url, server };
}

function pathOf(world: World): PolicyScope[] {
  const scope = (
    level: PolicyScope['level'],
    node: { id: string; name: string; limits: LimitDocument[] },
  ) => ({
    level,
    id: node.id,
    name: node.name,
    limits: node.limits.map(limitFromDocument),
  });
  return [
    scope('enterprise', world.enterprise),
    scope('department', world.department),
    scope('user', world.user),
    scope('key', world.key),
  ];
}

/** Waits until `check` gives something other than null or false. */
export async function until<T>(
  check: () => Promise<T | null | false> | T | null | false,
  what: string,
): Promise<T> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    const value = await check();
    if (value !== null && value !== false) return value;
    if (performance.now() > deadline) throw new Error(`waited 10 s in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
