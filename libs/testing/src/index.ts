export { manualClock, type ManualClock } from './manual-clock.js';
export {
  departmentDocument,
  enterpriseDocument,
  keyDocument,
  limitDocument,
  modelDocument,
  userDocument,
} from './policy-documents.js';
export { kafkaBrokersOrNull, requireService } from './services.js';
export { createTestDatabase, type TestDatabase } from './test-database.js';
export { openTestRedis, type TestRedis } from './test-redis.js';
export {
  numbered,
  testTenant,
  usageEvent,
  type TestTenant,
  type UsageEventOverrides,
} from './usage-events.js';
export { waitFor } from './wait-for.js';
