import { WeirError, type CallerPolicy } from '@weir/domain';
import type { Violation } from '@weir/quota';
import { WaitNotices, type NoticeTimes, type WaitNotice } from './wait-notices.js';

/** A call that may wait for its turn. */
export type WaitingCall = {
  readonly policy: CallerPolicy;
  readonly model: string;
  /** Tells when the caller has gone. */
  readonly onLeave: (listener: () => void) => void;
  /** Hears now and then how the wait goes; null where the caller cannot be told before it has its answer. */
  readonly tell: ((notice: WaitNotice) => void) | null;
};

/** Pause before a call that waits for a slot asks again by itself: slots that other gateways free are not told here. */
const slotPauseMs = 500;
const pauseMsMin = 5;

/**
 * Where calls wait that nothing but a rate or concurrency limit refuses, one line per enterprise, bounded by the
 * enterprise's own settings.
 *
 * Turns go round the users who wait, and to each user's calls in the order they came. A call that comes while another
 * waits on one of its own limits gets in line without asking; whoever is held up by other limits is not held up by it.
 */
export class WaitingRoom {
  private readonly lines = new Map<string, Line>();
  private isClosed = false;

  constructor(
    /** Calls that may wait here at once, of all enterprises together: one's line must not shut out the others. */
    private readonly waitingMax: number,
    private readonly notices: NoticeTimes,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Calls that wait. */
  get size(): number {
    let size = 0;
    for (const line of this.lines.values()) size += line.size;
    return size;
  }

  /** Whether a call of this enterprise could wait if it had to. */
  hasRoom({ enterprise }: CallerPolicy): boolean {
    const { maxWaitMs, maxWaiting } = enterprise.settings.queue;
    if (this.isClosed || maxWaitMs === 0 || this.size >= this.waitingMax) return false;
    return (this.lines.get(enterprise.id)?.size ?? 0) < maxWaiting;
  }

  /**
   * Admits a call, now or when its turn comes.
   *
   * @param attempt tries to admit it, given the milliseconds that it has waited.
   * @returns null when the caller has gone meanwhile; then nothing is reserved.
   * @throws whatever `attempt` throws, of which only a refusal by rate or concurrency waits, and that no longer than
   * `queue.maxWaitMs`; WeirError `unavailable` when this process ends first.
   */
  async admit<T>(
    call: WaitingCall,
    attempt: (queueWaitMs: number) => Promise<T>,
  ): Promise<T | null> {
    const { id } = call.policy.enterprise;
    let hold = this.hasRoom(call.policy) ? (this.lines.get(id)?.holdOf(call) ?? null) : null;
    if (hold === null) {
      try {
        return await attempt(0);
      } catch (error) {
        hold = holdFrom(error);
        const { maxWaitMs } = call.policy.enterprise.settings.queue;
        if (hold === null || !this.hasRoom(call.policy) || isBeyond(hold, maxWaitMs)) throw error;
      }
    }
    let line = this.lines.get(id);
    if (line === undefined) {
      line = new Line(this.notices, this.now, () => this.lines.delete(id));
      this.lines.set(id, line);
    }
    return line.wait(call, hold, attempt);
  }

  /** A call of this enterprise has ended, so its slots are free. */
  freed(enterpriseId: string): void {
    this.lines.get(enterpriseId)?.freed();
  }

  /** For the shutdown: nobody waits on, and nobody begins to. */
  close(): void {
    this.isClosed = true;
    for (const line of this.lines.values()) line.close();
  }
}

/** What holds a call up. */
type Hold = {
  readonly limitIds: ReadonlySet<string>;
  /** Whether a slot is needed, which may come free at any moment; else time alone helps. */
  readonly needsSlot: boolean;
  /** Milliseconds that it takes at least. */
  readonly atLeastMs: number;
  /** Milliseconds until it is worth asking again. */
  readonly pauseMs: number;
};

type Waiter = {
  readonly call: WaitingCall;
  readonly deadlineMs: number;
  hold: Hold;
  dueMs: number;
  /** By what refused it last, no turn can succeed before. */
  notBeforeMs: number;
  noticeDueMs: number;
  hasLeft: boolean;
  /** Asks once more; gives the refusal, or null when the call has its answer. */
  readonly ask: () => Promise<unknown>;
  readonly giveUp: (error: unknown) => void;
  readonly leave: () => void;
};

class Line {
  /** Users in the order of their turns, each with its calls in the order they came. */
  private readonly users = new Map<string, Waiter[]>();
  private count = 0;
  /** The one whose turn it is. */
  private asked: Waiter | null = null;
  private timer: NodeJS.Timeout | undefined;
  private isServing = false;
  /** Somebody became due while turns were given. */
  private isCalled = false;
  private isClosed = false;

