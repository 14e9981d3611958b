import { isCalendarWindow, type Limit, type SlidingWindow, WeirError } from '@weir/domain';
import type { AdmissionPlan, PlannedCheck } from './admission-plan.js';
import { slidingShapes } from './counter-fields.js';
import { ShardKeys } from './keys.js';
import { PlanCache } from './plan-cache.js';
import type {
  Actual,
  AdmitCall,
  AdmitResult,
  ExtendBy,
  Extended,
  Lease,
  Observed,
  QuotaEngine,
  Remaining,
  SettleResult,
  Violation,
} from './quota-engine.js';
import {
  longestWait,
  narrowestFirst,
  remainingOf,
  requestedOf,
  violationOf,
} from './violations.js';

export type LocalEngineOptions = {
  readonly now: () => number;
  /** How much of a limit this process may use by itself, in the limit's unit. */
  readonly shareOf: (call: AdmitCall, check: PlannedCheck) => bigint;
};

type LocalLease = {
  readonly call: AdmitCall;
  readonly plan: AdmissionPlan;
  readonly lease: Lease;
  expiresAtMs: number;
  extraOutput: number;
  extraCost: bigint;
};

/** Counts of a sliding window by sub-bucket; at most parts + 1 of them. */
type Ring = Map<number, number>;

const sweepEveryMs = 1_000;
const maxLeases = 100_000;

/**
 * Limits in the memory of one process, for the time that Redis is away. Every limit counts with the share that
 * `shareOf` allows this process; what other gateways do is unknown. Nothing of it outlives the process but what its
 * settlements leave in the spool.
 */
export class LocalEngine implements QuotaEngine {
  private readonly leases = new Map<string, LocalLease>();
  private readonly slots = new Map<string, number>();
  private readonly spent = new Map<string, bigint>();
  private readonly rings = new Map<string, Ring>();
  private readonly plans = new PlanCache();
  private sweptAtMs = 0;

  constructor(private readonly options: LocalEngineOptions) {}

  async admit(call: AdmitCall): Promise<AdmitResult> {
    return this.admitNow(call);
  }

  /** Decides without leaving the event loop's turn: nothing can come between the check and the charge. */
  admitNow(call: AdmitCall): AdmitResult {
    const now = this.options.now();
    this.sweep(now);
    const known = this.leases.get(call.leaseId);
    if (known) return this.answer(known, [], now);
    const { path, timeZone, model, shard } = call;
    const plan = this.plans.get(new ShardKeys('local', shard), path, timeZone, model, now);
    const numbered: { check: number; violation: Violation }[] = [];
    plan.checks.forEach((check, index) => {
      const violation = this.violationBy(call, check, now);
      if (violation) numbered.push({ check: index, violation });
    });
    const all = narrowestFirst(plan, numbered);
    const violations = all.filter(({ mode }) => mode === 'hard');
    if (violations.length > 0) {
      return { outcome: 'refused', violations, retryAfterMs: longestWait(violations) };
    }
    if (this.leases.size >= maxLeases) {
      throw new WeirError('quota_unavailable', 'too many calls in flight without Redis');
    }
    const lease: Lease = {
      id: call.leaseId,
      shard: call.shard,
      enterpriseId: call.enterpriseId,
      reservedAtMs: now,
      expiresAtMs: now + call.leaseMs,
      periodId: plan.month.id,
    };
    const local: LocalLease = {
      call,
      plan,
      lease,
      expiresAtMs: lease.expiresAtMs,
      extraOutput: 0,
      extraCost: 0n,
    };
    this.leases.set(call.leaseId, local);
    for (const check of uniqueCounters(plan.checks)) {
      this.change(check, requestedOf(check.limit, call.reserve), now, 1);
    }
    return this.answer(local, all, now);
  }

  /** Whether this engine admitted the lease and it has not ended. */
  knows(leaseId: string): boolean {
    return this.leases.has(leaseId);
  }

  get inFlight(): number {
    return this.leases.size;
  }

