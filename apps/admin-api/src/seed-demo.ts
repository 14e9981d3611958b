import 'reflect-metadata';
import { Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createLogger, loadConfig, LOGGER, runMain, Shutdown } from '@weir/platform';
import { z } from 'zod';
import { controlConfigShape } from './config.js';
import { ControlModule } from './control/control.module.js';
import { DemoSecrets } from './demo/demo-secrets.js';
import { seedDemoEnterprise } from './demo/seed-demo-enterprise.js';

/*
 * Makes the enterprise of the demo. Run it as often as you like. The last line on stdout is one JSON object with the
 * logins and keys, for `npm start`; everything else goes to stderr.
 */

const seedConfigSchema = z.object({
  ...controlConfigShape,
  /** Address of the demo provider, without /v1. A wrong one: calls of the demo models fail with upstream_error. */
  DEMO_PROVIDER_URL: z.url().describe('such as http://127.0.0.1:4100'),
  /** API key that the demo provider wants. */
  DEMO_API_KEY: z.string().min(1),
  /** File that keeps generated passwords and keys, readable by its owner alone. Lost: there will be new ones. */
  SEED_STATE_FILE: z.string().min(1),
});

@Module({})
class SeedModule {
  static forRoot(module: DynamicModule, providers: DynamicModule['providers']): DynamicModule {
    const exported = (providers ?? []).map((provider) =>
      typeof provider === 'object' && 'provide' in provider ? provider.provide : provider,
    );
    return {
      module: SeedModule,
      global: true,
      imports: [module],
      providers: providers ?? [],
      exports: exported,
    };
  }
}

await runMain(async () => {
  const config = loadConfig(seedConfigSchema);
  const logger = createLogger({
    name: 'seed-demo',
    level: 'warn',
    destination: process.stderr,
  });
  const shutdown = new Shutdown(logger);
  // The demo provider runs on this machine.
  const control = ControlModule.forRoot({ ...config, UPSTREAM_ALLOW_PRIVATE: true });
  const context = await NestFactory.createApplicationContext(
    SeedModule.forRoot(control, [
      { provide: LOGGER, useValue: logger },
      { provide: Shutdown, useValue: shutdown },
    ]),
    { logger: false, abortOnError: false },
  );
  try {
    const summary = await seedDemoEnterprise(context, new DemoSecrets(config.SEED_STATE_FILE), {
      url: config.DEMO_PROVIDER_URL,
      apiKey: config.DEMO_API_KEY,
    });
    console.log(JSON.stringify(summary));
  } finally {
    shutdown.begin();
    for (const phase of ['stop-intake', 'drain', 'disconnect'] as const) {
      await shutdown.runPhase(phase);
    }
    await context.close();
  }
});
