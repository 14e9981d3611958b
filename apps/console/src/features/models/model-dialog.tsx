import { zodResolver } from '@hookform/resolvers/zod';
import { apiSchemas, modelKinds } from '@weir/domain';
import { useForm, useWatch } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { z } from 'zod';
import { api } from '../../api/client.js';
import type { UpstreamRow } from '../../api/types.js';
import { readAmount } from '../../format/amount-input.js';
import { useFormat } from '../../format/use-format.js';
import { Field, Input, Select } from '../../ui/field.js';
import { FormDialog } from '../../ui/form-dialog.js';
import { faultText, useSaving } from '../../ui/form-faults.js';
import { PriceFields } from './price-fields.js';
import { priceFormShape, pricesOf, priceValuesOf } from './price-form.js';

/** A number of tokens as people write it (`128k`), small enough for a plain integer. */
const tokenCount = z.string().transform((typed, context) => {
  const reading = readAmount('tokens', typed, '');
  const count = reading.ok ? Number(reading.amount) : Number.NaN;
  if (!Number.isSafeInteger(count)) {
    context.addIssue({ code: 'custom', message: 'not a count' });
    return z.NEVER;
  }
  return count;
});
const formSchema = z.object({
  alias: apiSchemas.modelCreateBody.shape.alias,
  kind: z.enum(modelKinds),
  upstreamId: z.uuid(),
  upstreamModel: z.string().trim().max(200),
  contextWindowTokens: tokenCount,
  maxOutputTokens: tokenCount,
  ...priceFormShape,
});

/** What a call without a cap reserves for its output, at most. */
const outputReserveMax = 1024;

/** Adds a model with one route and its first price. */
export function ModelDialog({
  upstreams,
  onClose,
}: {
  upstreams: readonly UpstreamRow[];
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const form = useForm<z.input<typeof formSchema>, unknown, z.output<typeof formSchema>>({
    resolver: zodResolver(formSchema),
    defaultValues: {
      alias: '',
      kind: 'chat',
      upstreamId: upstreams[0]?.id ?? '',
      upstreamModel: '',
      contextWindowTokens: '128k',
      maxOutputTokens: '16k',
      ...priceValuesOf(null),
    },
  });
  const values = useWatch({ control: form.control, compute: (all) => all });
  const { errors } = form.formState;
  const create = api.useMutation('post', '/api/v1/models', useSaving(form, onClose));
  const save = form.handleSubmit((model) =>
    create.mutate({
      body: {
        alias: model.alias,
        kind: model.kind,
        dialect: upstreams.find(({ id }) => id === model.upstreamId)?.dialect ?? 'openai',
        contextWindowTokens: model.contextWindowTokens,
        maxOutputTokens: model.maxOutputTokens,
        defaultOutputReserve: Math.min(outputReserveMax, model.maxOutputTokens),
        routes: [
          {
            upstreamId: model.upstreamId,
            upstreamModel: model.upstreamModel === '' ? model.alias : model.upstreamModel,
            weight: 100,
            priority: 0,
          },
        ],
        price: { from: null, perMillionTokens: pricesOf(model), perRequest: '0' },
      },
    }),
  );
  const tokensHint = (typed: string) => {
    const reading = readAmount('tokens', typed, '');
    return reading.ok ? t('models.tokensAre', { tokens: format.count(reading.amount) }) : undefined;
  };
  return (
    <FormDialog
      title={t('models.add')}
      className="max-w-lg"
      busy={create.isPending}
      fault={errors.root?.message}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <div className="grid grid-cols-[minmax(0,1fr)_8rem] gap-3">
        <Field
          label={t('models.alias')}
          hint={t('models.aliasHint')}
          error={faultText(errors.alias, t('models.aliasFault'))}
        >
          {(props) => <Input autoFocus spellCheck={false} {...props} {...form.register('alias')} />}
        </Field>
        <Field label={t('models.kind')}>
          {(props) => (
            <Select
              options={modelKinds.map((kind) => ({ value: kind, label: t(`modelKind.${kind}`) }))}
              {...props}
              {...form.register('kind')}
            />
          )}
        </Field>
      </div>
      <div className="grid grid-cols-2 gap-3">
        <Field label={t('models.upstream')} error={errors.upstreamId && t('field.required')}>
          {(props) => (
            <Select
              options={upstreams.map(({ id, name }) => ({ value: id, label: name }))}
              {...props}
              {...form.register('upstreamId')}
            />
          )}
        </Field>
        <Field
          label={t('models.upstreamModel')}
          hint={t('models.upstreamModelHint')}
          error={errors.upstreamModel?.message}
        >
          {(props) => (
            <Input
              spellCheck={false}
              placeholder={values.alias}
              {...props}
              {...form.register('upstreamModel')}
            />
          )}
        </Field>
        {(['contextWindowTokens', 'maxOutputTokens'] as const).map((field) => (
          <Field
            key={field}
            label={t(`models.${field}`)}
            hint={tokensHint(values[field])}
            error={faultText(errors[field], t('amountFault.notNumber'))}
          >
            {(props) => <Input className="tabular" {...props} {...form.register(field)} />}
          </Field>
        ))}
      </div>
      <PriceFields
        values={values}
        before={null}
        register={form.register}
        faulty={(name) => errors[name] !== undefined}
      />
    </FormDialog>
  );
}
