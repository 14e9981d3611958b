import { zodResolver } from '@hookform/resolvers/zod';
import { apiSchemas } from '@weir/domain';
import { DateTime } from 'luxon';
import { useState } from 'react';
import { useForm } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { z } from 'zod';
import { api } from '../../api/client.js';
import { refreshAll } from '../../api/refresh.js';
import { useMe } from '../../app/me.js';
import { Button } from '../../ui/button.js';
import { CopyButton } from '../../ui/copy-button.js';
import { Dialog } from '../../ui/dialog.js';
import { Field, Input } from '../../ui/field.js';
import { FormDialog } from '../../ui/form-dialog.js';
import { faultText, useServerFaults } from '../../ui/form-faults.js';

const formSchema = z.object({
  name: apiSchemas.keyCreateBody.shape.name,
  allowedModels: z.array(z.string()),
  /** Last local day on which the key works, or empty. */
  expiresAt: z.union([z.literal(''), z.iso.date()]),
});

/** Makes a key for a user; then shows its secret, which no one can see again. */
export function CreateKeyDialog({
  user,
  onClose,
}: {
  user: { id: string; name: string };
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const { enterprise } = useMe();
  const [secret, setSecret] = useState<string | null>(null);
  const models = api.useQuery('get', '/api/v1/models', {}, { staleTime: 60_000 });
  const form = useForm({
    resolver: zodResolver(formSchema),
    defaultValues: { name: '', allowedModels: [], expiresAt: '' },
  });
  const { errors } = form.formState;
  const onError = useServerFaults(form);
  const create = api.useMutation('post', '/api/v1/keys', {
    onSuccess: ({ secret: made }) => {
      setSecret(made);
      void refreshAll();
    },
    onError,
  });
  const save = form.handleSubmit(({ name, allowedModels, expiresAt }) =>
    create.mutate({
      body: {
        userId: user.id,
        name,
        allowedModels: allowedModels.length === 0 ? null : allowedModels,
        expiresAt:
          expiresAt === ''
            ? null
            : DateTime.fromISO(expiresAt, { zone: enterprise.timeZone })
                .plus({ days: 1 })
                .toUTC()
                .toISO(),
      },
    }),
  );

  if (secret !== null) return <SecretDialog secret={secret} onClose={onClose} />;
  return (
    <FormDialog
      title={t('keys.createFor', { name: user.name })}
      submit={t('keys.create')}
      busy={create.isPending}
      fault={errors.root?.message}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      <Field
        label={t('field.name')}
        hint={t('keys.nameHint')}
        error={faultText(errors.name, t('field.required'))}
      >
        {(props) => <Input autoFocus {...props} {...form.register('name')} />}
      </Field>
      <fieldset className="flex flex-col gap-1">
        <legend className="mb-1 text-xs font-medium text-ink-2">{t('keys.models')}</legend>
        <div className="flex max-h-36 flex-col overflow-y-auto rounded-md border border-line-strong py-1">
          {(models.data?.items ?? []).map(({ id, alias }) => (
            <label key={id} className="flex h-7 items-center gap-2 px-2.5 hover:bg-sunken">
              <input
                type="checkbox"
                value={alias}
                className="accent-accent"
                {...form.register('allowedModels')}
              />
              <span className="truncate">{alias}</span>
            </label>
          ))}
        </div>
        <p className="text-xs text-ink-3">{t('keys.modelsHint')}</p>
      </fieldset>
      <Field
        label={t('keys.expires')}
        hint={t('keys.expiresHint', { zone: enterprise.timeZone })}
        error={errors.expiresAt?.message}
      >
        {(props) => <Input type="date" {...props} {...form.register('expiresAt')} />}
      </Field>
    </FormDialog>
  );
}

function SecretDialog({ secret, onClose }: { secret: string; onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Dialog
      title={t('keys.secretTitle')}
      description={t('keys.secretText')}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t('action.done')}</Button>
          <CopyButton text={secret} label={t('keys.copy')} />
        </>
      }
    >
      <code
        data-testid="key-secret"
        className="block rounded-md border border-line-strong bg-sunken px-3 py-2.5 font-mono text-xs break-all select-all"
      >
        {secret}
      </code>
    </Dialog>
  );
}
