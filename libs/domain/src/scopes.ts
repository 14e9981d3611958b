import { z } from 'zod';

/** The levels of the tree, outermost first. Departments nest, at most {@link maxDepartmentDepth} deep. */
export const scopeLevels = ['enterprise', 'department', 'user', 'key'] as const;
export type ScopeLevel = (typeof scopeLevels)[number];

export const maxDepartmentDepth = 5;
/** Enterprise + 5 departments + user + key. */
export const maxPathLength = maxDepartmentDepth + 3;

export const scopeRefSchema = z.strictObject({
  level: z.enum(scopeLevels),
  id: z.uuid(),
  name: z.string(),
});
export type ScopeRef = z.infer<typeof scopeRefSchema>;

/** Id and name as they were at the time of use: renames never change history. */
export const namedRefSchema = z.strictObject({ id: z.uuid(), name: z.string() });
export type NamedRef = z.infer<typeof namedRefSchema>;
