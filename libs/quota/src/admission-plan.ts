import {
  type CalendarWindow,
  isCalendarWindow,
  type Limit,
  type Metric,
  maxPathLength,
  type Period,
  periodAt,
  type PolicyScope,
  type ScopeRef,
  type SlidingWindow,
} from '@weir/domain';
import {
  calendarField,
  concurrencyField,
  metricCodes,
  slidingField,
  slidingShapes,
  versionField,
} from './counter-fields.js';
import { safeId, type ShardKeys } from './keys.js';
import { limbsOf, packDoubles } from './limbs.js';
import { type PackedItem, packList } from './msgpack.js';

/** One limit of the plan, in the order in which the scripts number them. */
export type PlannedCheck = {
  readonly scopeIndex: number;
  readonly scope: PolicyScope;
  /** The scope as answers name it. */
  readonly scopeRef: ScopeRef;
  readonly limit: Limit & { readonly amount: bigint };
  readonly kind: 'concurrency' | 'calendar' | 'sliding';
  /** The calendar period it counts in; null for other kinds. */
  readonly period: Period | null;
};

/**
 * All that the scripts need to know of a path and the limits that apply to a model on it, packed once and used for every call until the policy or a
 * calendar period changes.
 */
export type AdmissionPlan = {
  readonly scopeKeys: readonly string[];
  readonly checks: readonly PlannedCheck[];
  /** The plan as admit and extend read it (lua/includes/plan.lua). */
  readonly packed: readonly [names: Buffer, numbers: Buffer];
  /** What settling needs, kept with the lease. */
  readonly descriptor: Buffer;
  readonly month: Period;
  /** The instants between which no calendar period of the plan turns. */
  readonly validFromMs: number;
  readonly validUntilMs: number;
};

/** How the scripts number the kinds of a check (lua/admit.lua). */
const kindCodes = { concurrency: 1, calendar: 2, sliding: 3 } as const;

/** No end of validity: further than any clock. */
const never = 8.64e15;

/**
 * @param atMs an instant within the periods wanted.
 */
export function planAdmission(
  keys: ShardKeys,
  path: readonly PolicyScope[],
  timeZone: string,
  model: string,
  atMs: number,
): AdmissionPlan {
  if (path.length === 0 || path.length > maxPathLength) {
    throw new RangeError(`a path has 1 to ${maxPathLength} scopes, not ${path.length}`);
  }
  const periods = new PeriodsAt(atMs, timeZone);
  const month = periods.at('month');
  const names: string[] = [];
  const numbers: Buffer[] = [];
  const descriptor: PackedItem[] = [path.length];
  const checks: PlannedCheck[] = [];
  const scopeKeys: string[] = [];
  path.forEach((scope, scopeIndex) => {
    const limits = scope.limits.filter(
      (limit): limit is Limit & { amount: bigint } =>
        limit.amount !== null && (limit.model === null || limit.model === model),
    );
    const scopeRef = { level: scope.level, id: scope.id, name: scope.name };
    const slots = new Ordered();
    const calendars = new Ordered();
    const rings = new Ordered<RingShape>();
    slots.add(concurrencyField(null));
    calendars.add(calendarField(month.id, null));
    const counted: { check: PlannedCheck; ordinal: number }[] = [];
    for (const limit of limits) {
      const { window } = limit;
      let kind: PlannedCheck['kind'];
      let period: Period | null = null;
      let ordinal: number;
      if (limit.metric === 'concurrency') {
        kind = 'concurrency';
        ordinal = slots.add(concurrencyField(limit.model));
      } else if (isCalendarWindow(window)) {
        kind = 'calendar';
        period = periods.at(window);
        ordinal = calendars.add(calendarField(period.id, limit.model));
      } else {
        if (window === null) throw new RangeError(`a limit on ${limit.metric} needs a window`);
        kind = 'sliding';
        ordinal = rings.add(
          slidingField(limit.metric, window, limit.model),
          ringOf(limit.metric, window),
        );
      }
      counted.push({ check: { scopeIndex, scope, scopeRef, limit, kind, period }, ordinal });
    }
    // The fields of a scope stand in a row: concurrency, calendar, rings.
    const before = {
      concurrency: 0,
      calendar: slots.names.length,
      sliding: slots.names.length + calendars.names.length,
    };
    names.push(...slots.names, ...calendars.names, ...rings.names);
    if (scopeIndex === 0) names.push(versionField);
    const counts = [slots.names.length, calendars.names.length, rings.names.length, counted.length];
    numbers.push(...counts.map(uint16));
    for (const ring of rings.extras) numbers.push(packRing(ring));
    for (const { check, ordinal } of counted) {
      numbers.push(packCheck(check, before[check.kind] + ordinal));
      checks.push(check);
    }
    descriptor.push(
      safeId(scope.id),
      slots.names.length,
      calendars.names.length,
      rings.names.length,
    );
    descriptor.push(...slots.names, ...calendars.names, ...rings.names, ...rings.extras.flat());
    scopeKeys.push(keys.scope(scope.id));
  });
  const { validFromMs, validUntilMs } = periods.validity();
  return {
    scopeKeys,
    checks,
    packed: [
      packList([...names, ...periods.oldestToKeep()]),
      Buffer.concat([
        packDoubles([validFromMs, validUntilMs]),
        Buffer.from([path.length]),
        ...numbers,
      ]),
    ],
    descriptor: packList(descriptor),
    month,
    validFromMs,
    validUntilMs,
  };
}

