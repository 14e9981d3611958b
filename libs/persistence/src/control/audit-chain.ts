import { createHash } from 'node:crypto';
import { newId } from '@weir/domain';
import { Prisma } from '../generated/prisma/client.js';
import type { ControlDatabase } from './policy-documents.js';

/** Who made a change. `id` is null for the installation itself. */
export type AuditActor = { readonly id: string | null; readonly name: string };

/** One change of one thing. `before` and `after` are its public shapes: they never carry a secret. */
export type AuditRecord = {
  /** Such as `limit.updated`. */
  readonly action: string;
  readonly targetType: AuditTargetType;
  readonly targetId: string;
  readonly targetName: string;
  /** null: it did not exist. */
  readonly before: unknown;
  /** null: it exists no more. */
  readonly after: unknown;
};
export const auditTargetTypes = [
  'enterprise',
  'department',
  'user',
  'key',
  'limit',
  'upstream',
  'model',
  'export',
  'provider-file',
  'dead-letter',
  'hole',
  'counter',
] as const;
export type AuditTargetType = (typeof auditTargetTypes)[number];

/** What the first entry of a chain refers back to. */
export const auditChainStart = '0'.repeat(64);

/** The fields that an entry's hash covers: all of them, but for the hashes. */
type HashedEntry = {
  id: string;
  enterpriseId: string;
  sequence: bigint;
  at: Date;
  actorId: string | null;
  actorName: string;
  requestId: string;
  action: string;
  targetType: string;
  targetId: string;
  targetName: string;
  before: unknown;
  after: unknown;
};

/** JSON with sorted keys, so that a value read back from jsonb gives the same text. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const fields = Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`);
    return `{${fields.join(',')}}`;
  }
  return JSON.stringify(value ?? null);
}

/** SHA-256 over the previous entry's hash and this entry's canonical JSON, lower-case hex. */
export function auditHash(previousHash: string, entry: HashedEntry): string {
  const text = canonicalJson({
    id: entry.id,
    enterpriseId: entry.enterpriseId,
    sequence: entry.sequence.toString(),
    at: entry.at.toISOString(),
    actorId: entry.actorId,
    actorName: entry.actorName,
    requestId: entry.requestId,
    action: entry.action,
    targetType: entry.targetType,
    targetId: entry.targetId,
    targetName: entry.targetName,
    before: entry.before,
    after: entry.after,
  });
  return createHash('sha256').update(previousHash).update(text).digest('hex');
}

/**
 * Appends entries to the enterprise's chain. The caller holds the enterprise's lock: two appends at once would give
 * the same sequence number (which the unique index refuses).
 */
export async function appendAudit(
  tx: Prisma.TransactionClient,
  entry: {
    readonly enterpriseId: string;
    readonly actor: AuditActor;
    readonly requestId: string;
    readonly at: Date;
    readonly records: readonly AuditRecord[];
  },
): Promise<void> {
  const last = await tx.auditEntry.findFirst({
    where: { enterpriseId: entry.enterpriseId },
    orderBy: { sequence: 'desc' },
    select: { sequence: true, hash: true },
  });
  let sequence = last?.sequence ?? 0n;
  let previousHash = last?.hash ?? auditChainStart;
  const rows: Prisma.AuditEntryCreateManyInput[] = [];
  for (const record of entry.records) {
    sequence += 1n;
    const hashed: HashedEntry = {
      id: newId(),
      enterpriseId: entry.enterpriseId,
      sequence,
      at: entry.at,
      actorId: entry.actor.id,
      actorName: entry.actor.name,
      requestId: entry.requestId,
      action: record.action,
      targetType: record.targetType,
      targetId: record.targetId,
      targetName: record.targetName,
      before: record.before,
      after: record.after,
    };
    const hash = auditHash(previousHash, hashed);
    rows.push({
      ...hashed,
      before: jsonOf(record.before),
      after: jsonOf(record.after),
      previousHash,
      hash,
    });
    previousHash = hash;
  }
  if (rows.length > 0) await tx.auditEntry.createMany({ data: rows });
}

function jsonOf(value: unknown): Prisma.InputJsonValue | typeof Prisma.DbNull {
  if (value === null || value === undefined) return Prisma.DbNull;
  return JSON.parse(JSON.stringify(value)) as Prisma.InputJsonValue;
}

/** What an audit of the audit found. `brokenAt` is the first sequence number that does not fit. */
export type AuditChainVerdict =
  | { readonly intact: true; readonly entries: bigint }
  | { readonly intact: false; readonly brokenAt: bigint; readonly reason: string };

const verifyBatch = 1_000;

/**
 * Walks the enterprise's whole chain and recomputes every hash. Finds an altered, removed or inserted entry; entries
 * cut off at the end are found because the last published policy version counts audit entries.
 */
export async function verifyAuditChain(
  db: ControlDatabase,
  enterpriseId: string,
): Promise<AuditChainVerdict> {
  let sequence = 0n;
  let previousHash = auditChainStart;
  for (;;) {
    const batch = await db.auditEntry.findMany({
      where: { enterpriseId, sequence: { gt: sequence } },
      orderBy: { sequence: 'asc' },
      take: verifyBatch,
    });
    for (const row of batch) {
      const brokenAt = sequence + 1n;
      if (row.sequence !== brokenAt)
        return { intact: false, brokenAt, reason: 'an entry is missing' };
      if (row.previousHash !== previousHash) {
        return { intact: false, brokenAt, reason: 'it does not follow the entry before it' };
      }
      if (row.hash !== auditHash(previousHash, row)) {
        return { intact: false, brokenAt, reason: 'its content does not match its hash' };
      }
      sequence = row.sequence;
      previousHash = row.hash;
    }
    if (batch.length < verifyBatch) break;
  }
  const enterprise = await db.enterprise.findUnique({
    where: { id: enterpriseId },
    select: { policyVersion: true },
  });
  if (enterprise !== null && enterprise.policyVersion > sequence) {
    return { intact: false, brokenAt: sequence + 1n, reason: 'entries are cut off at the end' };
  }
  return { intact: true, entries: sequence };
}
