import {
  isCalendarWindow,
  type Limit,
  newId,
  type PolicyScope,
  shardOf,
  type SlidingWindow,
} from '@weir/domain';
import fc from 'fast-check';
import {
  metricCodes,
  readCalendarRecord,
  readInFlight,
  readRing,
  slidingShapes,
} from '../counter-fields.js';
import { estimatedCharge } from '../estimated-charge.js';
import { LeaseReaper } from '../lease-reaper.js';
import type { Actual, AdmitResult, Lease, Observed } from '../quota-engine.js';
import type { ScriptSources } from '../script-sources.js';
import {
  bigintAsText,
  callOf,
  costOf,
  createTestbed,
  eventOf,
  limit,
  noon,
  priceOfTests,
  type Tenant,
  type Testbed,
  testZone,
} from './quota-testbed.js';
import { type ModelLease, noRecord, ReferenceModel } from './reference-model.js';

/** One step of a history. `pick` chooses among what there is at that moment. */
export type Operation =
  | {
      kind: 'admit';
      key: number;
      model: number;
      input: number;
      output: number;
      windowPercent: number;
    }
  | {
      kind: 'admitTogether';
      key: number;
      model: number;
      input: number;
      output: number;
      count: number;
    }
  | { kind: 'admitAgain'; pick: number }
  | { kind: 'settle'; pick: number; inputPercent: number; outputPercent: number }
  | { kind: 'settleAgain'; pick: number }
  | { kind: 'extend'; pick: number; tokens: number }
  | { kind: 'void'; pick: number }
  | { kind: 'voidFirst'; key: number }
  | { kind: 'renew'; pick: number; observe: boolean }
  | { kind: 'advance'; ms: number }
  | { kind: 'stepBack'; ms: number }
  | { kind: 'reap' }
  | { kind: 'editLimit'; scope: number; limit: number; percent: number };

export type History = {
  readonly departments: number;
  readonly keys: number;
  readonly limits: readonly {
    scope: number;
    shape: number;
    percent: number;
    model: number;
    mode: number;
  }[];
  /** Strict: nothing uses more than it reserved, no limit changes, the clock only goes on. No limit is ever passed. */
  readonly strict: boolean;
  readonly operations: readonly Operation[];
};

export type PropertyOptions = {
  readonly url: string;
  readonly cluster?: boolean;
  readonly scripts?: ScriptSources;
  readonly runs: number;
  readonly operations: number;
  readonly seed?: number;
};

const models = ['m', 'n'];

/** Limits tight enough that histories keep running into them; amounts at 100 %. */
const limitShapes: readonly { metric: Limit['metric']; window: Limit['window']; amount: number }[] =
  [
    { metric: 'concurrency', window: null, amount: 12 },
    { metric: 'requests', window: 'second', amount: 6 },
    { metric: 'requests', window: 'minute', amount: 40 },
    { metric: 'requests', window: 'hour', amount: 400 },
    { metric: 'requests', window: 'day', amount: 700 },
    { metric: 'tokens', window: 'minute', amount: 4_000 },
    { metric: 'tokens', window: 'hour', amount: 40_000 },
    { metric: 'input_tokens', window: 'minute', amount: 1_500 },
    { metric: 'output_tokens', window: 'minute', amount: 2_500 },
    { metric: 'tokens', window: 'day', amount: 60_000 },
    { metric: 'output_tokens', window: 'week', amount: 150_000 },
    { metric: 'input_tokens', window: 'month', amount: 200_000 },
    { metric: 'cost', window: 'day', amount: 500_000_000_000 },
    { metric: 'cost', window: 'week', amount: 1_500_000_000_000 },
    { metric: 'cost', window: 'month', amount: 5_000_000_000_000 },
    { metric: 'cost', window: 'total', amount: 9_000_000_000_000 },
  ];

const pick = fc.nat(1_000);

