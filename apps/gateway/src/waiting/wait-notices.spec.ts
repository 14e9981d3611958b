import { WeirError, type CallerPolicy } from '@weir/domain';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { WaitingRoom } from './waiting-room.js';
import { WaitNotices, type Noticed, type WaitNotice } from './wait-notices.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

const maxWaitMs = 30_000;
const times = { afterMs: 2_000, everyMs: 3_000 };

function policyOf(user: string): CallerPolicy {
  const queue = { maxWaitMs, maxWaiting: 100, streamNotices: true };
  const policy = {
    path: [],
    key: { userId: user },
    enterprise: { id: 'acme', settings: { queue } },
  };
  return policy as unknown as CallerPolicy;
}

/** A limit that admits as many as it is told to. */
class Gate {
  open = 0;

  constructor(
    readonly id: string,
    private readonly metric: 'concurrency' | 'requests' = 'concurrency',
    private readonly retryAfterMs = 1_000,
  ) {}

  pass = (): Promise<string> => {
    if (this.open > 0) {
      this.open -= 1;
      return Promise.resolve('admitted');
    }
    const code = this.metric === 'concurrency' ? 'concurrency_exceeded' : 'rate_limit_exceeded';
    const violations = [{ limitId: this.id, metric: this.metric, retryAfterMs: this.retryAfterMs }];
    return Promise.reject(
      new WeirError(code, 'Full.', { violations, retry_after_ms: this.retryAfterMs }),
    );
  };
}

class Waiter {
  readonly told: WaitNotice[] = [];
  leave: () => void = () => undefined;
  readonly result: Promise<string | null | 'refused'>;

  constructor(room: WaitingRoom, gate: Gate, user = 'ada', isTold = true) {
    const call = {
      policy: policyOf(user),
      model: 'small',
      onLeave: (listener: () => void) => (this.leave = listener),
      tell: isTold ? (notice: WaitNotice) => void this.told.push(notice) : null,
    };
    this.result = room.admit(call, gate.pass).catch(() => 'refused');
  }

  get places(): (readonly [number, number])[] {
    return this.told.map(({ position, of }) => [position, of] as const);
  }

  get last(): WaitNotice | undefined {
    return this.told.at(-1);
  }
}

describe('a call that waits', () => {
  it('hears nothing while the wait is short, then where it stands, at every interval', async () => {
    const room = new WaitingRoom(100, times);
    const waiter = new Waiter(room, new Gate('slots'));
    await pass(1_999);
    expect(waiter.told).toEqual([]);
    await pass(1);
    expect(waiter.told).toEqual([{ position: 1, of: 1, expectedMs: null, leftMs: 28_000 }]);
    await pass(2_999);
    expect(waiter.told).toHaveLength(1);
    await pass(1);
    expect(waiter.told).toHaveLength(2);
    expect(waiter.last?.leftMs).toBe(25_000);
    await pass(25_000);
    expect(await waiter.result).toBe('refused');
    const heard = waiter.told.length;
    await pass(60_000);
    expect(waiter.told).toHaveLength(heard);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('hears nothing any more once it was admitted or its caller left', async () => {
    const room = new WaitingRoom(100, times);
    const gate = new Gate('slots');
    const first = new Waiter(room, gate);
    const second = new Waiter(room, gate);
    await pass(2_000);
    gate.open = 1;
    room.freed('acme');
    await pass(0);
    expect(await first.result).toBe('admitted');
    second.leave();
    expect(await second.result).toBeNull();
    await pass(60_000);
    expect([first.told.length, second.told.length]).toEqual([1, 1]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('counts those before it as turns go: round the users', async () => {
    const room = new WaitingRoom(100, times);
    const gate = new Gate('slots');
    const ada = [1, 2, 3].map(() => new Waiter(room, gate, 'ada'));
    const bob = new Waiter(room, gate, 'bob');
    const silent = new Waiter(room, gate, 'cleo', false);
    await pass(2_000);
    expect([...ada, bob].map(({ places }) => places)).toEqual([
      [[1, 5]],
      [[4, 5]],
      [[5, 5]],
      [[2, 5]],
    ]);
    expect(silent.told).toEqual([]);
  });

  it('does not count those who wait on other limits', async () => {
    const room = new WaitingRoom(100, times);
    const [slots, own] = [new Gate('slots'), new Gate('own')];
    const crowd = [1, 2, 3].map(() => new Waiter(room, slots, 'ada'));
    const bob = new Waiter(room, own, 'bob');
    await pass(2_000);
    expect(bob.places).toEqual([[1, 1]]);
    expect(crowd.at(-1)?.places).toEqual([[3, 3]]);
  });

  it('is told the wait that the last turns suggest, which grows while there are none', async () => {
    const room = new WaitingRoom(100, times);
    const gate = new Gate('slots');
    const waiters = [1, 2, 3, 4, 5].map(() => new Waiter(room, gate));
    for (const _turn of [1, 2]) {
      await pass(500);
      gate.open = 1;
      room.freed('acme');
    }
    await pass(1_000);
    // Two turns in two seconds, and three calls are left.
    const [, , ...left] = waiters.map(({ last }) => last?.expectedMs);
    expect(left).toEqual([1_000, 2_000, 3_000]);
    await pass(3_000);
    expect(waiters.at(-1)?.last).toMatchObject({ position: 3, of: 3, expectedMs: 7_500 });
  });

  it('is told no time that is beyond its refusal', async () => {
    const room = new WaitingRoom(100, times);
    const gate = new Gate('slots');
    const waiters = Array.from({ length: 40 }, () => new Waiter(room, gate));
    await pass(1_000);
    gate.open = 1;
    room.freed('acme');
    await pass(1_000);
    expect(waiters[1]?.last?.expectedMs).toBe(2_000);
    expect(waiters.at(-1)?.last).toMatchObject({ position: 39, expectedMs: null, leftMs: 28_000 });
  });

  it("is told the limit's own time where it is the first to wait for a rate", async () => {
    const room = new WaitingRoom(100, times);
    const gate = new Gate('rate', 'requests', 12_000);
    const [first, second] = [new Waiter(room, gate), new Waiter(room, gate)];
    await pass(2_000);
    expect(first.last).toMatchObject({ position: 1, of: 2, expectedMs: 10_000 });
    expect(second.last).toMatchObject({ position: 2, of: 2, expectedMs: null });
  });
});

describe('a long line', () => {
  it('is gone over a few times per interval, however many wait and whenever they came', async () => {
    let passes = 0;
    const told = new Map<number, number>();
    const waiters: Noticed[] = [];
    const notices = new WaitNotices(
      times,
      () => performance.now(),
      () => {
        passes += 1;
        return waiters;
      },
    );
    for (let index = 0; index < 2_000; index += 1) {
      const tell = () => void told.set(index, (told.get(index) ?? 0) + 1);
      waiters.push({
        call: { tell },
        hold: { limitIds: new Set(['slots']) },
        notBeforeMs: 0,
        deadlineMs: 60_000,
        noticeDueMs: Number.POSITIVE_INFINITY,
      });
      notices.joined(waiters.at(-1) as Noticed);
      await pass(3);
    }
    const before = passes;
    await pass(30_000);
    expect(passes - before).toBeLessThanOrEqual((30_000 / times.everyMs) * 20 + 1);
    // Late by no more than a pass.
    for (const count of told.values()) expect(count).toBeGreaterThanOrEqual(9);
    expect(told.size).toBe(2_000);
    notices.stop();
    expect(vi.getTimerCount()).toBe(0);
  });
});
