import type { apiSchemas } from '@weir/domain';
import type { z } from 'zod';
import type { paths } from './schema.js';

/** The rows of the admin API by their short names. */
export type Me = z.output<typeof apiSchemas.meSchema>;
export type Organisation = z.output<typeof apiSchemas.organisationSchema>;
export type OrgNode = z.output<typeof apiSchemas.nodeSchema>;
export type NodeDetail = z.output<typeof apiSchemas.nodeDetailSchema>;
export type LimitUse = z.output<typeof apiSchemas.limitUseSchema>;
export type EnterpriseRow = z.output<typeof apiSchemas.enterpriseSchema>;
/** A change of some of the enterprise's settings, as it is sent. */
export type SettingsChange = NonNullable<
  NonNullable<
    paths['/api/v1/enterprise']['patch']['requestBody']
  >['content']['application/json']['settings']
>;
export type LimitRow = z.output<typeof apiSchemas.limitSchema>;
export type UserRow = z.output<typeof apiSchemas.userSchema>;
export type KeyRow = z.output<typeof apiSchemas.keySchema>;
export type UpstreamRow = z.output<typeof apiSchemas.upstreamSchema>;
export type ModelRow = z.output<typeof apiSchemas.modelSchema>;
export type PriceRow = z.output<typeof apiSchemas.priceSchema>;
export type UsageReport = z.output<typeof apiSchemas.usageReportSchema>;
export type UsageRow = UsageReport['rows'][number];
export type ExportRow = z.output<typeof apiSchemas.exportSchema>;
export type AuditEntry = z.output<typeof apiSchemas.auditEntrySchema>;
export type MeteringStatus = z.output<typeof apiSchemas.meteringStatusSchema>;
export type Reconciliation = z.output<typeof apiSchemas.reconciliationSchema>;
export type RequestDetail = z.output<typeof apiSchemas.requestDetailSchema>;
export type UsageGrouping = (typeof apiSchemas.usageGroupings)[number];
export type UsageGranularity = (typeof apiSchemas.usageGranularities)[number];
