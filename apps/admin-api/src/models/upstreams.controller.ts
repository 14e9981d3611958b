import { Controller, Inject } from '@nestjs/common';
import { newId, WeirError } from '@weir/domain';
import type { Database } from '@weir/persistence';
import { SecretBox } from '@weir/platform';
import { notFound } from '../access/reach.js';
import type { ControlConfig } from '../config.js';
import { Changes } from '../control/changes.js';
import { definedFields } from '../control/departments.controller.js';
import { fieldFault } from '../control/field-fault.js';
import { isUniqueViolation } from '../control/users.controller.js';
import { upstreamView, type UpstreamView } from '../control/views.js';
import { requireVersion } from '../http/if-match.js';
import { Operation, type AnswerOf, type CallOf } from '../http/operation.js';
import { CONTROL_CONFIG, DATABASE, RESOLVE_HOST, SECRET_BOX } from '../tokens.js';
import { upstreamAddressFault, type ResolveHost } from './upstream-address.js';

/** What the audit log shows of an upstream's API key. */
const masked = '***';

@Controller()
export class UpstreamsController {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(CONTROL_CONFIG) private readonly config: ControlConfig,
    @Inject(SECRET_BOX) private readonly secrets: SecretBox,
    @Inject(RESOLVE_HOST) private readonly resolve: ResolveHost,
    private readonly changes: Changes,
  ) {}

  @Operation('listUpstreams')
  async list({ actor }: CallOf<'listUpstreams'>): Promise<AnswerOf<'listUpstreams'>> {
    const rows = await this.database.prisma.upstream.findMany({
      where: { enterpriseId: actor.enterpriseId },
      orderBy: { name: 'asc' },
    });
    return { items: rows.map(upstreamView), nextCursor: null };
  }

  @Operation('getUpstream')
  async get({ actor, id }: CallOf<'getUpstream'>): Promise<AnswerOf<'getUpstream'>> {
    const row = await this.database.prisma.upstream.findFirst({
      where: { id, enterpriseId: actor.enterpriseId },
    });
    if (row === null) throw notFound('upstream', id);
    return upstreamView(row);
  }

  @Operation('createUpstream')
  async create(call: CallOf<'createUpstream'>): Promise<AnswerOf<'createUpstream'>> {
    const { actor, body } = call;
    const { apiKey, ...fields } = body;
    const baseUrl = await this.usableAddress(body.baseUrl);
    return this.changes.run(call, async (tx, record, at) => {
      const id = newId();
      const row = await uniqueName(
        tx.upstream.create({
          data: {
            ...fields,
            id,
            enterpriseId: actor.enterpriseId,
            baseUrl,
            sealedApiKey: apiKey === null ? null : this.secrets.seal(apiKey, id),
            createdAt: at,
          },
        }),
      );
      const after = upstreamView(row);
      record({
        ...targetOf(after),
        action: 'upstream.created',
        before: null,
        after: withKey(after, apiKey !== null),
      });
      return after;
    });
  }

  @Operation('patchUpstream')
  async patch(call: CallOf<'patchUpstream'>): Promise<AnswerOf<'patchUpstream'>> {
    const { actor, id, body, version } = call;
    const { apiKey, ...fields } = body;
    const baseUrl = body.baseUrl === undefined ? undefined : await this.usableAddress(body.baseUrl);
    return this.changes.run(call, async (tx, record) => {
      const stored = await tx.upstream.findFirst({
        where: { id, enterpriseId: actor.enterpriseId },
      });
      if (stored === null) throw notFound('upstream', id);
      const before = upstreamView(stored);
      requireVersion(version, before);
      const row = await uniqueName(
        tx.upstream.update({
          where: { id },
          data: {
            ...definedFields(fields),
            ...(baseUrl === undefined ? {} : { baseUrl }),
            ...(apiKey === undefined
              ? {}
              : { sealedApiKey: apiKey === null ? null : this.secrets.seal(apiKey, id) }),
            version: { increment: 1 },
          },
        }),
      );
      const after = upstreamView(row);
      record({
        ...targetOf(after),
        action: 'upstream.updated',
        before,
        after: withKey(after, typeof apiKey === 'string'),
      });
      return after;
    });
  }

  /** Without trailing slashes, so that paths can be appended. */
  private async usableAddress(baseUrl: string): Promise<string> {
    const fault = await upstreamAddressFault(baseUrl, {
      allowPrivate: this.config.UPSTREAM_ALLOW_PRIVATE,
      resolve: this.resolve,
    });
    if (fault !== null) {
      throw fieldFault(
        'baseUrl',
        fault,
        'Use a public address, or start the servers with UPSTREAM_ALLOW_PRIVATE=true.',
      );
    }
    return baseUrl.replace(/\/+$/, '');
  }
}

function targetOf(view: UpstreamView) {
  return { targetType: 'upstream', targetId: view.id, targetName: view.name } as const;
}

function withKey(view: UpstreamView, isSet: boolean): UpstreamView & { apiKey?: string } {
  return isSet ? { ...view, apiKey: masked } : view;
}

async function uniqueName<Result>(write: Promise<Result>): Promise<Result> {
  try {
    return await write;
  } catch (error) {
    if (isUniqueViolation(error)) {
      throw new WeirError('conflict', 'A provider with this name exists already.', {
        field: 'name',
      });
    }
    throw error;
  }
}
