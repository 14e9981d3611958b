import { projectTestConfig } from '../../vitest.shared.ts';

export const config = projectTestConfig('quota');
export { config as default };
