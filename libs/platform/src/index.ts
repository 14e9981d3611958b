export { createWeirApp, ownHead, startWeirApp, type WeirAppOptions } from './app.js';
export { ConfigError, loadConfig, serverConfigShape, type ConfigFault } from './config.js';
export {
  renderAdminError,
  toWeirError,
  WeirExceptionFilter,
  type RenderError,
} from './exception-filter.js';
export {
  HealthChecks,
  type Check,
  type CheckOptions,
  type CheckResult,
  type Readiness,
} from './health.js';
export { createLogger, NestLogger, type Logger, type LogLevel } from './logger.js';
export { Metrics } from './metrics.js';
export { PlatformModule, type PlatformOptions } from './platform.module.js';
export { endWithProcess, runMain, type ProcessHost } from './process-end.js';
export { requestIdFrom, requestIdHeader } from './request-id.js';
export { SecretBox, SecretBoxError, type SecretBoxErrorCode } from './secret-box.js';
export { Shutdown, type ShutdownPhase } from './shutdown.js';
export { InjectLogger, LOGGER } from './tokens.js';
export { createValidationPipe, validationError, type FieldFault } from './validation.js';
