import { createHash, randomBytes } from 'node:crypto';
import type { INestApplicationContext } from '@nestjs/common';
import type { OperationId } from '@weir/domain';
import { publishPolicies, type Database } from '@weir/persistence';
import { SecretBoxError, type SecretBox } from '@weir/platform';
import type { PolicyPublisher } from '@weir/quota';
import type { Actor } from '../access/actor.js';
import { makePassword } from '../auth/passwords.js';
import { DepartmentsController } from '../control/departments.controller.js';
import { EnterpriseSetup } from '../control/enterprise-setup.js';
import { KeysController } from '../control/keys.controller.js';
import { LimitsController } from '../control/limits.controller.js';
import { UsersController } from '../control/users.controller.js';
import { ModelsController } from '../models/models.controller.js';
import { UpstreamsController } from '../models/upstreams.controller.js';
import { DATABASE, POLICY_PUBLISHER, SECRET_BOX } from '../tokens.js';
import { callAs } from '../control/call-as.js';
import * as demo from './demo-enterprise.js';
import type { DemoSecrets } from './demo-secrets.js';

const requestId = 'demo-set-up';

/** What the demo's start prints. Carries secrets in the clear. */
export type DemoSummary = {
  console: { email: string; password: string; finance: { email: string; password: string } };
  keys: { name: string; department: string; secret: string }[];
  enterpriseId: string;
  departments: Record<string, string>;
};

/**
 * Makes the demo's enterprise through the API's own operations, or completes one whose making was interrupted. Once it
 * is complete only the provider's address and key are kept up to date: all else is left as its users have it.
 */
export async function seedDemoEnterprise(
  context: INestApplicationContext,
  secrets: DemoSecrets,
  provider: { readonly url: string; readonly apiKey: string },
): Promise<DemoSummary> {
  const database = context.get<Database>(DATABASE);
  const enterpriseId = await findEnterprise(database, secrets.completed);
  const isComplete = enterpriseId !== null && enterpriseId === secrets.completed;
  const setup = context.get(EnterpriseSetup);
  const actor =
    enterpriseId === null
      ? await setup.createEnterprise({ ...demo.enterprise, requestId })
      : setup.actorFor(enterpriseId);
  const maker = new DemoMaker(context, database, secrets, actor);
  const upstreamId = await maker.ensureUpstream(provider);
  if (!isComplete) {
    await maker.ensureModels(upstreamId);
    await maker.ensureTree();
    secrets.complete(actor.enterpriseId);
  }
  // Redis may be another one than last time: write all, and fail here if it cannot be done.
  await publishPolicies(
    database.prisma,
    context.get<PolicyPublisher>(POLICY_PUBLISHER),
    actor.enterpriseId,
    { all: true },
  );
  return maker.summary();
}

async function findEnterprise(database: Database, known: string | null): Promise<string | null> {
  if (known !== null) {
    const row = await database.prisma.enterprise.findUnique({ where: { id: known } });
    if (row !== null) return row.id;
  }
  const owner = await database.prisma.user.findUnique({
    where: { email: demo.ownerEmail },
    select: { enterpriseId: true },
  });
  if (owner !== null) return owner.enterpriseId;
  // Made, but interrupted before it had an owner.
  const row = await database.prisma.enterprise.findFirst({
    where: { name: demo.enterprise.name, users: { none: {} } },
    select: { id: true },
  });
  return row?.id ?? null;
}

class DemoMaker {
  constructor(
    private readonly context: INestApplicationContext,
    private readonly database: Database,
    private readonly secrets: DemoSecrets,
    private readonly actor: Actor,
  ) {}

  async ensureUpstream(provider: { url: string; apiKey: string }): Promise<string> {
    const upstreams = this.context.get(UpstreamsController);
    const baseUrl = `${provider.url.replace(/\/+$/, '')}/v1`;
    const fields = { baseUrl, apiKey: provider.apiKey };
    const stored = await this.database.prisma.upstream.findFirst({
      where: { enterpriseId: this.actor.enterpriseId, name: demo.upstreamName },
    });
    if (stored === null) {
      const body = { name: demo.upstreamName, ...fields };
      return (await upstreams.create(this.call('createUpstream', { body }))).id;
    }
    const { id, version, sealedApiKey } = stored;
    const isSameKey =
      sealedApiKey !== null &&
      opens(this.context.get(SECRET_BOX), sealedApiKey, id, provider.apiKey);
    if (stored.baseUrl !== baseUrl || !isSameKey) {
      await upstreams.patch(this.call('patchUpstream', { id, version, body: fields }));
    }
    return stored.id;
  }

  async ensureModels(upstreamId: string): Promise<void> {
    const models = this.context.get(ModelsController);
    for (const { prices, ...model } of demo.models) {
      const where = { enterpriseId: this.actor.enterpriseId, alias: model.alias };
      if ((await this.database.prisma.model.count({ where })) > 0) continue;
      const body = {
        ...model,
        routes: [{ upstreamId, upstreamModel: model.alias }],
        price: { perMillionTokens: prices },
      };
      await models.create(this.call('createModel', { body }));
    }
  }

