import { isCalendarWindow, type CallerPolicy, type Limit } from '@weir/domain';
import type { QuotaEngine, Remaining, Violation } from '@weir/quota';
import { LRUCache } from 'lru-cache';
import type { AskedCall } from '../routes/metered-route.js';
import { outputTokenPico, promptPico, type CallPrice } from './reservation.js';

/** How long a remainder that an earlier admission reported may steer the next reservation. It decides no admission. */
const freshMs = 2_000;

/**
 * What is left of a caller's hard budgets, as output tokens: an answer without a cap reserves at most half of it. Fed by
 * the admissions' own replies, so that it costs a trip of its own only for the first such call in a while.
 */
export class BudgetOutlook {
  private readonly remaining = new LRUCache<string, bigint>({ max: 20_000, ttl: freshMs });

  constructor(private readonly engine: QuotaEngine) {}

  learn(remaining: readonly Remaining[]): void {
    for (const each of remaining) {
      if (isCalendarWindow(each.window)) this.remaining.set(each.limitId, each.remaining);
    }
  }

  learnRefusal(violations: readonly Violation[]): void {
    for (const { limitId, limit, used, reserved } of violations) {
      this.remaining.set(limitId, limit - used - reserved);
    }
  }

  /** Output tokens that fit into the tightest hard budget besides the prompt; null where the path has no budget. */
  async outputTokensLeft(input: {
    policy: CallerPolicy;
    asked: AskedCall;
    price: CallPrice;
    promptTokens: number;
  }): Promise<number | null> {
    const budgets = input.policy.path.flatMap((scope) =>
      scope.limits.filter((limit) => isBudgetFor(limit, input.asked.model)),
    );
    if (budgets.length === 0) return null;
    if (budgets.some((limit) => !this.remaining.has(limit.id))) await this.peek(input.policy);
    let least: bigint | null = null;
    for (const limit of budgets) {
      const left = this.remaining.get(limit.id);
      if (left === undefined) continue;
      const tokens = asOutputTokens(limit, left, input);
      if (tokens !== null && (least === null || tokens < least)) least = tokens;
    }
    if (least === null) return null;
    return Number(least < 0n ? 0n : least > maxTokens ? maxTokens : least);
  }

  private async peek(policy: CallerPolicy): Promise<void> {
    const usages = await this.engine.peek({
      shard: policy.shard,
      enterpriseId: policy.enterprise.id,
      timeZone: policy.enterprise.timeZone,
      scopes: policy.path,
    });
    for (const limit of usages.flatMap((usage) => usage.limits)) {
      if (limit.limit === null) continue;
      this.remaining.set(limit.limitId, limit.limit - limit.used - limit.reserved);
    }
  }
}

const maxTokens = 1_000_000_000_000n;

function isBudgetFor(limit: Limit, model: string): boolean {
  return (
    limit.amount !== null &&
    limit.mode === 'hard' &&
    isCalendarWindow(limit.window) &&
    (limit.metric === 'tokens' || limit.metric === 'output_tokens' || limit.metric === 'cost') &&
    (limit.model === null || limit.model === model)
  );
}

function asOutputTokens(
  limit: Limit,
  left: bigint,
  call: { asked: AskedCall; price: CallPrice; promptTokens: number },
): bigint | null {
  if (limit.metric === 'output_tokens') return left;
  if (limit.metric === 'tokens') return left - BigInt(call.promptTokens);
  const perToken = outputTokenPico(call.asked, call.price);
  // A free model uses up no money, whatever is left.
  if (perToken === 0n) return null;
  return (left * 1_000n - promptPico(call.asked, call.price, call.promptTokens)) / perToken;
}
