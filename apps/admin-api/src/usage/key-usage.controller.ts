import { createHash } from 'node:crypto';
import { Controller, Get, Header, Inject, Req } from '@nestjs/common';
import { periodAt, shardOf, WeirError, type Clock } from '@weir/domain';
import { meteringStatus, usageSummary, type Database } from '@weir/persistence';
import type { FastifyRequest } from 'fastify';
import type { ControlConfig } from '../config.js';
import { CLOCK, CONTROL_CONFIG, DATABASE } from '../tokens.js';
import { figuresView } from './usage.controller.js';

type Figures = {
  requests: string;
  input_tokens: string;
  cached_input_tokens: string;
  output_tokens: string;
  tokens: string;
  /** Decimal text of currency units, exact. */
  cost: string;
};
type KeyUsage = {
  object: 'usage';
  key: { id: string; name: string };
  currency: string;
  time_zone: string;
  period: string;
  from: string;
  to: string | null;
  complete_up_to: string | null;
  models: ({ model: string } & Figures)[];
  totals: Figures;
};

/** For the gateways, which have no database: a tenant's GET /v1/usage is forwarded here with the tenant's own key. */
@Controller()
export class KeyUsageController {
  constructor(
    @Inject(DATABASE) private readonly database: Database,
    @Inject(CONTROL_CONFIG) private readonly config: ControlConfig,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** What this key has used this month, by model, from the books. */
  @Get('internal/v1/key-usage')
  @Header('cache-control', 'private, no-store')
  async keyUsage(@Req() request: FastifyRequest): Promise<KeyUsage> {
    const key = await this.keyOf(request.headers.authorization);
    const { timeZone, currency } = key.enterprise;
    const month = periodAt('month', this.clock.now(), timeZone);
    const { pool } = this.database;
    const { completeUpTo } = await meteringStatus(pool, {
      shard: shardOf(key.enterpriseId, this.config.SHARD_COUNT),
    });
    const summary = await usageSummary(pool, {
      enterpriseId: key.enterpriseId,
      timeZone,
      from: new Date(month.startsAt),
      to: new Date(month.endsAt ?? month.startsAt),
      groupBy: 'model',
      granularity: 'none',
      filters: { keyId: key.id },
    });
    return {
      object: 'usage',
      key: { id: key.id, name: key.name },
      currency,
      time_zone: timeZone,
      period: month.id,
      from: new Date(month.startsAt).toISOString(),
      to: month.endsAt === null ? null : new Date(month.endsAt).toISOString(),
      complete_up_to: completeUpTo?.toISOString() ?? null,
      models: summary.rows.map(({ groupId, figures }) => ({
        model: groupId ?? '',
        ...snakeCase(figuresView(figures)),
      })),
      totals: snakeCase(figuresView(summary.totals)),
    };
  }

  private async keyOf(authorization: string | undefined) {
    const secret = /^Bearer +(\S{1,512})$/i.exec(authorization ?? '')?.[1];
    const key =
      secret === undefined
        ? null
        : await this.database.prisma.apiKey.findUnique({
            where: { sha256: createHash('sha256').update(secret).digest('hex') },
            include: {
              enterprise: { select: { timeZone: true, currency: true } },
              user: { select: { status: true } },
            },
          });
    const isUsable =
      key !== null &&
      key.status === 'active' &&
      key.user.status === 'active' &&
      (key.expiresAt === null || key.expiresAt.getTime() > this.clock.now());
    if (!isUsable) throw new WeirError('invalid_api_key', 'The API key is not valid.');
    return key;
  }
}

function snakeCase(figures: ReturnType<typeof figuresView>): Figures {
  return {
    requests: figures.requests,
    input_tokens: figures.inputTokens,
    cached_input_tokens: figures.cachedInputTokens,
    output_tokens: figures.outputTokens,
    tokens: figures.tokens,
    cost: figures.cost,
  };
}