  private readonly notices: WaitNotices;

  constructor(
    times: NoticeTimes,
    private readonly now: () => number,
    private readonly onEmpty: () => void,
  ) {
    this.notices = new WaitNotices(times, now, () => this.inTurnOrder());
  }

  get size(): number {
    return this.count;
  }

  /** What a newcomer has to wait for: the limits of its own that others wait on already. Null: nothing. */
  holdOf({ policy, model }: WaitingCall): Hold | null {
    const own = new Set<string>();
    for (const scope of policy.path) {
      for (const limit of scope.limits) {
        if (limit.model === null || limit.model === model) own.add(limit.id);
      }
    }
    let found = null as Hold | null;
    for (const waiter of this.all()) {
      const shared = [...waiter.hold.limitIds].filter((id) => own.has(id));
      if (shared.length === 0) continue;
      found = {
        limitIds: new Set([...(found?.limitIds ?? []), ...shared]),
        needsSlot: found?.needsSlot === true || waiter.hold.needsSlot,
        atLeastMs: 0,
        pauseMs: Math.min(found?.pauseMs ?? slotPauseMs, Math.max(0, waiter.dueMs - this.now())),
      };
    }
    return found;
  }

  wait<T>(
    call: WaitingCall,
    hold: Hold,
    attempt: (queueWaitMs: number) => Promise<T>,
  ): Promise<T | null> {
    const sinceMs = this.now();
    return new Promise<T | null>((resolve, reject) => {
      const waiter: Waiter = {
        call,
        deadlineMs: sinceMs + call.policy.enterprise.settings.queue.maxWaitMs,
        hold,
        dueMs: sinceMs + hold.pauseMs,
        notBeforeMs: sinceMs + hold.atLeastMs,
        noticeDueMs: Number.POSITIVE_INFINITY,
        hasLeft: false,
        ask: async () => {
          try {
            resolve(await attempt(Math.round(this.now() - sinceMs)));
            return null;
          } catch (error) {
            return error;
          }
        },
        giveUp: reject,
        leave: () => resolve(null),
      };
      const user = call.policy.key.userId;
      const calls = this.users.get(user);
      if (calls === undefined) this.users.set(user, [waiter]);
      else calls.push(waiter);
      this.count += 1;
      this.notices.joined(waiter);
      call.onLeave(() => {
        waiter.hasLeft = true;
        // One that is just being asked for hands over what it gets: its caller frees it.
        if (this.asked !== waiter && this.remove(waiter)) waiter.leave();
        this.plan();
      });
      this.plan();
    });
  }

  freed(): void {
    for (const waiter of this.all()) if (waiter.hold.needsSlot) waiter.dueMs = 0;
    void this.serve();
  }

  close(): void {
    this.isClosed = true;
    for (const waiter of [...this.all()]) {
      if (waiter === this.asked) continue;
      this.remove(waiter);
      waiter.giveUp(shuttingDown());
    }
    this.plan();
  }

  private *all(): Iterable<Waiter> {
    for (const calls of this.users.values()) yield* calls;
  }

  /** As turns go if all succeed: round the users, each user's calls as they came. */
  private *inTurnOrder(): Iterable<Waiter> {
    let calls = [...this.users.values()];
    for (let round = 0; calls.length > 0; round += 1) {
      for (const own of calls) {
        const waiter = own[round];
        if (waiter !== undefined) yield waiter;
      }
      calls = calls.filter((own) => own.length > round + 1);
    }
  }

  /** Gives turns until nobody who is due can have one. */
  private async serve(): Promise<void> {
    this.isCalled = true;
    if (this.isServing) return;
    this.isServing = true;
    while (this.isCalled) {
      this.isCalled = false;
      const nowMs = this.now();
      /** Limits that refused in this round, and until when: whoever is behind on one of them need not ask. */
      const full = new Map<string, number>();
      for (let next = this.next(nowMs, full); next !== null; next = this.next(nowMs, full)) {
        await this.giveTurn(next, nowMs, full);
      }
      if (!this.isCalled) this.putOff(nowMs, full);
    }
    this.isServing = false;
    this.plan();
  }

