import { describe, expect, it } from 'vitest';
import { enterprisePatchBody } from './api/schemas.js';
import { defaultEnterpriseSettings, enterpriseSettingsSchema, ipRulesMax } from './policy.js';

describe('the settings of an enterprise', () => {
  it('can be read as they were stored before there were address rules and queues', () => {
    const { ipRules, queue, ...before } = defaultEnterpriseSettings;
    expect(enterpriseSettingsSchema.parse(before)).toEqual({ ...before, ipRules, queue });
  });

  it('can be read as they were stored before streams were told that they wait', () => {
    const queue = { maxWaitMs: 5_000, maxWaiting: 7 };
    expect(enterpriseSettingsSchema.parse({ ...defaultEnterpriseSettings, queue }).queue).toEqual({
      ...queue,
      streamNotices: true,
    });
  });

  it('keep address rules and queue when a change does not name them', () => {
    const body = enterprisePatchBody.parse({ settings: { leaseMs: 61_000 } });
    expect(body.settings).toEqual({ leaseMs: 61_000 });
    const ofQueue = enterprisePatchBody.parse({ settings: { queue: { maxWaitMs: 1 } } });
    expect(ofQueue.settings).toEqual({ queue: { maxWaitMs: 1 } });
  });

  it.each(['203.0.113.7', '10.0.0.0/8', '2001:db8::/32', '::1', '::ffff:10.0.0.1', '0.0.0.0/0'])(
    'take %s as an address rule',
    (rule) => {
      const ipRules = { allow: [rule], deny: [rule] };
      expect(enterprisePatchBody.parse({ settings: { ipRules } }).settings).toEqual({ ipRules });
    },
  );

  it.each(['10.1', '010.0.0.1', '10.0.0.0/33', '2001:db8::/129', 'localhost', '10.0.0.1-9', ''])(
    'refuse "%s" as an address rule and name the field',
    (rule) => {
      const faulty = { settings: { ipRules: { allow: [], deny: ['10.0.0.1', rule] } } };
      const issues = enterprisePatchBody.safeParse(faulty).error?.issues;
      expect(issues).toMatchObject([
        {
          path: ['settings', 'ipRules', 'deny', 1],
          message: expect.stringContaining('10.0.0.0/8'),
        },
      ]);
    },
  );

  it('refuse more address rules than are checked for each call', () => {
    const allow = Array.from({ length: ipRulesMax + 1 }, () => '10.0.0.1');
    const result = enterprisePatchBody.safeParse({ settings: { ipRules: { allow, deny: [] } } });
    expect(result.error?.issues[0]?.path).toEqual(['settings', 'ipRules', 'allow']);
  });
});
