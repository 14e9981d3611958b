import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { OperationId, Role } from '@weir/domain';
import type { Actor } from '../access/actor.js';
import { DepartmentsController } from '../control/departments.controller.js';
import { EnterpriseSetup } from '../control/enterprise-setup.js';
import { KeysController } from '../control/keys.controller.js';
import { LimitsController } from '../control/limits.controller.js';
import { UsersController } from '../control/users.controller.js';
import { callAs } from '../control/call-as.js';
import { ModelsController } from '../models/models.controller.js';
import { UpstreamsController } from '../models/upstreams.controller.js';
import type { TestApp, TestClient } from './test-app.js';

export const testPassword = 'correct horse battery';

/** An enterprise with one of each thing, made through the operations themselves. For tests. */
export type TestWorld = {
  readonly actor: Actor;
  readonly enterpriseId: string;
  readonly marketing: string;
  /** Below marketing. */
  readonly content: string;
  readonly engineering: string;
  readonly users: Readonly<Record<Role | 'engineer', string>>;
  readonly keys: Readonly<Record<'member' | 'engineer', { id: string; secret: string }>>;
  /** A limit on marketing, on content and on engineering: cost per month, 100.00 each. */
  readonly limits: Readonly<Record<'enterprise' | 'marketing' | 'content' | 'engineering', string>>;
  readonly upstream: string;
  readonly model: string;
  emailOf(role: Role | 'engineer'): string;
};

export async function makeTestWorld(app: NestFastifyApplication, tag: string): Promise<TestWorld> {
  const requestId = `world-${tag}`;
  const actor = await app.get(EnterpriseSetup).createEnterprise({
    name: `Enterprise ${tag}`,
    timeZone: 'Asia/Shanghai',
    currency: 'USD',
    requestId,
  });
  const call = <Id extends OperationId>(id: Id, body: unknown) =>
    callAs(id, actor, requestId, { body });
  const departments = app.get(DepartmentsController);
  const department = async (name: string, parentId: string | null) =>
    (await departments.create(call('createDepartment', { name, parentId }))).id;
  const marketing = await department('Marketing', null);
  const content = await department('Content Studio', marketing);
  const engineering = await department('Engineering', null);

  const emailOf = (role: Role | 'engineer') => `${role}@${tag}.example`;
  const user = async (role: Role | 'engineer', departmentId: string) =>
    (
      await app.get(UsersController).create(
        call('createUser', {
          departmentId,
          name: `The ${role}`,
          email: emailOf(role),
          role: role === 'engineer' ? 'member' : role,
          password: testPassword,
        }),
      )
    ).id;
  const users = {
    owner: await user('owner', engineering),
    admin: await user('admin', engineering),
    finance: await user('finance', engineering),
    manager: await user('manager', marketing),
    member: await user('member', content),
    engineer: await user('engineer', engineering),
  };
  const key = async (userId: string) => {
    const made = await app
      .get(KeysController)
      .create(call('createKey', { userId, name: 'laptop' }));
    return { id: made.key.id, secret: made.secret };
  };
  const limit = async (scopeLevel: string, scopeId: string) =>
    (
      await app.get(LimitsController).create(
        call('createLimit', {
          scopeLevel,
          scopeId,
          metric: 'cost',
          window: 'month',
          amount: '100.00',
        }),
      )
    ).id;
  const upstream = (
    await app.get(UpstreamsController).create(
      call('createUpstream', {
        name: 'Provider',
        baseUrl: 'https://1.1.1.1/v1',
        apiKey: 'sk-1',
      }),
    )
  ).id;
  const model = (
    await app.get(ModelsController).create(
      call('createModel', {
        alias: 'small',
        contextWindowTokens: 128_000,
        maxOutputTokens: 16_384,
        routes: [{ upstreamId: upstream, upstreamModel: 'small' }],
        price: { perMillionTokens: { input: '0.50', output: '1.50' } },
      }),
    )
  ).id;
  return {
    actor,
    enterpriseId: actor.enterpriseId,
    marketing,
    content,
    engineering,
    users,
    keys: { member: await key(users.member), engineer: await key(users.engineer) },
    limits: {
      enterprise: await limit('enterprise', actor.enterpriseId),
      marketing: await limit('department', marketing),
      content: await limit('department', content),
      engineering: await limit('department', engineering),
    },
    upstream,
    model,
    emailOf,
  };
}

/** Clients for all roles of a world, signed in. */
export async function signInAll(
  test: TestApp,
  world: TestWorld,
): Promise<Record<Role, TestClient>> {
  const client = (role: Role) => test.signIn(world.emailOf(role), testPassword);
  return {
    owner: await client('owner'),
    admin: await client('admin'),
    finance: await client('finance'),
    manager: await client('manager'),
    member: await client('member'),
  };
}