  /** Those who were passed over ask again when the one ahead of them does. */
  private putOff(nowMs: number, full: ReadonlyMap<string, number>): void {
    for (const waiter of this.all()) {
      if (waiter.dueMs > nowMs) continue;
      const untils = [...waiter.hold.limitIds].map((id) => full.get(id) ?? 0);
      waiter.dueMs = Math.max(...untils);
    }
  }

  private next(nowMs: number, full: ReadonlyMap<string, number>): Waiter | null {
    for (const calls of this.users.values()) {
      for (const waiter of calls) {
        // At the end of its time each asks once more, so that the answer tells of now.
        if (waiter.deadlineMs <= nowMs) return waiter;
        if (waiter.dueMs > nowMs) continue;
        if (![...waiter.hold.limitIds].some((id) => full.has(id))) return waiter;
      }
    }
    return null;
  }

  private async giveTurn(waiter: Waiter, nowMs: number, full: Map<string, number>): Promise<void> {
    this.asked = waiter;
    const error = await waiter.ask();
    this.asked = null;
    if (error === null) {
      this.remove(waiter);
      this.notices.admitted(waiter);
      // The next turn is another user's.
      const user = waiter.call.policy.key.userId;
      const rest = this.users.get(user);
      if (rest !== undefined) {
        this.users.delete(user);
        this.users.set(user, rest);
      }
      return;
    }
    const hold = holdFrom(error);
    const dueMs = this.now() + (hold?.pauseMs ?? 0);
    for (const id of hold?.limitIds ?? []) full.set(id, dueMs);
    if (waiter.hasLeft || this.isClosed) {
      this.remove(waiter);
      if (waiter.hasLeft) waiter.leave();
      else waiter.giveUp(shuttingDown());
      return;
    }
    if (hold === null || waiter.deadlineMs <= nowMs || isBeyond(hold, waiter.deadlineMs - nowMs)) {
      this.remove(waiter);
      waiter.giveUp(error);
      return;
    }
    waiter.hold = hold;
    waiter.notBeforeMs = this.now() + hold.atLeastMs;
    // A slot may have been freed while this was asked: then it asks again in the next round.
    waiter.dueMs = this.isCalled && hold.needsSlot ? 0 : dueMs;
  }

  private remove(waiter: Waiter): boolean {
    const user = waiter.call.policy.key.userId;
    const calls = this.users.get(user);
    const at = calls?.indexOf(waiter) ?? -1;
    if (calls === undefined || at < 0) return false;
    calls.splice(at, 1);
    if (calls.length === 0) this.users.delete(user);
    this.count -= 1;
    return true;
  }

  /** Sets the clock to whoever is due next. */
  private plan(): void {
    clearTimeout(this.timer);
    if (this.isServing) return;
    if (this.count === 0) {
      this.notices.stop();
      this.onEmpty();
      return;
    }
    let atMs = Number.POSITIVE_INFINITY;
    for (const { dueMs, deadlineMs } of this.all()) atMs = Math.min(atMs, dueMs, deadlineMs);
    const pauseMs = Math.max(pauseMsMin, Math.ceil(atMs - this.now()));
    this.timer = setTimeout(() => void this.serve(), pauseMs);
  }
}

/** Whether it takes longer than there is time. */
function isBeyond(hold: Hold, leftMs: number): boolean {
  return hold.atLeastMs > leftMs;
}

/** What a refusal waits for; null for what waiting does not help, budgets before all. */
function holdFrom(error: unknown): Hold | null {
  if (!(error instanceof WeirError)) return null;
  // The decisive violation gives the code: with these two there is no budget and nothing impossible among them.
  if (error.code !== 'rate_limit_exceeded' && error.code !== 'concurrency_exceeded') return null;
  const violations = error.details['violations'] as readonly Violation[] | undefined;
  const retryAfterMs = error.details['retry_after_ms'];
  if (violations === undefined || typeof retryAfterMs !== 'number') return null;
  const rates = violations.filter(({ metric }) => metric !== 'concurrency');
  const needsSlot = rates.length < violations.length;
  return {
    limitIds: new Set(violations.map(({ limitId }) => limitId)),
    needsSlot,
    atLeastMs: Math.max(0, ...rates.map((rate) => rate.retryAfterMs ?? 0)),
    pauseMs: Math.max(pauseMsMin, needsSlot ? Math.min(slotPauseMs, retryAfterMs) : retryAfterMs),
  };
}

function shuttingDown(): WeirError {
  return new WeirError('unavailable', 'This gateway is shutting down. Try again.', {
    headers: { 'retry-after': '1' },
  });
}
