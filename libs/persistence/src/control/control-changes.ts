import { z } from 'zod';
import {
  WeirError,
  type EnterpriseDocument,
  type KeyDocument,
  type NodeDocument,
} from '@weir/domain';
import type { Prisma, PrismaClient } from '../generated/prisma/client.js';
import {
  appendAudit,
  type AuditActor,
  type AuditRecord,
  type AuditTargetType,
} from './audit-chain.js';
import { buildDocuments, loadPolicyDocuments } from './policy-documents.js';

/*
 * Changes of the control plane, and how they reach Redis.
 *
 * A change is one transaction: lock of the enterprise's row, the rows themselves, the audit entries. The audit log
 * doubles as the outbox of policy changes: `enterprise.policy_version` is the audit sequence up to which all changes
 * are in Redis, so entries above it are exactly what is committed but not published yet, and each names what changed.
 * There is no second record of the same fact that could disagree, and a crash between commit and publishing leaves
 * nothing behind that the next attempt does not find.
 *
 * Publishing holds the same lock, so that documents reach Redis in commit order: an older document can never
 * overwrite a newer one, and a read for publishing never sees half a change.
 */

/** Where documents go; @weir/quota's PolicyPublisher. */
export type PolicySink = {
  publish(
    enterpriseId: string,
    changes: {
      enterprise?: EnterpriseDocument;
      nodes?: NodeDocument[];
      removedNodeIds?: string[];
      keys?: KeyDocument[];
      removedKeySha256s?: string[];
    },
  ): Promise<number>;
  republish(all: {
    enterprise: EnterpriseDocument;
    nodes: NodeDocument[];
    keys: KeyDocument[];
  }): Promise<number>;
};

export type ChangeContext = {
  readonly enterpriseId: string;
  readonly actor: AuditActor;
  readonly requestId: string;
  readonly at: Date;
};

/** Above this many outstanding changes it is cheaper to write all documents again. */
const incrementalChangesMax = 500;

/** A change waits this long for the enterprise's lock (another change, or a publish to a slow Redis). */
const lockWaitMs = 5_000;
const transactionMs = 30_000;

/**
 * Runs one change in one transaction. `record` notes what changed, for the audit log and for publishing; a change
 * that records nothing writes nothing to either.
 *
 * @throws WeirError `unavailable` when the enterprise's lock cannot be had in time.
 */
export async function inControlChange<Result>(
  db: PrismaClient,
  context: ChangeContext,
  work: (tx: Prisma.TransactionClient, record: (entry: AuditRecord) => void) => Promise<Result>,
): Promise<Result> {
  return db.$transaction(
    async (tx) => {
      await lockEnterprise(tx, context.enterpriseId);
      const records: AuditRecord[] = [];
      const result = await work(tx, (entry) => records.push(entry));
      await appendAudit(tx, { ...context, records });
      return result;
    },
    { maxWait: lockWaitMs, timeout: transactionMs },
  );
}

/** NO KEY: rows that refer to the enterprise may be inserted meanwhile. */
async function lockEnterprise(tx: Prisma.TransactionClient, enterpriseId: string): Promise<bigint> {
  await tx.$executeRaw`SELECT set_config('lock_timeout', ${`${lockWaitMs}ms`}, true)`;
  let rows: { policy_version: bigint }[];
  try {
    rows = await tx.$queryRaw<{ policy_version: bigint }[]>`
      SELECT policy_version FROM enterprise WHERE id = ${enterpriseId}::uuid FOR NO KEY UPDATE`;
  } catch (error) {
    if (!String(error).includes('lock timeout')) throw error;
    throw new WeirError(
      'unavailable',
      'Another change of this enterprise takes too long. Try again.',
      { retry_after_seconds: 1 },
      { cause: error },
    );
  }
  const [row] = rows;
  if (row === undefined) throw new WeirError('not_found', 'There is no such enterprise.');
  return row.policy_version;
}

/**
 * Publishes what is committed but not in Redis yet, in commit order; with `all`, every document (a rebuild).
 * Safe to call at any time, from any number of processes; with nothing outstanding it does nothing.
 *
 * @returns how many changes were outstanding.
 * @throws what the sink throws; nothing is marked as published then, and the next call tries again.
 */