function operation(strict: boolean): fc.Arbitrary<Operation> {
  const percent = fc.integer({ min: 0, max: strict ? 100 : 130 });
  const kinds: { weight: number; arbitrary: fc.Arbitrary<Operation> }[] = [
    {
      weight: 40,
      arbitrary: fc.record({
        kind: fc.constant('admit' as const),
        key: fc.nat(7),
        model: fc.nat(1),
        input: fc.nat(120),
        output: fc.nat(250),
        windowPercent: strict ? fc.constant(100) : fc.constantFrom(50, 100, 0),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('admitTogether' as const),
        key: fc.nat(7),
        model: fc.nat(1),
        input: fc.nat(60),
        output: fc.nat(100),
        count: fc.integer({ min: 2, max: 12 }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('admitAgain' as const), pick }) },
    {
      weight: 28,
      arbitrary: fc.record({
        kind: fc.constant('settle' as const),
        pick,
        inputPercent: percent,
        outputPercent: percent,
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('settleAgain' as const), pick }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('void' as const), pick }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('voidFirst' as const), key: fc.nat(7) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('renew' as const), pick, observe: fc.boolean() }),
    },
    {
      weight: 14,
      arbitrary: fc.record({
        kind: fc.constant('advance' as const),
        ms: fc.oneof(
          { weight: 30, arbitrary: fc.integer({ min: 1, max: 400 }) },
          { weight: 30, arbitrary: fc.integer({ min: 1_000, max: 9_000 }) },
          { weight: 12, arbitrary: fc.integer({ min: 10_000, max: 90_000 }) },
          { weight: 4, arbitrary: fc.integer({ min: 100_000, max: 4_000_000 }) },
          { weight: 2, arbitrary: fc.integer({ min: 20_000_000, max: 300_000_000 }) },
        ),
      }),
    },
    { weight: 2, arbitrary: fc.constant({ kind: 'reap' as const }) },
  ];
  if (!strict) {
    kinds.push(
      {
        weight: 6,
        arbitrary: fc.record({ kind: fc.constant('extend' as const), pick, tokens: fc.nat(200) }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant('stepBack' as const),
          ms: fc.oneof(
            { weight: 5, arbitrary: fc.integer({ min: 1, max: 6_000 }) },
            { weight: 1, arbitrary: fc.integer({ min: 60_000, max: 600_000 }) },
          ),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.constant('editLimit' as const),
          scope: fc.nat(20),
          limit: fc.nat(20),
          percent: fc.integer({ min: 0, max: 200 }),
        }),
      },
    );
  }
  return fc.oneof(...kinds);
}

function history(operations: number): fc.Arbitrary<History> {
  return fc.boolean().chain((strict) =>
    fc.record({
      departments: fc.integer({ min: 1, max: 5 }),
      keys: fc.integer({ min: 1, max: 5 }),
      limits: fc.array(
        fc.record({
          scope: fc.nat(20),
          shape: fc.nat(limitShapes.length - 1),
          percent: fc.integer({ min: 10, max: 300 }),
          model: fc.constantFrom(0, 0, 0, 1, 2),
          mode: fc.constantFrom(0, 0, 0, 0, 1, 2),
        }),
        { minLength: 4, maxLength: 24, size: 'max' },
      ),
      strict: fc.constant(strict),
      operations: fc.array(operation(strict), {
        minLength: operations,
        maxLength: operations,
        size: 'max',
      }),
    }),
  );
}

/** Runs random histories; resolves with what went wrong first, or null. The text names the seed to run it again. */
export async function checkQuotaProperty(options: PropertyOptions): Promise<string | null> {
  let failure: string | null = null;
  const result = await fc.check(
    fc.asyncProperty(history(options.operations), async (drawn) => {
      failure = await runHistory(options, drawn);
      return failure === null;
    }),
    {
      numRuns: options.runs,
      endOnFailure: true,
      ...(options.seed === undefined ? {} : { seed: options.seed }),
    },
  );
  if (!result.failed) return null;
  const reason = failure ?? String(result.errorInstance);
  return `seed ${result.seed}, run ${result.numRuns}: ${reason}`;
}

