import {
  enterpriseSettingsSchema,
  type EnterpriseDocument,
  type KeyDocument,
  type LimitDocument,
  type ModelDocument,
  type NodeDocument,
  type PriceVersion,
} from '@weir/domain';
import { z } from 'zod';
import type { Prisma, PrismaClient } from '../generated/prisma/client.js';

/** A client, inside or outside of a transaction. */
export type ControlDatabase = PrismaClient | Prisma.TransactionClient;

/** All that the gateways need of one enterprise. */
export type PolicyDocuments = {
  readonly enterprise: EnterpriseDocument;
  readonly nodes: NodeDocument[];
  readonly keys: KeyDocument[];
};

/** Which documents to build; `all` for a rebuild. */
export type DocumentSelection = {
  readonly enterprise: boolean;
  /** Departments and users. */
  readonly nodeIds: readonly string[] | 'all';
  readonly keyIds: readonly string[] | 'all';
};

/**
 * How long a closed price version stays in the documents: a gateway whose clock is behind ours must still find the
 * version that is in force by its own clock.
 */
const closedPriceKeptMs = 24 * 3_600_000;

const pricesSchema = z.record(z.string(), z.string());

/**
 * Builds the policy documents of an enterprise from its rows: what the control plane publishes, and what a lost Redis
 * is rebuilt from. Deleted departments, users and keys have no document.
 *
 * @throws Error when there is no such enterprise.
 */
export async function loadPolicyDocuments(
  db: ControlDatabase,
  enterpriseId: string,
  nowMs: number = Date.now(),
): Promise<PolicyDocuments> {
  const { enterprise, nodes, keys } = await buildDocuments(
    db,
    enterpriseId,
    { enterprise: true, nodeIds: 'all', keyIds: 'all' },
    nowMs,
  );
  if (enterprise === null) throw new Error(`no enterprise ${enterpriseId}`);
  return { enterprise, nodes, keys };
}

/** The selected documents only. Ids whose row is deleted or not of this enterprise are left out of the answer. */
export async function buildDocuments(
  db: ControlDatabase,
  enterpriseId: string,
  selection: DocumentSelection,
  nowMs: number,
): Promise<{ enterprise: EnterpriseDocument | null; nodes: NodeDocument[]; keys: KeyDocument[] }> {
  const { nodeIds, keyIds } = selection;
  const chosen = (ids: readonly string[] | 'all') =>
    ids === 'all' ? {} : { id: { in: [...ids] } };
  const departments = await db.department.findMany({
    where: { enterpriseId, status: { not: 'deleted' }, ...chosen(nodeIds) },
    orderBy: { id: 'asc' },
  });
  const users = await db.user.findMany({
    where: { enterpriseId, status: { not: 'deleted' }, ...chosen(nodeIds) },
    orderBy: { id: 'asc' },
    omit: { passwordHash: true },
  });
  const keys = await db.apiKey.findMany({
    where: { enterpriseId, status: { not: 'deleted' }, ...chosen(keyIds) },
    orderBy: { id: 'asc' },
  });
  const everything = nodeIds === 'all' && keyIds === 'all';
  const scopeIds = [
    ...(selection.enterprise ? [enterpriseId] : []),
    ...departments.map((row) => row.id),
    ...users.map((row) => row.id),
    ...keys.map((row) => row.id),
  ];
  const limits = await limitsByScope(db, enterpriseId, everything ? 'all' : scopeIds);
  const limitsOf = (id: string) => limits.get(id) ?? [];

  return {
    enterprise: selection.enterprise
      ? await enterpriseDocument(db, enterpriseId, limitsOf(enterpriseId), nowMs)
      : null,
    nodes: [
      ...departments.map((row) => ({
        id: row.id,
        level: 'department' as const,
        parentId: row.parentId,
        name: row.name,
        status: activeOrDisabled(row.status),
        limits: limitsOf(row.id),
      })),
      ...users.map((row) => ({
        id: row.id,
        level: 'user' as const,
        parentId: row.departmentId,
        name: row.name,
        status: activeOrDisabled(row.status),
        limits: limitsOf(row.id),
      })),
    ],
    keys: keys.map((row) => ({
      id: row.id,
      enterpriseId: row.enterpriseId,
      userId: row.userId,
      name: row.name,
      sha256: row.sha256,
      status: activeOrDisabled(row.status),
      expiresAt: row.expiresAt?.toISOString() ?? null,
      allowedModels: row.restrictModels ? row.allowedModels : null,
      limits: limitsOf(row.id),
    })),
  };
}

