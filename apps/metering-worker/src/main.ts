import { createLogger, loadConfig, runMain, startWeirApp } from '@weir/platform';
import { workerConfigSchema } from './config.js';
import { WorkerModule } from './worker.module.js';

await runMain(async () => {
  const config = loadConfig(workerConfigSchema);
  const logger = createLogger({ name: 'metering-worker', level: config.LOG_LEVEL });
  await startWeirApp(WorkerModule.forRoot(config), {
    name: 'metering-worker',
    logger,
    host: config.HOST,
    port: config.PORT,
    trustProxy: config.TRUST_PROXY,
    shutdownGraceMs: config.SHUTDOWN_GRACE_MS,
    metricsToken: config.METRICS_TOKEN,
  });
});