async function runHistory(options: PropertyOptions, drawn: History): Promise<string | null> {
  const bed = await createTestbed({
    url: options.url,
    cluster: options.cluster ?? false,
    shardCount: 1,
    ...(options.scripts ? { scripts: options.scripts } : {}),
  });
  const run = new HistoryRun(bed, drawn);
  let step = 0;
  try {
    for (const next of drawn.operations) {
      await run.step(next);
      step += 1;
    }
    await run.end();
    return null;
  } catch (error) {
    const last = drawn.operations.slice(Math.max(0, step - 2), step + 1);
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return `operation ${step} of a ${drawn.strict ? 'strict' : 'free'} history failed: ${message}\nlast operations: ${JSON.stringify(last)}`;
  } finally {
    await bed.close();
  }
}

/** One history: the real engine and the reference model side by side. */
class HistoryRun {
  private readonly model = new ReferenceModel(testZone);
  private readonly reaper: LeaseReaper;
  private readonly scopes: PolicyScope[] = [];
  private readonly parents: number[] = [];
  private keyScopes: number[] = [];
  private readonly leases: { lease: Lease; model: ModelLease }[] = [];
  private readonly enterpriseId = newId();
  private paths = new Map<number, Tenant>();
  /** The fields as they were last found right. */
  private readonly verified = new Map<string, Record<string, Buffer>>();
  private now = noon;
  private steps = 0;

  constructor(
    private readonly bed: Testbed,
    private readonly drawn: History,
  ) {
    this.reaper = new LeaseReaper(bed.redis, { batch: 1_000 });
    this.buildTree();
  }

  async step(next: Operation): Promise<void> {
    this.steps += 1;
    // The look goes out right behind the operation on the same connection: nothing can come between them.
    const done = this.run(next);
    const seen = this.readCounters();
    await done;
    await this.compare(await seen, next);
    if (this.steps % 500 === 0) await this.checkBooks();
  }

  /** Everything ends or expires: nothing may be left. */
  async end(): Promise<void> {
    await this.moveTo(this.now + 3_600_000);
    await this.reap();
    await this.compare(await this.readCounters(), { kind: 'reap' });
    await this.checkBooks();
    for (const [scopeId, slots] of this.model.slots) {
      for (const [slot, count] of slots) {
        if (count !== 0) throw new Error(`${slot} of ${scopeId} leaked: ${count}`);
      }
    }
    for (const records of this.model.calendars.values()) {
      for (const record of records.values()) {
        const held = [record.heldRequests, record.heldInput, record.heldOutput, record.heldCost];
        if (held.some((amount) => amount !== 0n)) throw new Error('a reservation leaked');
      }
    }
    const open = await this.bed.redis.client.zcard(this.bed.redis.keys(0).leases);
    if (open !== 0) throw new Error(`${open} leases are left`);
  }

  private async run(next: Operation): Promise<void> {
    switch (next.kind) {
      case 'admit':
        return this.admit(next, 1);
      case 'admitTogether':
        return this.admit({ ...next, windowPercent: 100 }, next.count);
      case 'admitAgain':
        return this.admitAgain(this.pickOf(next.pick));
      case 'settle': {
        const picked = this.pickOf(next.pick);
        return picked && this.settle(picked, next.inputPercent, next.outputPercent);
      }
      case 'settleAgain': {
        const ended = this.leases.filter(({ model }) => model.state === 'settled').slice(-20);
        const picked = ended[next.pick % Math.max(1, ended.length)];
        return picked && this.settle(picked, 50, 50);
      }
      case 'extend':
        return this.extend(this.pickOf(next.pick), next.tokens);
      case 'void': {
        const picked = this.pickOf(next.pick);
        if (!picked) return;
        if (picked.model.state === 'reserved') this.model.void(picked.model, this.now);
        await this.bed.engine.void(picked.lease);
        return;
      }
      case 'voidFirst':
        return this.voidFirst(next.key);
      case 'renew':
        return this.renew(this.pickOf(next.pick), next.observe);
      case 'advance':
        return this.moveTo(this.now + next.ms);
      case 'stepBack':
        return this.moveTo(this.now - next.ms);
      case 'reap':
        return this.reap();
      case 'editLimit':
        return this.editLimit(next.scope, next.limit, next.percent);
    }
  }

