import { defineProject } from 'vitest/config';

export const config = defineProject({
  resolve: { conditions: ['weir-source', 'node', 'import', 'default'] },
  ssr: { resolve: { conditions: ['weir-source', 'node', 'import', 'default'] } },
  test: {
    name: 'console',
    include: ['src/**/*.spec.ts', 'src/**/*.spec.tsx'],
    environment: 'node',
  },
});
export { config as default };
