import { projectTestConfig } from '../../vitest.shared.ts';

export const config = projectTestConfig('metering');
export { config as default };
