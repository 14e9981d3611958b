import {
  type DegradedMode,
  defaultEnterpriseSettings,
  isCalendarWindow,
  type UnnumberedUsageEvent,
  WeirError,
} from '@weir/domain';
import type { PlannedCheck } from './admission-plan.js';
import { type BreakerState, CircuitBreaker } from './circuit-breaker.js';
import type { EventSpool } from './event-spool.js';
import { expiredSettlement } from './expired-call.js';
import { KnownRemainders } from './known-remainders.js';
import type { LocalAdmission, LocalAdmissions } from './local-admissions.js';
import { LocalEngine, localEpoch } from './local-engine.js';
import type {
  Actual,
  AdmitCall,
  AdmitResult,
  ExtendBy,
  Extended,
  Lease,
  Observed,
  QuotaEngine,
  ScopeUsage,
  SettleResult,
} from './quota-engine.js';
import { PlannedLease } from './planned-lease.js';
import type { QuotaRedis } from './quota-redis.js';
import type { RedisEngine } from './redis-engine.js';

export type DegradedSettings = {
  readonly degradedMode: DegradedMode;
  /** Percent of the last known remainder of a budget that all gateways together may spend without Redis. */
  readonly degradedBudgetSharePercent: number;
};

export type ResilientEngineOptions = {
  readonly redis: QuotaRedis;
  readonly engine: RedisEngine;
  /** Settings of an enterprise; the defaults where it is not known. */
  readonly settingsOf: (enterpriseId: string) => DegradedSettings | undefined;
  /** How many gateways are alive, this one included; each takes its share of every limit. */
  readonly liveGateways: () => number;
  readonly spool: EventSpool;
  /** What this gateway admits without Redis; right after loading, what an earlier process of it left open. */
  readonly admissions: LocalAdmissions;
  /** Failures of a shard in a row that open its circuit. Default 3. */
  readonly failuresToOpen?: number;
  /** How often a shard whose circuit is open is asked again. Default 250. */
  readonly probeEveryMs?: number;
};

/** What may be admitted, and was, beyond what Redis knows. For the metrics of a gateway. */
export type Exposure = {
  /** The most money (nano) that all gateways together may admit while degraded; null when an enterprise is `open`: unbounded. */
  readonly worstCaseNano: bigint | null;
  /** Money (nano) that this gateway has admitted without Redis since it was last reached. */
  readonly admittedNano: bigint;
  readonly admittedCalls: number;
  /** Settlements on the disk, not booked yet. */
  readonly spooled: number;
};

/** A line of the spool. */
type SpooledCall = {
  readonly kind: 'settle' | 'book' | 'void';
  readonly lease: Lease;
  readonly actual?: { inputTokens: number; outputTokens: number; costNano: string };
  readonly event?: UnnumberedUsageEvent;
  readonly descriptor?: string;
};

export function createResilientEngine(options: ResilientEngineOptions): ResilientEngine {
  return new ResilientEngine(options);
}

/**
 * The engine that goes on without Redis, within a bound. Each shard has a circuit: while it is closed Redis decides; when
 * Redis does not answer in time, the enterprise's mode does: `local` (limits in this process, each gateway its share),
 * `closed` (503) or `open`. What is settled meanwhile goes to the spool and is booked, once, when Redis is back.
 *
 * No error of a limiter ever admits a call by itself: whatever fails, fails into the mode.
 */
export class ResilientEngine implements QuotaEngine {
  private readonly local: LocalEngine;
  private readonly remainders = new KnownRemainders();
  private readonly breakers = new Map<number, CircuitBreaker>();
  private readonly openEnterprises = new Set<string>();
  private admittedNano = 0n;
  private admittedCalls = 0;
  private extensions = 0;
  private draining: Promise<void> | null = null;
  private readonly confirmTimer: NodeJS.Timeout;
  private confirming = false;
  private stopped = false;
  private drainTimer: NodeJS.Timeout | null = null;
  /** Calls of an earlier process, which was killed while Redis was away. */
  private readonly orphans: LocalAdmission[];

