import {
  type EnterpriseDocument,
  type KeyDocument,
  type NodeDocument,
  shardOf,
  WeirError,
} from '@weir/domain';
import { keyDocumentKey, policyChannel } from './keys.js';
import { writeSeeds } from './counter-seeds.js';
import type { CounterSeed } from './quota-engine.js';
import type { QuotaRedis } from './quota-redis.js';

export type PolicyChanges = {
  readonly enterprise?: EnterpriseDocument;
  readonly nodes?: readonly NodeDocument[];
  readonly removedNodeIds?: readonly string[];
  readonly keys?: readonly KeyDocument[];
  readonly removedKeySha256s?: readonly string[];
  /**
   * What the ledger has of the current periods that a new limit counts in, other than the month of all models, which is
   * always counted: so that the limit counts what was already used.
   */
  readonly seeds?: readonly CounterSeed[];
};

/** How long the counters of a removed node are kept: longer than any month they may be asked for. */
const removedScopeSeconds = 90 * 86_400;

/** Writes per command batch when documents of many keys are written. */
const keyBatch = 500;

/** Writes policy documents for the gateways. The control plane's side of {@link PolicyStore}. */
export class PolicyPublisher {
  constructor(private readonly redis: QuotaRedis) {}

  /**
   * Writes what changed, bumps the enterprise's version and announces it, in one script. Documents of keys live outside
   * of the shard's slot: they are written first and removed last, so that a key never leads to a missing enterprise.
   *
   * @returns the new version: a number that grows with the clock and never repeats, even when Redis lost the last one.
   */
  async publish(enterpriseId: string, changes: PolicyChanges): Promise<number> {
    return this.write(enterpriseId, changes, false);
  }

  /** Replaces all documents of the enterprise: after Redis lost them, or to repair. */
  async republish(all: {
    readonly enterprise: EnterpriseDocument;
    readonly nodes: readonly NodeDocument[];
    readonly keys: readonly KeyDocument[];
  }): Promise<number> {
    return this.write(all.enterprise.id, all, true);
  }

  /** The version in force, or null when the enterprise was never published. */
  async version(enterpriseId: string): Promise<number | null> {
    const keys = this.redis.keys(shardOf(enterpriseId, this.redis.shardCount));
    const version = await this.redis.withinTimeout(
      this.redis.client.hget(keys.scope(enterpriseId), 'v'),
    );
    return version === null ? null : Number(version);
  }

  /** With another count the documents would be written where no gateway looks for them. */
  private async checkShardCount(shard: number): Promise<void> {
    const { shardCount } = await this.redis.fence(shard);
    if (shardCount === null || shardCount === this.redis.shardCount) return;
    throw new WeirError(
      'internal',
      `this installation has ${shardCount} shards, the configuration says ${this.redis.shardCount}`,
    );
  }

  private async write(
    enterpriseId: string,
    changes: PolicyChanges,
    replace: boolean,
  ): Promise<number> {
    const { client, prefix } = this.redis;
    const keys = this.redis.keys(shardOf(enterpriseId, this.redis.shardCount));
    await this.checkShardCount(keys.shard);
    for (const key of changes.keys ?? []) {
      if (key.enterpriseId !== enterpriseId) {
        throw new RangeError(`key ${key.id} belongs to another enterprise`);
      }
    }
    await inBatches(changes.keys ?? [], (key) =>
      client.set(keyDocumentKey(prefix, key.sha256), JSON.stringify(key)),
    );
    await writeSeeds(this.redis, keys.shard, changes.seeds ?? []);
    const nodes = changes.nodes ?? [];
    const reply = await this.redis.run(
      'publish',
      [keys.scope(enterpriseId), keys.documents(enterpriseId)],
      [
        enterpriseId,
        policyChannel(prefix),
        replace ? '1' : '0',
        changes.enterprise ? JSON.stringify(changes.enterprise) : '',
        String(nodes.length),
        ...nodes.flatMap((node) => [node.id, JSON.stringify(node)]),
        ...(changes.removedNodeIds ?? []),
      ],
    );
    await inBatches(changes.removedKeySha256s ?? [], (sha256) =>
      client.del(keyDocumentKey(prefix, sha256)),
    );
    await inBatches(changes.removedNodeIds ?? [], (id) =>
      client.expire(keys.scope(id), removedScopeSeconds),
    );
    return Number(String(reply));
  }
}

async function inBatches<T>(
  items: readonly T[],
  run: (item: T) => Promise<unknown>,
): Promise<void> {
  for (let from = 0; from < items.length; from += keyBatch) {
    await Promise.all(items.slice(from, from + keyBatch).map(run));
  }
}
