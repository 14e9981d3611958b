import { apiSchemas, dialects } from '@weir/domain';
import { zodResolver } from '@hookform/resolvers/zod';
import { useForm } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { z } from 'zod';
import { api, ifMatch } from '../../api/client.js';
import type { UpstreamRow } from '../../api/types.js';
import { Field, Input, Select } from '../../ui/field.js';
import { FormDialog } from '../../ui/form-dialog.js';
import { faultText, useSaving } from '../../ui/form-faults.js';

const formSchema = z.object({
  name: apiSchemas.upstreamCreateBody.shape.name,
  dialect: z.enum(dialects),
  baseUrl: apiSchemas.upstreamCreateBody.shape.baseUrl,
  apiKey: z.string().max(500),
  onClientGone: z.enum(['drain', 'abort']),
  enabled: z.enum(['yes', 'no']),
});

/** Adds a provider or changes one. Its key is written and never shown again; an empty field keeps the stored one. */
export function UpstreamDialog({ row, onClose }: { row: UpstreamRow | null; onClose: () => void }) {
  const { t } = useTranslation();
  const form = useForm<z.output<typeof formSchema>>({
    resolver: zodResolver(formSchema),
    defaultValues: {
      name: row?.name ?? '',
      dialect: row?.dialect ?? 'openai',
      baseUrl: row?.baseUrl ?? '',
      apiKey: '',
      onClientGone: row?.onClientGone ?? 'drain',
      enabled: row === null || row.enabled ? 'yes' : 'no',
    },
  });
  const { errors } = form.formState;
  const saving = useSaving(form, onClose);
  const create = api.useMutation('post', '/api/v1/upstreams', saving);
  const patch = api.useMutation('patch', '/api/v1/upstreams/{id}', saving);
  const save = form.handleSubmit(({ name, dialect, baseUrl, apiKey, onClientGone, enabled }) => {
    if (row === null) {
      create.mutate({
        body: { name, dialect, baseUrl, apiKey: apiKey === '' ? null : apiKey, onClientGone },
      });
    } else {
      patch.mutate({
        params: { path: { id: row.id }, header: ifMatch(row.version) },
        // Only what was changed: an address that was allowed when it was set may not be allowed anew.
        body: {
          ...(name !== row.name ? { name } : {}),
          ...(baseUrl !== row.baseUrl ? { baseUrl } : {}),
          ...(onClientGone !== row.onClientGone ? { onClientGone } : {}),
          ...((enabled === 'yes') !== row.enabled ? { enabled: enabled === 'yes' } : {}),
          ...(apiKey === '' ? {} : { apiKey }),
        },
      });
    }
  });
  return (
    <FormDialog
      title={row ? t('models.edit', { name: row.name }) : t('models.addUpstream')}
      busy={create.isPending || patch.isPending}
      fault={errors.root?.message}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <Field label={t('field.name')} error={faultText(errors.name, t('field.required'))}>
        {(props) => <Input autoFocus {...props} {...form.register('name')} />}
      </Field>
      <Field label={t('models.dialect')} hint={t('models.dialectHint')}>
        {(props) => (
          <Select
            disabled={row !== null}
            options={dialects.map((value) => ({ value, label: t(`dialect.${value}`) }))}
            {...props}
            {...form.register('dialect')}
          />
        )}
      </Field>
      <Field
        label={t('models.baseUrl')}
        hint={t('models.baseUrlHint')}
        error={faultText(errors.baseUrl, t('models.baseUrlFault'))}
      >
        {(props) => (
          <Input
            type="url"
            spellCheck={false}
            className="font-mono text-xs"
            {...props}
            {...form.register('baseUrl')}
          />
        )}
      </Field>
      <Field
        label={t('models.apiKey')}
        hint={t(row?.hasApiKey ? 'models.apiKeyKept' : 'models.apiKeyHint')}
        error={errors.apiKey?.message}
      >
        {(props) => (
          <Input
            type="password"
            autoComplete="off"
            spellCheck={false}
            {...props}
            {...form.register('apiKey')}
          />
        )}
      </Field>
      <Field label={t('models.clientGone')}>
        {(props) => (
          <Select
            options={(['drain', 'abort'] as const).map((value) => ({
              value,
              label: t(`clientGone.${value}`),
            }))}
            {...props}
            {...form.register('onClientGone')}
          />
        )}
      </Field>
      {row && (
        <Field label={t('field.status')}>
          {(props) => (
            <Select
              options={[
                { value: 'yes', label: t('status.active') },
                { value: 'no', label: t('status.disabled') },
              ]}
              {...props}
              {...form.register('enabled')}
            />
          )}
        </Field>
      )}
    </FormDialog>
  );
}
