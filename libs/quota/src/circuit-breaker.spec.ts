import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CircuitBreaker } from './circuit-breaker.js';

describe('the circuit breaker', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const build = (probe: () => Promise<void>) => {
    const states: string[] = [];
    const breaker = new CircuitBreaker({
      failures: 3,
      probeEveryMs: 100,
      probe,
      onChange: (state) => states.push(state),
    });
    return { breaker, states };
  };

  it('opens after failures in a row, not after as many with a success between', () => {
    const { breaker } = build(async () => undefined);
    breaker.failed();
    breaker.failed();
    breaker.succeeded();
    breaker.failed();
    breaker.failed();
    expect(breaker.allows).toBe(true);
    breaker.failed();
    expect(breaker.allows).toBe(false);
  });

  it('probes until the dependency answers and only then lets calls through', async () => {
    let isUp = false;
    const probe = vi.fn(async () => {
      if (!isUp) throw new Error('still away');
    });
    const { breaker, states } = build(probe);
    for (let count = 0; count < 3; count += 1) breaker.failed();
    await vi.advanceTimersByTimeAsync(250);
    expect(probe).toHaveBeenCalledTimes(2);
    expect(breaker.state).toBe('open');
    isUp = true;
    await vi.advanceTimersByTimeAsync(100);
    expect(breaker.state).toBe('closed');
    expect(states).toEqual([
      'open',
      'half_open',
      'open',
      'half_open',
      'open',
      'half_open',
      'closed',
    ]);
  });

  it('stops probing when it is stopped', async () => {
    const probe = vi.fn(async () => undefined);
    const { breaker } = build(probe);
    for (let count = 0; count < 3; count += 1) breaker.failed();
    breaker.stop();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(probe).not.toHaveBeenCalled();
  });
});
