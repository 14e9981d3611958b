/** How many shards an installation has. Fixed for its life and checked at start: the count decides where keys live. */
export const defaultShardCount = 8;

/**
 * The shard of an enterprise: FNV-1a over its id, modulo the number of shards. All keys of one enterprise share the
 * hash tag `{sNN}`, hence one Redis Cluster slot, so that one script can touch them all.
 */
export function shardOf(enterpriseId: string, shardCount: number): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < enterpriseId.length; index += 1) {
    hash = Math.imul(hash ^ enterpriseId.charCodeAt(index), 0x01000193) >>> 0;
  }
  return hash % shardCount;
}

/** The hash tag of a shard with its braces, such as `{s07}`. */
export function shardTag(shard: number): string {
  return `{s${shard.toString().padStart(2, '0')}}`;
}

/** The stream that settle appends usage events to; the relay reads it. Entry fields: `id`, `seq`, `epoch`, `event` (JSON without position). */
export function outboxKey(prefix: string, shard: number): string {
  return `${prefix}:${shardTag(shard)}:outbox`;
}

/** The capped stream of refused and failed calls, per shard. Entry field: `event` (JSON of a RefusalEvent). */
export function refusalStreamKey(prefix: string, shard: number): string {
  return `${prefix}:${shardTag(shard)}:refusals`;
}
