import swc from 'unplugin-swc';
import { defineProject, type UserWorkspaceConfig } from 'vitest/config';

/**
 * The one test set-up of all Node projects: sources of sibling libs are used directly
 * (no build needed), and swc keeps the decorator metadata that Nest's injection reads.
 */
export function projectTestConfig(name: string): UserWorkspaceConfig {
  return defineProject({
    plugins: [
      swc.vite({
        module: { type: 'es6' },
        jsc: {
          target: 'es2023',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
        },
      }),
    ],
    resolve: { conditions: ['weir-source', 'node'] },
    ssr: { resolve: { conditions: ['weir-source', 'node'] } },
    test: {
      name,
      include: ['src/**/*.spec.ts', 'test/**/*.spec.ts'],
      environment: 'node',
      testTimeout: 30_000,
      hookTimeout: 60_000,
    },
  });
}