  constructor(private readonly options: ResilientEngineOptions) {
    this.orphans = [...options.admissions.list()];
    this.local = new LocalEngine({
      now: () => options.redis.clock.now(),
      shareOf: (call, check) => this.shareOf(call, check),
    });
    // What an earlier process left on the disk.
    this.drainSoon(0);
    this.confirmTimer = setInterval(() => this.confirmShards(), options.probeEveryMs ?? 250);
    this.confirmTimer.unref();
  }

  /**
   * Whether this gateway does not share its limits with the others at the moment, for at least one shard: its circuit is
   * open, or it has not found an epoch there that can be trusted.
   */
  get degraded(): boolean {
    const { redis } = this.options;
    const isOpen = [...this.breakers.values()].some(({ state }) => state !== 'closed');
    return isOpen || redis.client.status !== 'ready' || this.unconfirmedShards().length > 0;
  }

  stateOf(shard: number): BreakerState {
    return this.breakers.get(shard)?.state ?? 'closed';
  }

  exposure(): Exposure {
    const worstCaseNano =
      this.openEnterprises.size > 0
        ? null
        : this.remainders.exposureNano((id) => this.settings(id).degradedBudgetSharePercent);
    return {
      worstCaseNano,
      admittedNano: this.admittedNano,
      admittedCalls: this.admittedCalls,
      spooled: this.undelivered,
    };
  }

  async admit(call: AdmitCall): Promise<AdmitResult> {
    const breaker = this.breakerOf(call.shard);
    if (breaker.allows) {
      try {
        const result = await this.options.engine.admit(call);
        breaker.succeeded();
        if (result.outcome === 'admitted') {
          this.remainders.note(call, result.remaining, this.options.redis.clock.now());
        }
        return result;
      } catch (error) {
        if (!isOutage(error)) throw error;
        this.note(breaker, call.shard, error);
      }
    }
    return this.admitWithoutRedis(call);
  }

  async extend(lease: Lease, by: ExtendBy): Promise<Extended> {
    if (this.local.knows(lease.id)) return this.local.extend(lease, by);
    const breaker = this.breakerOf(lease.shard);
    if (breaker.allows) {
      try {
        const result = await this.options.engine.extend(lease, by);
        breaker.succeeded();
        return result;
      } catch (error) {
        if (!isOutage(error)) throw error;
        this.note(breaker, lease.shard, error);
      }
    }
    return this.extendWithoutRedis(lease, by);
  }

  async renew(
    leases: readonly { lease: Lease; observed: Observed | null; leaseMs: number }[],
  ): Promise<ReadonlySet<string>> {
    const alive = new Set<string>(await this.local.renew(leases));
    const byShard = new Map<number, (typeof leases)[number][]>();
    for (const renewal of leases) {
      if (this.local.knows(renewal.lease.id)) continue;
      const { shard } = renewal.lease;
      byShard.set(shard, [...(byShard.get(shard) ?? []), renewal]);
    }
    for (const [shard, renewals] of byShard) {
      const breaker = this.breakerOf(shard);
      try {
        if (!breaker.allows) throw new WeirError('quota_unavailable', 'the circuit is open');
        for (const id of await this.options.engine.renew(renewals)) alive.add(id);
        breaker.succeeded();
      } catch (error) {
        if (!isOutage(error)) throw error;
        if (breaker.allows) this.note(breaker, shard, error);
        // Nobody can say that they have ended: running streams go on.
        for (const { lease } of renewals) alive.add(lease.id);
      }
    }
    return alive;
  }

