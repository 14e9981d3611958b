import { Inject, Injectable, type INestApplicationContext } from '@nestjs/common';
import {
  defaultEnterpriseSettings,
  isTimeZone,
  newId,
  WeirError,
  type Clock,
  type EnterpriseSettings,
} from '@weir/domain';
import { appendAudit, type Database } from '@weir/persistence';
import type { Actor } from '../access/actor.js';
import { callAs } from './call-as.js';
import { CLOCK, DATABASE } from '../tokens.js';
import { DepartmentsController } from './departments.controller.js';
import { fieldFault } from './field-fault.js';
import { PolicyPublication } from './policy-publication.js';
import { UsersController } from './users.controller.js';
import { enterpriseView } from './views.js';

/** Makes a new enterprise; the rest of it is made through the same operations that the console uses. */
@Injectable()
export class EnterpriseSetup {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly publication: PolicyPublication,
  ) {}

  /** The installation itself, acting within an enterprise while that has no users yet. */
  actorFor(enterpriseId: string): Actor {
    return {
      userId: null,
      name: 'Installation',
      role: 'owner',
      enterpriseId,
      reach: { kind: 'enterprise' },
    };
  }

  /** @throws WeirError `validation_failed` for a time zone or currency that nobody could book in. */
  async createEnterprise(enterprise: {
    readonly name: string;
    /** IANA name, such as `Asia/Shanghai`; months turn there. */
    readonly timeZone: string;
    /** ISO 4217. */
    readonly currency: string;
    readonly settings?: Partial<EnterpriseSettings>;
    readonly requestId: string;
  }): Promise<Actor> {
    if (!isTimeZone(enterprise.timeZone)) {
      throw fieldFault('timeZone', 'is no time zone', 'Use an IANA name such as Europe/Berlin.');
    }
    if (!/^[A-Z]{3}$/.test(enterprise.currency)) {
      throw fieldFault('currency', 'is no currency', 'Use an ISO 4217 code such as USD.');
    }
    if (enterprise.name.trim() === '') throw new WeirError('invalid_request', 'A name is needed.');
    const id = newId();
    const at = new Date(this.clock.now());
    const actor = this.actorFor(id);
    await this.database.prisma.$transaction(async (tx) => {
      const row = await tx.enterprise.create({
        data: {
          id,
          name: enterprise.name.trim(),
          timeZone: enterprise.timeZone,
          currency: enterprise.currency,
          settings: { ...defaultEnterpriseSettings, ...enterprise.settings },
          createdAt: at,
        },
      });
      const after = enterpriseView(row);
      await appendAudit(tx, {
        enterpriseId: id,
        actor: { id: null, name: actor.name },
        requestId: enterprise.requestId,
        at,
        records: [
          {
            action: 'enterprise.created',
            targetType: 'enterprise',
            targetId: id,
            targetName: after.name,
            before: null,
            after,
          },
        ],
      });
    });
    await this.publication.publishNow(id);
    return actor;
  }
}

/** An enterprise with one department and an owner in it: what an installation begins with. */
export async function createEnterpriseWithOwner(
  context: INestApplicationContext,
  made: {
    readonly enterprise: {
      readonly name: string;
      readonly timeZone: string;
      readonly currency: string;
    };
    readonly owner: {
      readonly name: string;
      readonly email: string;
      readonly password: string;
      readonly department: string;
    };
  },
): Promise<{ enterpriseId: string; departmentId: string; ownerId: string }> {
  const requestId = 'installation';
  const { department: departmentName, ...owner } = made.owner;
  // Found out first: an enterprise whose owner cannot be made would be left without one.
  const taken = await context
    .get<Database>(DATABASE)
    .prisma.user.count({ where: { email: owner.email.toLowerCase() } });
  if (taken > 0) throw new WeirError('conflict', 'A user with this e-mail exists already.');
  const actor = await context
    .get(EnterpriseSetup)
    .createEnterprise({ ...made.enterprise, requestId });
  const department = await context
    .get(DepartmentsController)
    .create(callAs('createDepartment', actor, requestId, { body: { name: departmentName } }));
  const user = await context.get(UsersController).create(
    callAs('createUser', actor, requestId, {
      body: { ...owner, role: 'owner', departmentId: department.id },
    }),
  );
  return { enterpriseId: actor.enterpriseId, departmentId: department.id, ownerId: user.id };
}
