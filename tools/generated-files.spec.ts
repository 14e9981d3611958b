import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

it('the OpenAPI document and the console’s client types match the route table', async () => {
  const { stderr } = await promisify(execFile)(
    process.execPath,
    ['tools/generate/30-openapi.mjs', '--check'],
    { cwd: root, timeout: 110_000 },
  );
  expect(stderr).toBe('');
});
