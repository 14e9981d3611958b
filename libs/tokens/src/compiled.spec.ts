import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';

const run = promisify(execFile);
const project = fileURLToPath(new URL('..', import.meta.url));
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');

/** What production runs: this lib compiled, below the repository so that packages resolve. */
let compiled: string;
beforeAll(async () => {
  const cache = join(project, '../../node_modules/.cache');
  await mkdir(cache, { recursive: true });
  compiled = await mkdtemp(join(cache, 'weir-tokens-'));
  await writeFile(join(compiled, 'package.json'), '{"type":"module"}');
  await run(process.execPath, [
    ...[tsc, '-p', project, '--outDir', compiled],
    ...['--composite', 'false', '--incremental', 'false', '--declaration', 'false'],
    ...['--declarationMap', 'false', '--tsBuildInfoFile', 'null'],
  ]);
}, 60_000);
afterAll(() => rm(compiled, { recursive: true, force: true }));

async function runCompiled(body: string): Promise<unknown> {
  const script = join(compiled, 'main.mjs');
  await writeFile(
    script,
    `import { createTokenCounter } from './index.js';
     const counter = createTokenCounter({
       answer_ms_max: 20_000,
       onFailure: (error) => { throw error; },
     });
     ${body}`,
  );
  const { stdout } = await run(process.execPath, [script], { timeout: 20_000 });
  return JSON.parse(stdout);
}

it('counts on its worker thread when it runs compiled', async () => {
  const counts = await runCompiled(`
    const text = 'a'.repeat(100_000);
    const counts = [];
    for (const model of ['gpt-4o', 'gpt-4', 'gpt-4o']) counts.push(await counter.countText(model, text));
    await counter.close();
    console.log(JSON.stringify(counts));`);
  expect(counts).toEqual(Array(3).fill({ tokens: 12_500, estimated: false, method: 'worker' }));
});

it('does not keep the process alive when nobody closes it, before or after a job', async () => {
  expect(await runCompiled(`await counter.warmUp(); console.log('"warm"');`)).toBe('warm');
  expect(
    await runCompiled(`
      const { method } = await counter.countText('gpt-4o', 'word '.repeat(10_000));
      console.log(JSON.stringify(method));`),
  ).toBe('worker');
});
