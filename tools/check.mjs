// `npm run check`: what a developer wants to know before a commit. Types, lint with its module
// boundaries, format, and the unit tests (those that need no service).
//
//   --no-unit        leaves the tests out
//   --report <file>  also writes the outcome as JSON: [{ name, ok }]

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { nxEnv, packageBin } from './launcher/lib/workspace.mjs';
import { repoDir } from './launcher/lib/paths.mjs';

const args = process.argv.slice(2);
const reportIndex = args.indexOf('--report');
const reportFile = reportIndex < 0 ? undefined : args[reportIndex + 1];

// Compiling is the type check: every project's tsconfig.json includes its specs.
const checks = [
  {
    name: 'types',
    steps: [
      ['nx', 'run-many', '-t', 'build'],
      ['tsc', '-p', 'tools/launcher'],
    ],
  },
  { name: 'lint', steps: [['eslint', '.', '--max-warnings', '0']] },
  { name: 'format', steps: [['prettier', '--check', '.', '--log-level', 'warn']] },
];
if (!args.includes('--no-unit')) {
  checks.push({ name: 'unit tests', steps: [['vitest', 'run', '--exclude', '**/*.int.spec.ts']] });
}

const outcome = checks.map(({ name, steps }) => {
  console.log(`\n== ${name}`);
  const ok = steps.every(([tool = '', ...toolArgs]) => {
    const { status } = spawnSync(process.execPath, [packageBin(tool), ...toolArgs], {
      cwd: repoDir,
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, ...nxEnv },
    });
    return status === 0;
  });
  return { name, ok };
});

console.log('');
for (const { name, ok } of outcome) console.log(`${ok ? 'ok    ' : 'FAILED'} ${name}`);
if (reportFile !== undefined) writeFileSync(reportFile, JSON.stringify(outcome));
process.exit(outcome.every(({ ok }) => ok) ? 0 : 1);
