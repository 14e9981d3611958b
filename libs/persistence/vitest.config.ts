import { projectTestConfig } from '../../vitest.shared.ts';

export const config = projectTestConfig('persistence');
export { config as default };
