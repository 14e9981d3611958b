import {
  type CalendarWindow,
  type Limit,
  type LimitMode,
  type Metric,
  newId,
  noTokens,
  type PolicyScope,
  type ScopeLevel,
  shardOf,
  type UnnumberedUsageEvent,
  type UsageEventDraft,
  usageEventOf,
  type Window,
} from '@weir/domain';
import { EpochKeeper, type EpochKeeperOptions } from '../epoch-keeper.js';
import type {
  Actual,
  AdmitCall,
  Lease,
  QuotaEngine,
  Reservation,
  ScopeUsage,
} from '../quota-engine.js';
import {
  connectQuotaRedis,
  type QuotaRedis,
  type QuotaRedisOptions,
  storeClockKey,
} from '../quota-redis.js';
import { createRedisEngine } from '../redis-engine.js';
import { type ScriptSources, shippedScripts, withMovableClock } from '../script-sources.js';

/** The zone of the test enterprises: its month turns at another instant than the UTC one. */
export const testZone = 'Asia/Shanghai';

/** 2026-11-15 12:00 in Shanghai, far from every edge. */
export const noon = Date.UTC(2026, 10, 15, 4);

/** A real Redis with a prefix of its own, an engine on it, and a clock for both that only the test moves. */
export type Testbed = {
  readonly redis: QuotaRedis;
  readonly engine: QuotaEngine;
  /** A second engine on a connection of its own, as another gateway has. */
  another(): Promise<QuotaEngine>;
  now(): number;
  setNow(atMs: number): Promise<void>;
  /** All keys of the shard with their contents, but for the clock: to compare bytes. */
  dump(shard: number): Promise<Record<string, unknown>>;
  outbox(shard: number): Promise<OutboxEntry[]>;
  close(): Promise<void>;
};

export type OutboxEntry = {
  readonly id: string;
  readonly seq: number;
  readonly epoch: string;
  readonly event: UnnumberedUsageEvent;
};

export type TestbedOptions = {
  readonly url: string;
  readonly cluster?: boolean;
  readonly scripts?: ScriptSources;
  readonly epochs?: Partial<EpochKeeperOptions>;
  readonly shardCount?: number;
};

/** Names the setting that is missing instead of failing somewhere later. */
export function requiredUrl(name: string, value: string | undefined): string {
  if (value === undefined || value === '') throw new Error(`this suite needs a Redis: set ${name}`);
  return value;
}

export async function createTestbed(options: TestbedOptions): Promise<Testbed> {
  const prefix = `t${newId().replaceAll('-', '')}`;
  const shardCount = options.shardCount ?? 2;
  let now = noon;
  const connections: QuotaRedis[] = [];
  const connect = async (): Promise<QuotaRedis> => {
    const settings: QuotaRedisOptions = {
      url: options.url,
      prefix,
      shardCount,
      // Generous: these tests are about numbers, on a machine that builds other things meanwhile.
      commandTimeoutMs: 10_000,
      cluster: options.cluster ?? false,
      clock: { now: () => now },
      scripts: withMovableClock(options.scripts ?? shippedScripts),
    };
    const redis = connectQuotaRedis(settings);
    connections.push(redis);
    await redis.ready();
    return redis;
  };
  const redis = await connect();
  const setNow = async (atMs: number): Promise<void> => {
    now = atMs;
    for (let shard = 0; shard < shardCount; shard += 1) {
      await redis.client.set(storeClockKey(prefix, shard), String(atMs));
    }
  };
  await setNow(noon);
  const keeper = new EpochKeeper(redis, {
    loadLedgerState: async () => null,
    loadSeeds: async () => [],
    republish: async () => undefined,
    ...options.epochs,
  });
  await keeper.ensureAll();
  return {
    redis,
    engine: createRedisEngine(redis),
    another: async () => createRedisEngine(await connect()),
    now: () => now,
    setNow,
    dump: (shard) => dumpShard(redis, shard),
    outbox: (shard) => readOutbox(redis, shard),
    async close() {
      for (const shard of Array.from({ length: shardCount }, (_, index) => index)) {
        const names = await shardKeyNames(redis, shard);
        if (names.length > 0) await redis.client.unlink(...names);
      }
      await Promise.all(connections.map((connection) => connection.close()));
    },
  };
}

