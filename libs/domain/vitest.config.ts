import { projectTestConfig } from '../../vitest.shared.ts';

export const config = projectTestConfig('domain');
export { config as default };
