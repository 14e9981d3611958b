import { Controller, Inject } from '@nestjs/common';
import {
  newId,
  parseDecimal,
  picoPerTokenFromPerMillion,
  WeirError,
  type TokenKind,
} from '@weir/domain';
import type { ControlDatabase, Database, Prisma } from '@weir/persistence';
import type { Actor } from '../access/actor.js';
import { notFound } from '../access/reach.js';
import { Changes } from '../control/changes.js';
import { definedFields } from '../control/departments.controller.js';
import { fieldFault } from '../control/field-fault.js';
import { isUniqueViolation } from '../control/users.controller.js';
import { modelParts, modelView, type ModelView } from '../control/views.js';
import { requireVersion } from '../http/if-match.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { DATABASE } from '../tokens.js';

type PriceBody = CallOf<'createPrice'>['body'];
type RouteBody = CallOf<'createModel'>['body']['routes'];

/** What a signed 64-bit column holds; also the longest text that the engine's documents take. */
const picoMax = 10n ** 18n - 1n;

@Controller()
export class ModelsController {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    private readonly changes: Changes,
  ) {}

  @Operation('listModels')
  async list({ actor }: CallOf<'listModels'>): Promise<AnswerOf<'listModels'>> {
    const rows = await this.database.prisma.model.findMany({
      where: { enterpriseId: actor.enterpriseId },
      orderBy: { alias: 'asc' },
      include: modelParts,
    });
    return { items: rows.map(modelView), nextCursor: null };
  }

  @Operation('getModel')
  async get({ actor, id }: CallOf<'getModel'>): Promise<AnswerOf<'getModel'>> {
    return requireModel(this.database.prisma, actor, id);
  }

  @Operation('createModel')
  async create(call: CallOf<'createModel'>): Promise<AnswerOf<'createModel'>> {
    const { actor, body } = call;
    const { routes, price, ...fields } = body;
    requireFittingSizes(body);
    requireNeededPrices(body.kind, price, 'price.');
    return this.changes.run(call, async (tx, record, at) => {
      await requireRoutes(tx, actor, body.dialect, routes);
      const id = newId();
      await tx.model
        .create({
          data: { ...fields, id, enterpriseId: actor.enterpriseId, createdAt: at },
        })
        .catch((error: unknown) => {
          if (!isUniqueViolation(error)) throw error;
          throw new WeirError('conflict', `There is a model ${body.alias} already.`, {
            field: 'alias',
          });
        });
      await tx.modelRoute.createMany({ data: routeRows(id, routes) });
      await addPrice(tx, actor, id, price, at, 'price.');
      const after = await requireModel(tx, actor, id);
      record({ ...targetOf(after), action: 'model.created', before: null, after });
      return after;
    });
  }

  @Operation('patchModel')
  async patch(call: CallOf<'patchModel'>): Promise<AnswerOf<'patchModel'>> {
    const { actor, id, body, version } = call;
    const { routes, ...fields } = body;
    return this.changes.run(call, async (tx, record) => {
      const before = await requireModel(tx, actor, id);
      requireVersion(version, before);
      requireFittingSizes({ ...before, ...definedFields(fields) });
      if (routes !== undefined) {
        await requireRoutes(tx, actor, before.dialect, routes);
        await tx.modelRoute.deleteMany({ where: { modelId: id } });
        await tx.modelRoute.createMany({ data: routeRows(id, routes) });
      }
      await tx.model.update({
        where: { id },
        data: { ...definedFields(fields), version: { increment: 1 } },
      });
      const after = await requireModel(tx, actor, id);
      record({ ...targetOf(after), action: 'model.updated', before, after });
      return after;
    });
  }

  @Operation('createPrice')
  async createPrice(call: CallOf<'createPrice'>): Promise<AnswerOf<'createPrice'>> {
    const { actor, id, body } = call;
    return this.changes.run(call, async (tx, record, at) => {
      const before = await requireModel(tx, actor, id);
      requireNeededPrices(before.kind, body, '');
      await addPrice(tx, actor, id, body, at, '');
      await tx.model.update({ where: { id }, data: { version: { increment: 1 } } });
      const after = await requireModel(tx, actor, id);
      record({ ...targetOf(after), action: 'model.priced', before, after });
      return after;
    });
  }
}

function targetOf(view: ModelView) {
  return { targetType: 'model', targetId: view.id, targetName: view.alias } as const;
}

