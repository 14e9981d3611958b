import { createLogger, loadConfig, runMain, startWeirApp } from '@weir/platform';
import { adminAppOptions } from './admin-api.app.js';
import { AdminApiModule } from './admin-api.module.js';
import { adminConfigSchema } from './config.js';

await runMain(async () => {
  const config = loadConfig(adminConfigSchema);
  const logger = createLogger({ name: 'admin-api', level: config.LOG_LEVEL });
  await startWeirApp(AdminApiModule.forRoot(config), adminAppOptions(config, logger));
});
