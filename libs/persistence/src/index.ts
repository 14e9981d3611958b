export { openDatabase, type Database, type DatabaseOptions } from './database.js';
export { Prisma, PrismaClient } from './generated/prisma/client.js';
export {
  appendAudit,
  auditChainStart,
  auditHash,
  auditTargetTypes,
  canonicalJson,
  verifyAuditChain,
  type AuditActor,
  type AuditChainVerdict,
  type AuditRecord,
  type AuditTargetType,
} from './control/audit-chain.js';
export {
  enterprisesWithPendingPolicies,
  inControlChange,
  markPoliciesLost,
  publishPolicies,
  type ChangeContext,
  type PolicySink,
} from './control/control-changes.js';
export {
  buildDocuments,
  limitDocumentOf,
  loadPolicyDocuments,
  priceVersionOf,
  type ControlDatabase,
  type PolicyDocuments,
} from './control/policy-documents.js';
export {
  clearAlarm,
  openAlarms,
  raiseAlarms,
  type Alarm,
  type AlarmKind,
  type OpenAlarm,
} from './ledger/alarms.js';
export { isTransientFault } from './ledger/database-faults.js';
export { findDeadLetters, listDeadLetters, type DeadLetter } from './ledger/dead-letters.js';
export { watchHoles } from './ledger/hole-watch.js';
export { nextOffsets } from './ledger/ledger-offsets.js';
export { dropExpiredPartitions, ensurePartitionsAhead } from './ledger/partitions.js';
export { ledgerStateOf, readProgress, type ProgressLine } from './ledger/progress-tables.js';
export { bookRefusals, dropOldRefusals } from './ledger/refusals.js';
export {
  UsageLedger,
  type LedgerOptions,
  type Slice,
  type SliceResult,
} from './ledger/usage-ledger.js';
export type { SourceRecord } from './ledger/usage-record.js';
export { changeUsageZone, zonesToChange } from './ledger/usage-zones.js';
export {
  meteringStatus,
  noteSources,
  type Hole,
  type MeteringStatus,
  type SourceState,
} from './usage/metering-status.js';
export {
  findDrift,
  reconcile,
  recordReconciliation,
  type BookedFigures,
  type BookedScope,
  type Drift,
} from './usage/reconcile.js';
export { loadScopeCounters, type ScopeCounters, type ScopeSums } from './usage/scope-sums.js';
export type { UsageFigures } from './usage/usage-figures.js';
export {
  findRequest,
  summaryRowsMax,
  usageSummary,
  type BookedAttempt,
  type RefusedCall,
  type UsageFilters,
  type UsageGranularity,
  type UsageGrouping,
  type UsageSummary,
  type UsageSummaryQuery,
  type UsageSummaryRow,
} from './usage/usage-queries.js';
export {
  withUsageRows,
  type UsageRow,
  type UsageRowsQuery,
  type UsageRowsSnapshot,
} from './usage/usage-rows.js';
export {
  ProviderFileError,
  providerFileDialects,
  readProviderFile,
  type ProviderFileDialect,
  type ProviderLine,
} from './provider-usage/provider-file.js';
export {
  importProviderFile,
  matchProviderFile,
  type MatchFigures,
  type MatchItem,
  type MatchReport,
} from './provider-usage/provider-match.js';
export { acceptHole } from './ledger/accept-hole.js';
