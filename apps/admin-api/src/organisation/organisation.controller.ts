import { Controller, Inject } from '@nestjs/common';
import type { Clock, ScopeLevel } from '@weir/domain';
import type { Database, Prisma } from '@weir/persistence';
import type { Actor } from '../access/actor.js';
import { departmentsInReach, keysInReach, notFound, usersInReach } from '../access/reach.js';
import { statusOf } from '../control/views.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { CLOCK, DATABASE } from '../tokens.js';
import { LiveCounters } from './live-counters.js';
import { engineLimits, limitUses, nodeView, type TreeNode } from './node-views.js';

type LimitRow = Prisma.QuotaLimitGetPayload<object>;
type LimitsByScope = ReadonlyMap<string, readonly LimitRow[]>;

const livingOnly = { status: { not: 'deleted' } } as const;

@Controller()
export class OrganisationController {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly counters: LiveCounters,
  ) {}

  @Operation('getOrganisation')
  async getOrganisation({
    actor,
  }: CallOf<'getOrganisation'>): Promise<AnswerOf<'getOrganisation'>> {
    const enterprise = await this.enterpriseOf(actor);
    const nodes = await this.visibleNodes(actor, enterprise);
    const live = await this.counters.read(enterprise, nodes.map(liveScope));
    return {
      enterprise: {
        id: enterprise.id,
        name: enterprise.name,
        timeZone: enterprise.timeZone,
        currency: enterprise.currency,
      },
      nodes: nodes.map((node) => nodeView(node, live?.get(node.id))),
      live: live !== null,
      at: new Date(this.clock.now()).toISOString(),
    };
  }

  @Operation('getNode')
  async getNode({ actor, id }: CallOf<'getNode'>): Promise<AnswerOf<'getNode'>> {
    const enterprise = await this.enterpriseOf(actor);
    const path = await this.pathTo(actor, enterprise, id);
    const node = path.at(-1);
    if (node === undefined) throw notFound('node', id);
    const live = await this.counters.read(enterprise, path.map(liveScope));
    return {
      ...nodeView(node, live?.get(node.id)),
      alsoLimitedBy: path
        .slice(0, -1)
        .reverse()
        .map((above) => ({
          level: above.level,
          id: above.id,
          name: above.name,
          limits: limitUses(above, live?.get(above.id)),
        })),
    };
  }

  private async enterpriseOf(actor: Actor): Promise<Prisma.EnterpriseGetPayload<object>> {
    return this.database.prisma.enterprise.findUniqueOrThrow({ where: { id: actor.enterpriseId } });
  }

  /** All living nodes in reach: parents before children, siblings by name, departments before users. */
  private async visibleNodes(
    actor: Actor,
    enterprise: Prisma.EnterpriseGetPayload<object>,
  ): Promise<TreeNode[]> {
    const { prisma } = this.database;
    const [departments, users, limits] = await Promise.all([
      prisma.department.findMany({ where: { AND: [departmentsInReach(actor), livingOnly] } }),
      prisma.user.findMany({
        where: { AND: [usersInReach(actor), livingOnly] },
        omit: { passwordHash: true },
      }),
      this.limitsOf(actor.enterpriseId, 'all'),
    ]);
    const visible = new Set(departments.map(({ id }) => id));
    const seesAll = actor.reach.kind === 'enterprise';
    if (seesAll) visible.add(enterprise.id);
    const inOrder: TreeNode[] = [];
    const below = new Map<string | null, TreeNode[]>();
    const put = (node: TreeNode): void => {
      const siblings = below.get(node.parentId) ?? [];
      siblings.push(node);
      below.set(node.parentId, siblings);
    };
    if (seesAll) put(nodeOf('enterprise', enterprise, null, limits));
    for (const row of [...departments].sort(byName)) {
      put(nodeOf('department', row, shown(row.parentId ?? enterprise.id, visible), limits));
    }
    for (const row of [...users].sort(byName)) {
      put(nodeOf('user', row, shown(row.departmentId, visible), limits));
    }
    const open = [...(below.get(null) ?? [])].reverse();
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      inOrder.push(node);
      open.push(...[...(below.get(node.id) ?? [])].reverse());
    }
    return inOrder;
  }

  /** The nodes from the enterprise down to the one asked for; empty when that is out of reach or deleted. */
  private async pathTo(
    actor: Actor,
    enterprise: Prisma.EnterpriseGetPayload<object>,
    id: string,
  ): Promise<TreeNode[]> {
    const { prisma } = this.database;
    const { enterpriseId } = actor;
    if (id === enterpriseId) {
      if (actor.reach.kind !== 'enterprise') return [];
      return [nodeOf('enterprise', enterprise, null, await this.limitsOf(enterpriseId, [id]))];
    }
    const key = await prisma.apiKey.findFirst({
      where: { AND: [{ id }, keysInReach(actor), livingOnly] },
    });
    const user = await prisma.user.findFirst({
      where: {
        AND: [{ id: key?.userId ?? id, ...livingOnly }, usersInReach(actor)],
      },
      omit: { passwordHash: true },
    });
    if (user === null) {
      const where = { AND: [{ id }, departmentsInReach(actor), livingOnly] };
      if ((await prisma.department.count({ where })) === 0) return [];
    }
    const departments = await this.departmentsDownTo(enterpriseId, user?.departmentId ?? id);
    const scopeIds = [
      enterpriseId,
      ...departments.map((row) => row.id),
      ...(user === null ? [] : [user.id]),
      ...(key === null ? [] : [key.id]),
    ];
    const limits = await this.limitsOf(enterpriseId, scopeIds);
    return [
      nodeOf('enterprise', enterprise, null, limits),
      ...departments.map((row) => nodeOf('department', row, row.parentId ?? enterpriseId, limits)),
      ...(user === null ? [] : [nodeOf('user', user, user.departmentId, limits)]),
      ...(key === null ? [] : [nodeOf('key', key, key.userId, limits)]),
    ];
  }

  private async departmentsDownTo(
    enterpriseId: string,
    id: string,
  ): Promise<Prisma.DepartmentGetPayload<object>[]> {
    const rows = await this.database.prisma.department.findMany({ where: { enterpriseId } });
    const byId = new Map(rows.map((row) => [row.id, row]));
    const path: Prisma.DepartmentGetPayload<object>[] = [];
    let row = byId.get(id);
    while (row !== undefined && path.length <= rows.length) {
      path.unshift(row);
      row = row.parentId === null ? undefined : byId.get(row.parentId);
    }
    return path;
  }

  private async limitsOf(
    enterpriseId: string,
    scopeIds: readonly string[] | 'all',
  ): Promise<LimitsByScope> {
    const rows = await this.database.prisma.quotaLimit.findMany({
      where: { enterpriseId, ...(scopeIds === 'all' ? {} : { scopeId: { in: [...scopeIds] } }) },
      orderBy: { id: 'asc' },
    });
    const byScope = new Map<string, LimitRow[]>();
    for (const row of rows) {
      const list = byScope.get(row.scopeId) ?? [];
      list.push(row);
      byScope.set(row.scopeId, list);
    }
    return byScope;
  }
}

function liveScope(node: TreeNode) {
  return { level: node.level, id: node.id, name: node.name, limits: engineLimits(node) };
}

function nodeOf(
  level: ScopeLevel,
  row: { id: string; name: string; version: number; status?: string },
  parentId: string | null,
  limits: LimitsByScope,
): TreeNode {
  return {
    id: row.id,
    level,
    parentId,
    name: row.name,
    status: statusOf(row.status ?? 'active'),
    version: row.version,
    limits: limits.get(row.id) ?? [],
  };
}

/** A parent that the caller does not see is no parent to them: their top has none. */
function shown(parentId: string, visible: ReadonlySet<string>): string | null {
  return visible.has(parentId) ? parentId : null;
}

const collator = new Intl.Collator('en', { numeric: true });
function byName(left: { name: string; id: string }, right: { name: string; id: string }): number {
  return collator.compare(left.name, right.name) || (left.id < right.id ? -1 : 1);
}