export async function shardKeyNames(redis: QuotaRedis, shard: number): Promise<string[]> {
  const base = redis.keys(shard).leases.replace(/leases$/, '');
  const names: string[] = [];
  const nodes = 'nodes' in redis.client ? redis.client.nodes('master') : [redis.client];
  for (const node of nodes) {
    let cursor = '0';
    do {
      const [next, found] = await node.scan(cursor, 'MATCH', `${base}*`, 'COUNT', 1_000);
      cursor = next;
      names.push(...found);
    } while (cursor !== '0');
  }
  return names.sort();
}

async function dumpShard(redis: QuotaRedis, shard: number): Promise<Record<string, unknown>> {
  const contents: Record<string, unknown> = {};
  for (const name of await shardKeyNames(redis, shard)) {
    if (name.endsWith(':test-clock')) continue;
    const value = await redis.client.dumpBuffer(name);
    contents[name] = value?.toString('base64');
  }
  return contents;
}

async function readOutbox(redis: QuotaRedis, shard: number): Promise<OutboxEntry[]> {
  const entries = await redis.client.xrange(redis.keys(shard).outbox, '-', '+');
  return entries.map(([, fields]) => {
    const field = (name: string): string => fields[fields.indexOf(name) + 1] ?? '';
    return {
      id: field('id'),
      seq: Number(field('seq')),
      epoch: field('epoch'),
      event: JSON.parse(field('event')) as UnnumberedUsageEvent,
    };
  });
}

export type LimitShape = {
  readonly metric: Metric;
  readonly window?: Window | null;
  readonly amount: bigint | number | null;
  readonly model?: string | null;
  readonly mode?: LimitMode;
};

export function limit(shape: LimitShape): Limit {
  return {
    id: newId(),
    metric: shape.metric,
    window: shape.window ?? null,
    amount: shape.amount === null ? null : BigInt(shape.amount),
    model: shape.model ?? null,
    mode: shape.mode ?? 'hard',
  };
}

export type Tenant = {
  readonly enterpriseId: string;
  readonly shard: number;
  readonly path: readonly PolicyScope[];
};

/** A path from the enterprise to a key, `depth` scopes long (4 to 8), with limits by position (0 = enterprise). */
export function tenant(
  limits: Readonly<Record<number, readonly Limit[]>> = {},
  { depth = 4, shardCount = 2 } = {},
): Tenant {
  const levels: ScopeLevel[] = [
    'enterprise',
    ...Array.from({ length: depth - 3 }, () => 'department' as const),
    'user',
    'key',
  ];
  const enterpriseId = newId();
  return {
    enterpriseId,
    shard: shardOf(enterpriseId, shardCount),
    path: levels.map((level, index) => ({
      level,
      id: index === 0 ? enterpriseId : newId(),
      name: `${level} ${index}`,
      limits: limits[index] ?? [],
    })),
  };
}

export const priceOfTests: UsageEventDraft['price'] = {
  id: '0197a000-0000-7000-8000-000000000001',
  // 2 million nano per input token, 10 million per output token: a few calls carry over into the second limb.
  picoPerToken: { input: '2000000000', output: '10000000000' },
  picoPerRequest: '0',
};

