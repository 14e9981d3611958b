// Compiles libs/quota/src/lua into a TypeScript module, so that the scripts ship inside the build.
// With --check it writes nothing and fails when the committed module is stale.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compileScripts } from './lua/compile.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const target = join(root, 'libs/quota/src/generated/scripts.ts');

const scripts = compileScripts(join(root, 'libs/quota/src/lua'));
const entries = Object.entries(scripts)
  .map(([name, source]) => `  ${name}: \`${source.replace(/[\\`$]/g, '\\$&')}\`,\n`)
  .join('');
const generated = `// Generated from libs/quota/src/lua by tools/generate/10-lua.mjs. Do not edit.
export const scriptSources = {
${entries}};
`;

if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== generated) {
    console.error('libs/quota/src/generated/scripts.ts is stale: run `npm run generate`');
    process.exit(1);
  }
} else {
  writeFileSync(target, generated);
}
