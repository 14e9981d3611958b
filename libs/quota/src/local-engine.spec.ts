import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LocalEngine } from './local-engine.js';
import type { Lease } from './quota-engine.js';
import {
  actualOf,
  admitted,
  callOf,
  limit,
  noon,
  refused,
  tenant,
} from './testbed/quota-testbed.js';

describe('the local engine', () => {
  it('never passes a share, whatever is admitted, settled, voided or abandoned in whatever order', async () => {
    const operation = fc.record({
      kind: fc.constantFrom('admit', 'admit', 'admit', 'settle', 'void', 'wait'),
      input: fc.nat(30),
      output: fc.nat(60),
      pick: fc.nat(50),
      ms: fc.integer({ min: 1, max: 20_000 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 200 }), async (operations) => {
        let now = noon;
        const engine = new LocalEngine({
          now: () => now,
          shareOf: (_, { limit: own }) => own.amount / 2n,
        });
        const caller = tenant({
          0: [limit({ metric: 'tokens', window: 'minute', amount: 600 })],
          2: [limit({ metric: 'output_tokens', window: 'day', amount: 2_000 })],
          3: [limit({ metric: 'concurrency', amount: 6 })],
        });
        const open: { lease: Lease; input: number; output: number }[] = [];
        let spent = 0;
        for (const { kind, input, output, pick, ms } of operations) {
          if (kind === 'wait') now += ms;
          const at = open.length === 0 ? -1 : pick % open.length;
          if (kind === 'admit') {
            const result = await engine.admit(
              callOf(caller, { input, output, leaseMs: 3_600_000 }),
            );
            if (result.outcome !== 'admitted') continue;
            open.push({ lease: result.lease, input, output });
            spent += output;
          } else if (at >= 0 && (kind === 'settle' || kind === 'void')) {
            const [call] = open.splice(at, 1);
            if (!call) continue;
            if (kind === 'void') await engine.void(call.lease);
            else await engine.settle(call.lease, actualOf(call.input, Math.floor(call.output / 2)));
            spent -= kind === 'void' ? call.output : Math.ceil(call.output / 2);
          }
          expect(open.length).toBeLessThanOrEqual(3);
          expect(spent).toBeLessThanOrEqual(1_000);
          const reserved = open
            .filter(({ lease }) => lease.reservedAtMs > now - 60_000)
            .reduce((sum, call) => sum + call.input + call.output, 0);
          expect(reserved).toBeLessThanOrEqual(300);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('gives the slot of an abandoned call back after its lease, but not what it may have spent', async () => {
    let now = noon;
    const engine = new LocalEngine({ now: () => now, shareOf: (_, { limit: own }) => own.amount });
    const caller = tenant({
      0: [limit({ metric: 'tokens', window: 'day', amount: 50 })],
      3: [limit({ metric: 'concurrency', amount: 1 })],
    });
    await admitted(engine, callOf(caller, { leaseMs: 1_000 }));
    await refused(engine, callOf(caller, { output: 0 }));
    now += 1_001;
    await admitted(engine, callOf(caller, { output: 0 }));
    expect((await refused(engine, callOf(caller))).violations.map(({ metric }) => metric)).toEqual([
      'concurrency',
      'tokens',
    ]);
  });

  it('admits a lease id once', async () => {
    const engine = new LocalEngine({ now: () => noon, shareOf: (_, { limit: own }) => own.amount });
    const caller = tenant({ 3: [limit({ metric: 'requests', window: 'minute', amount: 1 })] });
    const call = callOf(caller);
    const first = await admitted(engine, call);
    expect((await admitted(engine, call)).lease).toBe(first.lease);
    expect(engine.inFlight).toBe(1);
  });
});