export function draftOf({ path }: Tenant, model = 'm'): UsageEventDraft {
  const ref = (scope: PolicyScope | undefined): { id: string; name: string } => ({
    id: scope?.id ?? '',
    name: scope?.name ?? '',
  });
  return {
    enterprise: ref(path[0]),
    departments: path.slice(1, -2).map(ref),
    user: ref(path.at(-2)),
    key: ref(path.at(-1)),
    currency: 'CNY',
    modelAsked: model,
    modelServed: model,
    provider: { id: '0197a000-0000-7000-8000-000000000002', name: 'demo' },
    route: '/v1/chat/completions',
    streamed: true,
    requestId: newId(),
    attempt: 1,
    price: priceOfTests,
    queueWaitMs: 0,
    tags: {},
  };
}

export type CallShape = {
  readonly leaseId?: string;
  readonly model?: string;
  readonly input?: number;
  readonly output?: number;
  readonly windowOutput?: number;
  readonly costNano?: bigint;
  readonly leaseMs?: number;
  readonly policyVersion?: number;
};

export function callOf(caller: Tenant, shape: CallShape = {}): AdmitCall {
  const input = shape.input ?? 10;
  const output = shape.output ?? 20;
  const reserve: Reservation = {
    windowInputTokens: input,
    windowOutputTokens: shape.windowOutput ?? output,
    budgetInputTokens: input,
    budgetOutputTokens: output,
    costNano: shape.costNano ?? costOf(input, output),
  };
  return {
    leaseId: shape.leaseId ?? newId(),
    shard: caller.shard,
    enterpriseId: caller.enterpriseId,
    timeZone: testZone,
    policyVersion: shape.policyVersion ?? 0,
    path: caller.path,
    model: shape.model ?? 'm',
    reserve,
    leaseMs: shape.leaseMs ?? 60_000,
    draft: draftOf(caller, shape.model),
  };
}

export function costOf(input: number, output: number): bigint {
  return BigInt(input) * 2_000_000n + BigInt(output) * 10_000_000n;
}

export function actualOf(input: number, output: number): Actual {
  return { inputTokens: input, outputTokens: output, costNano: costOf(input, output) };
}

export function eventOf(caller: Tenant, lease: Lease, actual: Actual): UnnumberedUsageEvent {
  const reservedAt = new Date(lease.reservedAtMs).toISOString();
  return usageEventOf(lease.id, {
    ...draftOf(caller),
    kind: 'usage',
    adjusts: null,
    usage: { ...noTokens, input: actual.inputTokens, output: actual.outputTokens },
    costPico: (actual.costNano * 1_000n).toString(),
    costNano: actual.costNano.toString(),
    periodId: lease.periodId,
    reservedAt,
    startedAt: reservedAt,
    firstTokenAt: null,
    endedAt: reservedAt,
    status: 'ok',
    estimated: false,
    late: false,
  });
}

/** Admits and fails the test when refused. */
export async function admitted(
  engine: QuotaEngine,
  call: AdmitCall,
): Promise<Extract<Awaited<ReturnType<QuotaEngine['admit']>>, { outcome: 'admitted' }>> {
  const result = await engine.admit(call);
  if (result.outcome !== 'admitted') {
    throw new Error(`expected admission: ${JSON.stringify(result, bigintAsText)}`);
  }
  return result;
}

/** Admits and fails the test when not refused. */
export async function refused(
  engine: QuotaEngine,
  call: AdmitCall,
): Promise<Extract<Awaited<ReturnType<QuotaEngine['admit']>>, { outcome: 'refused' }>> {
  const result = await engine.admit(call);
  if (result.outcome !== 'refused') {
    throw new Error(`expected refusal: ${JSON.stringify(result, bigintAsText)}`);
  }
  return result;
}

export function peek(engine: QuotaEngine, caller: Tenant): Promise<readonly ScopeUsage[]> {
  return engine.peek({
    shard: caller.shard,
    enterpriseId: caller.enterpriseId,
    timeZone: testZone,
    scopes: caller.path,
  });
}

export const everyCalendarWindow: readonly CalendarWindow[] = ['day', 'week', 'month', 'total'];

export function bigintAsText(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
