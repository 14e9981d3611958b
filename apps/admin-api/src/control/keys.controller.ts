import { createHash, randomBytes } from 'node:crypto';
import { Controller, Inject } from '@nestjs/common';
import { newId, WeirError, type Clock } from '@weir/domain';
import type { Database, Prisma } from '@weir/persistence';
import type { Actor } from '../access/actor.js';
import {
  departmentsInReach,
  keysInReach,
  loadDepartmentTree,
  notFound,
  subtreeOf,
  usersInReach,
} from '../access/reach.js';
import { requireVersion } from '../http/if-match.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { CLOCK, DATABASE } from '../tokens.js';
import { Changes } from './changes.js';
import { fieldFault } from './field-fault.js';
import { beforeCursor, pageOf } from './pages.js';
import { requireUser } from './users.controller.js';
import { keyOwner, keyView, type KeyView } from './views.js';

const secretStart = 'weir_sk_';
const secretBytes = 32;
/** Characters of the secret that stay readable: enough to recognise a key, far too few to guess it. */
const prefixLength = secretStart.length + 5;

@Controller()
export class KeysController {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly changes: Changes,
  ) {}

  @Operation('listKeys')
  async list({ actor, query }: CallOf<'listKeys'>): Promise<AnswerOf<'listKeys'>> {
    const rows = await this.database.prisma.apiKey.findMany({
      where: {
        AND: [
          keysInReach(actor),
          { status: { not: 'deleted' } },
          beforeCursor(query.cursor),
          ...(await this.filters(actor, query)),
        ],
      },
      orderBy: { id: 'desc' },
      take: query.limit + 1,
      include: keyOwner,
    });
    return pageOf(rows, query.limit, keyView);
  }

  @Operation('getKey')
  async get({ actor, id }: CallOf<'getKey'>): Promise<AnswerOf<'getKey'>> {
    const row = await this.database.prisma.apiKey.findFirst({
      where: { AND: [{ id }, keysInReach(actor)] },
      include: keyOwner,
    });
    if (row === null) throw notFound('key', id);
    return keyView(row);
  }

  @Operation('createKey')
  async create(call: CallOf<'createKey'>): Promise<AnswerOf<'createKey'>> {
    const secret = secretStart + randomBytes(secretBytes).toString('base64url');
    return { key: await this.createWith(call, secret), secret };
  }

  /** As `create`, with a secret that exists already: the demo set-up keeps its own. */
  async createWith(
    call: Pick<CallOf<'createKey'>, 'actor' | 'body' | 'requestId'>,
    secret: string,
  ): Promise<KeyView> {
    const { actor, body } = call;
    return this.changes.run(call, async (tx, record, at) => {
      await requireUser(tx, actor, body.userId);
      await requireKeyShape(tx, actor, body, this.clock.now());
      const row = await tx.apiKey.create({
        data: {
          id: newId(),
          enterpriseId: actor.enterpriseId,
          userId: body.userId,
          name: body.name,
          prefix: secret.slice(0, prefixLength),
          sha256: createHash('sha256').update(secret).digest('hex'),
          ...allowedModelsData(body.allowedModels),
          expiresAt: body.expiresAt === null ? null : new Date(body.expiresAt),
          createdAt: at,
        },
        include: keyOwner,
      });
      const after = keyView(row);
      record({ ...targetOf(after), action: 'key.created', before: null, after });
      return after;
    });
  }

  @Operation('patchKey')
  async patch(call: CallOf<'patchKey'>): Promise<AnswerOf<'patchKey'>> {
    const { actor, id, body, version } = call;
    return this.changes.run(call, async (tx, record) => {
      const before = keyView(await requireKey(tx, actor, id));
      requireVersion(version, before);
      await requireKeyShape(tx, actor, body, this.clock.now());
      const row = await tx.apiKey.update({
        where: { id },
        data: {
          ...(body.name === undefined ? {} : { name: body.name }),
          ...(body.status === undefined ? {} : { status: body.status }),
          ...(body.allowedModels === undefined ? {} : allowedModelsData(body.allowedModels)),
          ...(body.expiresAt === undefined
            ? {}
            : { expiresAt: body.expiresAt === null ? null : new Date(body.expiresAt) }),
          version: { increment: 1 },
        },
        include: keyOwner,
      });
      const after = keyView(row);
      record({ ...targetOf(after), action: 'key.updated', before, after });
      return after;
    });
  }

  @Operation('deleteKey')
  async delete(call: CallOf<'deleteKey'>): Promise<void> {
    const { actor, id, version } = call;
    await this.changes.run(call, async (tx, record, at) => {
      const before = keyView(await requireKey(tx, actor, id));
      requireVersion(version, before);
      if (before.status !== 'disabled') {
        throw new WeirError(
          'conflict',
          'Disable the key first: a disabled key can be enabled again, a deleted one cannot.',
          { status: before.status },
        );
      }
      await tx.apiKey.update({
        where: { id },
        data: { status: 'deleted', deletedAt: at, version: { increment: 1 } },
      });
      record({ ...targetOf(before), action: 'key.deleted', before, after: null });
    });
  }

  private async filters(
    actor: Actor,
    query: CallOf<'listKeys'>['query'],
  ): Promise<Prisma.ApiKeyWhereInput[]> {
    const { prisma } = this.database;
    const filters: Prisma.ApiKeyWhereInput[] = [];
    if (query.userId !== undefined) {
      const where = { AND: [{ id: query.userId }, usersInReach(actor)] };
      const user = await prisma.user.findFirst({ where, select: { id: true } });
      if (user === null) throw notFound('user', query.userId);
      filters.push({ userId: query.userId });
    }
    if (query.departmentId !== undefined) {
      const where = { AND: [{ id: query.departmentId }, departmentsInReach(actor)] };
      const department = await prisma.department.findFirst({ where, select: { id: true } });
      if (department === null) throw notFound('department', query.departmentId);
      const tree = await loadDepartmentTree(prisma, actor.enterpriseId);
      filters.push({ user: { departmentId: { in: [...subtreeOf(tree, query.departmentId)] } } });
    }
    if (query.search !== undefined) {
      const contains = { contains: query.search, mode: 'insensitive' } as const;
      filters.push({
        OR: [{ name: contains }, { prefix: contains }, { user: { name: contains } }],
      });
    }
    return filters;
  }
}

