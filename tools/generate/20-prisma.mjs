// The Prisma client, from prisma/schema.prisma to libs/persistence/src/generated/prisma (not in git).
//
// `prisma generate` wants to download its schema engine, and does not use it: any existing file in
// its place keeps the command offline.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repoDir = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const schemaFile = join(repoDir, 'prisma', 'schema.prisma');
const outputDir = join(repoDir, 'libs', 'persistence', 'src', 'generated', 'prisma');
const stampFile = join(outputDir, '.stamp');

/**
 * Generates the client unless it is there for this very schema and version of Prisma.
 * @returns {Promise<boolean>} whether it generated
 */
async function generate() {
  const require = createRequire(import.meta.url);
  const packageFile = require.resolve('prisma/package.json');
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8'));
  const stamp = createHash('sha256').update(version).update(readFileSync(schemaFile)).digest('hex');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return false;
  await runPrisma(join(dirname(packageFile), 'build', 'index.js'));
  writeFileSync(stampFile, stamp);
  return true;
}

/** @param {string} cli */
async function runPrisma(cli) {
  const child = spawn(process.execPath, [cli, 'generate', '--schema', schemaFile, '--no-hints'], {
    cwd: repoDir,
    env: {
      ...process.env,
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      PRISMA_HIDE_UPDATE_MESSAGE: '1',
      CHECKPOINT_DISABLE: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 120_000,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`prisma generate failed (exit code ${code}):\n${output}`);
}

console.log((await generate()) ? 'prisma client generated' : 'prisma client is up to date');
