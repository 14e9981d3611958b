import {
  type CallerPolicy,
  type EnterpriseDocument,
  enterpriseDocumentSchema,
  type KeyDocument,
  keyDocumentSchema,
  limitFromDocument,
  maxPathLength,
  type NodeDocument,
  nodeDocumentSchema,
  type PolicyScope,
  shardOf,
  WeirError,
} from '@weir/domain';
import type { Cluster, Redis } from 'ioredis';
import { LRUCache } from 'lru-cache';
import { keyDocumentKey, policyChannel } from './keys.js';
import type { QuotaRedis } from './quota-redis.js';

export type PolicyStoreOptions = {
  /** Policies kept in the process. */
  readonly maxKeys?: number;
};

type EnterpriseEntry = {
  /** Version at which the document itself last changed. */
  readonly version: string;
  readonly document: EnterpriseDocument;
  readonly models: CallerPolicy['models'];
  readonly upstreams: CallerPolicy['upstreams'];
};

/** Unknown keys are remembered this long: a client that retries a wrong key does not ask Redis each time. */
const unknownKeyMs = 2_000;
const versionCheckMs = 1_000;
const maxUnknownKeys = 10_000;
const maxEnterprises = 1_000;

/**
 * The policies of callers, joined from the documents in Redis and cached in the process. An invalidation drops the
 * policies of its enterprise; every second the versions of the cached enterprises are compared as well, and admit
 * compares them at each call, so a lost message costs at most two seconds.
 *
 * While Redis cannot be asked, what is cached goes on serving.
 */
export class PolicyStore {
  private readonly policies: LRUCache<string, CallerPolicy>;
  private readonly unknown = new LRUCache<string, true>({ max: maxUnknownKeys, ttl: unknownKeyMs });
  private readonly enterprises = new LRUCache<string, EnterpriseEntry>({ max: maxEnterprises });
  /** Versions announced or seen: a policy below it is reloaded before use. */
  private readonly versions = new LRUCache<string, number>({ max: maxEnterprises });
  private readonly loading = new Map<string, Promise<CallerPolicy | null>>();
  private subscriber: Redis | Cluster | null = null;
  private timer: NodeJS.Timeout | null = null;
  private checking: Promise<void> = Promise.resolve();

  constructor(
    private readonly redis: QuotaRedis,
    options: PolicyStoreOptions = {},
  ) {
    this.policies = new LRUCache({ max: options.maxKeys ?? 50_000 });
  }

  /**
   * The policy of the key with this SHA-256 (lower-case hex), or null when there is no such key.
   *
   * @throws WeirError `quota_unavailable` when it is not cached and Redis cannot be asked.
   */
  async resolve(keySha256: string): Promise<CallerPolicy | null> {
    const known = this.policies.get(keySha256);
    if (known && (this.versions.get(known.enterprise.id) ?? known.version) === known.version) {
      return known;
    }
    if (this.unknown.has(keySha256)) return null;
    try {
      return await this.refresh(keySha256);
    } catch (error) {
      if (known && error instanceof WeirError && error.code === 'quota_unavailable') return known;
      throw error;
    }
  }

  /** Reloads the documents. Concurrent calls for one key share one load. */
  async refresh(keySha256: string): Promise<CallerPolicy | null> {
    const running = this.loading.get(keySha256);
    if (running) return running;
    const load = this.load(keySha256).finally(() => this.loading.delete(keySha256));
    this.loading.set(keySha256, load);
    return load;
  }

  /** Begins to listen for invalidations and to compare versions. Needs no Redis: it connects in the background. */
  async start(): Promise<void> {
    if (this.subscriber) return;
    const subscriber = this.redis.subscriber();
    this.subscriber = subscriber;
    subscriber.on('message', (_channel: string, message: string) => {
      const [enterpriseId = '', version = ''] = message.split(' ');
      this.unknown.clear();
      this.versions.set(enterpriseId, Number(version));
    });
    // On every connection: one that never stood has nothing to resume.
    subscriber.on('ready', () => {
      subscriber.subscribe(policyChannel(this.redis.prefix)).catch((error: unknown) => {
        this.redis.logger.warn({ error: String(error) }, 'policy invalidations are not received');
      });
    });
    this.timer = setInterval(() => {
      this.checking = this.checking.then(() => this.checkVersions());
    }, versionCheckMs);
    this.timer.unref();
    await Promise.resolve();
  }

