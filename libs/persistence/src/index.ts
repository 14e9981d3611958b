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