  async extend(lease: Lease, by: ExtendBy): Promise<Extended> {
    const local = this.leases.get(lease.id);
    if (!local) return { outcome: 'gone' };
    const now = this.options.now();
    const asked = { ...nothing, budgetOutputTokens: by.outputTokens, costNano: by.costNano };
    const checks = local.plan.checks.filter(
      ({ kind, limit }) =>
        kind === 'calendar' && limit.metric !== 'requests' && limit.metric !== 'input_tokens',
    );
    const violations: Violation[] = [];
    for (const check of checks) {
      const requested = requestedOf(check.limit, asked);
      const taken = this.takenOf(check, now) + requested;
      const amount = this.options.shareOf(local.call, check);
      if (check.limit.mode !== 'hard' || requested === 0n || taken <= amount) continue;
      const shared = { ...check, limit: { ...check.limit, amount } };
      violations.unshift(violationOf(shared, asked, taken, requested, now, null));
    }
    if (violations.length > 0) return { outcome: 'refused', violations };
    for (const check of uniqueCounters(checks)) {
      this.change(check, requestedOf(check.limit, asked), now, 0);
    }
    local.extraOutput += by.outputTokens;
    local.extraCost += by.costNano;
    local.expiresAtMs = Math.max(local.expiresAtMs, now + local.call.leaseMs);
    return { outcome: 'granted', expiresAtMs: local.expiresAtMs };
  }

  async renew(
    leases: readonly { lease: Lease; observed: Observed | null; leaseMs: number }[],
  ): Promise<ReadonlySet<string>> {
    const now = this.options.now();
    const alive = new Set<string>();
    for (const { lease, leaseMs } of leases) {
      const local = this.leases.get(lease.id);
      if (!local) continue;
      local.expiresAtMs = now + leaseMs;
      alive.add(lease.id);
    }
    return alive;
  }

  /** Ends the lease here; booking it is the caller's part ({@link descriptorOf} gives what that needs). */
  async settle(lease: Lease, actual: Actual): Promise<SettleResult> {
    return this.settleNow(lease, actual)
      ? { outcome: 'settled', seq: 0, epoch: localEpoch }
      : { outcome: 'already_settled' };
  }

  /** Corrects what was reserved. False when the lease has ended before. */
  settleNow(lease: Pick<Lease, 'id'>, actual: Actual): boolean {
    const local = this.leases.get(lease.id);
    if (!local) return false;
    this.release(local, actual);
    return true;
  }

  /** Which calendar fields a call in flight is to be charged in. */
  descriptorOf(leaseId: string): Buffer | undefined {
    return this.leases.get(leaseId)?.plan.descriptor;
  }

  async void(lease: Pick<Lease, 'id'>): Promise<void> {
    const local = this.leases.get(lease.id);
    if (local) this.release(local, 'voided');
  }

  async peek(): Promise<never> {
    throw new WeirError('quota_unavailable', 'usage is not known while Redis is away');
  }

  /** Forgets what was spent, for Redis counts again. Calls in flight stay until they end. */
  forgetSpending(): void {
    this.spent.clear();
    this.rings.clear();
  }

  private answer(local: LocalLease, warnings: readonly Violation[], now: number): AdmitResult {
    const remaining: Remaining[] = [];
    for (const check of local.plan.checks) {
      if (check.limit.mode !== 'hard') continue;
      const amount = this.options.shareOf(local.call, check);
      const shared = { ...check, limit: { ...check.limit, amount } };
      remaining.push(remainingOf(shared, this.takenOf(check, now), now));
    }
    return { outcome: 'admitted', lease: local.lease, remaining, warnings, degraded: true };
  }

  private violationBy(call: AdmitCall, check: PlannedCheck, now: number): Violation | null {
    const requested = requestedOf(check.limit, call.reserve);
    const share = this.options.shareOf(call, check);
    const taken = this.takenOf(check, now) + requested;
    const isBlocked = check.limit.amount === 0n;
    if (!isBlocked && (requested === 0n || taken <= share)) return null;
    const shared = { ...check, limit: { ...check.limit, amount: share } };
    const waitMs = check.kind === 'sliding' ? this.waitOf(check, now) : null;
    const violation = violationOf(shared, call.reserve, taken, requested, now, waitMs);
    // Measured by the limit itself: a share that is too small is a shortage and not an impossible wish.
    return { ...violation, impossible: requested > check.limit.amount };
  }

