export { EpochKeeper, type EpochKeeperOptions } from './epoch-keeper.js';
export { LeaseReaper } from './lease-reaper.js';
export { type PolicyChanges, PolicyPublisher } from './policy-publisher.js';
export { PolicyStore, type PolicyStoreOptions } from './policy-store.js';
export * from './quota-engine.js';
export {
  connectQuotaRedis,
  type QuotaLogger,
  QuotaRedis,
  type QuotaRedisOptions,
  storeClockKey,
} from './quota-redis.js';
export { createRedisEngine } from './redis-engine.js';
export { type ScriptSources, shippedScripts, withMovableClock } from './script-sources.js';