export async function publishPolicies(
  db: PrismaClient,
  sink: PolicySink,
  enterpriseId: string,
  options: { readonly all?: boolean; readonly nowMs?: number } = {},
): Promise<number> {
  const nowMs = options.nowMs ?? Date.now();
  return db.$transaction(
    async (tx) => {
      const published = await lockEnterprise(tx, enterpriseId);
      const pending = await tx.auditEntry.findMany({
        where: { enterpriseId, sequence: { gt: published } },
        orderBy: { sequence: 'asc' },
        take: incrementalChangesMax + 1,
        select: { sequence: true, targetType: true, targetId: true, before: true, after: true },
      });
      if (pending.length === 0 && options.all !== true) return 0;
      // Version 0: nothing of this enterprise was ever published, so there is nothing to add a change to.
      const everything =
        options.all === true || published === 0n || pending.length > incrementalChangesMax;
      if (everything) await publishEverything(tx, sink, enterpriseId, nowMs);
      else await publishChanges(tx, sink, enterpriseId, pending, nowMs);
      const newest = everything ? await newestSequence(tx, enterpriseId) : pending.at(-1)?.sequence;
      await tx.$executeRaw`
        UPDATE enterprise SET policy_version = ${newest ?? published} WHERE id = ${enterpriseId}::uuid`;
      return pending.length;
    },
    { maxWait: lockWaitMs, timeout: transactionMs },
  );
}

async function publishEverything(
  tx: Prisma.TransactionClient,
  sink: PolicySink,
  enterpriseId: string,
  nowMs: number,
): Promise<void> {
  // A key's document stands by itself, so that replacing the others does not remove it. An old snapshot of Redis, or a
  // deletion that was not published yet, would leave a deleted key working: those go first.
  const deleted = await tx.apiKey.findMany({
    where: { enterpriseId, status: 'deleted' },
    select: { sha256: true },
  });
  if (deleted.length > 0) {
    await sink.publish(enterpriseId, { removedKeySha256s: deleted.map((key) => key.sha256) });
  }
  await sink.republish(await loadPolicyDocuments(tx, enterpriseId, nowMs));
}

async function newestSequence(
  tx: Prisma.TransactionClient,
  enterpriseId: string,
): Promise<bigint | null> {
  const newest = await tx.auditEntry.aggregate({
    where: { enterpriseId },
    _max: { sequence: true },
  });
  return newest._max.sequence;
}

type PendingChange = {
  targetType: string;
  targetId: string;
  before: unknown;
  after: unknown;
};

/** What the gateways have no document of: such a change publishes nothing. */
const unpublishedTargets: ReadonlySet<string> = new Set([
  'export',
  'provider-file',
  'dead-letter',
  'hole',
  'counter',
] satisfies AuditTargetType[]);

const limitTargetSchema = z.object({ scopeLevel: z.string(), scopeId: z.string() });

async function publishChanges(
  tx: Prisma.TransactionClient,
  sink: PolicySink,
  enterpriseId: string,
  pending: readonly PendingChange[],
  nowMs: number,
): Promise<void> {
  const nodeIds = new Set<string>();
  const keyIds = new Set<string>();
  let enterprise = false;
  for (const change of pending) {
    // A limit lives in the document of the node that it is on.
    const limit =
      change.targetType === 'limit'
        ? limitTargetSchema.parse(change.after ?? change.before)
        : undefined;
    const level = limit?.scopeLevel ?? change.targetType;
    const id = limit?.scopeId ?? change.targetId;
    if (level === 'department' || level === 'user') nodeIds.add(id);
    else if (level === 'key') keyIds.add(id);
    else if (!unpublishedTargets.has(level)) enterprise = true;
  }
  if (!enterprise && nodeIds.size === 0 && keyIds.size === 0) return;

  const built = await buildDocuments(
    tx,
    enterpriseId,
    { enterprise, nodeIds: [...nodeIds], keyIds: [...keyIds] },
    nowMs,
  );
  const builtNodes = new Set(built.nodes.map((node) => node.id));
  const builtKeys = new Set(built.keys.map((key) => key.id));
  const removedKeys = await tx.apiKey.findMany({
    where: { enterpriseId, id: { in: [...keyIds].filter((id) => !builtKeys.has(id)) } },
    select: { sha256: true },
  });
  await sink.publish(enterpriseId, {
    ...(built.enterprise === null ? {} : { enterprise: built.enterprise }),
    nodes: built.nodes,
    removedNodeIds: [...nodeIds].filter((id) => !builtNodes.has(id)),
    keys: built.keys,
    removedKeySha256s: removedKeys.map((key) => key.sha256),
  });
}

/**
 * Notes that Redis has lost the enterprise's documents: all of them are outstanding until they are published again, also
 * when this process dies meanwhile.
 */
export async function markPoliciesLost(db: PrismaClient, enterpriseId: string): Promise<void> {
  await db.$executeRaw`UPDATE enterprise SET policy_version = 0 WHERE id = ${enterpriseId}::uuid`;
}

/** Enterprises with committed changes that are not in Redis yet; at most `limit`. */
export async function enterprisesWithPendingPolicies(
  db: PrismaClient,
  limit: number,
): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`
    SELECT e.id FROM enterprise e
    WHERE EXISTS (
      SELECT 1 FROM audit_entry a WHERE a.enterprise_id = e.id AND a.sequence > e.policy_version
    )
    ORDER BY e.id
    LIMIT ${limit}`;
  return rows.map((row) => row.id);
}
