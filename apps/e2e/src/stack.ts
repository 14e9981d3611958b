import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test as base } from '@playwright/test';
import { type Stack, startStack } from '../../../tools/launcher/stack.mjs';
import { AdminClient } from './admin-client.js';

export type DemoData = {
  readonly console: {
    readonly email: string;
    readonly password: string;
    readonly finance: { readonly email: string; readonly password: string };
  };
  readonly keys: readonly {
    readonly name: string;
    readonly department: string;
    readonly secret: string;
  }[];
  readonly enterpriseId: string;
  readonly departments: Readonly<Record<string, string>>;
};

/** The whole of Weir, started once per run on free ports, with the demo data's logins and keys. */
export type RunningStack = Omit<Stack, 'demo'> & {
  readonly demo: DemoData;
  readonly admin: AdminClient;
  /** The secret of a demo key of the department. */
  keyOf(department: string): string;
};

export const test = base.extend<object, { stack: RunningStack }>({
  stack: [
    // Playwright asks for the destructuring, also of nothing.
    async ({}, use) => {
      const stateDir = mkdtempSync(join(tmpdir(), 'weir-e2e-'));
      const lines: string[] = [];
      const stack = await startStack({
        stateDir,
        ports: 'free',
        isThrowaway: true,
        // Exactness is asserted of shared limits: on a machine busy with a browser, a broker and a database, a late
        // reply must not count as a dead Redis. What happens with a dead one has tests of its own.
        appEnv: { gateway: { REDIS_COMMAND_TIMEOUT_MS: '1000' } },
        log: (line) => lines.push(line),
      });
      const demo = stack.demo as DemoData;
      const admin = await AdminClient.signIn(
        stack.urls.adminApi,
        demo.console.email,
        demo.console.password,
      );
      try {
        await use({
          ...stack,
          demo,
          admin,
          keyOf(department) {
            const key = demo.keys.find((candidate) => candidate.department === department);
            if (!key) throw new Error(`the demo data has no key for ${department}`);
            return key.secret;
          },
        });
      } finally {
        await stack.stop();
      }
      rmSync(stateDir, { recursive: true, force: true });
    },
    { scope: 'worker', timeout: 300_000 },
  ],
});

export { expect } from '@playwright/test';
