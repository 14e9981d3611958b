import { projectTestConfig } from '../../vitest.shared.ts';

export const config = projectTestConfig('gateway');
export { config as default };