  /** While Redis is away: kept in the spool (`seq` 0, epoch `local`), on the disk when this resolves. */
  async settle(lease: Lease, actual: Actual, event: UnnumberedUsageEvent): Promise<SettleResult> {
    if (lease.epoch === undefined) {
      // The journal knows also a call whose lease ran out here while this process stood still.
      const admission = this.options.admissions.get(lease.id);
      if (!admission) return { outcome: 'already_settled' };
      await this.spool({ kind: 'book', lease, actual, event, descriptor: admission.descriptor });
      this.local.settleNow(lease, actual);
      await this.ended(lease.id);
      return { outcome: 'settled', seq: 0, epoch: localEpoch };
    }
    const { engine } = this.options;
    const descriptor = engine.descriptorOf(lease, event);
    const breaker = this.breakerOf(lease.shard);
    if (breaker.allows) {
      try {
        const result = await engine.settleWith(lease, actual, event, descriptor);
        breaker.succeeded();
        return result;
      } catch (error) {
        if (!isOutage(error)) throw error;
        this.note(breaker, lease.shard, error);
      }
    }
    await this.spool({ kind: 'settle', lease, actual, event, descriptor });
    return { outcome: 'settled', seq: 0, epoch: localEpoch };
  }

  async void(lease: Pick<Lease, 'id' | 'shard' | 'enterpriseId'>): Promise<void> {
    if (this.options.admissions.get(lease.id)) {
      await this.local.void(lease);
      await this.ended(lease.id);
      return;
    }
    const breaker = this.breakerOf(lease.shard);
    if (breaker.allows) {
      try {
        await this.options.engine.void(lease);
        breaker.succeeded();
        return;
      } catch (error) {
        if (!isOutage(error)) throw error;
        this.note(breaker, lease.shard, error);
      }
    }
    // Otherwise the reaper would charge the prompt of a call that was never sent.
    await this.spool({
      kind: 'void',
      lease: { ...lease, reservedAtMs: 0, expiresAtMs: 0, periodId: '' },
    });
  }

  async peek(query: Parameters<QuotaEngine['peek']>[0]): Promise<readonly ScopeUsage[]> {
    const breaker = this.breakerOf(query.shard);
    if (!breaker.allows) return this.local.peek();
    return this.options.engine.peek(query);
  }

  /** Stops probing and waits for what is being written. The files stay the caller's to close. */
  async close(): Promise<void> {
    this.stopped = true;
    if (this.drainTimer) clearTimeout(this.drainTimer);
    clearInterval(this.confirmTimer);
    for (const breaker of this.breakers.values()) breaker.stop();
    await this.draining;
  }

  private unconfirmedShards(): number[] {
    const { redis } = this.options;
    const shards = Array.from({ length: redis.shardCount }, (_, shard) => shard);
    return shards.filter((shard) => redis.knownEpoch(shard) === null);
  }

  /** Looks for the epochs of shards that no call has asked for yet, so that `degraded` is true to the facts. */
  private confirmShards(): void {
    const { redis } = this.options;
    const open = redis.client.status === 'ready' ? this.unconfirmedShards() : [];
    if (open.length === 0 || this.confirming) return;
    this.confirming = true;
    // A shard without an epoch rejects: it is asked again.
    void Promise.allSettled(open.map((shard) => redis.confirmEpoch(shard))).then(() => {
      this.confirming = false;
    });
  }

  private async admitWithoutRedis(call: AdmitCall): Promise<AdmitResult> {
    const { degradedMode } = this.settings(call.enterpriseId);
    const { spool, admissions } = this.options;
    if (degradedMode === 'closed' || spool.isFull || admissions.isFull) {
      throw new WeirError(
        'quota_unavailable',
        degradedMode === 'closed'
          ? 'limits cannot be checked at the moment'
          : 'limits cannot be checked at the moment and the spool for events is full',
        { mode: degradedMode },
      );
    }
    if (degradedMode === 'open') this.openEnterprises.add(call.enterpriseId);
    const asked =
      degradedMode === 'open'
        ? { ...call, path: call.path.map((scope) => ({ ...scope, limits: [] })) }
        : call;
    const result = this.local.admitNow(asked);
    if (result.outcome !== 'admitted') return result;
    const { lease } = result;
    const descriptor = this.local.descriptorOf(lease.id);
    if (!descriptor) throw new TypeError('the local engine does not know what it admitted');
    try {
      const inputTokens = call.reserve.budgetInputTokens;
      await admissions.begin({ lease, draft: call.draft, inputTokens, descriptor });
    } catch (error) {
      await this.local.void(lease);
      throw new WeirError(
        'quota_unavailable',
        'limits cannot be checked at the moment and the disk does not take what is admitted without',
        { mode: degradedMode, error: String(error) },
      );
    }
    this.admittedNano += call.reserve.costNano;
    this.admittedCalls += 1;
    return result;
  }

