import { projectTestConfig } from '../../vitest.shared.ts';

export const config = projectTestConfig('platform');
export { config as default };
