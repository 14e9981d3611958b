import { Controller, Inject } from '@nestjs/common';
import { newId, WeirError } from '@weir/domain';
import { Prisma, type AuditRecord, type Database } from '@weir/persistence';
import type { Actor } from '../access/actor.js';
import {
  departmentsInReach,
  loadDepartmentTree,
  mayManageRoles,
  notFound,
  subtreeOf,
  usersInReach,
} from '../access/reach.js';
import { hashPassword } from '../auth/passwords.js';
import { endSessionsOf } from '../auth/sessions.js';
import { requireVersion } from '../http/if-match.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { DATABASE } from '../tokens.js';
import { Changes } from './changes.js';
import { definedFields, requireDepartment } from './departments.controller.js';
import { fieldFault } from './field-fault.js';
import { beforeCursor, pageOf } from './pages.js';
import { keyOwner, keyView, userView, type UserView } from './views.js';

const livingOnly = { status: { not: 'deleted' } } as const;
const withoutHash = { passwordHash: true } as const;
/** What the audit log shows of a password. */
const masked = '***';

@Controller()
export class UsersController {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    private readonly changes: Changes,
  ) {}

  @Operation('listUsers')
  async list({ actor, query }: CallOf<'listUsers'>): Promise<AnswerOf<'listUsers'>> {
    const { prisma } = this.database;
    const departmentIds =
      query.departmentId === undefined
        ? undefined
        : await this.departmentWithAllBelow(actor, query.departmentId);
    const rows = await prisma.user.findMany({
      where: {
        AND: [
          usersInReach(actor),
          livingOnly,
          beforeCursor(query.cursor),
          departmentIds === undefined ? {} : { departmentId: { in: departmentIds } },
          query.search === undefined
            ? {}
            : {
                OR: [
                  { name: { contains: query.search, mode: 'insensitive' } },
                  { email: { contains: query.search, mode: 'insensitive' } },
                ],
              },
        ],
      },
      orderBy: { id: 'desc' },
      take: query.limit + 1,
      omit: withoutHash,
    });
    return pageOf(rows, query.limit, userView);
  }

  @Operation('getUser')
  async get({ actor, id }: CallOf<'getUser'>): Promise<AnswerOf<'getUser'>> {
    const row = await this.database.prisma.user.findFirst({
      where: { AND: [{ id }, usersInReach(actor)] },
      omit: withoutHash,
    });
    if (row === null) throw notFound('user', id);
    return userView(row);
  }

  @Operation('createUser')
  async create(call: CallOf<'createUser'>): Promise<AnswerOf<'createUser'>> {
    const { actor, body } = call;
    const { password, ...fields } = body;
    requireLoginShape({
      kind: body.kind,
      email: body.email,
      role: body.role,
      hasPassword: password !== null,
    });
    if (body.role !== 'member' && !mayManageRoles(actor)) throw rolesAreTheOwners();
    // Slow on purpose, hence outside of the transaction and its lock.
    const passwordHash = password === null ? null : await hashPassword(password);
    return this.changes.run(call, async (tx, record, at) => {
      await requireDepartment(tx, actor, body.departmentId);
      const row = await uniqueEmail(
        tx.user.create({
          data: {
            ...fields,
            id: newId(),
            email: body.email?.toLowerCase() ?? null,
            enterpriseId: actor.enterpriseId,
            passwordHash,
            createdAt: at,
          },
          omit: withoutHash,
        }),
      );
      const after = userView(row);
      record({
        ...targetOf(after),
        action: 'user.created',
        before: null,
        after: withPassword(after, password !== null),
      });
      return after;
    });
  }

  @Operation('patchUser')
  async patch(call: CallOf<'patchUser'>): Promise<AnswerOf<'patchUser'>> {
    const { actor, id, body, version } = call;
    const { password, ...fields } = body;
    const passwordHash = password === undefined ? undefined : await hashPassword(password);
    return this.changes.run(call, async (tx, record) => {
      const { before, hasPassword } = await requireUser(tx, actor, id);
      requireVersion(version, before);
      requireMayChange(actor, before, body);
      if (body.departmentId !== undefined && body.departmentId !== before.departmentId) {
        await requireDepartment(tx, actor, body.departmentId);
      }
      requireLoginShape({
        kind: before.kind,
        email: body.email === undefined ? before.email : body.email,
        role: body.role ?? before.role,
        hasPassword: password !== undefined || (hasPassword && body.email !== null),
      });
      const losesOwner =
        before.role === 'owner' &&
        ((body.role ?? 'owner') !== 'owner' ||
          (body.status ?? 'active') !== 'active' ||
          body.email === null);
      if (losesOwner) await requireAnotherOwner(tx, before);
      const row = await uniqueEmail(
        tx.user.update({
          where: { id },
          data: {
            ...definedFields(fields),
            ...(typeof body.email === 'string' ? { email: body.email.toLowerCase() } : {}),
            // Without an e-mail nobody signs in; a later one must not bring an old password back.
            ...(body.email === null ? { passwordHash: null } : {}),
            ...(passwordHash === undefined
              ? {}
              : { passwordHash, failedSignIns: 0, lockedUntil: null }),
            version: { increment: 1 },
          },
          omit: withoutHash,
        }),
      );
      const after = userView(row);
      const endsSessions =
        password !== undefined ||
        body.email === null ||
        after.role !== before.role ||
        after.status !== 'active';
      if (endsSessions) await endSessionsOf(tx, id);
      record({
        ...targetOf(after),
        action: after.departmentId === before.departmentId ? 'user.updated' : 'user.moved',
        before,
        after: withPassword(after, password !== undefined),
      });
      return after;
    });
  }

  @Operation('deleteUser')
  async delete(call: CallOf<'deleteUser'>): Promise<void> {
    const { actor, id, version } = call;
    await this.changes.run(call, async (tx, record, at) => {
      const { before } = await requireUser(tx, actor, id);
      requireVersion(version, before);
      requireMayChange(actor, before, { status: 'disabled' });
      if (before.id === actor.userId) {
        throw new WeirError('conflict', 'Nobody can delete the own account.');
      }
      if (before.role === 'owner') await requireAnotherOwner(tx, before);
      const keys = await tx.apiKey.findMany({
        where: { userId: id, ...livingOnly },
        orderBy: { id: 'asc' },
        include: keyOwner,
      });
      const gone = { status: 'deleted', deletedAt: at, version: { increment: 1 } };
      await tx.apiKey.updateMany({ where: { userId: id, ...livingOnly }, data: gone });
      // The address is free again for the same person's next account; the name stays for history.
      await tx.user.update({
        where: { id },
        data: { ...gone, email: null, passwordHash: null },
        omit: withoutHash,
      });
      await endSessionsOf(tx, id);
      for (const key of keys) {
        const target = { targetType: 'key', targetId: key.id, targetName: key.name } as const;
        record({ ...target, action: 'key.deleted', before: keyView(key), after: null });
      }
      record({ ...targetOf(before), action: 'user.deleted', before, after: null });
    });
  }

  /** @throws WeirError `not_found` when the department is out of the actor's reach. */
  private async departmentWithAllBelow(actor: Actor, departmentId: string): Promise<string[]> {
    const row = await this.database.prisma.department.findFirst({
      where: { AND: [{ id: departmentId }, departmentsInReach(actor)] },
      select: { id: true },
    });
    if (row === null) throw notFound('department', departmentId);
    const tree = await loadDepartmentTree(this.database.prisma, actor.enterpriseId);
    return [...subtreeOf(tree, departmentId)];
  }
}