  async ensureTree(): Promise<void> {
    await this.ensureLimits('enterprise', this.actor.enterpriseId, demo.enterpriseLimits);
    const ids = new Map<string, string>();
    for (const department of demo.departments) {
      const id = await this.ensureDepartment(department, ids);
      ids.set(department.name, id);
      await this.ensureLimits('department', id, department.limits);
    }
    for (const user of demo.users) {
      const departmentId = ids.get(user.department);
      if (departmentId === undefined) throw new Error(`no department ${user.department}`);
      const id = await this.ensureUser(user, departmentId);
      await this.ensureLimits('user', id, user.limits ?? []);
      if (user.key !== undefined) await this.ensureKey(id, user.key);
    }
  }

  async summary(): Promise<DemoSummary> {
    const { prisma } = this.database;
    const { enterpriseId } = this.actor;
    const departments = await prisma.department.findMany({
      where: { enterpriseId, name: { in: demo.departments.map(({ name }) => name) } },
      orderBy: { id: 'asc' },
    });
    return {
      console: {
        email: demo.ownerEmail,
        password: this.passwordOf(demo.ownerEmail),
        finance: { email: demo.financeEmail, password: this.passwordOf(demo.financeEmail) },
      },
      keys: demo.users.flatMap((user) =>
        user.key === undefined
          ? []
          : [{ name: user.key, department: user.department, secret: this.keySecret(user.key) }],
      ),
      enterpriseId,
      departments: Object.fromEntries(departments.map(({ name, id }) => [name, id])),
    };
  }

  private async ensureDepartment(
    department: demo.DemoDepartment,
    ids: ReadonlyMap<string, string>,
  ): Promise<string> {
    const { name, costCenter } = department;
    const parentId = department.parent === null ? null : (ids.get(department.parent) ?? null);
    const stored = await this.database.prisma.department.findFirst({
      where: {
        enterpriseId: this.actor.enterpriseId,
        name,
        parentId,
        status: { not: 'deleted' },
      },
    });
    if (stored !== null) return stored.id;
    const body = { name, parentId, costCenter };
    const made = await this.context
      .get(DepartmentsController)
      .create(this.call('createDepartment', { body }));
    return made.id;
  }

  private async ensureUser(user: demo.DemoUser, departmentId: string): Promise<string> {
    const users = this.context.get(UsersController);
    const { name, kind, email, role } = user;
    const password = email === null ? null : this.passwordOf(email);
    const stored = await this.database.prisma.user.findFirst({
      where: {
        enterpriseId: this.actor.enterpriseId,
        status: { not: 'deleted' },
        ...(email === null ? { name, departmentId } : { email }),
      },
      select: { id: true, version: true },
    });
    if (stored === null) {
      const body = { departmentId, name, kind, email, role, password };
      return (await users.create(this.call('createUser', { body }))).id;
    }
    // The state file may be new: then its passwords are.
    if (password !== null) {
      await users.patch(this.call('patchUser', { ...stored, body: { password } }));
    }
    return stored.id;
  }

  private async ensureKey(userId: string, name: string): Promise<void> {
    const secret = this.keySecret(name);
    const sha256 = createHash('sha256').update(secret).digest('hex');
    if ((await this.database.prisma.apiKey.count({ where: { sha256 } })) > 0) return;
    const call = this.call('createKey', { body: { userId, name } });
    await this.context.get(KeysController).createWith(call, secret);
  }

  private async ensureLimits(
    scopeLevel: 'enterprise' | 'department' | 'user',
    scopeId: string,
    limits: readonly { metric: string; window?: string | null }[],
  ): Promise<void> {
    for (const limit of limits) {
      const where = {
        scopeId_metric_window_model: {
          scopeId,
          metric: limit.metric,
          window: limit.window ?? '',
          model: '',
        },
      };
      if ((await this.database.prisma.quotaLimit.findUnique({ where })) !== null) continue;
      const body = { scopeLevel, scopeId, ...limit };
      await this.context.get(LimitsController).create(this.call('createLimit', { body }));
    }
  }

  private passwordOf(email: string): string {
    return this.secrets.get(`password:${email}`, makePassword);
  }

  private keySecret(name: string): string {
    return this.secrets.get(
      `key:${name}`,
      () => `weir_sk_${randomBytes(32).toString('base64url')}`,
    );
  }

  private call<Id extends OperationId>(
    operationId: Id,
    input: { id?: string; version?: number; body: unknown },
  ) {
    return callAs(operationId, this.actor, requestId, input);
  }
}

/** Whether the sealed text holds this very key. One that WEIR_SECRET_KEY does not open (it may be new) holds none. */
function opens(secrets: SecretBox, sealed: string, context: string, expected: string): boolean {
  try {
    return secrets.open(sealed, context) === expected;
  } catch (error) {
    if (error instanceof SecretBoxError) return false;
    throw error;
  }
}
