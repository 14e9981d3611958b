import nx from '@nx/eslint-plugin';
import reactHooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

/** Each project may import these projects of ours, and must not touch these packages. */
const boundaries = {
  domain: {
    mayImport: [],
    banned: [
      'ioredis',
      'kafkajs',
      'pg',
      '@prisma/*',
      '@nestjs/*',
      'bullmq',
      'react',
      'fastify',
      'undici',
      'node:*',
    ],
  },
  quota: {
    mayImport: ['domain'],
    banned: ['kafkajs', 'pg', '@prisma/*', '@nestjs/*', 'bullmq', 'react'],
  },
  tokens: {
    mayImport: ['domain'],
    banned: ['ioredis', 'kafkajs', 'pg', '@prisma/*', '@nestjs/*', 'bullmq', 'react'],
  },
  metering: { mayImport: ['domain'], banned: ['pg', '@prisma/*', '@nestjs/*', 'bullmq', 'react'] },
  persistence: {
    mayImport: ['domain'],
    banned: ['ioredis', 'kafkajs', '@nestjs/*', 'bullmq', 'react'],
  },
  platform: { mayImport: ['domain'], banned: ['ioredis', 'kafkajs', 'pg', '@prisma/*', 'react'] },
  testing: { mayImport: ['*'], banned: ['react'] },
  gateway: {
    mayImport: ['domain', 'quota', 'tokens', 'metering', 'platform'],
    banned: ['pg', '@prisma/*', 'kafkajs', 'react', 'bullmq'],
  },
  'metering-worker': {
    mayImport: ['domain', 'quota', 'tokens', 'metering', 'persistence', 'platform'],
    banned: ['pg', '@prisma/*', 'kafkajs', 'react'],
  },
  'admin-api': {
    mayImport: ['domain', 'quota', 'persistence', 'platform'],
    banned: ['pg', '@prisma/*', 'kafkajs', 'react'],
  },
  'demo-provider': {
    mayImport: ['domain', 'platform', 'tokens'],
    banned: ['ioredis', 'pg', '@prisma/*', 'kafkajs', 'react', 'bullmq'],
  },
  console: {
    mayImport: ['domain'],
    banned: [
      'ioredis',
      'kafkajs',
      'pg',
      '@prisma/*',
      '@nestjs/*',
      'bullmq',
      'fastify',
      'undici',
      'node:*',
    ],
  },
  e2e: { mayImport: ['*'], banned: [] },
};

const productionProjects = Object.keys(boundaries).filter((name) => name !== 'testing');

/** @param {string[]} [also] libs that every project may import as well */
const constraintsWith = (also = []) =>
  Object.entries(boundaries).map(([name, { mayImport, banned }]) => ({
    sourceTag: `scope:${name}`,
    onlyDependOnLibsWithTags: mayImport.includes('*')
      ? ['*']
      : [`scope:${name}`, ...[...mayImport, ...also].map((lib) => `scope:${lib}`)],
    bannedExternalImports: banned,
  }));

export const depConstraints = constraintsWith();

export const config = tseslint.config(
  {
    ignores: [
      '**/dist/**',
      '**/node_modules/**',
      '**/generated/**',
      '.nx/**',
      '.weir/**',
      '**/*.gen.ts',
    ],
  },
  ...tseslint.configs.recommended,
  {
    files: ['**/*.ts', '**/*.tsx', '**/*.mjs'],
    plugins: { '@nx': nx },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_' },
      ],
      '@typescript-eslint/consistent-type-imports': 'off',
      'no-console': 'error',
    },
  },
  {
    files: ['apps/**/*.ts', 'apps/**/*.tsx', 'libs/**/*.ts'],
    // Tool configurations share vitest.shared.ts at the top, which is in no project.
    ignores: ['**/*.config.ts'],
    rules: {
      '@nx/enforce-module-boundaries': [
        'error',
        {
          enforceBuildableLibDependency: false,
          allow: ['tools/launcher/stack\\.mjs$'],
          depConstraints,
        },
      ],
      'no-restricted-exports': ['error', { restrictDefaultExports: { direct: true } }],
    },
  },
  {
    // Specs import the test helpers on top.
    files: ['apps/**/*.spec.ts', 'apps/**/*.spec.tsx', 'libs/**/*.spec.ts'],
    rules: {
      '@nx/enforce-module-boundaries': [
        'error',
        {
          enforceBuildableLibDependency: false,
          allow: [],
          depConstraints: constraintsWith(['testing']),
        },
      ],
    },
  },
  {
    // Production code never reaches for test helpers.
    files: productionProjects.flatMap((name) => [
      `libs/${name}/src/**/*.ts`,
      `apps/${name}/src/**/*.ts`,
    ]),
    ignores: ['**/*.spec.ts', 'apps/e2e/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        { paths: [{ name: '@weir/testing', message: 'Only specs and e2e import test helpers.' }] },
      ],
    },
  },
  {
    // Configuration is read once, by the app's config schema.
    files: ['apps/*/src/**/*.ts', 'libs/*/src/**/*.ts'],
    ignores: ['**/*.spec.ts', '**/*.e2e.ts', 'libs/testing/**', 'libs/platform/src/config.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: "MemberExpression[object.name='process'][property.name='env']",
          message: 'Read settings through the config schema.',
        },
      ],
    },
  },
  {
    files: ['apps/console/src/**/*.{ts,tsx}'],
    plugins: { 'react-hooks': reactHooks },
    rules: reactHooks.configs.recommended.rules,
  },
  {
    files: ['tools/**', '**/*.config.*', 'apps/*/src/main.ts', 'apps/*/src/seed-demo.ts'],
    rules: { 'no-console': 'off' },
  },
);

// Tools that read a flat config want it as the default export.
export { config as default };
