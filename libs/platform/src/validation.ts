import { StandardSchemaValidationPipe } from '@nestjs/common';
import { WeirError } from '@weir/domain';
import type { z } from 'zod';

/** One fault of a request's body, query or path. `path` is dotted (`limits.0.amount`), empty for the whole. */
export type FieldFault = {
  readonly path: string;
  readonly message: string;
  readonly remedy: string;
};

type Issue = {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
};

const faultsMax = 50;

/**
 * The global pipe of our APIs: validates what a route declares with `@Body({ schema })`, `@Query({ schema })` and so on.
 * A fault is a `validation_failed` (422) whose details list every field with message and remedy.
 */
export function createValidationPipe(): StandardSchemaValidationPipe {
  return new StandardSchemaValidationPipe({ exceptionFactory: validationError });
}

/** The `validation_failed` error for the issues of any Standard Schema library. */
export function validationError(issues: readonly Issue[]): WeirError {
  const fields = issues.slice(0, faultsMax).map(faultOf);
  const omitted = issues.length - fields.length;
  const summary = fields
    .slice(0, 3)
    .map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
    .join('; ');
  return new WeirError(
    'validation_failed',
    summary,
    omitted > 0 ? { fields, omitted } : { fields },
  );
}

function faultOf(issue: Issue): FieldFault {
  const path = (issue.path ?? [])
    .map((segment) => String(typeof segment === 'object' ? segment.key : segment))
    .join('.');
  return { path, message: issue.message, remedy: remedyOf(issue) };
}

/** What the caller can do. A schema may say it itself: `.refine(..., { params: { remedy: '...' } })`. */
function remedyOf(issue: Issue): string {
  if (!('code' in issue)) return 'Correct this field.';
  // Zod reports its own issues through Standard Schema; `code` tells them apart.
  const fault = issue as unknown as z.core.$ZodIssue;
  switch (fault.code) {
    case 'invalid_type':
      return `Send a value of type ${fault.expected}.`;
    case 'too_small':
      return `Use at least ${fault.inclusive === false ? 'more than ' : ''}${fault.minimum}.`;
    case 'too_big':
      return `Use at most ${fault.inclusive === false ? 'less than ' : ''}${fault.maximum}.`;
    case 'not_multiple_of':
      return `Use a multiple of ${fault.divisor}.`;
    case 'invalid_format':
      return `Send a valid ${fault.format}.`;
    case 'invalid_value':
      return `Use one of: ${fault.values.map(String).join(', ')}.`;
    case 'unrecognized_keys':
      return `Remove: ${fault.keys.slice(0, 10).join(', ')}.`;
    case 'custom': {
      const remedy: unknown = fault.params?.['remedy'];
      return typeof remedy === 'string' ? remedy : 'Correct this field.';
    }
    default:
      return 'Correct this field.';
  }
}
