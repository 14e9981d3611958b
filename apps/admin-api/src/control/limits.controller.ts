import { Controller, Inject } from '@nestjs/common';
import {
  limitModes,
  newId,
  parseAmount,
  WeirError,
  windowFault,
  type LimitMode,
  type Metric,
  type ScopeLevel,
} from '@weir/domain';
import type { ControlDatabase, Database, Prisma } from '@weir/persistence';
import type { Actor } from '../access/actor.js';
import { departmentsInReach, keysInReach, notFound, usersInReach } from '../access/reach.js';
import { requireVersion } from '../http/if-match.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { DATABASE } from '../tokens.js';
import { Changes } from './changes.js';
import { fieldFault } from './field-fault.js';
import { isUniqueViolation } from './users.controller.js';
import { limitView, type LimitView } from './views.js';

type LimitRow = Prisma.QuotaLimitGetPayload<object>;

@Controller()
export class LimitsController {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    private readonly changes: Changes,
  ) {}

  @Operation('getLimit')
  async get({ actor, id }: CallOf<'getLimit'>): Promise<AnswerOf<'getLimit'>> {
    return limitView((await requireLimit(this.database.prisma, actor, id)).row);
  }

  @Operation('createLimit')
  async create(call: CallOf<'createLimit'>): Promise<AnswerOf<'createLimit'>> {
    const { actor, body } = call;
    const fault = windowFault(body.metric, body.window);
    if (fault !== null) throw fieldFault('window', fault, 'Choose another window.');
    const amount = amountOf(body.metric, body.amount);
    return this.changes.run(call, async (tx, record, at) => {
      const scope = await requireScope(tx, actor, body.scopeLevel, body.scopeId);
      await requireModel(tx, actor, body.model);
      const row = await tx.quotaLimit
        .create({
          data: {
            id: newId(),
            enterpriseId: actor.enterpriseId,
            scopeLevel: body.scopeLevel,
            scopeId: body.scopeId,
            metric: body.metric,
            window: body.window ?? '',
            model: body.model ?? '',
            amount,
            mode: body.mode,
            createdAt: at,
          },
        })
        .catch((error: unknown) => {
          if (!isUniqueViolation(error)) throw error;
          throw new WeirError(
            'conflict',
            'This node has a limit for the same metric, window and model already. Change that one.',
          );
        });
      const after = limitView(row);
      record({ ...targetOf(after, scope.name), action: 'limit.created', before: null, after });
      return after;
    });
  }

  @Operation('patchLimit')
  async patch(call: CallOf<'patchLimit'>): Promise<AnswerOf<'patchLimit'>> {
    const { actor, id, body, version } = call;
    return this.changes.run(call, async (tx, record) => {
      const { row: stored, scopeName } = await requireLimit(tx, actor, id);
      const before = limitView(stored);
      requireVersion(version, before);
      const amount =
        body.amount === undefined ? stored.amount : amountOf(before.metric, body.amount);
      const mode = body.mode ?? before.mode;
      if (isOwnCap(actor, stored) && loosens(stored, { amount, mode })) throw ownCap(before);
      const row = await tx.quotaLimit.update({
        where: { id },
        data: { amount, mode, version: { increment: 1 } },
      });
      const after = limitView(row);
      record({ ...targetOf(after, scopeName), action: 'limit.updated', before, after });
      return after;
    });
  }

  @Operation('deleteLimit')
  async delete(call: CallOf<'deleteLimit'>): Promise<void> {
    const { actor, id, version } = call;
    await this.changes.run(call, async (tx, record) => {
      const { row, scopeName } = await requireLimit(tx, actor, id);
      const before = limitView(row);
      requireVersion(version, before);
      if (isOwnCap(actor, row) && row.amount !== null) throw ownCap(before);
      await tx.quotaLimit.delete({ where: { id } });
      record({ ...targetOf(before, scopeName), action: 'limit.deleted', before, after: null });
    });
  }
}

