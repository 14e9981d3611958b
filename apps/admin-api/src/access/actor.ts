import type { Role } from '@weir/domain';

/** Who asks: a signed-in user, or the installation itself (`userId` null) while it is set up. */
export type Actor = {
  readonly userId: string | null;
  readonly name: string;
  readonly role: Role;
  readonly enterpriseId: string;
  /** What the actor may see and touch of the tree. */
  readonly reach: Reach;
};

/**
 * - `enterprise`: all of it (owner, admin, finance).
 * - `subtree`: a department with all below it (manager). `departmentIds` has deleted ones too: history stays visible.
 * - `self`: one user and the own keys (member).
 */
export type Reach =
  | { readonly kind: 'enterprise' }
  | {
      readonly kind: 'subtree';
      readonly topId: string;
      readonly departmentIds: ReadonlySet<string>;
    }
  | { readonly kind: 'self'; readonly userId: string };
