import { Controller, Inject } from '@nestjs/common';
import { Prisma, type Database } from '@weir/persistence';
import { cursorFault } from './pages.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { DATABASE } from '../tokens.js';

@Controller()
export class AuditController {
  constructor(@Inject(DATABASE) private readonly database: Database) {}

  @Operation('listAudit')
  async list({ actor, query }: CallOf<'listAudit'>): Promise<AnswerOf<'listAudit'>> {
    const conditions = [Prisma.sql`enterprise_id = ${actor.enterpriseId}::uuid`];
    if (query.cursor !== undefined) {
      conditions.push(Prisma.sql`sequence < ${sequenceOf(query.cursor)}`);
    }
    if (query.targetId !== undefined) conditions.push(Prisma.sql`target_id = ${query.targetId}`);
    if (query.search !== undefined) {
      const pattern = `%${query.search.replaceAll(/[\\%_]/g, '\\$&')}%`;
      conditions.push(Prisma.sql`(
        action ILIKE ${pattern} OR target_name ILIKE ${pattern} OR actor_name ILIKE ${pattern}
        OR before::text ILIKE ${pattern} OR after::text ILIKE ${pattern}
      )`);
    }
    const { prisma } = this.database;
    const found = await prisma.$queryRaw<{ id: string }[]>`
      SELECT id FROM audit_entry
      WHERE ${Prisma.join(conditions, ' AND ')}
      ORDER BY sequence DESC
      LIMIT ${query.limit + 1}`;
    const rows = await prisma.auditEntry.findMany({
      where: { id: { in: found.map(({ id }) => id) } },
      orderBy: { sequence: 'desc' },
    });
    const shown = rows.slice(0, query.limit);
    return {
      items: shown.map((row) => ({
        id: row.id,
        at: row.at.toISOString(),
        actorName: row.actorName,
        requestId: row.requestId,
        action: row.action,
        targetType: row.targetType,
        targetId: row.targetId,
        targetName: row.targetName,
        before: row.before,
        after: row.after,
      })),
      nextCursor: rows.length > query.limit ? (shown.at(-1)?.sequence.toString() ?? null) : null,
    };
  }
}

function sequenceOf(cursor: string): bigint {
  if (!/^\d{1,18}$/.test(cursor)) throw cursorFault();
  return BigInt(cursor);
}
