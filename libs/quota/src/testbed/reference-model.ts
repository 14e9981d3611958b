import {
  isCalendarWindow,
  type CalendarWindow,
  type Limit,
  type Period,
  periodAt,
  type PolicyScope,
  type SlidingWindow,
} from '@weir/domain';
import type { Actual, AdmitCall, Observed, Reservation } from '../quota-engine.js';

/**
 * The quota rules once more, as plainly as they can be said: maps, bigints and one thing at a time. The property tests
 * compare the scripts with it after every operation.
 */

const shapes: Record<SlidingWindow, { width: number; parts: number }> = {
  second: { width: 100, parts: 10 },
  minute: { width: 5_000, parts: 12 },
  hour: { width: 300_000, parts: 12 },
};

export type ModelRecord = {
  requests: bigint;
  input: bigint;
  output: bigint;
  cost: bigint;
  heldRequests: bigint;
  heldInput: bigint;
  heldOutput: bigint;
  heldCost: bigint;
};

export const noRecord = (): ModelRecord => ({
  requests: 0n,
  input: 0n,
  output: 0n,
  cost: 0n,
  heldRequests: 0n,
  heldInput: 0n,
  heldOutput: 0n,
  heldCost: 0n,
});

type Ring = { birth: number; last: number; counts: Map<number, number> };

type Charged = {
  readonly scopeId: string;
  readonly slots: readonly string[];
  readonly calendars: readonly string[];
  readonly rings: readonly { field: string; metric: Limit['metric']; window: SlidingWindow }[];
};

export type ModelLease = {
  readonly id: string;
  readonly call: AdmitCall;
  readonly reservedAt: number;
  readonly charged: readonly Charged[];
  expiresAt: number;
  state: 'reserved' | 'settled' | 'voided' | 'expired';
  observed: Observed | null;
  extraOutput: number;
  extraCost: bigint;
  lastExtension: { at: number; tokens: number };
};

export type Prediction =
  | { readonly outcome: 'admitted'; readonly remaining: ReadonlyMap<string, bigint> }
  | {
      readonly outcome: 'refused';
      readonly passed: ReadonlyMap<string, { used: bigint; reserved: bigint; requested: bigint }>;
    };

export class ReferenceModel {
  readonly slots = new Map<string, Map<string, number>>();
  readonly calendars = new Map<string, Map<string, ModelRecord>>();
  readonly rings = new Map<string, Map<string, Ring>>();
  readonly leases = new Map<string, ModelLease>();
  readonly tombstones = new Set<string>();
  events = 0;
  /** `scope field` of everything written since the last comparison. */
  readonly touched = new Set<string>();
  private readonly periods = new Map<CalendarWindow, Period>();

  constructor(private readonly timeZone: string) {}

  admit(call: AdmitCall, now: number): Prediction {
    const wanted = call.path.map((scope) => this.fieldsOf(scope, call.model, now));
    const passed = new Map<string, { used: bigint; reserved: bigint; requested: bigint }>();
    const remaining = new Map<string, bigint>();
    let isRefused = false;
    call.path.forEach((scope) => {
      for (const limit of scope.limits) {
        if (limit.amount === null || (limit.model !== null && limit.model !== call.model)) continue;
        const { taken, reserved, cap } = this.countOf(scope.id, limit, now);
        const requested = requestOf(limit, call.reserve);
        const isOver = requested > 0n && taken + requested > cap;
        if (isOver || limit.amount === 0n) {
          isRefused ||= limit.mode === 'hard';
          const hidden = limit.amount - cap;
          passed.set(limit.id, { used: taken - reserved + hidden, reserved, requested });
        }
        const left = cap - taken - requested;
        remaining.set(limit.id, left < 0n ? 0n : left);
      }
    });
    if (isRefused) return { outcome: 'refused', passed };
    for (const { scopeId, slots, calendars, rings } of wanted) {
      for (const slot of slots) this.addSlot(scopeId, slot, 1);
      for (const field of calendars) {
        const record = this.record(scopeId, field);
        record.requests += 1n;
        record.heldRequests += 1n;
        this.hold(
          record,
          call.reserve.budgetInputTokens,
          call.reserve.budgetOutputTokens,
          call.reserve.costNano,
        );
      }
      for (const { field, metric, window } of rings) {
        const { windowInputTokens, windowOutputTokens } = call.reserve;
        this.charge(
          scopeId,
          field,
          window,
          now,
          windowAmount(metric, 1, windowInputTokens, windowOutputTokens),
        );
      }
    }
    this.leases.set(call.leaseId, {
      id: call.leaseId,
      call,
      reservedAt: now,
      charged: wanted,
      expiresAt: now + call.leaseMs,
      state: 'reserved',
      observed: null,
      extraOutput: 0,
      extraCost: 0n,
      lastExtension: { at: 0, tokens: 0 },
    });
    return { outcome: 'admitted', remaining };
  }

