import { isCalendarWindow, type CallerPolicy } from '@weir/domain';
import { requestedOf, type Refused, type Reservation, type Violation } from '@weir/quota';
import { LRUCache } from 'lru-cache';

type Denial = {
  readonly violation: Violation;
  readonly forgottenAtMs: number;
  /** When its own retry-after is over; null where waiting does not help. */
  readonly liftedAtMs: number | null;
};
type Entry = { readonly version: number; readonly denials: readonly Denial[] };

const callersMax = 20_000;
/** A rate's refusal that lasts longer is asked for again now and then: calls that end may give something back before. */
const rateMsMax = 10_000;
/** How long such a one, or that of a budget, is remembered. */
const briefMs = 250;

/**
 * Refusals that are sure to be repeated until a known instant, so that a storm of refused calls does not reach the store.
 *
 * Remembered are only those that nothing but time or an edit can lift: a full rate window until its own retry-after, and
 * a used-up budget with no reservation in it that a settlement could give back. Concurrency never is: a slot may be free
 * the next moment. A call that asks for less than the refused one goes to the store.
 */
export class DenyCache {
  private readonly entries = new LRUCache<string, Entry>({ max: callersMax });

  private denied = 0;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** How many calls were refused without asking the store. */
  get hits(): number {
    return this.denied;
  }

  remember(policy: CallerPolicy, refused: Refused): void {
    const now = this.now();
    const denials = refused.violations.flatMap((violation): Denial[] => {
      const ms = lastsMs(violation);
      if (ms === null) return [];
      const { retryAfterMs } = violation;
      const liftedAtMs = retryAfterMs === null ? null : now + retryAfterMs;
      return [{ violation, forgottenAtMs: now + ms, liftedAtMs }];
    });
    if (denials.length > 0) {
      this.entries.set(policy.key.id, { version: policy.version, denials });
    }
  }

  /**
   * The refusal of a call that is sure to be refused, or null.
   *
   * @param ask what the call reserves and its model; null before that is known: then only limits that count every call
   * alike can deny it.
   */
  denialOf(
    policy: CallerPolicy,
    ask: { readonly reserve: Reservation; readonly model: string } | null,
  ): Refused | null {
    const entry = this.entries.get(policy.key.id);
    if (entry === undefined) return null;
    if (entry.version !== policy.version) {
      this.entries.delete(policy.key.id);
      return null;
    }
    const now = this.now();
    const violations = entry.denials.flatMap(
      ({ violation, forgottenAtMs, liftedAtMs }): Violation[] => {
        if (forgottenAtMs <= now || !appliesTo(violation, ask)) return [];
        return [{ ...violation, retryAfterMs: liftedAtMs === null ? null : liftedAtMs - now }];
      },
    );
    if (violations.length === 0) return null;
    this.denied += 1;
    const waits = violations.map(({ retryAfterMs }) => retryAfterMs);
    const helps = waits.every((ms): ms is number => ms !== null);
    return { outcome: 'refused', violations, retryAfterMs: helps ? Math.max(...waits) : null };
  }
}

/** How long a refusal is remembered; null where it is not. */
function lastsMs(violation: Violation): number | null {
  if (violation.impossible || violation.metric === 'concurrency') return null;
  if (isCalendarWindow(violation.window)) return violation.reserved === 0n ? briefMs : null;
  if (violation.retryAfterMs === null) return null;
  return violation.retryAfterMs > rateMsMax ? briefMs : violation.retryAfterMs;
}

function appliesTo(
  violation: Violation,
  ask: { readonly reserve: Reservation; readonly model: string } | null,
): boolean {
  if (ask === null) return violation.metric === 'requests' && violation.model === null;
  if (violation.model !== null && violation.model !== ask.model) return false;
  return requestedOf(violation, ask.reserve) >= violation.requested;
}