  private async admit(
    next: { key: number; model: number; input: number; output: number; windowPercent: number },
    count: number,
  ): Promise<void> {
    const caller = this.callerOf(next.key);
    const { now } = this;
    const attempts = Array.from({ length: count }, () => {
      const call = callOf(caller, {
        model: models[next.model] ?? 'm',
        input: next.input,
        output: next.output,
        windowOutput: Math.ceil((next.output * next.windowPercent) / 100),
        leaseMs: 30_000,
      });
      return { call, prediction: this.model.admit(call, now) };
    });
    const results = await Promise.all(attempts.map(({ call }) => this.bed.engine.admit(call)));
    attempts.forEach(({ call, prediction }, index) => {
      const result = results[index];
      if (!result) throw new Error('no result');
      same('outcome', result.outcome, prediction.outcome);
      if (result.outcome === 'admitted' && prediction.outcome === 'admitted') {
        const model = this.model.leases.get(call.leaseId);
        if (!model) throw new Error('the model has no lease');
        this.leases.push({ lease: result.lease, model });
        for (const { limitId, remaining } of result.remaining) {
          same(`remaining of ${limitId}`, remaining, prediction.remaining.get(limitId));
        }
        this.checkWindowsOf(caller, call.model);
      }
      if (result.outcome === 'refused' && prediction.outcome === 'refused') {
        const hard = this.hardIds(caller);
        const expected = [...prediction.passed].filter(([id]) => hard.has(id));
        same(
          'violations',
          Object.fromEntries(
            result.violations.map(({ limitId, used, reserved, requested }) => [
              limitId,
              { used, reserved, requested },
            ]),
          ),
          Object.fromEntries(expected),
        );
      }
    });
  }

  private async admitAgain(picked: { lease: Lease; model: ModelLease } | undefined): Promise<void> {
    if (!picked) return;
    const again: AdmitResult | 'ended' = await this.bed.engine
      .admit(picked.model.call)
      .catch((error: unknown) => {
        if (error instanceof Error && 'code' in error && error.code === 'conflict') return 'ended';
        throw error;
      });
    if (picked.model.state !== 'reserved') {
      same('a second admission', again, 'ended');
      return;
    }
    if (again === 'ended' || again.outcome !== 'admitted')
      throw new Error('admitted once, not twice');
    same('the lease', again.lease.id, picked.lease.id);
    same('the reservation', again.lease.reservedAtMs, picked.lease.reservedAtMs);
  }

  private async settle(
    picked: { lease: Lease; model: ModelLease },
    inputPercent: number,
    outputPercent: number,
  ): Promise<void> {
    const { lease, model } = picked;
    const caller = this.callerFor(model);
    const input = part(model.call.reserve.budgetInputTokens, inputPercent);
    const output = part(model.call.reserve.budgetOutputTokens + model.extraOutput, outputPercent);
    const used: Actual = {
      inputTokens: input,
      outputTokens: output,
      costNano: costOf(input, output),
    };
    const before = model.state;
    // Strict: no call uses more than is held for it. For an expired one only what it was charged is held any longer.
    const held = before === 'expired' && this.drawn.strict ? chargeOf(model) : used;
    const actual = used.costNano > held.costNano ? held : used;
    if (before === 'reserved') this.model.settle(model, actual, this.now);
    if (before === 'expired') {
      this.model.adjust(model, actual.costNano - chargeOf(model).costNano);
    }
    const expected = {
      reserved: 'settled',
      settled: 'already_settled',
      voided: 'void',
      expired: 'late',
    }[before];
    const result = await this.bed.engine.settle(lease, actual, eventOf(caller, lease, actual));
    same('settlement', result.outcome, expected);
  }

