import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { shippedScripts, withMovableClock } from './script-sources.js';

const root = join(dirname(fileURLToPath(import.meta.url)), '../../..');

it('the generated module is what the Lua files compile to, and they pass the lint', async () => {
  const { stderr } = await promisify(execFile)(
    process.execPath,
    ['tools/generate/10-lua.mjs', '--check'],
    { cwd: root },
  );
  expect(stderr).toBe('');
});

it('no shipped script reads a clock that can be set', () => {
  for (const source of Object.values(shippedScripts)) expect(source).not.toContain('test-clock');
  expect(withMovableClock(shippedScripts).admit).toContain('test-clock');
});

it('every script carries the shebang that makes Redis refuse keys of another slot', () => {
  for (const source of Object.values(shippedScripts)) {
    expect(source).toMatch(/^#!lua( flags=no-writes)?\n/);
  }
});
