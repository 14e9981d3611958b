import type { FieldValues, Path, UseFormReturn } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { asApiError, fieldFaults } from '../api/api-error.js';

/**
 * Puts the server's faults beside the fields that they belong to; what belongs to no field becomes the form's own.
 * Returns a handler for a mutation's `onError`.
 */
export function useServerFaults<Values extends FieldValues, Context, Output>(
  form: UseFormReturn<Values, Context, Output>,
): (error: unknown) => void {
  const { t } = useTranslation();
  return (thrown) => {
    const error = asApiError(thrown);
    const known = new Set(Object.keys(form.getValues()));
    const left: string[] = [];
    for (const [field, fault] of fieldFaults(error)) {
      if (known.has(field.split('.')[0] ?? '')) {
        form.setError(field as Path<Values>, { type: 'server', message: fault });
      } else {
        left.push(`${field}: ${fault}`);
      }
    }
    if (fieldFaults(error).size === 0) {
      left.push(
        error.message ? `${t(`error.${error.code}`)} ${error.message}` : t(`error.${error.code}`),
      );
    }
    if (left.length > 0) form.setError('root', { type: 'server', message: left.join(' · ') });
  };
}
