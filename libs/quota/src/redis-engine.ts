import { newId, noTokens, type UnnumberedUsageEvent, usageEventOf, WeirError } from '@weir/domain';
import { type AdmissionPlan, planAdmission } from './admission-plan.js';
import { calendarField } from './counter-fields.js';
import { estimatedCharge } from './estimated-charge.js';
import { safeId } from './keys.js';
import { fromLimbs, limbsOf, limbsOfCount, packDoubles, unpackDoubles } from './limbs.js';
import { packNewLease } from './lease-record.js';
import { packList } from './msgpack.js';
import { planPeek, readPeek } from './peek.js';
import { PlanCache } from './plan-cache.js';
import { PlannedLease } from './planned-lease.js';
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
  ScopeUsage,
  SettleResult,
} from './quota-engine.js';
import type { Fence, FencedReply, QuotaRedis, ScriptReply } from './quota-redis.js';
import { type RecentSettlement, RecentSettlements } from './recent-settlements.js';
import { UnansweredAdmits } from './unanswered-admits.js';
import { longestWait, narrowestFirst, readPassed, remainingOf } from './violations.js';

/** How long an ended lease is remembered, so that what comes twice or late has no second effect. */
export const tombstoneMs = 86_400_000;
const tombstoneText = String(tombstoneMs);

/** The engine on Redis: one round trip and one script per operation. */
export function createRedisEngine(redis: QuotaRedis): RedisEngine {
  return new RedisEngine(redis);
}

/** {@link QuotaEngine} on Redis, and what the resilient engine needs beside it. */
export class RedisEngine implements QuotaEngine {
  private readonly plans = new PlanCache();
  private readonly recent = new RecentSettlements();
  private readonly unanswered: UnansweredAdmits;

  constructor(private readonly redis: QuotaRedis) {
    this.unanswered = new UnansweredAdmits(redis, (lease) => this.void(lease));
    redis.onEpochChange((shard, fence) => this.replayUntilDone(shard, fence));
  }

