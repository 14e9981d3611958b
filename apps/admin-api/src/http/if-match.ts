import { WeirError } from '@weir/domain';

/**
 * The version that the caller has seen, from `If-Match: "7"`.
 *
 * @throws WeirError `version_required` when it is missing, `invalid_request` when it is no version.
 */
export function ifMatchVersion(header: string | undefined): number {
  if (header === undefined || header.trim() === '') {
    throw new WeirError(
      'version_required',
      'Send If-Match with the version of the row that you have seen, such as If-Match: "7".',
    );
  }
  const match = /^(?:W\/)?"(\d{1,9})"$|^(\d{1,9})$/.exec(header.trim());
  const version = Number(match?.[1] ?? match?.[2] ?? 0);
  if (version < 1) {
    throw new WeirError('invalid_request', 'If-Match must be one version in quotes, such as "7".');
  }
  return version;
}

/**
 * Refuses a change that was made upon an older version than the stored one.
 *
 * @param current the row as the API shows it; it goes back to the caller, who may merge.
 */
export function requireVersion(seen: number, current: { readonly version: number }): void {
  if (seen === current.version) return;
  throw new WeirError(
    'version_conflict',
    `This was changed meanwhile: you saw version ${seen}, it is now ${current.version}.`,
    { current },
  );
}