  private async extend(
    picked: { lease: Lease; model: ModelLease } | undefined,
    tokens: number,
  ): Promise<void> {
    if (!picked) return;
    const { lease, model } = picked;
    const observed: Observed = {
      inputTokens: model.call.reserve.budgetInputTokens,
      outputTokens: tokens,
      costNano: costOf(0, tokens),
    };
    let expected: string;
    if (model.state === 'reserved') {
      const passed = this.model.extend(model, tokens, costOf(0, tokens), observed, this.now);
      expected = passed.length > 0 ? `refused ${passed.sort().join()}` : 'granted';
    } else {
      expected = 'gone';
    }
    const result = await this.bed.engine.extend(lease, {
      outputTokens: tokens,
      costNano: costOf(0, tokens),
      observed,
    });
    const got =
      result.outcome === 'refused'
        ? `refused ${result.violations
            .map(({ limitId }) => limitId)
            .sort()
            .join()}`
        : result.outcome;
    same('extension', got, expected);
  }

  private async voidFirst(key: number): Promise<void> {
    const call = callOf(this.callerOf(key));
    await this.bed.engine.void({ id: call.leaseId, shard: 0, enterpriseId: this.enterpriseId });
    const outcome = await this.bed.engine.admit(call).then(
      () => 'admitted',
      () => 'ended',
    );
    same('an admission after its void', outcome, 'ended');
  }

  private async renew(
    picked: { lease: Lease; model: ModelLease } | undefined,
    observe: boolean,
  ): Promise<void> {
    if (!picked) return;
    const observed = observe ? { inputTokens: 3, outputTokens: 5, costNano: costOf(3, 5) } : null;
    const isAlive = picked.model.state === 'reserved';
    if (isAlive) this.model.renew(picked.model, 30_000, observed, this.now);
    const alive = await this.bed.engine.renew([{ lease: picked.lease, observed, leaseMs: 30_000 }]);
    same('alive', alive.has(picked.lease.id), isAlive);
  }

  private async moveTo(atMs: number): Promise<void> {
    this.now = atMs;
    await this.bed.setNow(atMs);
  }

  private async reap(): Promise<void> {
    const expired = this.model.expired(this.now);
    for (const lease of expired) this.model.expire(lease, chargeOf(lease), this.now);
    let reaped = 0;
    for (;;) {
      const batch = await this.reaper.reap(0);
      reaped += batch;
      if (batch === 0) break;
    }
    same('reaped', reaped, expired.length);
  }

  private async editLimit(scopeAt: number, limitAt: number, percent: number): Promise<void> {
    const index = scopeAt % this.scopes.length;
    const scope = this.scopes[index];
    const old = scope?.limits[limitAt % Math.max(1, scope.limits.length)];
    if (!scope || !old || old.amount === null) return;
    const amount = (old.amount * BigInt(percent)) / 100n;
    this.scopes[index] = {
      ...scope,
      limits: scope.limits.map((each) => (each === old ? { ...old, amount } : each)),
    };
    this.paths = new Map();
    await Promise.resolve();
  }

  /** Everything Redis holds of this tree equals the model: so a refused call changed nothing, and nothing else leaks in. */
  private async compare(seen: Map<string, Record<string, Buffer>>, next: Operation): Promise<void> {
    try {
      this.compareNow(seen);
    } catch {
      // The operation may have needed a second trip (a period turned, a script was not loaded), the look overtook it.
      this.compareNow(await this.readCounters());
    }
    if (this.drawn.strict && next.kind !== 'advance') this.checkLimits();
  }