  async admit(call: AdmitCall): Promise<AdmitResult> {
    checkReservation(call);
    const keys = this.redis.keys(call.shard);
    const draft = JSON.stringify(call.draft);
    const leaseKey = keys.lease(call.leaseId);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const { path, timeZone, model } = call;
      const plan = this.plans.get(keys, path, timeZone, model, this.redis.storeNow());
      let ran;
      try {
        ran = await this.redis.runFenced(
          'admit',
          call.shard,
          [leaseKey, keys.leases, ...plan.scopeKeys],
          [
            ...plan.packed,
            String(call.policyVersion),
            packNewLease(call.leaseMs, call.reserve, plan.descriptor, draft),
            call.leaseId,
          ],
        );
      } catch (error) {
        if (mayHaveRun(error)) {
          const { leaseId: id, shard, enterpriseId } = call;
          this.unanswered.add({ id, shard, enterpriseId });
        }
        throw error;
      }
      const { reply, epoch } = ran;
      const answer = bytesOf(reply);
      switch (String.fromCharCode(answer[0] ?? 0)) {
        case 'A':
        case 'D':
          return this.admitted(call, plan, unpackDoubles(answer, 1), epoch);
        case 'R':
          return refused(call, plan, unpackDoubles(answer, 1));
        case 'S':
          return { outcome: 'stale', currentVersion: Number(answer.toString('latin1', 1)) };
        case 'P':
          this.redis.noteStoreTime(answer.readDoubleLE(1));
          continue;
        case 'G':
          throw new WeirError('conflict', 'the lease has ended before', { leaseId: call.leaseId });
        default:
          throw unknownReply('admit', answer);
      }
    }
    throw new WeirError('quota_unavailable', 'the clock of Redis does not stand still', {
      shard: call.shard,
    });
  }

  async extend(lease: Lease, by: ExtendBy): Promise<Extended> {
    const plan = PlannedLease.planOf(lease, this);
    if (plan === null) {
      const leaseMs = lease.expiresAtMs - lease.reservedAtMs;
      const alive = await this.renew([{ lease, observed: by.observed, leaseMs }]);
      if (!alive.has(lease.id)) return { outcome: 'gone' };
      throw new WeirError('conflict', 'a call is extended by the process that admitted it', {
        leaseId: lease.id,
      });
    }
    const keys = this.redis.keys(lease.shard);
    const { reply } = await this.redis.runFenced(
      'extend',
      lease.shard,
      [keys.lease(lease.id), keys.leases, ...plan.scopeKeys],
      [
        ...plan.packed,
        packDoubles([
          ...limbsOfCount(by.outputTokens),
          ...limbsOf(by.costNano),
          by.observed.inputTokens,
          by.observed.outputTokens,
          ...limbsOf(by.observed.costNano),
        ]),
        lease.id,
      ],
    );
    const answer = bytesOf(reply);
    switch (String.fromCharCode(answer[0] ?? 0)) {
      case 'A':
        return { outcome: 'granted', expiresAtMs: answer.readDoubleLE(1) };
      case 'R': {
        const numbers = unpackDoubles(answer, 1);
        const [nowMs = 0, count = 0] = numbers;
        const asked = {
          windowInputTokens: 0,
          windowOutputTokens: by.outputTokens,
          budgetInputTokens: 0,
          budgetOutputTokens: by.outputTokens,
          costNano: by.costNano,
        };
        const passed = readPassed(plan, asked, numbers, 2, count, nowMs);
        return { outcome: 'refused', violations: narrowestFirst(plan, passed) };
      }
      case 'M':
      case 'S':
      case 'V':
      case 'X':
        return { outcome: 'gone' };
      default:
        throw unknownReply('extend', answer);
    }
  }

  async renew(
    leases: readonly { lease: Lease; observed: Observed | null; leaseMs: number }[],
  ): Promise<ReadonlySet<string>> {
    const alive = new Set<string>();
    const byShard = new Map<number, (typeof leases)[number][]>();
    for (const renewal of leases) {
      const shard = byShard.get(renewal.lease.shard) ?? [];
      shard.push(renewal);
      byShard.set(renewal.lease.shard, shard);
    }
    for (const [shard, renewals] of byShard) {
      // Bounded batches: a script stops the store for everyone while it runs.
      for (let from = 0; from < renewals.length; from += renewBatch) {
        const batch = renewals.slice(from, from + renewBatch);
        const keys = this.redis.keys(shard);
        const { reply } = await this.redis.runFenced(
          'renew',
          shard,
          [keys.leases, ...batch.map(({ lease }) => keys.lease(lease.id))],
          [
            packDoubles(
              batch.flatMap(({ observed, leaseMs }) => [
                leaseMs,
                observed ? 1 : 0,
                observed?.inputTokens ?? 0,
                observed?.outputTokens ?? 0,
                ...limbsOf(observed?.costNano ?? 0n),
              ]),
            ),
            ...batch.map(({ lease }) => lease.id),
          ],
        );
        const answer = bytesOf(reply);
        if (answer[0] !== 0x41 /* A */) throw unknownReply('renew', answer);
        batch.forEach(({ lease }, index) => {
          if (answer[index + 1] === 0x31 /* 1 */) alive.add(lease.id);
        });
      }
    }
    return alive;
  }

  async settle(lease: Lease, actual: Actual, event: UnnumberedUsageEvent): Promise<SettleResult> {
    return this.settleWith(lease, actual, event, this.descriptorOf(lease, event));
  }

  /** The calendar fields that a call was charged in; the month's alone where another process admitted the call. */
  descriptorOf(lease: Lease, event: UnnumberedUsageEvent): Buffer {
    return PlannedLease.planOf(lease, this)?.descriptor ?? monthDescriptor(event);
  }

  /** Settles with the charged fields given: for a call whose admission this process does not remember. */
  async settleWith(
    lease: Lease,
    actual: Actual,
    event: UnnumberedUsageEvent,
    descriptor: Buffer,
  ): Promise<SettleResult> {
    const json = JSON.stringify(event);
    const { state, rest, epoch } = readSettled(await this.runSettle(lease, actual, json));
    switch (state) {
      case 'O': {
        const seq = Number(rest.toString('latin1'));
        this.remember(lease, actual, json, descriptor, epoch, seq);
        return { outcome: 'settled', seq, epoch };
      }
      case 'S':
        return { outcome: 'already_settled' };
      case 'V':
        return { outcome: 'void' };
      case 'X':
        return this.settleLate(lease, actual, event, unpackDoubles(rest, 0));
      case 'M': {
        // Of this epoch and unknown: never admitted. Of an earlier one: lost with it, and booked without its lease.
        if (lease.epoch === undefined || lease.epoch === epoch) return { outcome: 'void' };
        const seq = await this.bookJson(lease, actual, json, descriptor);
        return seq === null ? { outcome: 'already_settled' } : { outcome: 'settled', ...seq };
      }
      default:
        throw unknownReply('settle', Buffer.from(state));
    }
  }

  async void(lease: Pick<Lease, 'id' | 'shard' | 'enterpriseId'>): Promise<void> {
    const keys = this.redis.keys(lease.shard);
    await this.redis.runFenced(
      'void',
      lease.shard,
      [keys.lease(lease.id), keys.leases],
      [keys.scopePrefix, lease.id, tombstoneText],
    );
  }

  async peek(query: Parameters<QuotaEngine['peek']>[0]): Promise<readonly ScopeUsage[]> {
    const { shard, timeZone, scopes } = query;
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const plan = planPeek(this.redis.keys(shard), scopes, timeZone, this.redis.storeNow());
      const { reply } = await this.redis.runFenced('peek', shard, plan.keys, [
        packDoubles([plan.validFromMs, plan.validUntilMs]),
        ...plan.fields.map(packList),
      ]);
      if (Buffer.isBuffer(reply)) {
        if (reply[0] !== 0x50 /* P */) throw unknownReply('peek', reply);
        this.redis.noteStoreTime(reply.readDoubleLE(1));
        continue;
      }
      const [now, ...values] = reply as readonly [Buffer, ...(Buffer | null)[][]];
      return readPeek(plan, scopes, values, now.readDoubleLE(0));
    }
    throw new WeirError('quota_unavailable', 'the clock of Redis does not stand still', { shard });
  }

  private runSettle(lease: Lease, actual: Actual, event: string): Promise<FencedReply> {
    const keys = this.redis.keys(lease.shard);
    return this.redis.runFenced(
      'settle',
      lease.shard,
      [keys.lease(lease.id), keys.leases, keys.seq, keys.outbox],
      [keys.scopePrefix, usedNumbers(actual), event, lease.id, tombstoneText, '0'],
    );
  }

  /**
   * Charges and numbers a call whose lease is not in Redis: lost with an earlier epoch, or admitted by the local engine.
   * Without a descriptor only the event is appended. Null when it was booked before.
   */
  async book(
    lease: Lease,
    actual: Actual,
    event: UnnumberedUsageEvent,
    descriptor: Buffer | null,
  ): Promise<{ seq: number; epoch: string } | null> {
    return this.bookJson(lease, actual, JSON.stringify(event), descriptor);
  }

  private async bookJson(
    lease: Lease,
    actual: Actual,
    event: string,
    descriptor: Buffer | null,
  ): Promise<{ seq: number; epoch: string } | null> {
    const keys = this.redis.keys(lease.shard);
    const { reply, epoch } = await this.redis.runFenced(
      'book',
      lease.shard,
      [keys.lease(lease.id), keys.seq, keys.outbox],
      [keys.scopePrefix, usedNumbers(actual), event, lease.id, tombstoneText, descriptor ?? ''],
    );
    const answer = bytesOf(reply);
    if (answer[0] !== 0x4f /* O */) return null;
    const seq = Number(answer.toString('latin1', 1));
    const charged = descriptor ?? monthDescriptor(JSON.parse(event) as UnnumberedUsageEvent);
    this.remember(lease, actual, event, charged, epoch, seq);
    return { seq, epoch };
  }

  private remember(
    lease: Lease,
    actual: Actual,
    event: string,
    descriptor: Buffer,
    epoch: string,
    seq: number,
  ): void {
    const atMs = this.redis.clock.now();
    this.recent.add({ lease, actual, event, descriptor, epoch, seq, atMs });
  }

  private replayUntilDone(shard: number, fence: Fence): void {
    this.replay(shard, fence).catch((error: unknown) => {
      this.redis.logger.error(
        { shard, error: String(error) },
        'settlements that Redis may have lost were not all sent again yet',
      );
      if (this.redis.isClosed) return;
      setTimeout(() => this.replayUntilDone(shard, fence), replayRetryMs).unref();
    });
  }

  /**
   * Redis has begun a new epoch: whatever it confirmed in its last seconds may be lost. Settles all of it again. What
   * is known is left alone by id; what is not is booked, and charged unless the new counters hold it already.
   */
  private async replay(shard: number, fence: Fence): Promise<void> {
    const open = this.recent.takeOlderThan(shard, fence.epoch, this.redis.clock.now());
    for (let from = 0; from < open.length; from += replayBatch) {
      const batch = open.slice(from, from + replayBatch);
      const results = await Promise.allSettled(batch.map((entry) => this.replayOne(entry, fence)));
      const failed = results.find((result) => result.status === 'rejected');
      if (!failed) continue;
      const unsent = batch.filter((_, index) => results[index]?.status === 'rejected');
      for (const entry of [...unsent, ...open.slice(from + replayBatch)]) this.recent.add(entry);
      throw failed.reason;
    }
  }

  private async replayOne(entry: RecentSettlement, fence: Fence): Promise<void> {
    const { lease, actual, event, descriptor } = entry;
    const { state, rest, epoch } = readSettled(await this.runSettle(lease, actual, event));
    if (state === 'O') {
      const seq = Number(rest.toString('latin1'));
      this.remember(lease, actual, event, descriptor, epoch, seq);
    } else if (state === 'X') {
      // The settlement was lost, the lease was not, and the reaper has charged it since.
      const parsed = JSON.parse(event) as UnnumberedUsageEvent;
      await this.settleLate(lease, actual, parsed, unpackDoubles(rest, 0));
    } else if (state === 'M') {
      const isCounted = entry.epoch === fence.counted.epoch && entry.seq <= fence.counted.seq;
      await this.bookJson(lease, actual, event, isCounted ? null : descriptor);
    }
  }

  /** The call was charged by the reaper meanwhile: correct the money, once, by an event of its own. */
  private async settleLate(
    lease: Lease,
    actual: Actual,
    event: UnnumberedUsageEvent,
    charged: readonly number[],
  ): Promise<SettleResult> {
    const [, inputTokens = 0, outputTokens = 0, costHigh = 0, costLow = 0] = charged;
    const chargedNano = fromLimbs(costHigh, costLow);
    const booked = estimatedCharge(event.data.price, {
      inputTokens,
      outputTokens,
      costNano: chargedNano,
    });
    const differenceNano = actual.costNano - chargedNano;
    const adjustment = usageEventOf(newId(), {
      ...event.data,
      kind: 'adjustment',
      adjusts: lease.id,
      usage: noTokens,
      costPico: (BigInt(event.data.costPico) - booked.costPico).toString(),
      costNano: differenceNano.toString(),
      late: true,
    });
    const keys = this.redis.keys(lease.shard);
    const { reply, epoch } = await this.redis.runFenced(
      'adjust',
      lease.shard,
      [keys.lease(lease.id), keys.seq, keys.outbox],
      [
        keys.scopePrefix,
        packDoubles(limbsOf(differenceNano)),
        JSON.stringify(adjustment),
        adjustment.id,
        tombstoneText,
      ],
    );
    const answer = bytesOf(reply);
    if (answer[0] !== 0x4f /* O */) return { outcome: 'already_settled' };
    return { outcome: 'late', seq: Number(answer.toString('latin1', 1)), epoch };
  }

  private admitted(
    call: AdmitCall,
    plan: AdmissionPlan,
    numbers: readonly number[],
    epoch: string,
  ): AdmitResult {
    const [nowMs = 0, reservedAtMs = 0, expiresAtMs = 0, passedCount = 0] = numbers;
    const remaining: Remaining[] = [];
    let at = 4;
    for (const check of plan.checks) {
      let taken: bigint;
      if (check.kind === 'calendar') {
        taken = fromLimbs(numbers[at] ?? 0, numbers[at + 1] ?? 0);
        at += 2;
      } else {
        taken = BigInt(numbers[at] ?? 0);
        at += 1;
      }
      if (check.limit.mode === 'hard') remaining.push(remainingOf(check, taken, nowMs));
    }
    // Asked again after a period has turned: the lease stays in the periods of its reservation.
    const own =
      plan.validFromMs <= reservedAtMs && reservedAtMs < plan.validUntilMs
        ? plan
        : planAdmission(
            this.redis.keys(call.shard),
            call.path,
            call.timeZone,
            call.model,
            reservedAtMs,
          );
    return {
      outcome: 'admitted',
      lease: new PlannedLease(call, reservedAtMs, expiresAtMs, epoch, own, this),
      remaining,
      warnings:
        passedCount === 0
          ? []
          : narrowestFirst(plan, readPassed(plan, call.reserve, numbers, at, passedCount, nowMs)),
      degraded: false,
    };
  }
}

