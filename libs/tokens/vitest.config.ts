import { projectTestConfig } from '../../vitest.shared.ts';

export const config = projectTestConfig('tokens');
export { config as default };
