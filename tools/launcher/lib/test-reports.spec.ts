import { describe, expect, it } from 'vitest';
import { playwrightOutcome, vitestOutcome } from './test-reports.mjs';

const options = { repoDir: '/repo', reasonFor: () => 'no Kafka' };

/** One file of vitest's report. */
const file = (tests: object[], rest: object = {}) => ({
  name: '/repo/libs/quota/src/a.spec.ts',
  status: 'passed',
  message: '',
  assertionResults: tests,
  ...rest,
});

describe('the outcome of vitest', () => {
  it('counts and names, and takes the reason of a skip from the test or else from the launcher', () => {
    const report = {
      testResults: [
        file([
          { status: 'passed', fullName: 'adds' },
          { status: 'failed', fullName: 'subtracts' },
          { status: 'skipped', fullName: 'multiplies' },
          { status: 'todo', fullName: 'divides', meta: { skipReason: 'later' } },
        ]),
      ],
    };
    expect(vitestOutcome(report, 1, options)).toEqual({
      passed: 1,
      failures: ['libs/quota/src/a.spec.ts › subtracts'],
      skips: [
        { name: 'libs/quota/src/a.spec.ts › multiplies', reason: 'no Kafka' },
        { name: 'libs/quota/src/a.spec.ts › divides', reason: 'later' },
      ],
    });
  });

  it('counts a file that cannot be loaded as a failure, though it has no test', () => {
    const report = { testResults: [file([], { status: 'failed', message: 'no such module\n…' })] };
    expect(vitestOutcome(report, 1, options).failures).toEqual([
      'libs/quota/src/a.spec.ts: no such module',
    ]);
  });

  it('counts a test that never ended as a failure', () => {
    const report = { testResults: [file([{ status: 'pending', fullName: 'waits' }])] };
    expect(vitestOutcome(report, 1, options).failures).toHaveLength(1);
  });

  it('believes the exit code when no test failed, and a missing report is a failure', () => {
    const report = { testResults: [file([{ status: 'passed', fullName: 'adds' }])] };
    expect(vitestOutcome(report, 0, options).failures).toEqual([]);
    expect(vitestOutcome(report, 1, options).failures).toHaveLength(1);
    expect(vitestOutcome(null, 0, options).failures).toHaveLength(1);
  });
});

describe('the outcome of Playwright', () => {
  it('walks nested suites and counts every test', () => {
    const spec = (title: string, status: string, annotations: object[] = []) => ({
      title,
      tests: [{ status, annotations }],
    });
    const report = {
      errors: [],
      suites: [
        {
          title: 'road.e2e.ts',
          specs: [spec('starts', 'expected')],
          suites: [
            {
              title: 'the road',
              specs: [
                spec('breaks', 'unexpected'),
                spec('waits', 'skipped', [{ type: 'skip', description: 'no Kafka' }]),
                spec('follows', 'skipped'),
                spec('wobbles', 'flaky'),
              ],
            },
          ],
        },
      ],
    };
    expect(playwrightOutcome(report, 1)).toEqual({
      passed: 2,
      failures: ['road.e2e.ts › the road › breaks'],
      skips: [
        { name: 'road.e2e.ts › the road › waits', reason: 'no Kafka' },
        {
          name: 'road.e2e.ts › the road › follows',
          reason: 'did not run: an earlier one of its group failed',
        },
      ],
    });
  });

  it('counts an error outside of any test, such as a file that does not load', () => {
    const report = { suites: [], errors: [{ message: 'SyntaxError: x\nat y' }] };
    expect(playwrightOutcome(report, 1).failures).toEqual(['SyntaxError: x']);
    expect(playwrightOutcome({ suites: [], errors: [] }, 1).failures).toHaveLength(1);
  });
});