const renewBatch = 100;

const replayRetryMs = 500;
const replayBatch = 64;

function refused(call: AdmitCall, plan: AdmissionPlan, numbers: readonly number[]): AdmitResult {
  const [nowMs = 0, , , passedCount = 0] = numbers;
  const passed = readPassed(plan, call.reserve, numbers, 4, passedCount, nowMs);
  const violations = narrowestFirst(plan, passed).filter(({ mode }) => mode === 'hard');
  return { outcome: 'refused', violations, retryAfterMs: longestWait(violations) };
}

/** Whether a failed operation may have taken effect: not when the fence refused it or there was no connection to send it on. */
function mayHaveRun(error: unknown): boolean {
  if (!(error instanceof WeirError)) return true;
  const { reason } = error.details;
  return reason !== 'epoch' && reason !== 'shard_count' && reason !== 'not_sent';
}

/** Reservations are whole and never negative: anything else is a fault of the caller, not a question of quota. */
function checkReservation(call: AdmitCall): void {
  const { reserve } = call;
  const counts = [
    reserve.windowInputTokens,
    reserve.windowOutputTokens,
    reserve.budgetInputTokens,
    reserve.budgetOutputTokens,
  ];
  if (
    !counts.every((count) => Number.isSafeInteger(count) && count >= 0) ||
    reserve.costNano < 0n
  ) {
    throw new RangeError('a reservation is made of whole numbers of at least 0');
  }
  if (!Number.isSafeInteger(call.leaseMs) || call.leaseMs <= 0) {
    throw new RangeError('a lease needs a positive number of milliseconds');
  }
}