  private takenOf(check: PlannedCheck, now: number): bigint {
    const counter = counterOf(check);
    if (check.kind === 'concurrency') return BigInt(this.slots.get(counter) ?? 0);
    if (check.kind === 'calendar') return this.spent.get(counter) ?? 0n;
    const { widthMs, parts } = shapeOf(check.limit);
    const oldest = Math.floor(now / widthMs) - parts;
    let sum = 0;
    for (const [index, count] of this.rings.get(counter) ?? []) if (index >= oldest) sum += count;
    return BigInt(sum);
  }

  /** Until the newest count has left the window: surely enough. */
  private waitOf(check: PlannedCheck, now: number): number {
    const { widthMs, parts } = shapeOf(check.limit);
    const newest = Math.max(
      Math.floor(now / widthMs),
      ...(this.rings.get(counterOf(check))?.keys() ?? []),
    );
    return (newest + parts + 1) * widthMs - now;
  }

  private change(check: PlannedCheck, by: bigint, now: number, slots: number): void {
    const counter = counterOf(check);
    if (check.kind === 'concurrency') {
      const left = (this.slots.get(counter) ?? 0) + slots;
      if (left > 0) this.slots.set(counter, left);
      else this.slots.delete(counter);
    } else if (check.kind === 'calendar') {
      const left = (this.spent.get(counter) ?? 0n) + by;
      this.spent.set(counter, left > 0n ? left : 0n);
    } else {
      const { widthMs, parts } = shapeOf(check.limit);
      const index = Math.floor(now / widthMs);
      const ring = this.rings.get(counter) ?? new Map<number, number>();
      for (const old of ring.keys()) if (old < index - parts) ring.delete(old);
      ring.set(index, Math.max(0, (ring.get(index) ?? 0) + Number(by)));
      this.rings.set(counter, ring);
    }
  }

  /** A voided call gives all of it back; one that was abandoned only its slot: it may have been sent. */
  private release(local: LocalLease, actual: Actual | 'voided' | 'abandoned'): void {
    const { call, plan, lease } = local;
    this.leases.delete(lease.id);
    const now = this.options.now();
    for (const check of uniqueCounters(plan.checks)) {
      const held = requestedOf(check.limit, {
        ...call.reserve,
        budgetOutputTokens: call.reserve.budgetOutputTokens + local.extraOutput,
        costNano: call.reserve.costNano + local.extraCost,
      });
      let used = held;
      if (actual === 'voided') used = 0n;
      else if (actual !== 'abandoned') used = requestedOf(check.limit, usedAs(actual));
      // A refund goes to the sub-bucket of the reservation, an extra charge to the current one.
      const at = used < held ? lease.reservedAtMs : now;
      this.change(check, used - held, at, -1);
    }
  }

  /** Slots of calls that never ended: a gateway bug or a lost client must not hold them for the whole outage. */
  private sweep(now: number): void {
    if (now - this.sweptAtMs < sweepEveryMs && now >= this.sweptAtMs) return;
    this.sweptAtMs = now;
    for (const local of this.leases.values()) {
      if (local.expiresAtMs <= now) this.release(local, 'abandoned');
    }
  }
}

/** What stands for epoch in results that Redis has not numbered yet; `seq` is 0 there. */
export const localEpoch = 'local';

const nothing = {
  windowInputTokens: 0,
  windowOutputTokens: 0,
  budgetInputTokens: 0,
  budgetOutputTokens: 0,
  costNano: 0n,
};

function usedAs(actual: Actual): typeof nothing {
  return {
    windowInputTokens: actual.inputTokens,
    windowOutputTokens: actual.outputTokens,
    budgetInputTokens: actual.inputTokens,
    budgetOutputTokens: actual.outputTokens,
    costNano: actual.costNano,
  };
}

function shapeOf({ window }: Limit): { widthMs: number; parts: number } {
  if (window === null || isCalendarWindow(window)) throw new RangeError('not a sliding window');
  return slidingShapes[window satisfies SlidingWindow];
}

function counterOf({ scope, limit, period }: PlannedCheck): string {
  return `${scope.id} ${limit.metric} ${period?.id ?? limit.window} ${limit.model ?? ''}`;
}

/** Two limits on the same counter (a hard and a soft one) charge it once. */
function uniqueCounters(checks: readonly PlannedCheck[]): PlannedCheck[] {
  const seen = new Set<string>();
  return checks.filter((check) => {
    const counter = counterOf(check);
    if (seen.has(counter)) return false;
    seen.add(counter);
    return true;
  });
}
