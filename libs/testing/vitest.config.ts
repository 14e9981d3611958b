import { projectTestConfig } from '../../vitest.shared.ts';

export const config = projectTestConfig('testing');
export { config as default };
