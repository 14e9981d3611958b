import { projectTestConfig } from '../../vitest.shared.ts';

export const config = projectTestConfig('admin-api');
export { config as default };