  settle(lease: ModelLease, actual: Actual, now: number): void {
    this.release(lease, now, 1, actual.inputTokens, actual.outputTokens, actual.costNano);
    lease.state = 'settled';
    this.events += 1;
  }

  void(lease: ModelLease, now: number): void {
    this.release(lease, now, 0, 0, 0, 0n);
    lease.state = 'voided';
  }

  expire(lease: ModelLease, charge: Actual, now: number): void {
    this.release(lease, now, 1, charge.inputTokens, charge.outputTokens, charge.costNano);
    lease.state = 'expired';
    this.events += 1;
  }

  adjust(lease: ModelLease, difference: bigint): void {
    for (const { scopeId, calendars } of lease.charged) {
      for (const field of calendars) this.record(scopeId, field).cost += difference;
    }
    lease.state = 'settled';
    this.events += 1;
  }

  /** The ids of the hard budgets in the way; empty when granted. */
  extend(
    lease: ModelLease,
    tokens: number,
    cost: bigint,
    observed: Observed,
    now: number,
  ): string[] {
    const passed: string[] = [];
    for (const scope of lease.call.path) {
      for (const limit of scope.limits) {
        if (limit.amount === null || limit.mode !== 'hard' || !isCalendarWindow(limit.window))
          continue;
        if (limit.model !== null && limit.model !== lease.call.model) continue;
        const field = calendarName(this.period(limit.window, lease.reservedAt), limit.model);
        const record = this.record(scope.id, field);
        const asked = { tokens: BigInt(tokens), output_tokens: BigInt(tokens), cost }[
          limit.metric as 'cost'
        ];
        if (asked === undefined || asked === 0n) continue;
        if (takenOf(record, limit.metric) + asked > limit.amount) passed.push(limit.id);
      }
    }
    lease.observed = observed;
    if (passed.length > 0) return passed;
    for (const { scopeId, calendars, rings } of lease.charged) {
      for (const field of calendars) this.hold(this.record(scopeId, field), 0, tokens, cost);
      for (const { field, metric, window } of rings) {
        if (metric === 'tokens' || metric === 'output_tokens') {
          this.charge(scopeId, field, window, now, tokens);
        }
      }
    }
    lease.extraOutput += tokens;
    lease.extraCost += cost;
    lease.lastExtension = { at: now, tokens };
    lease.expiresAt = Math.max(lease.expiresAt, now + lease.call.leaseMs);
    return [];
  }

  renew(lease: ModelLease, leaseMs: number, observed: Observed | null, now: number): void {
    lease.expiresAt = now + leaseMs;
    if (observed) lease.observed = observed;
  }

  expired(now: number): ModelLease[] {
    return [...this.leases.values()].filter(
      ({ state, expiresAt }) => state === 'reserved' && expiresAt <= now,
    );
  }

  /** The counted sub-buckets of a ring at an instant. */
  counted(ring: Ring, window: SlidingWindow, now: number): Map<number, number> {
    const oldest = Math.floor(now / shapes[window].width) - shapes[window].parts;
    return new Map([...ring.counts].filter(([index, count]) => index >= oldest && count !== 0));
  }

