import { defineConfig } from '@playwright/test';

const chromiumPath = process.env.CHROMIUM_PATH;

export const config = defineConfig({
  testDir: 'src',
  testMatch: '**/*.e2e.ts',
  // One stack, one machine of two cores: tests share the stack and run one after the other.
  workers: 1,
  fullyParallel: false,
  retries: 0,
  timeout: 120_000,
  expect: { timeout: 10_000 },
  outputDir: '../../test-results/e2e',
  use: {
    browserName: 'chromium',
    viewport: { width: 1440, height: 900 },
    locale: 'en-US',
    trace: 'retain-on-failure',
    acceptDownloads: true,
    launchOptions: {
      ...(chromiumPath ? { executablePath: chromiumPath } : {}),
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--no-first-run',
      ],
    },
  },
});
export { config as default };