  /** Without this line a crash would charge the call by estimate, after it was settled without effect: it can be missed. */
  private async ended(leaseId: string): Promise<void> {
    try {
      await this.options.admissions.end(leaseId);
    } catch (error) {
      this.options.redis.logger.warn(
        { leaseId, error: String(error) },
        'the end of a call that was admitted without Redis is not on the disk',
      );
    }
  }

  /** A stream that Redis admitted asks for more: it is held to this process's share like a call of its own. */
  private extendWithoutRedis(lease: Lease, by: ExtendBy): Extended {
    const { degradedMode } = this.settings(lease.enterpriseId);
    const expiresAtMs = this.options.redis.clock.now() + (lease.expiresAtMs - lease.reservedAtMs);
    if (degradedMode === 'open') {
      this.admittedNano += by.costNano;
      return { outcome: 'granted', expiresAtMs };
    }
    const call = PlannedLease.callOf(lease);
    if (degradedMode === 'closed' || call === null) {
      throw new WeirError('quota_unavailable', 'limits cannot be checked at the moment');
    }
    const path = call.path.map((scope) => ({
      ...scope,
      limits: scope.limits.filter(
        ({ window, metric }) => isCalendarWindow(window) && metric !== 'requests',
      ),
    }));
    const more = this.local.admitNow({
      ...call,
      leaseId: `${lease.id}+${(this.extensions += 1)}`,
      path,
      reserve: {
        windowInputTokens: 0,
        windowOutputTokens: 0,
        budgetInputTokens: 0,
        budgetOutputTokens: by.outputTokens,
        costNano: by.costNano,
      },
    });
    if (more.outcome === 'refused') return { outcome: 'refused', violations: more.violations };
    if (more.outcome === 'stale') return { outcome: 'gone' };
    // Only what it spends counts; the slot is the first lease's. It is charged when that one is settled.
    this.local.settleNow(more.lease, {
      inputTokens: 0,
      outputTokens: by.outputTokens,
      costNano: by.costNano,
    });
    this.admittedNano += by.costNano;
    return { outcome: 'granted', expiresAtMs };
  }

  /**
   * This process's share of a limit. Rates and slots: the amount divided by the live gateways, at least one where the
   * unit is a call. Budgets: the enterprise's share of what was left when Redis last said so, divided likewise; nothing
   * where nothing is known.
   */
  private shareOf(call: AdmitCall, check: PlannedCheck): bigint {
    const gateways = BigInt(Math.max(1, Math.floor(this.options.liveGateways())));
    const { amount, metric, id } = check.limit;
    if (check.kind !== 'calendar') {
      const share = amount / gateways;
      const isCalls = metric === 'requests' || metric === 'concurrency';
      return share === 0n && isCalls && amount > 0n ? 1n : share;
    }
    const percent = BigInt(this.settings(call.enterpriseId).degradedBudgetSharePercent);
    const left = this.remainders.of(id, amount, this.options.redis.clock.now());
    return (left * percent) / 100n / gateways;
  }

  private settings(enterpriseId: string): DegradedSettings {
    return this.options.settingsOf(enterpriseId) ?? defaultEnterpriseSettings;
  }

  private breakerOf(shard: number): CircuitBreaker {
    let breaker = this.breakers.get(shard);
    if (!breaker) {
      breaker = new CircuitBreaker({
        failures: this.options.failuresToOpen ?? 3,
        probeEveryMs: this.options.probeEveryMs ?? 250,
        probe: async () => {
          await this.options.redis.confirmEpoch(shard);
        },
        onChange: (state) => this.changed(shard, state),
      });
      this.breakers.set(shard, breaker);
    }
    return breaker;
  }