function targetOf(view: UserView): Pick<AuditRecord, 'targetType' | 'targetId' | 'targetName'> {
  return { targetType: 'user', targetId: view.id, targetName: view.name };
}

function withPassword(view: UserView, isSet: boolean): UserView & { password?: string } {
  return isSet ? { ...view, password: masked } : view;
}

/** A living user that the actor may touch. */
export async function requireUser(
  tx: Prisma.TransactionClient,
  actor: Actor,
  id: string,
): Promise<{ before: UserView; hasPassword: boolean }> {
  const row = await tx.user.findFirst({
    where: { AND: [{ id, ...livingOnly }, usersInReach(actor)] },
  });
  if (row === null) throw notFound('user', id);
  return { before: userView(row), hasPassword: row.passwordHash !== null };
}

function rolesAreTheOwners(): WeirError {
  return new WeirError(
    'forbidden',
    'Only the owner gives roles, and changes the sign-in, department or status of those who hold one.',
    { permission: 'members.write' },
  );
}

/**
 * Whoever sets another's password signs in as them: so the sign-in of an owner, admin, finance user or manager is the
 * owner's to change, as are their department (it is what a manager manages) and status. All may set their own password.
 */
function requireMayChange(
  actor: Actor,
  before: UserView,
  body: { [field in 'departmentId' | 'email' | 'role' | 'password' | 'status']?: unknown },
): void {
  if (mayManageRoles(actor)) return;
  if (body.role !== undefined && body.role !== before.role) throw rolesAreTheOwners();
  if (before.role === 'member') return;
  const isOwnPassword = before.id === actor.userId;
  const touched =
    (body.departmentId !== undefined && body.departmentId !== before.departmentId) ||
    (body.email !== undefined && body.email !== before.email) ||
    (body.status !== undefined && body.status !== before.status) ||
    (body.password !== undefined && !isOwnPassword);
  if (touched) throw rolesAreTheOwners();
}

/** Refuses what could never take effect. */
function requireLoginShape(user: {
  kind: 'person' | 'service';
  email: string | null;
  role: string;
  hasPassword: boolean;
}): void {
  if (user.kind === 'service') {
    if (user.hasPassword) {
      throw fieldFault('password', 'a service account does not sign in', 'Leave the password out.');
    }
    if (user.role !== 'member') {
      throw fieldFault('role', 'a service account does not sign in', 'Use the role member.');
    }
  }
  if (user.hasPassword && user.email === null) {
    throw fieldFault('email', 'who signs in needs an e-mail', 'Set an e-mail, or no password.');
  }
}

async function requireAnotherOwner(tx: Prisma.TransactionClient, owner: UserView): Promise<void> {
  const { enterpriseId } = await tx.user.findUniqueOrThrow({
    where: { id: owner.id },
    select: { enterpriseId: true },
  });
  const others = await tx.user.count({
    where: {
      enterpriseId,
      role: 'owner',
      status: 'active',
      passwordHash: { not: null },
      id: { not: owner.id },
    },
  });
  if (others === 0) {
    throw new WeirError(
      'conflict',
      'This is the last owner who can sign in. Make someone else an owner first.',
    );
  }
}

async function uniqueEmail<Result>(write: Promise<Result>): Promise<Result> {
  try {
    return await write;
  } catch (error) {
    if (isUniqueViolation(error)) {
      throw new WeirError('conflict', 'A user with this e-mail exists already.', {
        field: 'email',
      });
    }
    throw error;
  }
}

export function isUniqueViolation(error: unknown): boolean {
  return error instanceof Prisma.PrismaClientKnownRequestError && error.code === 'P2002';
}
