// Runs every generator of tools/generate, in the order of their names, one at a time: a later one may
// read what an earlier one wrote. Arguments are passed on to each.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const generatorDir = fileURLToPath(new URL('./generate', import.meta.url));
const repoDir = fileURLToPath(new URL('..', import.meta.url));

const generators = readdirSync(generatorDir)
  .filter((name) => name.endsWith('.mjs'))
  .sort();

for (const name of generators) {
  const { status } = spawnSync(
    process.execPath,
    [join(generatorDir, name), ...process.argv.slice(2)],
    { cwd: repoDir, stdio: 'inherit' },
  );
  if (status !== 0) {
    console.error(`tools/generate/${name} failed`);
    process.exit(1);
  }
}
