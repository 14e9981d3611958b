import { apiSchemas } from '@weir/domain';
import { z } from 'zod';
import { rangePresets } from '../../format/dates.js';

export const usageMetrics = ['cost', 'tokens', 'requests'] as const;
export type UsageMetric = (typeof usageMetrics)[number];

/** All that the usage explorer shows is told by its URL; what cannot be read falls back to the default. */
export const usageSearchSchema = z.object({
  metric: z.enum(usageMetrics).optional().catch(undefined),
  groupBy: z.enum(apiSchemas.usageGroupings).optional().catch(undefined),
  granularity: z.enum(['hour', 'day', 'month']).optional().catch(undefined),
  range: z.enum(rangePresets).optional().catch(undefined),
  /** Local dates of a custom range, both inclusive. */
  from: z.iso.date().optional().catch(undefined),
  to: z.iso.date().optional().catch(undefined),
  departmentId: z.uuid().optional().catch(undefined),
  userId: z.uuid().optional().catch(undefined),
  keyId: z.uuid().optional().catch(undefined),
  model: z.string().max(128).optional().catch(undefined),
  /** The export that was started from here. */
  export: z.uuid().optional().catch(undefined),
});
export type UsageSearch = z.output<typeof usageSearchSchema>;