  private compareNow(seen: Map<string, Record<string, Buffer>>): void {
    for (const scope of this.scopes) {
      const fields = seen.get(scope.id) ?? {};
      const before = this.verified.get(scope.id) ?? {};
      const names = new Set([
        ...Object.keys(fields),
        ...(this.model.slots.get(scope.id)?.keys() ?? []),
        ...(this.model.calendars.get(scope.id)?.keys() ?? []),
        ...(this.model.rings.get(scope.id)?.keys() ?? []),
      ]);
      for (const field of names) {
        const value = fields[field] ?? null;
        const isSame = value !== null && before[field]?.equals(value) === true;
        // The same bytes as when they were found right, and nothing was to happen to them: still right.
        if (isSame && !this.model.touched.has(`${scope.id} ${field}`)) continue;
        this.compareField(scope, field, value);
      }
      this.verified.set(scope.id, fields);
    }
    this.model.touched.clear();
  }

  private compareField(scope: PolicyScope, field: string, value: Buffer | null): void {
    const what = `${scope.level} ${field}`;
    if (field.startsWith('c')) {
      const count = this.model.slots.get(scope.id)?.get(field) ?? 0;
      same(what, readInFlight(value), count);
    } else if (field.includes('/')) {
      const window = /\/(\w+)/.exec(field)?.[1] as SlidingWindow;
      const ring = this.model.rings.get(scope.id)?.get(field);
      same(
        what,
        Object.fromEntries(countedOf(value, window, this.now)),
        ring ? Object.fromEntries(this.model.counted(ring, window, this.now)) : {},
      );
    } else {
      // What is two periods old may be gone.
      if (value === null && !this.isRecent(field)) return;
      const stored = readCalendarRecord(value);
      same(
        what,
        {
          requests: stored.requests + stored.reservedRequests,
          input: stored.inputTokens + stored.reservedInputTokens,
          output: stored.outputTokens + stored.reservedOutputTokens,
          cost: stored.costNano + stored.reservedCostNano,
          heldRequests: stored.reservedRequests,
          heldInput: stored.reservedInputTokens,
          heldOutput: stored.reservedOutputTokens,
          heldCost: stored.reservedCostNano,
        },
        { ...noRecord(), ...this.model.calendars.get(scope.id)?.get(field) },
      );
    }
  }

  private isRecent(field: string): boolean {
    const period = field.split('|')[0] ?? '';
    const month = new Date(this.now + 8 * 3_600_000).toISOString().slice(0, 7);
    return period === 'total' || period.startsWith(month);
  }

  /** Invariant 2, calendar and concurrency: in a strict history no hard limit is passed at any instant. */
  private checkLimits(): void {
    for (const scope of this.scopes) {
      for (const each of scope.limits) {
        if (each.mode !== 'hard' || each.amount === null) continue;
        const { taken } = this.model.countOf(scope.id, each, this.now);
        if (taken > each.amount) {
          throw new Error(`${each.metric}/${each.window} is at ${taken} of ${each.amount}`);
        }
      }
    }
  }

  /** Invariant 2, sliding windows, from the calls themselves: what was admitted in the last W is within the amount. */
  private checkWindowsOf(caller: Tenant, model: string): void {
    if (!this.drawn.strict) return;
    for (const [depth, scope] of caller.path.entries()) {
      for (const each of scope.limits) {
        const { window, amount } = each;
        if (each.mode !== 'hard' || amount === null || window === null) continue;
        if (isCalendarWindow(window) || (each.model !== null && each.model !== model)) continue;
        const { widthMs, parts } = slidingShapes[window];
        let sum = 0n;
        for (let at = this.leases.length - 1; at >= 0; at -= 1) {
          const lease = this.leases[at]?.model;
          if (!lease || lease.reservedAt <= this.now - widthMs * parts) break;
          const counts =
            lease.state === 'reserved' &&
            lease.call.path[depth]?.id === scope.id &&
            (each.model === null || each.model === lease.call.model);
          if (counts) sum += BigInt(askOf(each, lease));
        }
        if (sum > amount)
          throw new Error(`${each.metric}/${window}: ${sum} of ${amount} in one window`);
      }
    }
  }

