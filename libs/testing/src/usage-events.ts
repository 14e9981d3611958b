import {
  costPicoOf,
  type NamedRef,
  nanoFromPico,
  newId,
  noTokens,
  periodAt,
  type TokenUsage,
  type UnnumberedUsageEvent,
  type UsageEvent,
  type UsageEventData,
  usageEventOf,
} from '@weir/domain';

/** An enterprise with one department, user and key: who the events of a test are of. */
export type TestTenant = {
  readonly enterprise: NamedRef;
  readonly departments: readonly NamedRef[];
  readonly user: NamedRef;
  readonly key: NamedRef;
  readonly timeZone: string;
};

export function testTenant(overrides: Partial<TestTenant> = {}): TestTenant {
  return {
    enterprise: { id: newId(), name: 'Acme' },
    departments: [{ id: newId(), name: 'Marketing' }],
    user: { id: newId(), name: 'Li Wei' },
    key: { id: newId(), name: 'campaigns' },
    timeZone: 'UTC',
    ...overrides,
  };
}

const testProvider: NamedRef = { id: '0199d000-0000-7000-8000-000000000001', name: 'demo' };
const testPrice: UsageEventData['price'] = {
  id: '0199d000-0000-7000-8000-000000000002',
  picoPerToken: {
    input: '2500000',
    cachedInput: '1250000',
    cacheWrite: '3125000',
    output: '10000000',
  },
  picoPerRequest: '0',
};

export type UsageEventOverrides = Partial<Omit<UsageEventData, 'usage'>> & {
  readonly usage?: Partial<TokenUsage>;
  readonly id?: string;
};

/**
 * A settled call of 1,000 input and 200 output tokens. The cost follows from the usage and the price unless given.
 *
 * @param atMs the reservation, milliseconds since the Unix epoch; it is in the id too
 */
export function usageEvent(
  tenant: TestTenant,
  atMs: number,
  { id = newId(atMs), usage: usageOverrides, ...overrides }: UsageEventOverrides = {},
): UnnumberedUsageEvent {
  const usage = { ...noTokens, input: 1_000, output: 200, ...usageOverrides };
  const price = overrides.price ?? testPrice;
  const costPico = overrides.costPico ?? costPicoOf(usage, price).toString();
  const at = new Date(atMs).toISOString();
  return usageEventOf(id, {
    enterprise: tenant.enterprise,
    departments: [...tenant.departments],
    user: tenant.user,
    key: tenant.key,
    currency: 'USD',
    modelAsked: 'demo-large',
    modelServed: 'demo-large-2026',
    provider: testProvider,
    route: '/v1/chat/completions',
    streamed: true,
    requestId: `req-${id}`,
    attempt: 1,
    price,
    queueWaitMs: 0,
    tags: {},
    kind: 'usage',
    adjusts: null,
    costNano: nanoFromPico(BigInt(costPico)).toString(),
    periodId: periodAt('month', atMs, tenant.timeZone).id,
    reservedAt: at,
    startedAt: at,
    firstTokenAt: new Date(atMs + 150).toISOString(),
    endedAt: new Date(atMs + 900).toISOString(),
    status: 'ok',
    estimated: false,
    late: false,
    ...overrides,
    usage,
    costPico,
  });
}

/** The event with its place in the shard's numbering, as it travels through Kafka. */
export function numbered(
  event: UnnumberedUsageEvent,
  seq: number,
  { shard = 0, epoch = 'e1' }: { shard?: number; epoch?: string } = {},
): UsageEvent {
  return { ...event, data: { ...event.data, position: { shard, epoch, seq } } };
}
