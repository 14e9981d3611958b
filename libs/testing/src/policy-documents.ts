import {
  defaultEnterpriseSettings,
  type EnterpriseDocument,
  type KeyDocument,
  type LimitDocument,
  type Metric,
  type ModelDocument,
  newId,
  type NodeDocument,
  type Window,
} from '@weir/domain';

/** A limit document; `amount` in the metric's unit. */
export function limitDocument(
  metric: Metric,
  window: Window | null,
  amount: bigint | number | null,
  overrides: Partial<LimitDocument> = {},
): LimitDocument {
  return {
    id: newId(),
    metric,
    window,
    amount: amount === null ? null : amount.toString(),
    model: null,
    mode: 'hard',
    ...overrides,
  };
}

/** A chat model that costs 2.50 per million input tokens and 10.00 per million output tokens, in force since 2020. */
export function modelDocument(overrides: Partial<ModelDocument> = {}): ModelDocument {
  const alias = overrides.alias ?? 'demo-large';
  return {
    alias,
    kind: 'chat',
    dialect: 'openai',
    contextWindowTokens: 128_000,
    maxOutputTokens: 16_384,
    defaultOutputReserve: 1_024,
    routes: [],
    prices: [
      {
        id: newId(),
        model: alias,
        currency: 'USD',
        from: '2020-01-01T00:00:00.000Z',
        to: null,
        picoPerToken: { input: '2500000', cachedInput: '1250000', output: '10000000' },
        picoPerRequest: '0',
      },
    ],
    enabled: true,
    ...overrides,
  };
}

export function enterpriseDocument(
  overrides: Partial<EnterpriseDocument> = {},
): EnterpriseDocument {
  return {
    id: newId(),
    name: 'Acme',
    timeZone: 'UTC',
    currency: 'USD',
    settings: { ...defaultEnterpriseSettings },
    limits: [],
    upstreams: [],
    models: [modelDocument()],
    ...overrides,
  };
}

export function departmentDocument(overrides: Partial<NodeDocument> = {}): NodeDocument {
  return {
    id: newId(),
    level: 'department',
    parentId: null,
    name: 'Marketing',
    status: 'active',
    limits: [],
    ...overrides,
  };
}

export function userDocument(
  departmentId: string,
  overrides: Partial<NodeDocument> = {},
): NodeDocument {
  return {
    id: newId(),
    level: 'user',
    parentId: departmentId,
    name: 'Li Wei',
    status: 'active',
    limits: [],
    ...overrides,
  };
}

export function keyDocument(
  enterpriseId: string,
  userId: string,
  sha256: string,
  overrides: Partial<KeyDocument> = {},
): KeyDocument {
  return {
    id: newId(),
    enterpriseId,
    userId,
    name: 'campaigns',
    sha256,
    status: 'active',
    expiresAt: null,
    allowedModels: null,
    limits: [],
    ...overrides,
  };
}
