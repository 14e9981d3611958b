import { isCalendarWindow, type CallerPolicy, type Limit } from '@weir/domain';
import type { QuotaEngine, Remaining, Violation } from '@weir/quota';
import { LRUCache } from 'lru-cache';
import type { AskedCall } from '../routes/metered-route.js';
import { outputTokenPico, promptPico, type CallPrice } from './reservation.js';

/** How long a remainder that an earlier admission reported may steer the next reservation. It decides no admission. */
const freshMs = 2_000;
const callersMax = 10_000;

type Known = { readonly atMs: number; readonly left: ReadonlyMap<string, bigint> };

/**
 * What is left of a caller's hard budgets, as output tokens: an answer without a cap reserves at most half of it. Fed by
 * the replies to such calls, so that it costs a trip of its own only for the first one in a while.
 */
export class BudgetOutlook {
  /** Per key: what is left by limit id. */
  private readonly known = new LRUCache<string, Known>({ max: callersMax });

  constructor(
    private readonly engine: QuotaEngine,
    private readonly now: () => number = () => performance.now(),
  ) {}

  learn(policy: CallerPolicy, remaining: readonly Remaining[]): void {
    this.remember(
      policy,
      remaining.map(({ limitId, remaining: left }) => [limitId, left] as const),
    );
  }

  learnRefusal(policy: CallerPolicy, violations: readonly Violation[]): void {
    const before = this.known.get(policy.key.id)?.left ?? [];
    const told = violations.map(
      ({ limitId, limit, used, reserved }) => [limitId, limit - used - reserved] as const,
    );
    this.remember(policy, [...before, ...told]);
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
    const known = this.known.get(input.policy.key.id);
    const isFresh =
      known !== undefined &&
      this.now() - known.atMs < freshMs &&
      budgets.every((limit) => known.left.has(limit.id));
    const left = isFresh ? known.left : await this.peek(input.policy);
    let least: bigint | null = null;
    for (const limit of budgets) {
      const remaining = left.get(limit.id);
      if (remaining === undefined) continue;
      const tokens = asOutputTokens(limit, remaining, input);
      if (tokens !== null && (least === null || tokens < least)) least = tokens;
    }
    if (least === null) return null;
    return Number(least < 0n ? 0n : least > maxTokens ? maxTokens : least);
  }

  private async peek(policy: CallerPolicy): Promise<ReadonlyMap<string, bigint>> {
    const usages = await this.engine.peek({
      shard: policy.shard,
      enterpriseId: policy.enterprise.id,
      timeZone: policy.enterprise.timeZone,
      scopes: policy.path,
    });
    const limits = usages.flatMap((usage) => usage.limits);
    return this.remember(
      policy,
      limits.flatMap(({ limitId, limit, used, reserved }) =>
        limit === null ? [] : [[limitId, limit - used - reserved] as const],
      ),
    );
  }

  private remember(
    policy: CallerPolicy,
    entries: readonly (readonly [limitId: string, left: bigint])[],
  ): ReadonlyMap<string, bigint> {
    const left = new Map(entries);
    this.known.set(policy.key.id, { atMs: this.now(), left });
    return left;
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