async function requireModel(db: ControlDatabase, actor: Actor, id: string): Promise<ModelView> {
  const row = await db.model.findFirst({
    where: { id, enterpriseId: actor.enterpriseId },
    include: modelParts,
  });
  if (row === null) throw notFound('model', id);
  return modelView(row);
}

function requireFittingSizes(model: {
  contextWindowTokens: number;
  maxOutputTokens: number;
}): void {
  if (model.maxOutputTokens <= model.contextWindowTokens) return;
  throw fieldFault(
    'maxOutputTokens',
    'is larger than the context window',
    `Use at most ${model.contextWindowTokens}.`,
  );
}

/** A call may always use these kinds, so without their price every call would be refused. Free is an explicit "0". */
function requireNeededPrices(
  kind: ModelView['kind'],
  price: Pick<PriceBody, 'perMillionTokens'>,
  path: string,
): void {
  const needed: TokenKind[] = kind === 'chat' ? ['input', 'output'] : ['input'];
  for (const each of needed) {
    if (price.perMillionTokens[each] !== undefined) continue;
    throw fieldFault(
      `${path}perMillionTokens.${each}`,
      'is missing: every call would be refused for want of a price',
      'Set a price per million tokens, "0" if it is free.',
    );
  }
}

async function requireRoutes(
  tx: Prisma.TransactionClient,
  actor: Actor,
  dialect: ModelView['dialect'],
  routes: RouteBody,
): Promise<void> {
  const upstreams = await tx.upstream.findMany({
    where: {
      enterpriseId: actor.enterpriseId,
      id: { in: routes.map((route) => route.upstreamId) },
    },
    select: { id: true, name: true, dialect: true },
  });
  for (const [index, route] of routes.entries()) {
    const upstream = upstreams.find(({ id }) => id === route.upstreamId);
    if (upstream === undefined) throw notFound('upstream', route.upstreamId);
    if (upstream.dialect !== dialect) {
      throw fieldFault(
        `routes.${index}.upstreamId`,
        `${upstream.name} speaks ${upstream.dialect}, the model ${dialect}; nothing is translated between them`,
        'Choose a provider of the same dialect.',
      );
    }
  }
  if (routes.every((route) => route.weight === 0)) {
    throw fieldFault(
      'routes',
      'all weights are 0: no call would go anywhere',
      'Give one a weight.',
    );
  }
}

function routeRows(modelId: string, routes: RouteBody): Prisma.ModelRouteCreateManyInput[] {
  return routes.map((route) => ({ id: newId(), modelId, ...route }));
}

/**
 * Adds a price version from `from` (null: now) on, closes the one that is in force then, and ends where the next
 * scheduled one begins. The past is never repriced.
 */
async function addPrice(
  tx: Prisma.TransactionClient,
  actor: Actor,
  modelId: string,
  price: PriceBody,
  at: Date,
  path: string,
): Promise<void> {
  const from = price.from === null ? at : new Date(price.from);
  if (from < at) {
    throw fieldFault(
      `${path}from`,
      'is in the past: history is not repriced',
      'Leave it out for now, or choose a later time.',
    );
  }
  const same = await tx.modelPriceVersion.findFirst({ where: { modelId, validFrom: from } });
  if (same !== null) {
    throw new WeirError('conflict', 'There is a price version from that very instant already.', {
      from: from.toISOString(),
    });
  }
  const next = await tx.modelPriceVersion.findFirst({
    where: { modelId, validFrom: { gt: from } },
    orderBy: { validFrom: 'asc' },
  });
  await tx.modelPriceVersion.updateMany({
    where: {
      modelId,
      validFrom: { lt: from },
      OR: [{ validTo: null }, { validTo: { gt: from } }],
    },
    data: { validTo: from },
  });
  const { currency } = await tx.enterprise.findUniqueOrThrow({
    where: { id: actor.enterpriseId },
    select: { currency: true },
  });
  await tx.modelPriceVersion.create({
    data: {
      id: newId(),
      modelId,
      currency,
      validFrom: from,
      validTo: next?.validFrom ?? null,
      picoPerToken: Object.fromEntries(
        Object.entries(price.perMillionTokens).map(([kind, text]) => [
          kind,
          picoPerTokenFromPerMillion(text).toString(),
        ]),
      ),
      picoPerRequest: picoPerRequestOf(price.perRequest, path),
      createdAt: at,
    },
  });
}

function picoPerRequestOf(text: string, path: string): bigint {
  const pico = parseDecimal(text, 12);
  if (pico <= picoMax) return pico;
  throw fieldFault(`${path}perRequest`, 'is too large', 'Use less than 1000000.');
}
