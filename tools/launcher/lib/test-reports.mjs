// Counts and names out of the JSON reports of the two test runners.

import { relative } from 'node:path';

/**
 * @typedef {object} Outcome
 * @property {number} passed
 * @property {string[]} failures one name each
 * @property {{ name: string, reason: string }[]} skips
 */

/**
 * @param {any} report vitest's JSON report; null when it wrote none
 * @param {number} exitCode
 * @param {{ repoDir: string, reasonFor: (file: string) => string }} options `reasonFor`
 *   explains the skipped tests of a file; a test that sets `task.meta.skipReason` explains itself
 * @returns {Outcome}
 */
export function vitestOutcome(report, exitCode, { repoDir, reasonFor }) {
  if (report === null) return { passed: 0, failures: ['vitest wrote no report'], skips: [] };
  let passed = 0;
  const failures = [];
  const skips = [];
  for (const file of report.testResults) {
    const fileName = relative(repoDir, file.name);
    let hasFailure = false;
    for (const test of file.assertionResults) {
      const name = `${fileName} › ${test.fullName}`;
      if (test.status === 'passed') {
        passed += 1;
      } else if (test.status === 'skipped' || test.status === 'todo') {
        skips.push({ name, reason: test.meta?.skipReason ?? reasonFor(file.name) });
      } else {
        // "failed", or "pending": it was begun and never ended.
        failures.push(name);
        hasFailure = true;
      }
    }
    // A file that cannot be loaded, or whose set-up fails, has no failed test to show for it.
    if (file.status === 'failed' && !hasFailure) {
      failures.push(`${fileName}: ${firstLine(file.message) || 'its set-up failed'}`);
    }
  }
  if (exitCode !== 0 && failures.length === 0) {
    failures.push('an error outside of any test (see above)');
  }
  return { passed, failures, skips };
}

/**
 * @param {any} report Playwright's JSON report; null when it wrote none
 * @param {number} exitCode
 * @returns {Outcome}
 */
export function playwrightOutcome(report, exitCode) {
  if (report === null) return { passed: 0, failures: ['Playwright wrote no report'], skips: [] };
  let passed = 0;
  /** @type {string[]} */
  const failures = [];
  /** @type {Outcome['skips']} */
  const skips = [];
  const visit = (/** @type {any} */ suite, /** @type {string[]} */ path) => {
    for (const child of suite.suites ?? []) visit(child, [...path, child.title]);
    for (const spec of suite.specs ?? []) {
      for (const test of spec.tests) {
        const name = [...path, spec.title].join(' › ');
        if (test.status === 'skipped') {
          const reason = test.annotations?.find(
            (/** @type {any} */ note) => note.type === 'skip' || note.type === 'fixme',
          )?.description;
          // One that says nothing stands after a failed one in a serial group.
          skips.push({ name, reason: reason ?? 'did not run: an earlier one of its group failed' });
        } else if (test.status === 'unexpected') {
          failures.push(name);
        } else {
          passed += 1;
        }
      }
    }
  };
  for (const suite of report.suites ?? []) visit(suite, [suite.title]);
  for (const error of report.errors ?? []) failures.push(firstLine(error.message));
  if (exitCode !== 0 && failures.length === 0) {
    failures.push('an error outside of any test (see above)');
  }
  return { passed, failures, skips };
}

/** @param {unknown} message */
function firstLine(message) {
  return (
    String(message ?? '')
      .trim()
      .split('\n')[0] ?? ''
  );
}