/** The limit's name in the audit log: the node's name and what is limited there. */
function targetOf(view: LimitView, scopeName: string) {
  const per = view.window === null ? '' : ` per ${view.window}`;
  const model = view.model === null ? '' : ` (${view.model})`;
  return {
    targetType: 'limit',
    targetId: view.id,
    targetName: `${scopeName}: ${view.metric}${per}${model}`,
  } as const;
}

function amountOf(metric: Metric, text: string | null): bigint | null {
  if (text === null) return null;
  try {
    return parseAmount(metric, text);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const example = metric === 'cost' ? '12.50' : '1500000';
    throw fieldFault('amount', error.message, `Send a text such as "${example}".`);
  }
}

/** A limit whose node the actor may see, with the node's name. */
async function requireLimit(
  db: ControlDatabase,
  actor: Actor,
  id: string,
): Promise<{ row: LimitRow; scopeName: string }> {
  const row = await db.quotaLimit.findFirst({ where: { id, enterpriseId: actor.enterpriseId } });
  if (row === null) throw notFound('limit', id);
  const scope = await findScope(db, actor, row.scopeLevel as ScopeLevel, row.scopeId);
  if (scope === null) throw notFound('limit', id);
  return { row, scopeName: scope.name };
}

async function requireScope(
  db: ControlDatabase,
  actor: Actor,
  level: ScopeLevel,
  id: string,
): Promise<{ name: string }> {
  const scope = await findScope(db, actor, level, id);
  if (scope === null) throw notFound(level, id);
  return scope;
}

/** A living node within the actor's reach, or null. */
async function findScope(
  db: ControlDatabase,
  actor: Actor,
  level: ScopeLevel,
  id: string,
): Promise<{ name: string } | null> {
  const living = { id, status: { not: 'deleted' } };
  const select = { name: true } as const;
  switch (level) {
    case 'enterprise':
      if (actor.reach.kind !== 'enterprise' || id !== actor.enterpriseId) return null;
      return db.enterprise.findUnique({ where: { id }, select });
    case 'department':
      return db.department.findFirst({
        where: { AND: [living, departmentsInReach(actor)] },
        select,
      });
    case 'user':
      return db.user.findFirst({ where: { AND: [living, usersInReach(actor)] }, select });
    case 'key':
      return db.apiKey.findFirst({ where: { AND: [living, keysInReach(actor)] }, select });
  }
}

/** A limit on a model that does not exist would never take effect. */
async function requireModel(
  tx: Prisma.TransactionClient,
  actor: Actor,
  alias: string | null,
): Promise<void> {
  if (alias === null) return;
  const where = { enterpriseId: actor.enterpriseId, alias };
  if ((await tx.model.count({ where })) > 0) return;
  throw fieldFault('model', `there is no model ${alias}`, 'Name a model that exists, or null.');
}

/** Whether the limit is on the top of the subtree that the actor manages. */
function isOwnCap(actor: Actor, row: { scopeId: string }): boolean {
  return actor.reach.kind === 'subtree' && actor.reach.topId === row.scopeId;
}

/** Whether the change lets through what was refused before. null is no limit, hence the loosest. */
export function loosens(
  before: { amount: bigint | null; mode: string },
  after: { amount: bigint | null; mode: LimitMode },
): boolean {
  if (before.amount === null) return false;
  const strength = (mode: string) => (limitModes as readonly string[]).indexOf(mode);
  if (strength(after.mode) > strength(before.mode)) return true;
  return after.amount === null || after.amount > before.amount;
}

function ownCap(limit: LimitView): WeirError {
  const amount = limit.amount === null ? 'none' : limit.amount;
  return new WeirError(
    'forbidden',
    'A department manager may lower the cap of the own department and share it out below, not raise it.',
    { limit: amount, metric: limit.metric, window: limit.window },
  );
}
