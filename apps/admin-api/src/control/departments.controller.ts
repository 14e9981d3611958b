import { Controller, Inject } from '@nestjs/common';
import { maxDepartmentDepth, newId, WeirError } from '@weir/domain';
import type { Database, Prisma } from '@weir/persistence';
import type { Actor } from '../access/actor.js';
import {
  departmentsInReach,
  loadDepartmentTree,
  notFound,
  subtreeOf,
  type DepartmentTree,
} from '../access/reach.js';
import { requireVersion } from '../http/if-match.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { DATABASE } from '../tokens.js';
import { Changes } from './changes.js';
import { fieldFault } from './field-fault.js';
import { departmentView } from './views.js';

@Controller()
export class DepartmentsController {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    private readonly changes: Changes,
  ) {}

  @Operation('getDepartment')
  async get({ actor, id }: CallOf<'getDepartment'>): Promise<AnswerOf<'getDepartment'>> {
    const row = await this.database.prisma.department.findFirst({
      where: { AND: [{ id }, departmentsInReach(actor)] },
    });
    if (row === null) throw notFound('department', id);
    return departmentView(row);
  }

  @Operation('createDepartment')
  async create(call: CallOf<'createDepartment'>): Promise<AnswerOf<'createDepartment'>> {
    const { actor, body } = call;
    return this.changes.run(call, async (tx, record, at) => {
      await requireParent(tx, actor, body.parentId);
      const tree = await loadDepartmentTree(tx, actor.enterpriseId);
      requireDepth(depthOf(tree, body.parentId) + 1);
      const row = await tx.department.create({
        data: { id: newId(), enterpriseId: actor.enterpriseId, ...body, createdAt: at },
      });
      const after = departmentView(row);
      record({ ...targetOf(after), action: 'department.created', before: null, after });
      return after;
    });
  }

  @Operation('patchDepartment')
  async patch(call: CallOf<'patchDepartment'>): Promise<AnswerOf<'patchDepartment'>> {
    const { actor, id, body, version } = call;
    return this.changes.run(call, async (tx, record) => {
      const before = departmentView(await requireDepartment(tx, actor, id));
      requireVersion(version, before);
      const moves = body.parentId !== undefined && body.parentId !== before.parentId;
      const switches = body.status !== undefined && body.status !== before.status;
      if (moves || switches) refuseOwnTop(actor, id);
      if (moves && body.parentId !== undefined) {
        await requireParent(tx, actor, body.parentId);
        await requireMove(tx, actor, id, body.parentId);
      }
      const row = await tx.department.update({
        where: { id },
        data: { ...definedFields(body), version: { increment: 1 } },
      });
      const after = departmentView(row);
      record({
        ...targetOf(after),
        action: moves ? 'department.moved' : 'department.updated',
        before,
        after,
      });
      return after;
    });
  }

  @Operation('deleteDepartment')
  async delete(call: CallOf<'deleteDepartment'>): Promise<void> {
    const { actor, id, version } = call;
    await this.changes.run(call, async (tx, record, at) => {
      const before = departmentView(await requireDepartment(tx, actor, id));
      requireVersion(version, before);
      refuseOwnTop(actor, id);
      const living = { status: { not: 'deleted' } };
      const departments = await tx.department.count({ where: { parentId: id, ...living } });
      const users = await tx.user.count({ where: { departmentId: id, ...living } });
      if (departments + users > 0) {
        throw new WeirError(
          'conflict',
          `Only an empty department can be deleted: it has ${departments} departments and ${users} users. Move or delete them first.`,
          { departments, users },
        );
      }
      await tx.department.update({
        where: { id },
        data: { status: 'deleted', deletedAt: at, version: { increment: 1 } },
      });
      record({ ...targetOf(before), action: 'department.deleted', before, after: null });
    });
  }
}

function targetOf(view: { id: string; name: string }) {
  return { targetType: 'department', targetId: view.id, targetName: view.name } as const;
}

/** PATCH: what is absent stays as it is. */
export function definedFields<Fields extends object>(
  fields: Fields,
): {
  [Key in keyof Fields]?: Exclude<Fields[Key], undefined>;
} {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as never;
}

/** A living department that the actor may touch. */
export async function requireDepartment(
  tx: Prisma.TransactionClient,
  actor: Actor,
  id: string,
): Promise<Prisma.DepartmentGetPayload<object>> {
  const row = await tx.department.findFirst({
    where: { AND: [{ id, status: { not: 'deleted' } }, departmentsInReach(actor)] },
  });
  if (row === null) throw notFound('department', id);
  return row;
}

async function requireParent(
  tx: Prisma.TransactionClient,
  actor: Actor,
  parentId: string | null,
): Promise<void> {
  if (parentId !== null) {
    await requireDepartment(tx, actor, parentId);
    return;
  }
  if (actor.reach.kind !== 'enterprise') {
    throw new WeirError(
      'forbidden',
      'A department manager may add and move departments within the own department only.',
    );
  }
}

/** What is above a manager's own department is not the manager's to decide. */
function refuseOwnTop(actor: Actor, id: string): void {
  if (actor.reach.kind === 'subtree' && actor.reach.topId === id) {
    throw new WeirError(
      'forbidden',
      'A department manager may not move, disable, enable or delete the own department.',
    );
  }
}

/** 0 for the enterprise itself, 1 for a department directly under it. */
function depthOf(tree: DepartmentTree, id: string | null): number {
  let depth = 0;
  for (let at = id; at !== null && depth <= tree.size; at = tree.get(at)?.parentId ?? null)
    depth += 1;
  return depth;
}

function requireDepth(depth: number): void {
  if (depth <= maxDepartmentDepth) return;
  throw fieldFault(
    'parentId',
    `departments nest at most ${maxDepartmentDepth} deep, this would be ${depth}`,
    'Choose a parent nearer to the top.',
  );
}

async function requireMove(
  tx: Prisma.TransactionClient,
  actor: Actor,
  id: string,
  parentId: string | null,
): Promise<void> {
  const tree = await loadDepartmentTree(tx, actor.enterpriseId);
  const moved = subtreeOf(tree, id);
  if (parentId !== null && moved.has(parentId)) {
    throw fieldFault(
      'parentId',
      'a department cannot be moved into itself or below itself',
      'Choose a parent outside of the department.',
    );
  }
  const ownDepth = depthOf(tree, id);
  const height = Math.max(...[...moved].map((each) => depthOf(tree, each) - ownDepth));
  requireDepth(depthOf(tree, parentId) + 1 + height);
}
