import { newId, WeirError, type UsageEventDraft } from '@weir/domain';
import { createLogger } from '@weir/platform';
import type { Lease, QuotaEngine, SettleResult } from '@weir/quota';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GatewayMetrics } from '../observe/gateway-metrics.js';
import { DeliveredText } from '../relay/delivered-text.js';
import { LeaseKeeper } from './lease-keeper.js';
import { LiveCall } from './live-call.js';
import { Settler } from './settler.js';

const ref = (name: string) => ({ id: newId(), name });
const draft: UsageEventDraft = {
  enterprise: ref('Acme'),
  departments: [ref('Marketing')],
  user: ref('Ada'),
  key: ref('ci'),
  currency: 'USD',
  modelAsked: 'small',
  modelServed: 'demo-small',
  provider: ref('Demo'),
  route: '/v1/chat/completions',
  streamed: true,
  requestId: 'r',
  attempt: 1,
  price: { id: newId(), picoPerToken: { input: '1', output: '2' }, picoPerRequest: '0' },
  queueWaitMs: 0,
  tags: {},
};
const settled: SettleResult = { outcome: 'settled', seq: 1, epoch: 'e' };

describe('Settler', () => {
  let settle: ReturnType<typeof vi.fn<QuotaEngine['settle']>>;
  let voided: ReturnType<typeof vi.fn<QuotaEngine['void']>>;
  let settler: Settler;
  let keeper: LeaseKeeper;

  beforeEach(() => {
    vi.useFakeTimers();
    settle = vi.fn<QuotaEngine['settle']>(() => Promise.resolve(settled));
    voided = vi.fn<QuotaEngine['void']>(() => Promise.resolve());
    const engine = { settle, void: voided } as unknown as QuotaEngine;
    const logger = createLogger({ name: 'test', level: 'silent' });
    keeper = new LeaseKeeper(engine, logger);
    settler = new Settler(
      engine,
      keeper,
      new GatewayMetrics(new Registry()),
      logger,
      undefined,
      () => Date.now(),
    );
  });
  afterEach(() => vi.useRealTimers());

  function call(): LiveCall {
    const lease: Lease = {
      id: newId(),
      shard: 0,
      enterpriseId: draft.enterprise.id,
      reservedAtMs: Date.now(),
      expiresAtMs: Date.now() + 60_000,
      periodId: '2026-11',
    };
    const delivered = new DeliveredText(() => {
      throw new Error('nothing was delivered');
    });
    const live = new LiveCall(lease, 60_000, draft, 10, delivered, { now: () => Date.now() });
    live.markAnswered();
    keeper.track(live);
    return live;
  }

  it('settles a call once, whichever of its ends come', async () => {
    const live = call();
    expect(await settler.end(live, { status: 'ok', report: null })).toMatchObject({
      kind: 'usage',
    });
    expect(await settler.end(live, { status: 'cancelled', report: null })).toBeNull();
    await settler.releaseCall(live);
    expect(settle).toHaveBeenCalledTimes(1);
    expect(voided).not.toHaveBeenCalled();
    expect(keeper.size).toBe(0);
  });

  it('holds an answer back for 20 ms at most when the store is slow', async () => {
    settle.mockImplementation(() => new Promise(() => undefined));
    const begun = Date.now();
    const end = settler.end(call(), { status: 'ok', report: null });
    await vi.advanceTimersByTimeAsync(20);
    await end;
    expect(Date.now() - begun).toBe(20);
    expect(settler.pending).toBe(1);
  });

  it('holds an answer back for no more than a turn of the event loop where there is room for the next call', async () => {
    settle.mockImplementation(() => new Promise(() => undefined));
    let isOver = false;
    const end = settler.end(call(), { status: 'ok', report: null }, 'sent').then(() => {
      isOver = true;
    });
    expect(settle).toHaveBeenCalledTimes(1);
    await Promise.resolve();
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(0);
    await end;
    expect(settler.pending).toBe(1);
  });

  it('tries again what the store did not take, with the same event, until it is taken', async () => {
    const away = new WeirError('quota_unavailable', 'away');
    settle.mockRejectedValueOnce(away).mockRejectedValueOnce(away).mockRejectedValueOnce(away);
    await settler.end(call(), { status: 'ok', report: null });
    expect(settler.pending).toBe(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(settle).toHaveBeenCalledTimes(4);
    expect(new Set(settle.mock.calls.map(([, , event]) => event.id)).size).toBe(1);
    expect(settler.pending).toBe(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(settle).toHaveBeenCalledTimes(4);
  });

  it('leaves what fails for ten minutes to the reaper, rather than to try for ever', async () => {
    settle.mockRejectedValue(new WeirError('quota_unavailable', 'away'));
    await settler.end(call(), { status: 'ok', report: null });
    await vi.advanceTimersByTimeAsync(11 * 60_000);
    const tries = settle.mock.calls.length;
    expect(tries).toBeGreaterThan(50);
    await vi.advanceTimersByTimeAsync(5 * 60_000);
    expect(settle).toHaveBeenCalledTimes(tries);
    expect(settler.pending).toBe(0);
  });

  it('tries what is left once more at the end of the process', async () => {
    settle.mockRejectedValueOnce(new WeirError('quota_unavailable', 'away'));
    await settler.end(call(), { status: 'ok', report: null });
    await settler.flush();
    expect(settle).toHaveBeenCalledTimes(2);
    expect(settler.pending).toBe(0);
  });
});