/** What was used, as the scripts take it. */
export function usedNumbers(actual: Actual): Buffer {
  return packDoubles([
    ...limbsOfCount(actual.inputTokens),
    ...limbsOfCount(actual.outputTokens),
    ...limbsOf(actual.costNano),
  ]);
}

/** What can be charged for a call of which only the event is left: the month of every scope on its path. */
function monthDescriptor({ data }: UnnumberedUsageEvent): Buffer {
  const path = [data.enterprise, ...data.departments, data.user, data.key];
  return packList([
    path.length,
    ...path.flatMap(({ id }) => [safeId(id), 0, 1, 0, calendarField(data.periodId, null)]),
  ]);
}

function readSettled({ reply, epoch }: FencedReply): {
  state: string;
  rest: Buffer;
  epoch: string;
} {
  const answer = bytesOf(reply);
  return { state: String.fromCharCode(answer[0] ?? 0), rest: answer.subarray(1), epoch };
}

function bytesOf(reply: ScriptReply): Buffer {
  if (!Buffer.isBuffer(reply)) throw new TypeError('the script answered a list, not bytes');
  return reply;
}

function unknownReply(script: string, answer: Buffer): WeirError {
  return new WeirError(
    'internal',
    `the script ${script} answered ${answer.toString('latin1', 0, 16)}`,
  );
}
