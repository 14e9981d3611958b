import { createLogger, loadConfig, runMain, startWeirApp } from '@weir/platform';
import { gatewayConfigSchema } from './config.js';
import { tuneCollector } from './collector.js';
import { gatewayApp } from './gateway-app.js';

tuneCollector();

await runMain(async () => {
  const config = loadConfig(gatewayConfigSchema);
  const logger = createLogger({ name: 'gateway', level: config.LOG_LEVEL });
  const { module, options } = gatewayApp(config, logger);
  await startWeirApp(module, options);
});