type RingShape = readonly [metric: number, widthMs: number, parts: number];

function ringOf(metric: Metric, window: SlidingWindow): RingShape {
  const { widthMs, parts } = slidingShapes[window];
  return [metricCodes[metric], widthMs, parts];
}

function packRing([metric, widthMs, parts]: RingShape): Buffer {
  return Buffer.concat([Buffer.from([metric]), uint32(widthMs), Buffer.from([parts])]);
}

/** @param field number of the counter's field among those of the scope, from 1 */
function packCheck({ kind, limit }: PlannedCheck, field: number): Buffer {
  const isSliding = limit.window !== null && !isCalendarWindow(limit.window);
  const { widthMs, parts } = isSliding ? slidingShapes[limit.window] : { widthMs: 0, parts: 0 };
  return Buffer.concat([
    Buffer.from([kindCodes[kind]]),
    uint16(field),
    Buffer.from([metricCodes[limit.metric]]),
    packDoubles(limbsOf(limit.amount)),
    Buffer.from([limit.mode === 'hard' ? 1 : 0]),
    uint32(widthMs),
    Buffer.from([parts]),
  ]);
}

function uint16(number: number): Buffer {
  const packed = Buffer.alloc(2);
  packed.writeUInt16LE(number);
  return packed;
}

function uint32(number: number): Buffer {
  const packed = Buffer.alloc(4);
  packed.writeUInt32LE(number);
  return packed;
}

/** Names in order of first use, numbered from 1 as Lua counts. */
class Ordered<Extra = undefined> {
  readonly names: string[] = [];
  readonly extras: Extra[] = [];

  add(name: string, ...extra: Extra extends undefined ? [] : [Extra]): number {
    const known = this.names.indexOf(name);
    if (known >= 0) return known + 1;
    this.names.push(name);
    if (extra.length > 0) this.extras.push(extra[0] as Extra);
    return this.names.length;
  }
}

/** The calendar periods of one instant, each worked out once, and how long they hold together. */
export class PeriodsAt {
  private readonly known = new Map<CalendarWindow, Period>();

  constructor(
    private readonly atMs: number,
    private readonly timeZone: string,
  ) {}

  at(window: CalendarWindow): Period {
    let period = this.known.get(window);
    if (!period) {
      period = periodAt(window, this.atMs, this.timeZone);
      this.known.set(window, period);
    }
    return period;
  }

  validity(): { validFromMs: number; validUntilMs: number } {
    const periods = [...this.known.values()];
    return {
      validFromMs: Math.max(...periods.map((period) => period.startsAt)),
      validUntilMs: Math.min(...periods.map((period) => period.endsAt ?? never)),
    };
  }

  /** Ids of the previous day, week and month: what is older may go. */
  oldestToKeep(): [day: string, week: string, month: string] {
    const previous = (window: CalendarWindow): string => {
      const current = periodAt(window, this.atMs, this.timeZone);
      return periodAt(window, current.startsAt - 1, this.timeZone).id;
    };
    return [previous('day'), previous('week'), previous('month')];
  }
}
