// Writes the admin API's OpenAPI document from the route table in libs/domain, and the console's client types from it.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b', 'libs/domain'], {
  cwd: root,
  stdio: 'inherit',
});
const { adminOpenApiDocument } = await import(
  pathToFileURL(join(root, 'libs/domain/dist/index.js')).href
);
const document = join(root, 'docs/openapi.json');
mkdirSync(dirname(document), { recursive: true });
writeFileSync(document, `${JSON.stringify(adminOpenApiDocument(), null, 2)}\n`);

const { default: openapiTS, astToString } = await import('openapi-typescript');
const types = astToString(await openapiTS(pathToFileURL(document)));
const client = join(root, 'apps/console/src/api/schema.d.ts');
mkdirSync(dirname(client), { recursive: true });
writeFileSync(client, `/** Generated from docs/openapi.json by \`npm run generate\`; do not edit. */\n${types}`);
