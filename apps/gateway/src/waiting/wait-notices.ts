/** What a call that waits is told. */
export type WaitNotice = {
  /** 1 for the one whose turn is next, of all that wait on the same limits. */
  readonly position: number;
  readonly of: number;
  /** Milliseconds until its turn, by the pace of the last turns; null where nothing tells it yet. */
  readonly expectedMs: number | null;
  /** Milliseconds until it is refused, if its turn does not come before. */
  readonly leftMs: number;
};

export type NoticeTimes = {
  /** A call that waits less than this is told nothing. */
  readonly afterMs: number;
  readonly everyMs: number;
};

/** A waiting call, as far as its notices go. */
export type Noticed = {
  readonly call: { readonly tell: ((notice: WaitNotice) => void) | null };
  /** The limits that it waits on. */
  readonly hold: { readonly limitIds: ReadonlySet<string> };
  /** Before this no turn of its can succeed. */
  readonly notBeforeMs: number;
  readonly deadlineMs: number;
  noticeDueMs: number;
};

/** Turns from which the pace of a limit is taken. */
const turnsKept = 16;

/**
 * Tells the calls of one line where they stand. All positions come from one pass over the line, and passes are few and
 * far between however many wait.
 */
export class WaitNotices {
  private readonly paces = new Map<string, Pace>();
  private timer: NodeJS.Timeout | undefined;
  private nextPassMs = Number.POSITIVE_INFINITY;
  private lastPassMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly times: NoticeTimes,
    private readonly now: () => number,
    private readonly inTurnOrder: () => Iterable<Noticed>,
  ) {}

  joined(waiter: Noticed): void {
    if (waiter.call.tell === null) return;
    const nowMs = this.now();
    for (const id of waiter.hold.limitIds) this.paceOf(id, nowMs);
    waiter.noticeDueMs = nowMs + this.times.afterMs;
    this.passAt(waiter.noticeDueMs);
  }

  /** A call has had its turn and was admitted. */
  admitted({ hold }: Noticed): void {
    for (const id of hold.limitIds) this.paces.get(id)?.note(this.now());
  }

  stop(): void {
    clearTimeout(this.timer);
    this.nextPassMs = Number.POSITIVE_INFINITY;
    this.paces.clear();
  }

  private passAt(dueMs: number): void {
    const atMs = Math.max(dueMs, this.lastPassMs + this.times.everyMs / 20);
    if (atMs >= this.nextPassMs) return;
    this.nextPassMs = atMs;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.pass(), Math.ceil(atMs - this.now()));
  }

  private pass(): void {
    const nowMs = this.now();
    this.lastPassMs = nowMs;
    this.nextPassMs = Number.POSITIVE_INFINITY;
    const waiters = [...this.inTurnOrder()];
    const totals = new Map<string, number>();
    for (const { hold } of waiters) {
      for (const id of hold.limitIds) totals.set(id, (totals.get(id) ?? 0) + 1);
    }
    for (const id of this.paces.keys()) if (!totals.has(id)) this.paces.delete(id);
    const places = new Map<string, number>();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const waiter of waiters) {
      const notice = this.noticeOf(waiter, places, totals, nowMs);
      const { tell } = waiter.call;
      if (tell === null) continue;
      if (waiter.noticeDueMs <= nowMs) {
        waiter.noticeDueMs = nowMs + this.times.everyMs;
        tell(notice);
      }
      nextMs = Math.min(nextMs, waiter.noticeDueMs);
    }
    if (nextMs < Number.POSITIVE_INFINITY) this.passAt(nextMs);
  }

  /** A call stands in one queue per limit, and counts as far back as it is in the longest of them. */
  private noticeOf(
    { hold, notBeforeMs, deadlineMs }: Noticed,
    places: Map<string, number>,
    totals: ReadonlyMap<string, number>,
    nowMs: number,
  ): WaitNotice {
    let position = 1;
    let of = 1;
    let pacedMs: number | null = null;
    for (const id of hold.limitIds) {
      const place = (places.get(id) ?? 0) + 1;
      places.set(id, place);
      position = Math.max(position, place);
      of = Math.max(of, totals.get(id) ?? 0);
      const gapMs = this.paceOf(id, nowMs).gapMs(nowMs);
      if (gapMs !== null) pacedMs = Math.max(pacedMs ?? 0, gapMs * place);
    }
    const leftMs = Math.max(0, deadlineMs - nowMs);
    const atLeastMs = Math.max(0, notBeforeMs - nowMs);
    // With no turn seen yet, only the limit's own word counts, and that for the first in line alone.
    const known = pacedMs !== null || (position === 1 && atLeastMs > 0);
    const expectedMs = known ? Math.max(pacedMs ?? 0, atLeastMs) : null;
    return {
      position,
      of,
      expectedMs: expectedMs === null || expectedMs >= leftMs ? null : expectedMs,
      leftMs,
    };
  }

  private paceOf(limitId: string, nowMs: number): Pace {
    let pace = this.paces.get(limitId);
    if (pace === undefined) {
      pace = new Pace(nowMs);
      this.paces.set(limitId, pace);
    }
    return pace;
  }
}

/** How fast turns come: the mean gap of the last ones. The time since the last counts, so that a halt shows. */
class Pace {
  private readonly turnsMs: number[] = [];

  constructor(private sinceMs: number) {}

  note(nowMs: number): void {
    this.turnsMs.push(nowMs);
    if (this.turnsMs.length > turnsKept) this.sinceMs = this.turnsMs.shift() ?? this.sinceMs;
  }

  gapMs(nowMs: number): number | null {
    return this.turnsMs.length === 0 ? null : (nowMs - this.sinceMs) / this.turnsMs.length;
  }
}
