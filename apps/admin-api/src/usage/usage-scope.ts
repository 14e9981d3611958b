import { Inject, Injectable } from '@nestjs/common';
import type { Database } from '@weir/persistence';
import type { Actor } from '../access/actor.js';
import { departmentsInReach, keysInReach, notFound, usersInReach } from '../access/reach.js';
import { fieldFault } from '../control/field-fault.js';
import { DATABASE } from '../tokens.js';

export type UsageFilter = {
  readonly from: string;
  readonly to: string;
  readonly departmentId?: string | undefined;
  readonly userId?: string | undefined;
  readonly keyId?: string | undefined;
  readonly model?: string | undefined;
};

const daysMax = 366 * 5;

/** Confines reports and exports to what the caller may see. Deleted nodes can be asked for: their history stays. */
@Injectable()
export class UsageScope {
  constructor(@Inject(DATABASE) private readonly database: Database) {}

  /**
   * The filter with the caller's reach in it: a manager's covers the own department at most, a member's the own calls.
   *
   * @throws WeirError `not_found` when it names a node out of reach, `validation_failed` for an empty or endless range.
   */
  async confine<Filter extends UsageFilter>(actor: Actor, filter: Filter): Promise<Filter> {
    requireRange(filter);
    const { prisma } = this.database;
    if (filter.departmentId !== undefined) {
      const where = { AND: [{ id: filter.departmentId }, departmentsInReach(actor)] };
      if ((await prisma.department.count({ where })) === 0) {
        throw notFound('department', filter.departmentId);
      }
    }
    if (filter.userId !== undefined) {
      const where = { AND: [{ id: filter.userId }, usersInReach(actor)] };
      if ((await prisma.user.count({ where })) === 0) throw notFound('user', filter.userId);
    }
    if (filter.keyId !== undefined) {
      const where = { AND: [{ id: filter.keyId }, keysInReach(actor)] };
      if ((await prisma.apiKey.count({ where })) === 0) throw notFound('key', filter.keyId);
    }
    const { reach } = actor;
    const isOpen = filter.departmentId === undefined;
    if (reach.kind === 'subtree' && isOpen) return { ...filter, departmentId: reach.topId };
    if (reach.kind === 'self') return { ...filter, userId: reach.userId };
    return filter;
  }
}

function requireRange({ from, to }: UsageFilter): void {
  const days = (Date.parse(to) - Date.parse(from)) / 86_400_000;
  if (days <= 0) {
    throw fieldFault(
      'to',
      'must be after from: it is the first day that is left out',
      'Use a later day.',
    );
  }
  if (days > daysMax) {
    throw fieldFault('to', `a report covers at most ${daysMax} days`, 'Use a shorter range.');
  }
}
