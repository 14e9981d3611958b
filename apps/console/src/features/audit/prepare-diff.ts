export type FieldChange = {
  readonly field: string;
  /** undefined: the field was not there. */
  readonly before: string | undefined;
  readonly after: string | undefined;
};

/** Leaves at most; a row that large is shown cut. */
const leavesMax = 200;

function leaves(value: unknown): Map<string, string> {
  const found = new Map<string, string>();
  const walk = (at: unknown, path: string) => {
    if (found.size >= leavesMax) return;
    if (at !== null && typeof at === 'object' && Object.keys(at).length > 0) {
      for (const [key, inner] of Object.entries(at)) walk(inner, path ? `${path}.${key}` : key);
    } else if (at !== undefined) {
      found.set(path, typeof at === 'string' ? at : JSON.stringify(at));
    }
  };
  if (value !== null && value !== undefined) walk(value, '');
  return found;
}

/** What a change did, field by field; nested fields by their dotted path. Equal ones are left out. */
export function prepareDiff(before: unknown, after: unknown): FieldChange[] {
  const [old, now] = [leaves(before), leaves(after)];
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((field) => old.get(field) !== now.get(field))
    .map((field) => ({ field, before: old.get(field), after: now.get(field) }));
}
