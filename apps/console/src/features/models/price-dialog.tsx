import { zodResolver } from '@hookform/resolvers/zod';
import { DateTime } from 'luxon';
import { useState } from 'react';
import { useForm, useWatch } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { toast } from 'sonner';
import { z } from 'zod';
import { api } from '../../api/client.js';
import { refreshAll } from '../../api/refresh.js';
import type { ModelRow } from '../../api/types.js';
import { useMe } from '../../app/me.js';
import { Button } from '../../ui/button.js';
import { Dialog } from '../../ui/dialog.js';
import { Field, Input } from '../../ui/field.js';
import { FormAlert } from '../../ui/form-alert.js';
import { useServerFaults } from '../../ui/form-faults.js';
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
  const onError = useServerFaults(form);
  const create = api.useMutation('post', '/api/v1/models/{id}/prices', {
    onSuccess: () => {
      toast.success(t('action.saved'));
      void refreshAll();
      onClose();
    },
    onError,
  });
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
    <Dialog
      title={t('models.priceOf', { name: model.alias })}
      description={t('models.priceText')}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t('action.cancel')}</Button>
          <Button variant="primary" busy={create.isPending} onClick={save}>
            {t('action.save')}
          </Button>
        </>
      }
    >
      <form noValidate onSubmit={save} className="flex flex-col gap-3.5">
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
        <FormAlert text={errors.root?.message} />
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
