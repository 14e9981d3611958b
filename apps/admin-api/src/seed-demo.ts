import { loadConfig, runMain } from '@weir/platform';
import { z } from 'zod';
import { controlConfigShape } from './config.js';
import { withControlContext } from './control/control-context.js';
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

await runMain(async () => {
  const config = loadConfig(seedConfigSchema);
  // The demo provider runs on this machine.
  const control = { ...config, UPSTREAM_ALLOW_PRIVATE: true };
  const summary = await withControlContext('seed-demo', control, (context) =>
    seedDemoEnterprise(context, new DemoSecrets(config.SEED_STATE_FILE), {
      url: config.DEMO_PROVIDER_URL,
      apiKey: config.DEMO_API_KEY,
    }),
  );
  console.log(JSON.stringify(summary));
});
