import { defaultEnterpriseSettings } from '@weir/domain';
import { describe, expect, it } from 'vitest';
import {
  edgeValuesOf,
  queueMax,
  queueValuesOf,
  readEdge,
  readQueue,
  readRules,
  ruleFault,
} from './prepare-settings.js';

describe('readRules', () => {
  it('takes rules on lines, or with commas and blanks between them', () => {
    expect(readRules(' 10.0.0.0/8\n\n203.0.113.7, ::1 ，2001:db8::/32\r\n')).toEqual([
      '10.0.0.0/8',
      '203.0.113.7',
      '::1',
      '2001:db8::/32',
    ]);
    expect(readRules(' \n ')).toEqual([]);
  });
});

describe('ruleFault', () => {
  it('finds nothing wrong with addresses and ranges, or with none', () => {
    expect(ruleFault('')).toBeNull();
    expect(ruleFault('10.0.0.0/8 203.0.113.7 ::1 2001:db8::/32')).toBeNull();
  });

  it('names the first that is neither', () => {
    expect(ruleFault('10.0.0.1\n10.0.0.0/99\nx')).toEqual({ kind: 'rule', rule: '10.0.0.0/99' });
    expect(ruleFault('intranet.example')).toEqual({ kind: 'rule', rule: 'intranet.example' });
  });

  it('bounds their number', () => {
    expect(ruleFault(Array.from({ length: 200 }, () => '::1').join('\n'))).toBeNull();
    expect(ruleFault(Array.from({ length: 201 }, () => '::1').join('\n'))).toEqual({
      kind: 'tooMany',
      max: 200,
    });
  });
});

describe('the queue form', () => {
  it('shows what is set, and suggests a time where nothing waits', () => {
    expect(queueValuesOf({ maxWaitMs: 2_500, maxWaiting: 40, streamNotices: false })).toEqual({
      waits: true,
      seconds: '2.5',
      waiting: '40',
      notices: false,
    });
    expect(queueValuesOf({ maxWaitMs: 0, maxWaiting: 100, streamNotices: true })).toMatchObject({
      waits: false,
      seconds: '30',
    });
  });

  const values = { waits: true, seconds: '30', waiting: '100', notices: true };

  it('reads seconds to the millisecond, with a point or a comma', () => {
    expect(readQueue(values)).toEqual({
      queue: { maxWaitMs: 30_000, maxWaiting: 100, streamNotices: true },
    });
    for (const seconds of ['2.5', '2,5', ' 2.500 ']) {
      expect(readQueue({ ...values, seconds })).toMatchObject({ queue: { maxWaitMs: 2_500 } });
    }
    expect(queueMax).toEqual({ seconds: 60, waiting: 10_000 });
    expect(readQueue({ ...values, seconds: '60', waiting: '10000' })).toHaveProperty('queue');
  });

  it.each(['', '0', '-1', '60.001', '61', '1e1', '2.0001', 'x'])(
    'refuses %j seconds',
    (seconds) => {
      expect(readQueue({ ...values, seconds })).toEqual({ faulty: ['seconds'] });
    },
  );

  it.each(['', '0', '10001', '1.5', 'x'])('refuses %j calls', (waiting) => {
    expect(readQueue({ ...values, waiting })).toEqual({ faulty: ['waiting'] });
  });

  it('asks nothing of the other fields when calls do not wait, and leaves them alone', () => {
    expect(readQueue({ waits: false, seconds: 'x', waiting: '', notices: false })).toEqual({
      queue: { maxWaitMs: 0 },
    });
  });
});

describe('the form of what happens at the edges', () => {
  const values = edgeValuesOf(defaultEnterpriseSettings);

  it('gives back what it was filled from', () => {
    const { ipRules, queue, ...rest } = defaultEnterpriseSettings;
    expect([ipRules, queue]).toBeTruthy();
    expect(readEdge(values)).toEqual({ edge: rest });
  });

  it('names every number that cannot be', () => {
    expect(readEdge({ ...values, windowPercent: '101', degradedPercent: '1.5' })).toEqual({
      faulty: ['windowPercent', 'degradedPercent'],
    });
    for (const leaseSeconds of ['', '4.999', '600.1', '-5', 'x']) {
      expect(readEdge({ ...values, leaseSeconds })).toEqual({ faulty: ['leaseSeconds'] });
    }
    expect(readEdge({ ...values, leaseSeconds: '5', windowPercent: '0' })).toMatchObject({
      edge: { leaseMs: 5_000, windowOutputReservePercent: 0 },
    });
  });
});
