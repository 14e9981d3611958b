import { outboxKey, shardTag } from '@weir/domain';

/**
 * Ids go into Redis keys and must not be able to change a key's hash slot or run into another key. Ids are UUIDs; any
 * other text is escaped, so that braces, colons and blanks never get through.
 */
export function safeId(id: string): string {
  return /^[\w-]+$/.test(id) ? id : encodeURIComponent(id).replace(/[!'()*.~]/g, escapeCharacter);
}

function escapeCharacter(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

/**
 * Raised with every change of the records' layout (lua/includes). It is part of the epoch's name, so data of another layout
 * has no epoch, counts as lost, and is rebuilt from the ledger instead of being misread.
 */
const recordLayout = 2;

/** The names of one shard's keys. All share the hash tag `{sNN}`, hence one Redis Cluster slot. */
export class ShardKeys {
  readonly epoch: string;
  readonly epochLock: string;
  readonly seq: string;
  readonly meta: string;
  readonly leases: string;
  readonly outbox: string;
  readonly leasePrefix: string;
  readonly scopePrefix: string;
  readonly documentsPrefix: string;

  constructor(
    prefix: string,
    readonly shard: number,
  ) {
    const base = `${prefix}:${shardTag(shard)}`;
    this.epoch = `${base}:epoch:${recordLayout}`;
    this.epochLock = `${base}:epoch-lock`;
    this.seq = `${base}:seq`;
    this.meta = `${base}:meta`;
    this.leases = `${base}:leases`;
    this.outbox = outboxKey(prefix, shard);
    this.leasePrefix = `${base}:lease:`;
    this.scopePrefix = `${base}:scope:`;
    this.documentsPrefix = `${base}:documents:`;
  }

  lease(id: string): string {
    return this.leasePrefix + safeId(id);
  }

  scope(id: string): string {
    return this.scopePrefix + safeId(id);
  }

  documents(enterpriseId: string): string {
    return this.documentsPrefix + safeId(enterpriseId);
  }
}

/** The document of one API key. Found by the hash alone, before the enterprise is known: outside of every shard's slot. */
export function keyDocumentKey(prefix: string, sha256: string): string {
  return `${prefix}:key:${safeId(sha256)}`;
}

/** Where a publisher announces `<enterprise id> <version>`. */
export function policyChannel(prefix: string): string {
  return `${prefix}:policy`;
}
