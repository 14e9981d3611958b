import { describe, expect, it } from 'vitest';
import { Bill, type BilledCall } from './bill.js';
import { modelsByName } from './price-list.js';

const model = (name: string) => {
  const found = modelsByName.get(name);
  if (found === undefined) throw new Error(`no model ${name}`);
  return found;
};

const call = (fields: Partial<BilledCall> = {}): BilledCall => ({
  id: 'chatcmpl-1',
  requestId: null,
  model: model('demo-small'),
  promptTokens: 1_000,
  cachedTokens: 400,
  outputTokens: 10,
  streamed: true,
  outcome: 'finished',
  ...fields,
});

describe('Bill', () => {
  it('prices input, cached input and output to the last pico', () => {
    const bill = new Bill(() => 0);
    bill.add(call());
    // 600 × 0.50 + 400 × 0.05 + 10 × 1.50 USD per million tokens.
    expect(bill.entries(1, 0)[0]?.cost_pico).toBe('335000000');
    bill.add(
      call({ model: model('demo-large'), promptTokens: 7, cachedTokens: 0, outputTokens: 3 }),
    );
    bill.add(call({ model: model('demo-free') }));
    bill.add(call({ model: model('demo-embed'), cachedTokens: 0, outputTokens: 0 }));
    bill.add(
      call({ model: null, promptTokens: 0, cachedTokens: 0, outputTokens: 0, outcome: 'refused' }),
    );
    const report = bill.report();
    expect(report.models['demo-large']?.cost_pico).toBe(String(7 * 5_000_000 + 3 * 15_000_000));
    expect(report.models['demo-free']?.cost_pico).toBe('0');
    expect(report.models['demo-embed']?.cost_pico).toBe('20000000');
    expect(report.total).toMatchObject({ calls: 5, outcomes: { finished: 4, refused: 1 } });
    const costs = bill.entries(10, 0).map((entry) => BigInt(entry.cost_pico));
    expect(report.total.cost_pico).toBe(costs.reduce((sum, cost) => sum + cost, 0n).toString());
  });

  it('keeps exact totals when it has dropped old entries, and says so rather than sum up the rest', () => {
    const bill = new Bill(() => 0, 1);
    const count = 60_000;
    for (let index = 1; index <= count; index += 1)
      bill.add(call({ id: `c${index}`, outputTokens: index }));
    expect(bill.report().total).toMatchObject({
      calls: count,
      output_tokens: (count * (count + 1)) / 2,
    });
    const kept = bill.entries(count, 0);
    expect(kept.length).toBeLessThanOrEqual(2 * 16_384);
    expect(kept.at(-1)).toMatchObject({ seq: count, id: `c${count}`, output_tokens: count });
    expect(kept[0]?.id).toBe(`c${kept[0]?.seq}`);
    expect(bill.reportSince(0)).toBeUndefined();
    expect(bill.reportSince(count - 2)?.total).toMatchObject({
      calls: 2,
      output_tokens: 2 * count - 1,
    });
  });

  it('pages through entries without gap or repetition', () => {
    const bill = new Bill(() => 0);
    for (let index = 1; index <= 25; index += 1) bill.add(call({ id: `c${index}` }));
    const ids: string[] = [];
    let after = 0;
    for (let page = bill.entries(10, after); page.length > 0; page = bill.entries(10, after)) {
      ids.push(...page.map((entry) => entry.id));
      after = page.at(-1)?.seq ?? after;
    }
    expect(ids).toEqual(Array.from({ length: 25 }, (_, index) => `c${index + 1}`));
  });

  it('finds the entries since an instant', () => {
    let nowMs = 1_000;
    const bill = new Bill(() => nowMs);
    for (nowMs of [1_000, 2_000, 2_000, 3_000]) bill.add(call());
    expect(
      [999, 1_000, 1_001, 2_000, 2_500, 4_000].map((instant) => bill.seqBefore(instant)),
    ).toEqual([0, 0, 1, 1, 3, 4]);
    expect(bill.reportSince(bill.seqBefore(2_000))?.total.calls).toBe(3);
  });

  it('starts anew after a reset', () => {
    const bill = new Bill(() => 0);
    bill.add(call());
    bill.reset();
    expect(bill.report()).toMatchObject({
      last_seq: 0,
      total: { calls: 0, cost_pico: '0' },
      models: {},
    });
    bill.add(call({ id: 'next' }));
    expect(bill.entries(10, 0)).toMatchObject([{ seq: 1, id: 'next' }]);
  });
});
