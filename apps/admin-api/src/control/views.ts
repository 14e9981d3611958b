import {
  dialects,
  enterpriseSettingsSchema,
  formatAmount,
  formatPico,
  modelKinds,
  perMillionFromPicoPerToken,
  roles,
  type Metric,
  type TokenKind,
} from '@weir/domain';
import { limitDocumentOf, priceVersionOf, type Prisma } from '@weir/persistence';
import type { AnswerOf } from '../http/operation.js';

/** Rows as the API shows them. They go into answers, conflicts and the audit log alike, so none carries a secret. */

export type DepartmentView = AnswerOf<'getDepartment'>;
export type UserView = AnswerOf<'getUser'>;
export type KeyView = AnswerOf<'getKey'>;
export type LimitView = AnswerOf<'getLimit'>;
export type UpstreamView = AnswerOf<'getUpstream'>;
export type ModelView = AnswerOf<'getModel'>;
export type EnterpriseView = AnswerOf<'getEnterprise'>;

type RowOf<Payload extends { scalars: object }> = Payload['scalars'];

export function statusOf(text: string): 'active' | 'disabled' | 'deleted' {
  return text === 'active' || text === 'deleted' ? text : 'disabled';
}

export function enterpriseView(row: RowOf<Prisma.$EnterprisePayload>): EnterpriseView {
  return {
    id: row.id,
    name: row.name,
    timeZone: row.timeZone,
    currency: row.currency,
    settings: enterpriseSettingsSchema.parse(row.settings),
    version: row.version,
  };
}

export function departmentView(row: RowOf<Prisma.$DepartmentPayload>): DepartmentView {
  return {
    id: row.id,
    parentId: row.parentId,
    name: row.name,
    costCenter: row.costCenter,
    status: statusOf(row.status),
    version: row.version,
  };
}

export function userView(
  row: Pick<
    RowOf<Prisma.$UserPayload>,
    'id' | 'departmentId' | 'kind' | 'name' | 'email' | 'role' | 'status' | 'version'
  >,
): UserView {
  return {
    id: row.id,
    departmentId: row.departmentId,
    kind: row.kind === 'service' ? 'service' : 'person',
    name: row.name,
    email: row.email,
    role: roles.find((role) => role === row.role) ?? 'member',
    status: statusOf(row.status),
    version: row.version,
  };
}

/** What a key's view needs beside its own row. */
export const keyOwner = {
  user: { select: { name: true, departmentId: true, department: { select: { name: true } } } },
} as const;
type KeyRow = RowOf<Prisma.$ApiKeyPayload> & {
  user: { name: string; departmentId: string; department: { name: string } };
};

export function keyView(row: KeyRow): KeyView {
  return {
    id: row.id,
    userId: row.userId,
    userName: row.user.name,
    departmentId: row.user.departmentId,
    departmentName: row.user.department.name,
    name: row.name,
    prefix: row.prefix,
    status: statusOf(row.status),
    allowedModels: row.restrictModels ? row.allowedModels : null,
    expiresAt: row.expiresAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    version: row.version,
  };
}

export function limitView(row: RowOf<Prisma.$QuotaLimitPayload>): LimitView {
  const document = limitDocumentOf(row);
  return {
    ...document,
    scopeLevel: row.scopeLevel as LimitView['scopeLevel'],
    scopeId: row.scopeId,
    amount: row.amount === null ? null : formatAmount(document.metric as Metric, row.amount),
    version: row.version,
  };
}

export function upstreamView(row: RowOf<Prisma.$UpstreamPayload>): UpstreamView {
  return {
    id: row.id,
    name: row.name,
    dialect: dialects.find((dialect) => dialect === row.dialect) ?? 'openai',
    baseUrl: row.baseUrl,
    hasApiKey: row.sealedApiKey !== null,
    connectTimeoutMs: row.connectTimeoutMs,
    firstByteTimeoutMs: row.firstByteTimeoutMs,
    idleTimeoutMs: row.idleTimeoutMs,
    onClientGone: row.onClientGone === 'abort' ? 'abort' : 'drain',
    enabled: row.enabled,
    version: row.version,
  };
}

/** What a model's view needs beside its own row; price versions newest first. */
export const modelParts = {
  routes: { orderBy: [{ priority: 'asc' }, { id: 'asc' }] },
  prices: { orderBy: { validFrom: 'desc' } },
} as const satisfies Prisma.ModelInclude;
type ModelRow = RowOf<Prisma.$ModelPayload> & {
  routes: RowOf<Prisma.$ModelRoutePayload>[];
  prices: RowOf<Prisma.$ModelPriceVersionPayload>[];
};

export function modelView(row: ModelRow): ModelView {
  return {
    id: row.id,
    alias: row.alias,
    kind: modelKinds.find((kind) => kind === row.kind) ?? 'chat',
    dialect: dialects.find((dialect) => dialect === row.dialect) ?? 'openai',
    contextWindowTokens: row.contextWindowTokens,
    maxOutputTokens: row.maxOutputTokens,
    defaultOutputReserve: row.defaultOutputReserve,
    enabled: row.enabled,
    routes: row.routes.map((route) => ({
      upstreamId: route.upstreamId,
      upstreamModel: route.upstreamModel,
      weight: route.weight,
      priority: route.priority,
    })),
    prices: row.prices.map((price) => priceView(row.alias, price)),
    version: row.version,
  };
}

function priceView(
  alias: string,
  row: RowOf<Prisma.$ModelPriceVersionPayload>,
): ModelView['prices'][number] {
  const version = priceVersionOf(alias, row);
  const perMillionTokens: Partial<Record<TokenKind, string>> = {};
  for (const [kind, pico] of Object.entries(version.picoPerToken)) {
    perMillionTokens[kind as TokenKind] = perMillionFromPicoPerToken(BigInt(pico));
  }
  return {
    id: version.id,
    currency: version.currency,
    from: version.from,
    to: version.to,
    perMillionTokens,
    perRequest: formatPico(BigInt(version.picoPerRequest)),
  };
}
