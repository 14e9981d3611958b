import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ESLint } from 'eslint';
import { createProjectGraphAsync } from 'nx/src/project-graph/project-graph.js';
import { beforeAll, describe, expect, it } from 'vitest';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Lints a line as if it stood in a file of the given project; returns what the boundary rules say. */
async function faultsOf(file: string, code: string): Promise<string[]> {
  const eslint = new ESLint({ cwd: root });
  const [result] = await eslint.lintText(code, { filePath: join(root, file) });
  return (result?.messages ?? [])
    .filter((message) => message.severity === 2)
    .map((message) => message.ruleId ?? message.message);
}

describe('the rules between folders', () => {
  // Without the graph the rule only warns and lets everything pass.
  beforeAll(async () => {
    process.env.NX_DAEMON = 'false';
    await createProjectGraphAsync();
  });

  it.each([
    ['the domain imports nothing of ours', 'libs/domain/src/planted.ts', "import '@weir/quota';"],
    ['the domain does no I/O', 'libs/domain/src/planted.ts', "import 'ioredis';"],
    [
      'the gateway never imports persistence',
      'apps/gateway/src/planted.ts',
      "import '@weir/persistence';",
    ],
    ['only metering speaks to Kafka', 'apps/metering-worker/src/planted.ts', "import 'kafkajs';"],
    ['only persistence speaks to Postgres', 'apps/admin-api/src/planted.ts', "import 'pg';"],
    ['the quota engine knows no Postgres', 'libs/quota/src/planted.ts', "import '@prisma/client';"],
    ['the console holds no server code', 'apps/console/src/planted.ts', "import '@weir/quota';"],
  ])('%s', async (_, file, code) => {
    expect(await faultsOf(file, code)).toContain('@nx/enforce-module-boundaries');
  });

  it('production code does not reach for test helpers', async () => {
    expect(await faultsOf('apps/gateway/src/planted.ts', "import '@weir/testing';")).toContain(
      'no-restricted-imports',
    );
  });

  it('settings are read through the config schema only', async () => {
    expect(
      await faultsOf('apps/gateway/src/planted.ts', 'export const port = process.env.PORT;'),
    ).toContain('no-restricted-syntax');
  });

  it('an allowed import passes', async () => {
    expect(await faultsOf('apps/gateway/src/planted.ts', "import '@weir/quota';")).toEqual([]);
  });
});
