import { describe, expect, it } from 'vitest';
import { shippedScripts, type ScriptName, type ScriptSources } from './script-sources.js';
import { checkQuotaProperty } from './testbed/quota-property.js';
import { requiredUrl } from './testbed/quota-testbed.js';
import { servers } from './testbed/servers.js';

/** WEIR_PROPERTY_RUNS and WEIR_PROPERTY_OPERATIONS make it longer, WEIR_PROPERTY_SEED repeats a failure. */
const runs = Number(process.env['WEIR_PROPERTY_RUNS'] ?? 20);
const operations = Number(process.env['WEIR_PROPERTY_OPERATIONS'] ?? 5_000);
const seed = process.env['WEIR_PROPERTY_SEED'];
/** Histories that run at the same time: they wait for Redis most of the time. */
const lanes = 4;
const longMs = 60_000 * Math.max(5, runs);

describe.each(servers)('random histories on $name', ({ variable, cluster }) => {
  const url = (): string => requiredUrl(variable, process.env[variable]);

  it(
    'agree with the reference model after every operation',
    async () => {
      const total = cluster ? Math.ceil(runs / 10) : runs;
      const one = { url: url(), cluster, operations };
      const failures =
        seed === undefined
          ? await Promise.all(
              Array.from({ length: Math.min(lanes, total) }, (_, lane) =>
                checkQuotaProperty({ ...one, runs: Math.ceil((total - lane) / lanes) }),
              ),
            )
          : [await checkQuotaProperty({ ...one, runs: total, seed: Number(seed) })];
      expect(failures.filter((failure) => failure !== null)).toEqual([]);
    },
    longMs,
  );
});

/** Faults as they could be made in earnest, planted one at a time: each must turn the property red. */
const mutations: readonly {
  readonly fault: string;
  readonly script: ScriptName;
  readonly from: string;
  readonly to: string;
}[] = [
  {
    fault: 'one level is not checked',
    script: 'admit',
    from: 'refused = refused or hard == 1',
    to: 'refused = refused or (hard == 1 and scope ~= 2)',
  },
  {
    fault: 'one level is not charged',
    script: 'admit',
    from: "call('HSET', KEYS[3 + scope], unpack(writes, from, ends[scope]))",
    to: "if scope > 1 then call('HSET', KEYS[3 + scope], unpack(writes, from, ends[scope])) end",
  },
  {
    fault: 'a level is written before the next one is checked',
    script: 'admit',
    from: '  ends[scope] = written\n',
    to: "  ends[scope] = written\n  call('HSET', KEYS[3 + scope], unpack(writes, before + 1, written))\n",
  },
  {
    fault: 'a refund goes to the current sub-bucket',
    script: 'settle',
    from: 'ring_refund(value, width, n, now, header[1], -change - from_extension)',
    to: 'ring_refund(value, width, n, now, now, -change - from_extension)',
  },
  {
    fault: 'a lease is settled twice',
    script: 'settle',
    from: "call('SET', KEYS[2], 'S', 'PX', ARGV[6])",
    to: "call('GET', KEYS[2])",
  },
  {
    fault: 'an admission is charged each time it is asked for',
    script: 'admit',
    from: 'if earlier then\n  -- Asked again',
    to: 'if false then\n  -- Asked again',
  },
  {
    fault: 'a void leaves no tombstone',
    script: 'void',
    from: "call('SET', KEYS[2], 'V', 'PX', ARGV[4])",
    to: "call('DEL', KEYS[2])",
  },
  {
    fault: 'a sub-bucket leaves the window too early',
    script: 'admit',
    from: 'for place = n - steps + 1, n do',
    to: 'for place = n - steps, n do',
  },
  {
    fault: 'the carry between the limbs is forgotten',
    script: 'admit',
    from: 'return high + by_high + 1, low - limb',
    to: 'return high + by_high, low - limb',
  },
  {
    fault: 'the slot is not freed',
    script: 'settle',
    from: 'slot_add(values[slot], -1)',
    to: 'slot_add(values[slot], 0)',
  },
];

describe('planted faults', () => {
  it.each(mutations)('are found: $fault', async ({ script, from, to }) => {
    const broken: ScriptSources = {
      ...shippedScripts,
      [script]: shippedScripts[script].replace(from, () => to),
    };
    expect(broken[script]).not.toBe(shippedScripts[script]);
    const failure = await checkQuotaProperty({
      url: requiredUrl('WEIR_TEST_REDIS_URL', process.env['WEIR_TEST_REDIS_URL']),
      scripts: broken,
      runs: 10,
      operations: 800,
      seed: 20_261_129,
    });
    expect(failure).not.toBeNull();
  });
});
