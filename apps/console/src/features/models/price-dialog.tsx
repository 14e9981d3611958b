import { zodResolver } from '@hookform/resolvers/zod';
import { DateTime } from 'luxon';
import { useState } from 'react';
import { useForm, useWatch } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { z } from 'zod';
import { api } from '../../api/client.js';
import type { ModelRow } from '../../api/types.js';
import { useMe } from '../../app/me.js';
import { Field, Input } from '../../ui/field.js';
import { FormDialog } from '../../ui/form-dialog.js';
import { useSaving } from '../../ui/form-faults.js';
import { currentPrice } from './prepare-prices.js';
import { PriceFields } from './price-fields.js';
import { priceFormShape, pricesOf, priceValuesOf } from './price-form.js';

const formSchema = z.object({ ...priceFormShape, from: z.string() });

/** A new price version. It closes the one before; what was booked keeps its price. */
export function PriceDialog({ model, onClose }: { model: ModelRow; onClose: () => void }) {
  const { t } = useTranslation();
  const { enterprise } = useMe();
  const [now] = useState(() => Date.now());
  const before = currentPrice(model.prices, now);
  const form = useForm({
    resolver: zodResolver(formSchema),
    defaultValues: { ...priceValuesOf(before), from: '' },
  });
  const values = useWatch({ control: form.control, compute: (all) => all });
  const { errors } = form.formState;
  const create = api.useMutation('post', '/api/v1/models/{id}/prices', useSaving(form, onClose));
  const save = form.handleSubmit(({ from, ...prices }) =>
    create.mutate({
      params: { path: { id: model.id } },
      body: {
        from:
          from === ''
            ? null
            : DateTime.fromISO(from, { zone: enterprise.timeZone }).toUTC().toISO(),
        perMillionTokens: pricesOf(prices),
        perRequest: before?.perRequest ?? '0',
      },
    }),
  );
  return (
    <FormDialog
      title={t('models.priceOf', { name: model.alias })}
      description={t('models.priceText')}
      busy={create.isPending}
      fault={errors.root?.message}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <PriceFields
        values={values}
        before={before}
        register={form.register}
        faulty={(name) => errors[name] !== undefined}
      />
      <Field
        label={t('models.from')}
        hint={t('models.fromHint', { zone: enterprise.timeZone })}
        error={errors.from?.message}
      >
        {(props) => <Input type="datetime-local" {...props} {...form.register('from')} />}
      </Field>
    </FormDialog>
  );
}
