import { tagsSchema, WeirError } from '@weir/domain';

/**
 * The caller's own labels for grouping, from the header `x-weir-tags: team=blue, feature=search`.
 *
 * @throws WeirError `invalid_request`
 */
export function readTags(header: string | string[] | undefined): Record<string, string> {
  if (header === undefined) return {};
  const tags: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const pair of String(header).split(',')) {
    const [name = '', value] = pair.split('=', 2).map((part) => part.trim());
    if (name === '' || value === undefined) throw invalidTags();
    tags[name] = value;
  }
  const result = tagsSchema.safeParse({ ...tags });
  if (!result.success) throw invalidTags();
  return result.data;
}

function invalidTags(): WeirError {
  return new WeirError(
    'invalid_request',
    'The header "x-weir-tags" must look like "team=blue, feature=search": at most 16 pairs, names up to 64 and values up to 256 characters.',
    { param: 'x-weir-tags' },
  );
}
