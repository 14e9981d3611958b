// Writes the admin API's OpenAPI document from the route table in libs/domain, and the console's client types from it.
// With --check it writes nothing and fails if either file is stale.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const checkOnly = process.argv.includes('--check');

function put(file, text) {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
  if (checkOnly) {
    console.error(
      `${relative(root, file)} is stale: run \`npm run generate\` and commit the result`,
    );
    process.exitCode = 1;
    return;
  }
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

execFileSync(
  process.execPath,
  [join(root, 'node_modules/typescript/bin/tsc'), '-b', 'libs/domain'],
  { cwd: root, stdio: 'inherit' },
);
const domain = pathToFileURL(join(root, 'libs/domain/dist/index.js')).href;
const { adminOpenApiDocument } = await import(domain);
const document = adminOpenApiDocument();
put(join(root, 'docs/openapi.json'), `${JSON.stringify(document, null, 2)}\n`);

const { default: openapiTS, astToString } = await import('openapi-typescript');
const types = astToString(await openapiTS(document));
put(
  join(root, 'apps/console/src/api/schema.d.ts'),
  `/** Generated from docs/openapi.json by \`npm run generate\`; do not edit. */\n${types}`,
);
