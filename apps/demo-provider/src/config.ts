import { serverConfigShape } from '@weir/platform';
import { z } from 'zod';

export const configSchema = z.object({
  ...serverConfigShape,
  /** What callers must send as bearer token or x-api-key. A wrong one makes every call a 401. */
  DEMO_API_KEY: z
    .string()
    .min(4, 'must have at least 4 characters')
    .describe('the key that callers must send'),
});
export type Config = z.infer<typeof configSchema>;
