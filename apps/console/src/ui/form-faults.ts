import type { FieldValues, Path, UseFormReturn } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { toast } from 'sonner';
import { asApiError, fieldFaults } from '../api/api-error.js';
import { refreshAll } from '../api/refresh.js';

/** Where a server's fault belongs to: a field of the form and what to say there, or null for the form as a whole. */
export type PlaceFault<Values extends FieldValues> = (
  path: string,
  fault: string,
) => { field: Path<Values>; text: string } | null;

/**
 * Puts the server's faults beside the fields that they belong to; what belongs to no field becomes the form's own.
 * Returns a handler for a mutation's `onError`.
 *
 * @param place finds the field of a fault, where the form is not shaped as the API's body is.
 */
export function useServerFaults<Values extends FieldValues, Context, Output>(
  form: UseFormReturn<Values, Context, Output>,
  place?: PlaceFault<Values>,
): (error: unknown) => void {
  const { t } = useTranslation();
  return (thrown) => {
    const error = asApiError(thrown);
    const known = new Set(Object.keys(form.getValues()));
    const byName: PlaceFault<Values> = (path, text) =>
      known.has(path.split('.')[0] ?? '') ? { field: path as Path<Values>, text } : null;
    const ofFields = new Map<Path<Values>, string[]>();
    const left: string[] = [];
    for (const [path, fault] of fieldFaults(error)) {
      const placed = (place ?? byName)(path, fault);
      if (placed === null) left.push(`${path}: ${fault}`);
      else ofFields.set(placed.field, [...(ofFields.get(placed.field) ?? []), placed.text]);
    }
    for (const [field, texts] of ofFields) {
      form.setError(field, { type: 'server', message: texts.join(' ') });
    }
    if (fieldFaults(error).size === 0) {
      left.push(
        error.message ? `${t(`error.${error.code}`)} ${error.message}` : t(`error.${error.code}`),
      );
    }
    if (left.length > 0) form.setError('root', { type: 'server', message: left.join(' · ') });
  };
}

/** How a mutation that saves a form ends: said, shown everywhere and closed; or with the faults in their places. */
export function useSaving<Values extends FieldValues, Context, Output>(
  form: UseFormReturn<Values, Context, Output>,
  onSaved: () => void,
): { onSuccess: () => void; onError: (error: unknown) => void } {
  const { t } = useTranslation();
  const onError = useServerFaults(form);
  const onSuccess = () => {
    toast.success(t('action.saved'));
    void refreshAll();
    onSaved();
  };
  return { onSuccess, onError };
}

/** What to say at a field: the server's words where they are its, else our own for what it may not be. */
export function faultText(
  error: { type?: unknown; message?: string } | undefined,
  own: string,
): string | undefined {
  if (error === undefined) return undefined;
  return error.type === 'server' ? error.message : own;
}
