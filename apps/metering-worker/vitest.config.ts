import { projectTestConfig } from '../../vitest.shared.ts';

export const config = projectTestConfig('metering-worker');
export { config as default };