  /** What a limit compares its amount with, how much of it is reserved, and what may be counted now (cold start). */
  countOf(
    scopeId: string,
    limit: Limit,
    now: number,
  ): { taken: bigint; reserved: bigint; cap: bigint } {
    const amount = limit.amount ?? 0n;
    if (limit.metric === 'concurrency') {
      const slots = this.slots.get(scopeId)?.get(slotName(limit.model)) ?? 0;
      return { taken: BigInt(slots), reserved: 0n, cap: amount };
    }
    if (isCalendarWindow(limit.window)) {
      const record = this.record(
        scopeId,
        calendarName(this.period(limit.window, now), limit.model),
      );
      return {
        taken: takenOf(record, limit.metric),
        reserved: heldOf(record, limit.metric),
        cap: amount,
      };
    }
    const window = limit.window as SlidingWindow;
    const stored = this.rings.get(scopeId)?.get(ringName(limit));
    const ring = touched(stored, window, now);
    let sum = 0;
    for (const count of ring.counts.values()) sum += count;
    return { taken: BigInt(sum), reserved: 0n, cap: capOf(limit, ring.birth, window, now) };
  }

  private fieldsOf(scope: PolicyScope, model: string, now: number): Charged {
    const slots = new Set([slotName(null)]);
    const calendars = new Set([calendarName(this.period('month', now), null)]);
    const rings = new Map<string, Charged['rings'][number]>();
    for (const limit of scope.limits) {
      if (limit.amount === null || (limit.model !== null && limit.model !== model)) continue;
      if (limit.metric === 'concurrency') slots.add(slotName(limit.model));
      else if (isCalendarWindow(limit.window)) {
        calendars.add(calendarName(this.period(limit.window, now), limit.model));
      } else {
        rings.set(ringName(limit), {
          field: ringName(limit),
          metric: limit.metric,
          window: limit.window as SlidingWindow,
        });
      }
    }
    return {
      scopeId: scope.id,
      slots: [...slots],
      calendars: [...calendars],
      rings: [...rings.values()],
    };
  }

  private release(
    lease: ModelLease,
    now: number,
    requests: number,
    input: number,
    output: number,
    cost: bigint,
  ): void {
    const { reserve } = lease.call;
    const heldOutput = reserve.budgetOutputTokens + lease.extraOutput;
    const heldCost = reserve.costNano + lease.extraCost;
    for (const { scopeId, slots, calendars, rings } of lease.charged) {
      for (const slot of slots) this.addSlot(scopeId, slot, -1);
      for (const field of calendars) {
        const record = this.record(scopeId, field);
        record.requests += BigInt(requests - 1);
        record.heldRequests -= 1n;
        this.hold(record, -reserve.budgetInputTokens, -heldOutput, -heldCost);
        record.input += BigInt(input);
        record.output += BigInt(output);
        record.cost += cost;
      }
      for (const { field, metric, window } of rings) {
        const reserved = windowAmount(
          metric,
          1,
          reserve.windowInputTokens,
          reserve.windowOutputTokens + lease.extraOutput,
        );
        const change = windowAmount(metric, requests, input, output) - reserved;
        if (change > 0) this.charge(scopeId, field, window, now, change);
        if (change < 0) {
          const grows = metric === 'tokens' || metric === 'output_tokens';
          const fromExtension = grows ? Math.min(-change, lease.lastExtension.tokens) : 0;
          this.refund(scopeId, field, window, now, lease.lastExtension.at, fromExtension);
          this.refund(scopeId, field, window, now, lease.reservedAt, -change - fromExtension);
        }
      }
    }
  }

  private hold(record: ModelRecord, input: number, output: number, cost: bigint): void {
    record.input += BigInt(input);
    record.output += BigInt(output);
    record.cost += cost;
    record.heldInput += BigInt(input);
    record.heldOutput += BigInt(output);
    record.heldCost += cost;
  }

  private charge(
    scopeId: string,
    field: string,
    window: SlidingWindow,
    now: number,
    amount: number,
  ): void {
    const rings = this.rings.get(scopeId) ?? new Map<string, Ring>();
    this.rings.set(scopeId, rings);
    this.touched.add(`${scopeId} ${field}`);
    const ring = touched(rings.get(field), window, now);
    ring.counts.set(ring.last, (ring.counts.get(ring.last) ?? 0) + amount);
    rings.set(field, ring);
  }

