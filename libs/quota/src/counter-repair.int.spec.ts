import { newId } from '@weir/domain';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CounterFigures, CounterRepair, type Repair } from './counter-repair.js';
import type { QuotaEngine } from './quota-engine.js';
import {
  actualOf,
  admitted,
  callOf,
  costOf,
  createTestbed,
  eventOf,
  peek,
  requiredUrl,
  type Tenant,
  tenant,
  type Testbed,
} from './testbed/quota-testbed.js';
import { servers } from './testbed/servers.js';

describe.each(servers)('repairs of counters on $name', ({ variable, cluster }) => {
  let bed: Testbed;
  let engine: QuotaEngine;
  let repairs: CounterRepair;

  beforeAll(async () => {
    bed = await createTestbed({ url: requiredUrl(variable, process.env[variable]), cluster });
    engine = bed.engine;
    repairs = new CounterRepair(bed.redis);
  });
  afterAll(() => bed.close());

  const figures = (requests: bigint, input: number, output: number): CounterFigures => ({
    requests,
    inputTokens: BigInt(input),
    outputTokens: BigInt(output),
    costNano: costOf(input, output),
  });
  const none = figures(0n, 0, 0);
  /** A tenant with one settled call. Its cost takes both limbs. */
  const used = async (): Promise<Tenant> => {
    const caller = tenant();
    const { lease } = await admitted(engine, callOf(caller, { input: 300, output: 200 }));
    const actual = actualOf(300, 150);
    await engine.settle(lease, actual, eventOf(caller, lease, actual));
    return caller;
  };
  const found = figures(1n, 300, 150);
  const monthOf = async (caller: Tenant): Promise<CounterFigures> => {
    const [scope] = await peek(engine, caller);
    if (scope === undefined) throw new Error('a scope');
    const { requests, inputTokens, outputTokens, costNano } = scope.month;
    return { requests, inputTokens, outputTokens, costNano };
  };
  const repairOf = async (
    caller: Tenant,
    difference: CounterFigures,
    rest: Partial<Repair> = {},
  ): Promise<Repair> => ({
    id: newId(),
    shard: caller.shard,
    scopeId: caller.enterpriseId,
    periodId: '2026-11',
    model: null,
    expected: found,
    difference,
    position: await repairs.position(caller.shard),
    ...rest,
  });

  it.each([
    ['adds', figures(2n, 1_000, 70), figures(3n, 1_300, 220)],
    [
      'takes away',
      { requests: -1n, inputTokens: -299n, outputTokens: -1n, costNano: -2_099_999_999n },
      { requests: 0n, inputTokens: 1n, outputTokens: 149n, costNano: 1n },
    ],
  ])('%s the exact difference, once per id', async (_name, difference, after) => {
    const caller = await used();
    const repair = await repairOf(caller, difference);
    expect(await repairs.find(caller.shard, caller.enterpriseId, repair.id)).toBeNull();
    expect(await repairs.apply(repair)).toEqual({ outcome: 'applied', before: found });
    expect(await monthOf(caller)).toEqual(after);
    const contents = await bed.dump(caller.shard);
    expect(await repairs.apply(repair)).toEqual({ outcome: 'repeated', before: found });
    expect(await bed.dump(caller.shard)).toEqual(contents);
    expect(await repairs.find(caller.shard, caller.enterpriseId, repair.id)).toEqual(found);
  });

  it('leaves the scopes above and below alone', async () => {
    const caller = await used();
    await repairs.apply(await repairOf(caller, figures(5n, 5, 5)));
    const [, ...others] = await peek(engine, caller);
    for (const scope of others) expect(scope.month).toMatchObject(found);
  });

  it('makes the counter of a scope that has none', async () => {
    const caller = tenant();
    const repair = await repairOf(caller, figures(1n, 2, 3), { expected: none });
    expect(await repairs.apply(repair)).toEqual({ outcome: 'applied', before: none });
    expect(await monthOf(caller)).toEqual(figures(1n, 2, 3));
  });

  const refusals: [string, string, (caller: Tenant) => Promise<Repair>][] = [
    [
      'of another epoch',
      'other-epoch',
      async (caller) => {
        const { seq } = await repairs.position(caller.shard);
        return repairOf(caller, figures(1n, 1, 1), { position: { epoch: newId(), seq } });
      },
    ],
    [
      'after another event on the shard',
      'moved',
      async (caller) => {
        const repair = await repairOf(caller, figures(1n, 1, 1));
        const neighbour = { ...tenant(), shard: caller.shard };
        const { lease } = await admitted(engine, callOf(neighbour));
        const actual = actualOf(1, 1);
        await engine.settle(lease, actual, eventOf(neighbour, lease, actual));
        return repair;
      },
    ],
    [
      'that was computed from another counter',
      'moved',
      (caller) => repairOf(caller, figures(1n, 1, 1), { expected: figures(1n, 300, 151) }),
    ],
    [
      'while a lease is open',
      'in-use',
      async (caller) => {
        await admitted(engine, callOf(caller));
        return repairOf(caller, figures(1n, 1, 1));
      },
    ],
    ...(['requests', 'inputTokens', 'outputTokens', 'costNano'] as const).map(
      (name): [string, string, (caller: Tenant) => Promise<Repair>] => [
        `that would leave less than nothing of ${name}`,
        'negative',
        (caller) => repairOf(caller, { ...none, [name]: -found[name] - 1n }),
      ],
    ),
  ];
  it.each(refusals)('refuses a repair %s, and changes nothing', async (_name, outcome, make) => {
    const caller = await used();
    const repair = await make(caller);
    const contents = await bed.dump(caller.shard);
    expect(await repairs.apply(repair)).toEqual({ outcome });
    expect(await bed.dump(caller.shard)).toEqual(contents);
    expect(await repairs.find(caller.shard, caller.enterpriseId, repair.id)).toBeNull();
  });

  it('lets only one of two repairs of the same difference through', async () => {
    const caller = await used();
    const difference = figures(1n, 1, 1);
    const both = [await repairOf(caller, difference), await repairOf(caller, difference)];
    const results = await Promise.all(both.map((repair) => repairs.apply(repair)));
    expect(results.map(({ outcome }) => outcome)).toEqual(['applied', 'moved']);
    expect(await monthOf(caller)).toEqual(figures(2n, 301, 151));
  });
});
