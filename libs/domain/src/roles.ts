export const roles = ['owner', 'admin', 'finance', 'manager', 'member'] as const;
export type Role = (typeof roles)[number];

/** What a route or a control asks for. `own` variants are narrowed to the caller's subtree or self by the server. */
export const permissions = [
  'tree.read',
  'tree.write',
  'limits.write',
  'keys.read',
  'keys.write',
  'models.read',
  'models.write',
  'usage.read',
  'exports.run',
  'audit.read',
  'reconciliation.read',
  'reconciliation.write',
  'settings.write',
  'members.write',
] as const;
export type Permission = (typeof permissions)[number];

const everything: readonly Permission[] = permissions;

/** Permissions by role. Managers and members are confined to their subtree or themselves besides. */
export const permissionsOf: Readonly<Record<Role, readonly Permission[]>> = {
  owner: everything,
  admin: everything.filter(
    (permission) => permission !== 'settings.write' && permission !== 'members.write',
  ),
  finance: [
    'tree.read',
    'models.read',
    'usage.read',
    'exports.run',
    'audit.read',
    'reconciliation.read',
    'reconciliation.write',
  ],
  manager: [
    'tree.read',
    'tree.write',
    'limits.write',
    'keys.read',
    'keys.write',
    'models.read',
    'usage.read',
    'exports.run',
  ],
  member: ['tree.read', 'keys.read', 'keys.write', 'models.read', 'usage.read'],
};

export function may(role: Role, permission: Permission): boolean {
  return permissionsOf[role].includes(permission);
}
