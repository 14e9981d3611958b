import { may, WeirError, type Role } from '@weir/domain';
import type { ControlDatabase, Prisma } from '@weir/persistence';
import type { Actor, Reach } from './actor.js';

/** Departments by id with their parents; a whole enterprise's tree. */
export type DepartmentTree = ReadonlyMap<string, { readonly parentId: string | null }>;

/** All departments of the enterprise, deleted ones too. */
export async function loadDepartmentTree(
  db: ControlDatabase,
  enterpriseId: string,
): Promise<DepartmentTree> {
  const rows = await db.department.findMany({
    where: { enterpriseId },
    select: { id: true, parentId: true },
  });
  return new Map(rows.map((row) => [row.id, { parentId: row.parentId }]));
}

/** The department and everything below it. Bounded by the number of departments, whatever the rows say. */
export function subtreeOf(tree: DepartmentTree, topId: string): Set<string> {
  const children = new Map<string, string[]>();
  for (const [id, { parentId }] of tree) {
    if (parentId === null) continue;
    const siblings = children.get(parentId) ?? [];
    siblings.push(id);
    children.set(parentId, siblings);
  }
  const found = new Set<string>();
  const open = tree.has(topId) ? [topId] : [];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    open.push(...(children.get(id) ?? []));
  }
  return found;
}

/** What a user with this role and department may see and touch. */
export async function reachOf(
  db: ControlDatabase,
  user: { id: string; enterpriseId: string; departmentId: string; role: Role },
): Promise<Reach> {
  switch (user.role) {
    case 'owner':
    case 'admin':
    case 'finance':
      return { kind: 'enterprise' };
    case 'manager': {
      const tree = await loadDepartmentTree(db, user.enterpriseId);
      return {
        kind: 'subtree',
        topId: user.departmentId,
        departmentIds: subtreeOf(tree, user.departmentId),
      };
    }
    case 'member':
      return { kind: 'self', userId: user.id };
  }
}

/** Rows out of reach are not found: nobody learns which ids exist elsewhere. */
export function notFound(what: string, id: string): WeirError {
  return new WeirError('not_found', `There is no ${what} with this id.`, { [idField(what)]: id });
}

function idField(what: string): string {
  return `${what.replaceAll(' ', '_')}_id`;
}

const nobody = { id: { in: [] as string[] } };

/** Conditions that confine a query to the actor's enterprise and reach. */
export function departmentsInReach(actor: Actor): Prisma.DepartmentWhereInput {
  const { reach, enterpriseId } = actor;
  if (reach.kind === 'enterprise') return { enterpriseId };
  if (reach.kind === 'self') return nobody;
  return { enterpriseId, id: { in: [...reach.departmentIds] } };
}

export function usersInReach(actor: Actor): Prisma.UserWhereInput {
  const { reach, enterpriseId } = actor;
  if (reach.kind === 'enterprise') return { enterpriseId };
  if (reach.kind === 'self') return { enterpriseId, id: reach.userId };
  return { enterpriseId, departmentId: { in: [...reach.departmentIds] } };
}

export function keysInReach(actor: Actor): Prisma.ApiKeyWhereInput {
  return { enterpriseId: actor.enterpriseId, user: usersInReach(actor) };
}

/** Whether the actor may hand out roles and touch the sign-in of those who hold one. */
export function mayManageRoles(actor: Actor): boolean {
  return may(actor.role, 'members.write');
}
