import { systemClock } from '@weir/domain';
import { createLogger, endWithProcess, loadConfig, runMain } from '@weir/platform';
import { warmUp } from '@weir/tokens';
import { configSchema } from './config.js';
import { createProvider } from './provider.js';

await runMain(async () => {
  const config = loadConfig(configSchema);
  const logger = createLogger({ name: 'demo-provider', level: config.LOG_LEVEL });
  // All its models count with this one.
  await warmUp(['o200k_base']);
  const provider = createProvider({ apiKey: config.DEMO_API_KEY, logger, clock: systemClock });
  endWithProcess({ logger, boundMs: 5_000, close: () => provider.close() });
  const url = await provider.listen({ host: config.HOST, port: config.PORT });
  logger.info({ url }, 'listening');
});
