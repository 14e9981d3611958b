import { projectTestConfig } from '../../vitest.shared.ts';

export const config = projectTestConfig('demo-provider');
export { config as default };
