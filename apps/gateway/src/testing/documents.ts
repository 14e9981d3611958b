import { createHash } from 'node:crypto';
import {
  defaultEnterpriseSettings,
  newId,
  parseAmount,
  type EnterpriseDocument,
  type EnterpriseSettings,
  type KeyDocument,
  type LimitDocument,
  type Metric,
  type ModelDocument,
  type NodeDocument,
  type UpstreamDocument,
  type Window,
} from '@weir/domain';

/** An enterprise with one department, user and key, as the control plane would publish it. */
export type World = {
  readonly enterprise: EnterpriseDocument;
  readonly department: NodeDocument;
  readonly user: NodeDocument;
  readonly key: KeyDocument;
  /** The key's secret. */
  readonly secret: string;
};

export type WorldOptions = {
  readonly upstreams: readonly UpstreamDocument[];
  readonly models?: readonly ModelDocument[];
  readonly settings?: Partial<EnterpriseSettings>;
  readonly limits?: Partial<
    Record<'enterprise' | 'department' | 'user' | 'key', readonly LimitDocument[]>
  >;
  readonly key?: Partial<Pick<KeyDocument, 'allowedModels' | 'expiresAt' | 'status'>>;
};

export function limit(
  metric: Metric,
  window: Window | null,
  amount: string,
  more: Partial<Pick<LimitDocument, 'model' | 'mode'>> = {},
): LimitDocument {
  return {
    id: newId(),
    metric,
    window,
    amount: parseAmount(metric, amount).toString(),
    model: null,
    mode: 'hard',
    ...more,
  };
}

/** A model served by the first upstream, with the demo provider's prices for `demo-small`. */
export function model(
  alias: string,
  upstreamId: string,
  more: Partial<ModelDocument> = {},
): ModelDocument {
  return {
    alias,
    kind: 'chat',
    dialect: 'openai',
    contextWindowTokens: 128_000,
    maxOutputTokens: 4_096,
    defaultOutputReserve: 256,
    routes: [{ upstreamId, upstreamModel: 'demo-small', weight: 1, priority: 0 }],
    prices: [
      {
        id: newId(),
        model: alias,
        currency: 'USD',
        from: '2020-01-01T00:00:00.000Z',
        to: null,
        picoPerToken: { input: '500000', cachedInput: '50000', output: '1500000' },
        picoPerRequest: '0',
      },
    ],
    enabled: true,
    ...more,
  };
}

export function upstream(baseUrl: string, more: Partial<UpstreamDocument> = {}): UpstreamDocument {
  return {
    id: newId(),
    name: 'Demo',
    dialect: 'openai',
    baseUrl,
    sealedApiKey: null,
    connectTimeoutMs: 1_000,
    firstByteTimeoutMs: 5_000,
    idleTimeoutMs: 5_000,
    onClientGone: 'drain',
    enabled: true,
    ...more,
  };
}

export function world(options: WorldOptions): World {
  const first = options.upstreams[0];
  if (first === undefined) throw new Error('a world needs an upstream');
  const enterprise: EnterpriseDocument = {
    id: newId(),
    name: 'Acme',
    timeZone: 'Europe/Berlin',
    currency: 'USD',
    settings: { ...defaultEnterpriseSettings, ...options.settings },
    limits: [...(options.limits?.enterprise ?? [])],
    upstreams: [...options.upstreams],
    models: [...(options.models ?? [model('small', first.id)])],
  };
  const department: NodeDocument = {
    id: newId(),
    level: 'department',
    parentId: null,
    name: 'Marketing',
    status: 'active',
    limits: [...(options.limits?.department ?? [])],
  };
  const user: NodeDocument = {
    id: newId(),
    level: 'user',
    parentId: department.id,
    name: 'Ada',
    status: 'active',
    limits: [...(options.limits?.user ?? [])],
  };
  const secret = `weir-test-${newId()}`;
  const key: KeyDocument = {
    id: newId(),
    enterpriseId: enterprise.id,
    userId: user.id,
    name: 'ci',
    sha256: createHash('sha256').update(secret).digest('hex'),
    status: 'active',
    expiresAt: null,
    allowedModels: null,
    limits: [...(options.limits?.key ?? [])],
    ...options.key,
  };
  return { enterprise, department, user, key, secret };
}
