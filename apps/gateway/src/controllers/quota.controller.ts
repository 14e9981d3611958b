import { Controller, Get, Header, Inject, Req, UseGuards } from '@nestjs/common';
import {
  formatAmount,
  isCalendarWindow,
  type Metric,
  type ScopeLevel,
  type Window,
} from '@weir/domain';
import type { QuotaEngine } from '@weir/quota';
import { QUOTA_ENGINE } from '../injection-tokens.js';
import { ApiKeyGuard, type AuthenticatedRequest } from './api-key.guard.js';

type LimitView = {
  metric: Metric;
  window: Window | null;
  model: string | null;
  mode: string;
  /** Currency units as a decimal text for cost, else whole numbers as text: both exact. null: no own limit. */
  limit: string | null;
  used: string;
  reserved: string;
  remaining: string | null;
  resets_at: string | null;
};

type QuotaView = {
  object: 'quota';
  currency: string;
  time_zone: string;
  path: {
    level: ScopeLevel;
    id: string;
    name: string;
    in_flight: number;
    this_month: { period: string; requests: string; tokens: string; cost: string };
    limits: LimitView[];
  }[];
};

/** GET /v1/quota: every limit on the key's path with what is used, reserved and left, outermost level first. */
@Controller('v1/quota')
@UseGuards(ApiKeyGuard)
export class QuotaController {
  constructor(@Inject(QUOTA_ENGINE) private readonly engine: QuotaEngine) {}

  @Get()
  @Header('cache-control', 'private, no-store')
  async show(@Req() { caller: { policy } }: AuthenticatedRequest): Promise<QuotaView> {
    const usages = await this.engine.peek({
      shard: policy.shard,
      enterpriseId: policy.enterprise.id,
      timeZone: policy.enterprise.timeZone,
      scopes: policy.path,
    });
    const byScope = new Map(usages.map((usage) => [usage.scopeId, usage]));
    return {
      object: 'quota',
      currency: policy.enterprise.currency,
      time_zone: policy.enterprise.timeZone,
      path: policy.path.flatMap((scope) => {
        const usage = byScope.get(scope.id);
        if (usage === undefined) return [];
        const states = new Map(usage.limits.map((state) => [state.limitId, state]));
        return [
          {
            level: scope.level,
            id: scope.id,
            name: scope.name,
            in_flight: usage.inFlight,
            this_month: {
              period: usage.month.periodId,
              requests: usage.month.requests.toString(),
              tokens: usage.month.tokens.toString(),
              cost: formatAmount('cost', usage.month.costNano),
            },
            limits: scope.limits.flatMap((limit) => {
              const state = states.get(limit.id);
              if (state === undefined) return [];
              const { metric, window, model, mode, amount } = limit;
              const left = amount === null ? null : amount - state.used - state.reserved;
              const resetsAt =
                state.resetsAtMs !== null && isCalendarWindow(window)
                  ? new Date(state.resetsAtMs).toISOString()
                  : null;
              return [
                {
                  metric,
                  window,
                  model,
                  mode,
                  limit: amount === null ? null : formatAmount(metric, amount),
                  used: formatAmount(metric, state.used),
                  reserved: formatAmount(metric, state.reserved),
                  remaining: left === null ? null : formatAmount(metric, left < 0n ? 0n : left),
                  resets_at: resetsAt,
                },
              ];
            }),
          },
        ];
      }),
    };
  }
}
