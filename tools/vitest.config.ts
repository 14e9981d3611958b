import { defineProject } from 'vitest/config';

export const config = defineProject({
  test: { name: 'tools', include: ['**/*.spec.ts'], environment: 'node', testTimeout: 120_000 },
});
export { config as default };