  private note(breaker: CircuitBreaker, shard: number, error: unknown): void {
    this.options.redis.logger.warn(
      { shard, error: error instanceof Error ? error.message : String(error) },
      'the quota store did not answer',
    );
    breaker.failed();
  }

  private changed(shard: number, state: BreakerState): void {
    if (state === 'half_open') return;
    this.options.redis.logger.warn({ shard, state }, 'the circuit to the quota store has changed');
    if (state !== 'closed') return;
    if (![...this.breakers.values()].every((breaker) => breaker.allows)) return;
    this.openEnterprises.clear();
    this.admittedNano = 0n;
    this.admittedCalls = 0;
    this.local.forgetSpending();
    this.drainSoon(0);
  }

  private async spool(entry: {
    kind: SpooledCall['kind'];
    lease: Lease;
    actual?: Actual;
    event?: UnnumberedUsageEvent;
    descriptor?: Buffer;
  }): Promise<void> {
    const { actual, descriptor, ...rest } = entry;
    await this.options.spool.append({
      ...rest,
      ...(actual ? { actual: { ...actual, costNano: actual.costNano.toString() } } : {}),
      ...(descriptor ? { descriptor: descriptor.toString('base64') } : {}),
    } satisfies SpooledCall);
    this.drainSoon(this.options.probeEveryMs ?? 250);
  }

  /** Books what the spool holds as soon as Redis takes it; tries again while something is left. */
  private drainSoon(delayMs: number): void {
    if (this.stopped || this.draining || this.drainTimer) return;
    this.drainTimer = setTimeout(() => {
      this.drainTimer = null;
      this.draining = this.drain().finally(() => {
        this.draining = null;
        if (this.undelivered > 0) this.drainSoon(this.options.probeEveryMs ?? 250);
      });
    }, delayMs);
    this.drainTimer.unref();
  }

  private get undelivered(): number {
    return this.options.spool.pending + this.orphans.length;
  }

  private async drain(): Promise<void> {
    const isReachable = [...this.breakers.values()].every((breaker) => breaker.allows);
    if (this.undelivered === 0 || !isReachable) return;
    try {
      await this.spoolOrphans();
      await this.options.spool.drain((value) => this.deliver(value as SpooledCall));
    } catch (error) {
      this.options.redis.logger.warn(
        { spooled: this.undelivered, error: String(error) },
        'what was settled without Redis is not booked yet',
      );
    }
  }

  /** Nobody is left to settle these: they are charged by estimate, like a lease that ran out. */
  private async spoolOrphans(): Promise<void> {
    const nowMs = this.options.redis.clock.now();
    for (let orphan = this.orphans[0]; orphan; orphan = this.orphans[0]) {
      const { lease, draft, inputTokens, descriptor } = orphan;
      const settlement = expiredSettlement({
        id: lease.id,
        draft,
        periodId: lease.periodId,
        reservedAtMs: lease.reservedAtMs,
        endedAtMs: Math.min(lease.expiresAtMs, nowMs),
        inputTokens,
        observed: null,
      });
      await this.spool({ kind: 'book', lease, ...settlement, descriptor });
      await this.ended(lease.id);
      this.orphans.shift();
    }
  }

  private async deliver({ kind, lease, actual, event, descriptor }: SpooledCall): Promise<void> {
    const { engine } = this.options;
    if (kind === 'void') return engine.void(lease);
    if (!actual || !event || descriptor === undefined) {
      throw new TypeError('a line of the spool lacks what settling needs');
    }
    const used = { ...actual, costNano: BigInt(actual.costNano) };
    const fields = Buffer.from(descriptor, 'base64');
    const { outcome } = await engine.settleWith(lease, used, event, fields);
    // Of a call that Redis admitted without answering the lease may be there: that was settled. Else it is booked.
    if (kind === 'book' && outcome === 'void') await engine.book(lease, used, event, fields);
  }
}

/** What the mode of the enterprise answers: the store is away, or a fault of the limiter itself. */
function isOutage(error: unknown): boolean {
  if (error instanceof RangeError) return false;
  return !(error instanceof WeirError) || ['quota_unavailable', 'internal'].includes(error.code);
}
