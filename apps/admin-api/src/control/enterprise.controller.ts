import { Controller, Inject } from '@nestjs/common';
import type { EnterpriseSettings } from '@weir/domain';
import type { Database } from '@weir/persistence';
import { requireVersion } from '../http/if-match.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { DATABASE } from '../tokens.js';
import { Changes } from './changes.js';
import { definedFields } from './departments.controller.js';
import { enterpriseView } from './views.js';

@Controller()
export class EnterpriseController {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    private readonly changes: Changes,
  ) {}

  @Operation('getEnterprise')
  async get({ actor }: CallOf<'getEnterprise'>): Promise<AnswerOf<'getEnterprise'>> {
    const row = await this.database.prisma.enterprise.findUniqueOrThrow({
      where: { id: actor.enterpriseId },
    });
    return enterpriseView(row);
  }

  @Operation('patchEnterprise')
  async patch(call: CallOf<'patchEnterprise'>): Promise<AnswerOf<'patchEnterprise'>> {
    const { actor, body, version } = call;
    return this.changes.run(call, async (tx, record) => {
      const where = { id: actor.enterpriseId };
      const before = enterpriseView(await tx.enterprise.findUniqueOrThrow({ where }));
      requireVersion(version, before);
      const row = await tx.enterprise.update({
        where,
        data: {
          ...(body.name === undefined ? {} : { name: body.name }),
          settings: changed(before.settings, body.settings ?? {}),
          version: { increment: 1 },
        },
      });
      const after = enterpriseView(row);
      const target = {
        targetType: 'enterprise',
        targetId: after.id,
        targetName: after.name,
      } as const;
      record({ ...target, action: 'enterprise.updated', before, after });
      return after;
    });
  }
}

/** The settings with what a change names, down to the single fields of the queue. */
function changed(
  before: EnterpriseSettings,
  { queue, ...rest }: NonNullable<CallOf<'patchEnterprise'>['body']['settings']>,
): EnterpriseSettings {
  return {
    ...before,
    ...definedFields(rest),
    queue: { ...before.queue, ...definedFields(queue ?? {}) },
  };
}
