import type { apiSchemas } from '@weir/domain';
import type { z } from 'zod';

type LimitSpec = Pick<
  z.input<typeof apiSchemas.limitCreateBody>,
  'metric' | 'window' | 'amount' | 'mode'
>;
type Prices = z.input<typeof apiSchemas.priceCreateBody>['perMillionTokens'];

/** What the demo shows: an enterprise with budgets that a few hundred demo calls make visible. */

export const enterprise = {
  name: 'Acme Corp',
  timeZone: 'Asia/Shanghai',
  currency: 'USD',
} as const;

const perMonth = (amount: string): LimitSpec => ({ metric: 'cost', window: 'month', amount });
const rates = (requests: string, tokens: string, concurrency: string): LimitSpec[] => [
  { metric: 'requests', window: 'minute', amount: requests },
  { metric: 'tokens', window: 'minute', amount: tokens },
  { metric: 'concurrency', window: null, amount: concurrency },
];

export const enterpriseLimits: LimitSpec[] = [
  perMonth('5000.00'),
  ...rates('60000', '30000000', '2000'),
];

export type DemoDepartment = {
  readonly name: string;
  readonly parent: string | null;
  readonly costCenter: string;
  readonly limits: readonly LimitSpec[];
};
/** Parents before children. */
export const departments: readonly DemoDepartment[] = [
  {
    name: 'Marketing',
    parent: null,
    costCenter: 'CC-100',
    limits: [perMonth('500.00'), ...rates('6000', '3000000', '400')],
  },
  {
    name: 'Content Studio',
    parent: 'Marketing',
    costCenter: 'CC-110',
    limits: [perMonth('150.00')],
  },
  {
    name: 'Engineering',
    parent: null,
    costCenter: 'CC-200',
    limits: [perMonth('2000.00'), ...rates('24000', '12000000', '800')],
  },
  { name: 'Platform', parent: 'Engineering', costCenter: 'CC-210', limits: [perMonth('1200.00')] },
  { name: 'Research', parent: 'Engineering', costCenter: 'CC-220', limits: [perMonth('600.00')] },
  {
    name: 'Finance',
    parent: null,
    costCenter: 'CC-300',
    limits: [perMonth('200.00'), ...rates('1200', '600000', '50')],
  },
  {
    name: 'Customer Support',
    parent: null,
    costCenter: 'CC-400',
    limits: [perMonth('800.00'), ...rates('12000', '6000000', '400')],
  },
];

export type DemoUser = {
  readonly name: string;
  readonly department: string;
  readonly kind: 'person' | 'service';
  readonly email: string | null;
  readonly role: 'owner' | 'finance' | 'manager' | 'member';
  readonly key?: string;
  readonly limits?: readonly LimitSpec[];
};
export const ownerEmail = 'admin@acme.example';
export const financeEmail = 'finance@acme.example';
export const users: readonly DemoUser[] = [
  {
    name: 'Administrator',
    department: 'Engineering',
    kind: 'person',
    email: ownerEmail,
    role: 'owner',
  },
  {
    name: 'Financial controller',
    department: 'Finance',
    kind: 'person',
    email: financeEmail,
    role: 'finance',
  },
  {
    name: 'Marketing manager',
    department: 'Marketing',
    kind: 'person',
    email: 'marketing.manager@acme.example',
    role: 'manager',
  },
  {
    name: 'Campaign analyst',
    department: 'Marketing',
    kind: 'person',
    email: 'marketing@acme.example',
    role: 'member',
    key: 'marketing-demo',
  },
  {
    name: 'Content editor',
    department: 'Content Studio',
    kind: 'person',
    email: 'content@acme.example',
    role: 'member',
    key: 'content-demo',
    limits: [perMonth('40.00')],
  },
  {
    name: 'Software engineer',
    department: 'Engineering',
    kind: 'person',
    email: 'engineering@acme.example',
    role: 'member',
    key: 'engineering-demo',
  },
  {
    name: 'Platform engineer',
    department: 'Platform',
    kind: 'person',
    email: 'platform@acme.example',
    role: 'member',
    key: 'platform-demo',
  },
  {
    name: 'Researcher',
    department: 'Research',
    kind: 'person',
    email: 'research@acme.example',
    role: 'member',
    key: 'research-demo',
  },
  {
    name: 'Support assistant',
    department: 'Customer Support',
    kind: 'service',
    email: null,
    role: 'member',
    key: 'support-assistant',
  },
];

export const upstreamName = 'Demo provider';

/** The demo provider bills every prompt token that is not cached as input, whatever kind it is. */
const chatPrices = (input: string, cachedInput: string, output: string): Prices => ({
  input,
  cachedInput,
  cacheWrite: input,
  imageInput: input,
  output,
});
/** As the demo provider's own price list has them, so that its bill and ours can be compared. */
export const models = [
  {
    alias: 'demo-small',
    kind: 'chat',
    contextWindowTokens: 128_000,
    maxOutputTokens: 16_384,
    prices: chatPrices('0.50', '0.05', '1.50'),
  },
  {
    alias: 'demo-large',
    kind: 'chat',
    contextWindowTokens: 200_000,
    maxOutputTokens: 32_768,
    prices: chatPrices('5.00', '0.50', '15.00'),
  },
  {
    alias: 'demo-free',
    kind: 'chat',
    contextWindowTokens: 32_000,
    maxOutputTokens: 8_192,
    prices: chatPrices('0', '0', '0'),
  },
  {
    alias: 'demo-embed',
    kind: 'embedding',
    contextWindowTokens: 8_192,
    maxOutputTokens: 1,
    prices: { input: '0.02', cachedInput: '0.02', output: '0' } satisfies Prices,
  },
] as const;
