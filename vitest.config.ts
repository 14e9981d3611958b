import { defineConfig } from 'vitest/config';

export const config = defineConfig({
  test: {
    projects: ['libs/*/vitest.config.ts', 'apps/*/vitest.config.ts', 'tools/vitest.config.ts'],
    // Two suites at once on two cores: real services run beside them.
    maxWorkers: 2,
  },
});
export { config as default };