  async stop(): Promise<void> {
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
    await this.checking;
    this.subscriber?.disconnect();
    this.subscriber = null;
  }

  private async checkVersions(): Promise<void> {
    try {
      for (const enterpriseId of this.enterprises.keys()) {
        const keys = this.redis.keys(shardOf(enterpriseId, this.redis.shardCount));
        const version = await this.redis.withinTimeout(
          this.redis.client.hget(keys.scope(enterpriseId), 'v'),
        );
        if (version !== null) this.versions.set(enterpriseId, Number(version));
      }
    } catch (error) {
      // Redis is away: the engine says so to every call, and the next check comes in a second.
      this.redis.logger.warn({ error: String(error) }, 'policy versions could not be compared');
    }
  }

  private async load(keySha256: string): Promise<CallerPolicy | null> {
    const document = await this.readKey(keySha256);
    const policy = document === null ? null : await this.join(document);
    if (policy === null) {
      this.policies.delete(keySha256);
      this.unknown.set(keySha256, true);
      return null;
    }
    this.unknown.delete(keySha256);
    this.policies.set(keySha256, policy);
    this.versions.set(policy.enterprise.id, policy.version);
    return policy;
  }

  private async readKey(keySha256: string): Promise<KeyDocument | null> {
    let text: string | null;
    try {
      text = await this.redis.withinTimeout(
        this.redis.client.get(keyDocumentKey(this.redis.prefix, keySha256)),
      );
    } catch (error) {
      throw new WeirError(
        'quota_unavailable',
        'the policy of a key could not be read',
        {},
        { cause: error },
      );
    }
    return text === null ? null : keyDocumentSchema.parse(JSON.parse(text));
  }

  private async join(key: KeyDocument): Promise<CallerPolicy | null> {
    const shard = shardOf(key.enterpriseId, this.redis.shardCount);
    const keys = this.redis.keys(shard);
    const cached = this.enterprises.get(key.enterpriseId);
    const reply = await this.redis.run(
      'resolve',
      [keys.scope(key.enterpriseId), keys.documents(key.enterpriseId)],
      [key.userId, cached?.version ?? '', String(maxPathLength)],
    );
    const [version = '', enterpriseVersion = '', enterpriseText = '', ...nodeTexts] = (
      reply as readonly Buffer[]
    ).map((value) => value.toString());
    if (version === '' || enterpriseVersion === '') return null;
    const enterprise =
      enterpriseText === '' ? cached : this.keep(enterpriseVersion, enterpriseText);
    const nodes = nodeTexts.map((text) => nodeDocumentSchema.parse(JSON.parse(text)));
    const top = nodes.at(-1);
    // An incomplete path would skip a level's limits: such a key does not resolve.
    if (!enterprise || !top || top.parentId !== null) return null;
    const { limits: keyLimits, ...keyRest } = key;
    const {
      limits,
      upstreams: _upstreams,
      models: _models,
      ...enterpriseRest
    } = enterprise.document;
    const path: PolicyScope[] = [
      {
        level: 'enterprise',
        id: enterpriseRest.id,
        name: enterpriseRest.name,
        limits: limits.map(limitFromDocument),
      },
      ...nodes.reverse().map(scopeOf),
      { level: 'key', id: key.id, name: key.name, limits: keyLimits.map(limitFromDocument) },
    ];
    return {
      version: Number(version),
      shard,
      enterprise: enterpriseRest,
      key: keyRest,
      path,
      active: key.status === 'active' && nodes.every((node) => node.status === 'active'),
      models: enterprise.models,
      upstreams: enterprise.upstreams,
    };
  }

  private keep(version: string, text: string): EnterpriseEntry {
    const document = enterpriseDocumentSchema.parse(JSON.parse(text));
    const entry = {
      version,
      document,
      models: new Map(document.models.map((model) => [model.alias, model])),
      upstreams: new Map(document.upstreams.map((upstream) => [upstream.id, upstream])),
    };
    this.enterprises.set(document.id, entry);
    return entry;
  }
}

function scopeOf(node: NodeDocument): PolicyScope {
  return {
    level: node.level,
    id: node.id,
    name: node.name,
    limits: node.limits.map(limitFromDocument),
  };
}