  /** Invariants 4, 5 and 6: one event per call, numbered without holes; counters = Σ events; parents = Σ children. */
  private async checkBooks(): Promise<void> {
    const entries = await this.bed.outbox(0);
    same('events', entries.length, this.model.events);
    same('numbers', entries.at(-1)?.seq ?? 0, entries.length);
    const ids = new Set(entries.map(({ id }) => id));
    same('events with an id of their own', ids.size, entries.length);
    const booked = new Map<string, bigint>();
    for (const { event } of entries) {
      const { data } = event;
      for (const { id } of [data.enterprise, ...data.departments, data.user, data.key]) {
        const key = `${id} ${data.periodId}`;
        booked.set(key, (booked.get(key) ?? 0n) + BigInt(data.costNano));
      }
    }
    const children = new Map<string, bigint>();
    this.scopes.forEach((scope, index) => {
      for (const [field, record] of this.model.calendars.get(scope.id) ?? []) {
        if (!/^\d{4}-\d{2}$/.test(field)) continue;
        same(
          `booked of ${scope.level} ${field}`,
          record.cost - record.heldCost,
          booked.get(`${scope.id} ${field}`) ?? 0n,
        );
        const parent = this.parents[index];
        if (parent === undefined || parent < 0) continue;
        const key = `${this.scopes[parent]?.id} ${field}`;
        children.set(key, (children.get(key) ?? 0n) + record.cost - record.heldCost);
      }
    });
    for (const [key, sum] of children) same(`Σ children of ${key}`, sum, booked.get(key) ?? 0n);
  }

  private async readCounters(): Promise<Map<string, Record<string, Buffer>>> {
    const keys = this.bed.redis.keys(0);
    const reply = (await this.bed.redis.client.callBuffer(
      'EVAL',
      readAll,
      this.scopes.length,
      ...this.scopes.map((scope) => keys.scope(scope.id)),
    )) as Buffer[][];
    return new Map(
      this.scopes.map((scope, index) => {
        const fields: Record<string, Buffer> = {};
        const flat = reply[index] ?? [];
        for (let at = 0; at + 1 < flat.length; at += 2) {
          fields[String(flat[at])] = flat[at + 1] ?? Buffer.alloc(0);
        }
        return [scope.id, fields];
      }),
    );
  }

  /** A chain of departments, one user per key under one of them. */
  private buildTree(): void {
    const add = (scope: PolicyScope, parent: number): number => {
      this.scopes.push(scope);
      this.parents.push(parent);
      return this.scopes.length - 1;
    };
    const root = add({ level: 'enterprise', id: this.enterpriseId, name: 'E', limits: [] }, -1);
    const departments: number[] = [];
    for (let depth = 0; depth < this.drawn.departments; depth += 1) {
      const parent = departments[depth - 1] ?? root;
      departments.push(add({ level: 'department', id: newId(), name: 'D', limits: [] }, parent));
    }
    for (let key = 0; key < this.drawn.keys; key += 1) {
      const department = departments[key % departments.length] ?? root;
      const user = add({ level: 'user', id: newId(), name: 'U', limits: [] }, department);
      this.keyScopes = [
        ...this.keyScopes,
        add({ level: 'key', id: newId(), name: 'K', limits: [] }, user),
      ];
    }
    for (const { scope: at, shape, percent, model, mode } of this.drawn.limits) {
      const index = at % this.scopes.length;
      const scope = this.scopes[index];
      const chosen = limitShapes[shape];
      if (!scope || !chosen) continue;
      this.scopes[index] = {
        ...scope,
        limits: [
          ...scope.limits,
          limit({
            ...chosen,
            amount: BigInt(Math.max(1, Math.floor((chosen.amount * percent) / 100))),
            model: model === 0 ? null : (models[model - 1] ?? null),
            mode: mode === 1 ? 'soft' : mode === 2 ? 'shadow' : 'hard',
          }),
        ],
      };
    }
  }