function activeOrDisabled(status: string): 'active' | 'disabled' {
  return status === 'active' ? 'active' : 'disabled';
}

async function limitsByScope(
  db: ControlDatabase,
  enterpriseId: string,
  scopeIds: readonly string[] | 'all',
): Promise<Map<string, LimitDocument[]>> {
  const rows = await db.quotaLimit.findMany({
    where: { enterpriseId, ...(scopeIds === 'all' ? {} : { scopeId: { in: [...scopeIds] } }) },
    orderBy: { id: 'asc' },
  });
  const byScope = new Map<string, LimitDocument[]>();
  for (const row of rows) {
    const list = byScope.get(row.scopeId) ?? [];
    list.push(limitDocumentOf(row));
    byScope.set(row.scopeId, list);
  }
  return byScope;
}

type LimitRow = Awaited<ReturnType<PrismaClient['quotaLimit']['findFirstOrThrow']>>;

/** A stored limit as the engine knows it; "" in the row stands for no window and for all models. */
export function limitDocumentOf(row: LimitRow): LimitDocument {
  return {
    id: row.id,
    metric: row.metric as LimitDocument['metric'],
    window: (row.window === '' ? null : row.window) as LimitDocument['window'],
    model: row.model === '' ? null : row.model,
    amount: row.amount?.toString() ?? null,
    mode: row.mode as LimitDocument['mode'],
  };
}

async function enterpriseDocument(
  db: ControlDatabase,
  enterpriseId: string,
  limits: LimitDocument[],
  nowMs: number,
): Promise<EnterpriseDocument | null> {
  const row = await db.enterprise.findUnique({ where: { id: enterpriseId } });
  if (row === null) return null;
  const upstreams = await db.upstream.findMany({ where: { enterpriseId }, orderBy: { id: 'asc' } });
  const keptSince = new Date(nowMs - closedPriceKeptMs);
  const models = await db.model.findMany({
    where: { enterpriseId },
    orderBy: { alias: 'asc' },
    include: {
      routes: { orderBy: [{ priority: 'asc' }, { id: 'asc' }] },
      prices: {
        where: { OR: [{ validTo: null }, { validTo: { gt: keptSince } }] },
        orderBy: { validFrom: 'asc' },
      },
    },
  });
  return {
    id: row.id,
    name: row.name,
    timeZone: row.timeZone,
    currency: row.currency,
    settings: enterpriseSettingsSchema.parse(row.settings),
    limits,
    upstreams: upstreams.map((upstream) => ({
      id: upstream.id,
      name: upstream.name,
      dialect: upstream.dialect as ModelDocument['dialect'],
      baseUrl: upstream.baseUrl,
      sealedApiKey: upstream.sealedApiKey,
      connectTimeoutMs: upstream.connectTimeoutMs,
      firstByteTimeoutMs: upstream.firstByteTimeoutMs,
      idleTimeoutMs: upstream.idleTimeoutMs,
      onClientGone: upstream.onClientGone === 'abort' ? 'abort' : 'drain',
      enabled: upstream.enabled,
    })),
    models: models.map((model) => ({
      alias: model.alias,
      kind: model.kind as ModelDocument['kind'],
      dialect: model.dialect as ModelDocument['dialect'],
      contextWindowTokens: model.contextWindowTokens,
      maxOutputTokens: model.maxOutputTokens,
      defaultOutputReserve: model.defaultOutputReserve,
      routes: model.routes.map((route) => ({
        upstreamId: route.upstreamId,
        upstreamModel: route.upstreamModel,
        weight: route.weight,
        priority: route.priority,
      })),
      prices: model.prices.map((price) => priceVersionOf(model.alias, price)),
      enabled: model.enabled,
    })),
  };
}

type PriceRow = Awaited<ReturnType<PrismaClient['modelPriceVersion']['findFirstOrThrow']>>;

/** A stored price version as the domain knows it. */
export function priceVersionOf(alias: string, row: PriceRow): PriceVersion {
  return {
    id: row.id,
    model: alias,
    currency: row.currency,
    from: row.validFrom.toISOString(),
    to: row.validTo?.toISOString() ?? null,
    picoPerToken: pricesSchema.parse(row.picoPerToken),
    picoPerRequest: row.picoPerRequest.toString(),
  };
}
