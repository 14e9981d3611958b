import {
  defaultEnterpriseSettings,
  type EnterpriseDocument,
  type KeyDocument,
  type Limit,
  limitToDocument,
  newId,
  type NodeDocument,
} from '@weir/domain';
import { createHash } from 'node:crypto';

/** The documents of a small enterprise: one department, one user, one key. */
export type PolicyDocuments = {
  readonly enterprise: EnterpriseDocument;
  readonly nodes: readonly NodeDocument[];
  readonly keys: readonly KeyDocument[];
};

export function policyDocuments(
  keyLimits: readonly Limit[] = [],
): PolicyDocuments & { readonly sha256: string } {
  const enterpriseId = newId();
  const departmentId = newId();
  const userId = newId();
  const keyId = newId();
  const sha256 = createHash('sha256').update(keyId).digest('hex');
  return {
    sha256,
    enterprise: {
      id: enterpriseId,
      name: 'Acme',
      timeZone: 'Asia/Shanghai',
      currency: 'CNY',
      settings: defaultEnterpriseSettings,
      limits: [],
      upstreams: [],
      models: [],
    },
    nodes: [node(departmentId, 'department', null), node(userId, 'user', departmentId)],
    keys: [
      {
        id: keyId,
        enterpriseId,
        userId,
        name: 'a key',
        sha256,
        status: 'active',
        expiresAt: null,
        allowedModels: null,
        limits: keyLimits.map(limitToDocument),
      },
    ],
  };
}

function node(id: string, level: NodeDocument['level'], parentId: string | null): NodeDocument {
  return { id, level, parentId, name: `${level} ${id.slice(-4)}`, status: 'active', limits: [] };
}
