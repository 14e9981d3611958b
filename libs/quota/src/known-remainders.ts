import { isCalendarWindow } from '@weir/domain';
import { LRUCache } from 'lru-cache';
import type { AdmitCall, Remaining } from './quota-engine.js';

type Known = {
  readonly enterpriseId: string;
  readonly scopeId: string;
  readonly scopeIndex: number;
  readonly metric: Remaining['metric'];
  remaining: bigint;
  /** When the period ends that this is the remainder of; null for `total`. */
  endsAtMs: number | null;
};

const maxLimits = 100_000;

/** What was left of each hard budget when Redis last said so. */
export class KnownRemainders {
  private readonly limits = new LRUCache<string, Known>({ max: maxLimits });

  note(call: AdmitCall, remaining: readonly Remaining[], nowMs: number): void {
    for (const each of remaining) {
      if (!isCalendarWindow(each.window)) continue;
      const { limitId, scope, metric } = each;
      const endsAtMs = each.resetMs === null ? null : nowMs + each.resetMs;
      const scopeIndex = call.path.findIndex(({ id }) => id === scope.id);
      const known = this.limits.peek(limitId);
      // Nearly always what is left is all that is new, and this runs for every limit of every call.
      if (
        known?.scopeId === scope.id &&
        known.scopeIndex === scopeIndex &&
        known.metric === metric
      ) {
        known.remaining = each.remaining;
        known.endsAtMs = endsAtMs;
        continue;
      }
      this.limits.set(limitId, {
        enterpriseId: call.enterpriseId,
        scopeId: scope.id,
        scopeIndex,
        metric,
        remaining: each.remaining,
        endsAtMs,
      });
    }
  }

  /**
   * What is left of a limit as far as known; 0 when nothing is known of it. After its period has ended it is the whole
   * amount: the new period began while nobody could spend unseen.
   */
  of(limitId: string, amount: bigint, nowMs: number): bigint {
    const known = this.limits.get(limitId);
    if (!known) return 0n;
    if (known.endsAtMs !== null && nowMs >= known.endsAtMs) return amount;
    return known.remaining < amount ? known.remaining : amount;
  }

  /**
   * The most money that all gateways together may admit without Redis: per enterprise the outermost scopes that have a
   * money budget, the tightest budget of each, times the share. An inner budget cannot add to its outer one.
   */
  exposureNano(shareOf: (enterpriseId: string) => number): bigint {
    const outermost = new Map<string, { depth: number; scopes: Map<string, bigint> }>();
    for (const known of this.limits.values()) {
      if (known.metric !== 'cost') continue;
      const current = outermost.get(known.enterpriseId);
      if (current && current.depth < known.scopeIndex) continue;
      const scopes =
        current?.depth === known.scopeIndex ? current.scopes : new Map<string, bigint>();
      const least = scopes.get(known.scopeId);
      if (least === undefined || known.remaining < least) {
        scopes.set(known.scopeId, known.remaining);
      }
      outermost.set(known.enterpriseId, { depth: known.scopeIndex, scopes });
    }
    let total = 0n;
    for (const [enterpriseId, { scopes }] of outermost) {
      const share = BigInt(shareOf(enterpriseId));
      for (const remaining of scopes.values()) total += (remaining * share) / 100n;
    }
    return total;
  }
}
