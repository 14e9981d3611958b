import type { WeirError } from '@weir/domain';
import { validationError } from '@weir/platform';

/** A `validation_failed` for a rule that the schema alone cannot check. `path` is dotted. */
export function fieldFault(path: string, message: string, remedy: string): WeirError {
  return validationError([
    // Zod's own form of a custom issue: the remedy travels in its params.
    { path: path.split('.'), message, code: 'custom', params: { remedy } } as Parameters<
      typeof validationError
    >[0][number],
  ]);
}