  private refund(
    scopeId: string,
    field: string,
    window: SlidingWindow,
    now: number,
    at: number,
    amount: number,
  ): void {
    const rings = this.rings.get(scopeId);
    const stored = rings?.get(field);
    if (!rings || !stored) throw new Error('a refund to a window that was never charged');
    this.touched.add(`${scopeId} ${field}`);
    const ring = touched(stored, window, now);
    rings.set(field, ring);
    const index = Math.floor(at / shapes[window].width);
    if (amount === 0 || index > ring.last || ring.last - index > shapes[window].parts) return;
    ring.counts.set(index, Math.max(0, (ring.counts.get(index) ?? 0) - amount));
  }

  private addSlot(scopeId: string, slot: string, by: number): void {
    const slots = this.slots.get(scopeId) ?? new Map<string, number>();
    this.slots.set(scopeId, slots);
    this.touched.add(`${scopeId} ${slot}`);
    slots.set(slot, (slots.get(slot) ?? 0) + by);
  }

  private record(scopeId: string, field: string): ModelRecord {
    const records = this.calendars.get(scopeId) ?? new Map<string, ModelRecord>();
    this.calendars.set(scopeId, records);
    this.touched.add(`${scopeId} ${field}`);
    const record = records.get(field) ?? noRecord();
    records.set(field, record);
    return record;
  }

  private period(window: CalendarWindow, at: number): Period {
    const known = this.periods.get(window);
    if (known && known.startsAt <= at && (known.endsAt === null || at < known.endsAt)) return known;
    const period = periodAt(window, at, this.timeZone);
    this.periods.set(window, period);
    return period;
  }
}

function touched(stored: Ring | undefined, window: SlidingWindow, now: number): Ring {
  const { width, parts } = shapes[window];
  const index = Math.floor(now / width);
  if (!stored) return { birth: now, last: index, counts: new Map() };
  if (stored.last - index > parts) {
    let sum = 0;
    for (const [at, count] of stored.counts) if (at >= stored.last - parts) sum += count;
    return { birth: stored.birth, last: index, counts: new Map([[index, sum]]) };
  }
  const last = Math.max(stored.last, index);
  const counts = new Map([...stored.counts].filter(([at]) => at >= last - parts));
  return { birth: stored.birth, last, counts };
}

function capOf(limit: Limit, birth: number, window: SlidingWindow, now: number): bigint {
  const amount = limit.amount ?? 0n;
  if (limit.metric !== 'requests') return amount;
  const { width, parts } = shapes[window];
  const age = BigInt(Math.max(0, now - birth));
  const length = BigInt(width * parts);
  if (age >= length) return amount;
  const cap = (amount + 2n) / 3n + (amount * age) / length;
  return cap < amount ? cap : amount;
}

function windowAmount(
  metric: Limit['metric'],
  requests: number,
  input: number,
  output: number,
): number {
  if (metric === 'requests') return requests;
  if (metric === 'input_tokens') return input;
  if (metric === 'output_tokens') return output;
  return input + output;
}

function requestOf(limit: Limit, reserve: Reservation): bigint {
  if (limit.metric === 'requests' || limit.metric === 'concurrency') return 1n;
  if (limit.metric === 'cost') return reserve.costNano;
  return isCalendarWindow(limit.window)
    ? BigInt(windowAmount(limit.metric, 1, reserve.budgetInputTokens, reserve.budgetOutputTokens))
    : BigInt(windowAmount(limit.metric, 1, reserve.windowInputTokens, reserve.windowOutputTokens));
}

function takenOf(record: ModelRecord, metric: Limit['metric']): bigint {
  if (metric === 'requests') return record.requests;
  if (metric === 'cost') return record.cost;
  if (metric === 'input_tokens') return record.input;
  if (metric === 'output_tokens') return record.output;
  return record.input + record.output;
}

function heldOf(record: ModelRecord, metric: Limit['metric']): bigint {
  if (metric === 'requests') return record.heldRequests;
  if (metric === 'cost') return record.heldCost;
  if (metric === 'input_tokens') return record.heldInput;
  if (metric === 'output_tokens') return record.heldOutput;
  return record.heldInput + record.heldOutput;
}

const slotName = (model: string | null): string => (model === null ? 'c' : `c|${model}`);
const calendarName = (period: Period, model: string | null): string =>
  model === null ? period.id : `${period.id}|${model}`;
const ringName = ({ metric, window, model }: Limit): string =>
  `${metric}/${window}${model === null ? '' : `|${model}`}`;