  private callerOf(key: number): Tenant {
    const index = this.keyScopes[key % this.keyScopes.length] ?? 0;
    const known = this.paths.get(index);
    if (known) return known;
    const path: PolicyScope[] = [];
    for (let at = index; at >= 0; at = this.parents[at] ?? -1) {
      const scope = this.scopes[at];
      if (scope) path.unshift(scope);
    }
    const caller = { enterpriseId: this.enterpriseId, shard: shardOf(this.enterpriseId, 1), path };
    this.paths.set(index, caller);
    return caller;
  }

  private callerFor({ call }: ModelLease): Tenant {
    return { enterpriseId: this.enterpriseId, shard: 0, path: call.path };
  }

  private hardIds({ path }: Tenant): Set<string> {
    return new Set(
      path.flatMap(({ limits }) =>
        limits.filter(({ mode }) => mode === 'hard').map(({ id }) => id),
      ),
    );
  }

  /** Mostly running calls, sometimes one that has ended; none so old that its period may be cleared. */
  private pickOf(number: number): { lease: Lease; model: ModelLease } | undefined {
    const recent = this.leases
      .slice(-200)
      .filter(({ model }) => this.now - model.reservedAt < 20 * 86_400_000);
    const running = recent.filter(({ model }) => model.state === 'reserved');
    const pool = number % 10 === 0 || running.length === 0 ? recent : running;
    return pool[Math.floor(number / 10) % Math.max(1, pool.length)];
  }
}

/** All hashes at one instant, in one trip. */
const readAll = `#!lua flags=no-writes
local all = {}
for i = 1, #KEYS do
  all[i] = redis.call('HGETALL', KEYS[i])
end
return all`;

function askOf(each: Limit, { call }: ModelLease): number {
  const { windowInputTokens, windowOutputTokens } = call.reserve;
  if (metricCodes[each.metric] === metricCodes.requests) return 1;
  if (each.metric === 'input_tokens') return windowInputTokens;
  if (each.metric === 'output_tokens') return windowOutputTokens;
  return windowInputTokens + windowOutputTokens;
}

function countedOf(value: Buffer | null, window: SlidingWindow, now: number): Map<number, number> {
  if (value === null) return new Map();
  const { widthMs, parts } = slidingShapes[window];
  const { total, counts } = readRing(value, window);
  same(
    'total of a window',
    total,
    counts.reduce((sum, [, count]) => sum + count, 0),
  );
  const oldest = Math.floor(now / widthMs) - parts;
  const counted = new Map<number, number>();
  for (const [index, count] of counts) {
    if (index >= oldest && count !== 0) counted.set(index, count);
  }
  return counted;
}

/** What the reaper charges, by the documented rule. */
function chargeOf({ observed, call }: ModelLease): Actual {
  const seen = observed ?? {
    inputTokens: call.reserve.budgetInputTokens,
    outputTokens: 0,
    costNano: 0n,
  };
  return {
    inputTokens: seen.inputTokens,
    outputTokens: seen.outputTokens,
    costNano: estimatedCharge(priceOfTests, seen).costNano,
  };
}

function part(amount: number, percent: number): number {
  return Math.floor((amount * percent) / 100);
}

function same(what: string, got: unknown, expected: unknown): void {
  if (got === expected) return;
  const [left, right] = [got, expected].map((value) => JSON.stringify(sorted(value), bigintAsText));
  if (left !== right) throw new Error(`${what}: ${left}, expected ${right}`);
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