function targetOf(view: KeyView) {
  return { targetType: 'key', targetId: view.id, targetName: view.name } as const;
}

async function requireKey(tx: Prisma.TransactionClient, actor: Actor, id: string) {
  const row = await tx.apiKey.findFirst({
    where: { AND: [{ id, status: { not: 'deleted' } }, keysInReach(actor)] },
    include: keyOwner,
  });
  if (row === null) throw notFound('key', id);
  return row;
}

function allowedModelsData(models: string[] | null) {
  return { restrictModels: models !== null, allowedModels: models ?? [] };
}

/** Refuses what could never take effect: unknown models, an expiry that has passed. */
async function requireKeyShape(
  tx: Prisma.TransactionClient,
  actor: Actor,
  key: { allowedModels?: string[] | null | undefined; expiresAt?: string | null | undefined },
  nowMs: number,
): Promise<void> {
  if (typeof key.expiresAt === 'string' && Date.parse(key.expiresAt) <= nowMs) {
    throw fieldFault('expiresAt', 'is in the past', 'Choose a later time, or disable the key.');
  }
  const wanted = [...new Set(key.allowedModels ?? [])];
  if (wanted.length === 0) return;
  const known = await tx.model.findMany({
    where: { enterpriseId: actor.enterpriseId, alias: { in: wanted } },
    select: { alias: true },
  });
  const unknown = wanted.filter((alias) => !known.some((model) => model.alias === alias));
  if (unknown.length > 0) {
    throw fieldFault(
      'allowedModels',
      `there is no model ${unknown.slice(0, 5).join(', ')}`,
      'Name models that exist, or null for all.',
    );
  }
}
