export {
  CounterRepair,
  type CounterFigures,
  type Repair,
  type RepairResult,
  type ShardPosition,
} from './counter-repair.js';
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
export { createRedisEngine, type RedisEngine } from './redis-engine.js';
export { type ScriptSources, shippedScripts, withMovableClock } from './script-sources.js';
export { type BreakerState } from './circuit-breaker.js';
export { EventSpool, type EventSpoolOptions } from './event-spool.js';
export { LocalAdmissions } from './local-admissions.js';
export {
  createResilientEngine,
  type DegradedSettings,
  type Exposure,
  ResilientEngine,
  type ResilientEngineOptions,
} from './resilient-engine.js';
export { requestedOf } from './violations.js';
