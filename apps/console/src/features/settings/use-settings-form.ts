import { useState } from 'react';
import { useForm, type DefaultValues, type FieldValues, type UseFormReturn } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { toast } from 'sonner';
import { asApiError } from '../../api/api-error.js';
import { api, client, ifMatch, queryClient } from '../../api/client.js';
import { refreshAll } from '../../api/refresh.js';
import type { EnterpriseRow, SettingsChange } from '../../api/types.js';
import { bodyOf } from '../../api/use-pages.js';
import { useServerFaults, type PlaceFault } from '../../ui/form-faults.js';

export type SettingsForm<Values extends FieldValues> = {
  readonly form: UseFormReturn<Values>;
  readonly save: () => void;
  readonly discard: () => void;
  /** Someone else has changed this very section while it was edited. */
  readonly conflict: { readonly takeTheirs: () => void; readonly keepMine: () => void } | null;
};

/**
 * The form of one section of the enterprise's settings. Sections share a row and its version: what others change in
 * another section is no conflict here, and what they change in this one is never overwritten unseen.
 */
export function useSettingsForm<Values extends FieldValues>(
  enterprise: EnterpriseRow,
  section: {
    readonly valuesOf: (row: EnterpriseRow) => Values;
    /** What to send, or null when the form has faults; it has set them by then. */
    readonly changeOf: (values: Values, form: UseFormReturn<Values>) => SettingsChange | null;
    /** Where a fault of the server belongs to. */
    readonly place: (path: string, fault: string, values: Values) => ReturnType<PlaceFault<Values>>;
  },
): SettingsForm<Values> {
  const { t } = useTranslation();
  const { valuesOf, changeOf, place } = section;
  const isSame = (one: EnterpriseRow, other: EnterpriseRow) =>
    JSON.stringify(valuesOf(one)) === JSON.stringify(valuesOf(other));
  /** What the form was filled from. */
  const [base, setBase] = useState(enterprise);
  const [isRefused, setRefused] = useState(false);
  const form = useForm<Values>({
    defaultValues: valuesOf(base) as DefaultValues<Values>,
    values: valuesOf(base),
    resetOptions: { keepDirtyValues: true },
  });
  const { isDirty } = form.formState;
  // A form that nobody has touched shows what there is.
  if (!isDirty && enterprise.version > base.version) setBase(enterprise);
  const onError = useServerFaults(form, (path, fault) => place(path, fault, form.getValues()));
  const start = (row: EnterpriseRow) => {
    setBase(row);
    setRefused(false);
    form.reset(valuesOf(row));
  };

  const send = form.handleSubmit(async (values) => {
    const change = changeOf(values, form);
    if (change === null) return;
    const patch = async (version: number) =>
      bodyOf(
        await client.PATCH('/api/v1/enterprise', {
          params: { header: ifMatch(version) },
          body: { settings: change },
        }),
      );
    try {
      let saved: EnterpriseRow;
      try {
        saved = await patch(base.version);
      } catch (error) {
        if (asApiError(error).code !== 'version_conflict') throw error;
        const now = await queryClient.fetchQuery({
          ...api.queryOptions('get', '/api/v1/enterprise', {}),
          staleTime: 0,
        });
        if (!isSame(base, now)) {
          setRefused(true);
          return;
        }
        saved = await patch(now.version);
      }
      start(saved);
      toast.success(t('action.saved'));
      void refreshAll();
    } catch (error) {
      onError(error);
    }
  });
  const theirs = enterprise.version > base.version ? enterprise : null;
  return {
    form,
    save: () => void send(),
    discard: () => start(theirs ?? base),
    conflict:
      isRefused && theirs !== null && isDirty
        ? {
            takeTheirs: () => start(theirs),
            keepMine: () => {
              setBase(theirs);
              setRefused(false);
            },
          }
        : null,
  };
}
