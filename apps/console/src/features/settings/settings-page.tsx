import { degradedModes } from '@weir/domain';
import type { ReactNode } from 'react';
import type { FieldValues } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { api } from '../../api/client.js';
import type { EnterpriseRow } from '../../api/types.js';
import { useDenied } from '../../app/me.js';
import { useFormat } from '../../format/use-format.js';
import { Button } from '../../ui/button.js';
import { CheckField, Field, Input, Select, Textarea } from '../../ui/field.js';
import { FormAlert } from '../../ui/form-alert.js';
import { faultText } from '../../ui/form-faults.js';
import { PageHeader, Panel } from '../../ui/panel.js';
import { ErrorState, Loading } from '../../ui/states.js';
import {
  edgeValuesOf,
  queueMax,
  queueValuesOf,
  readEdge,
  readQueue,
  readRules,
  ruleFault,
  type edgeNumbers,
  type EdgeValues,
} from './prepare-settings.js';
import { useSettingsForm, type SettingsForm } from './use-settings-form.js';

/** What holds for all calls of the enterprise, whatever their limits. */
export function SettingsPage() {
  const { t } = useTranslation();
  const { data, error, refetch } = api.useQuery('get', '/api/v1/enterprise', {});
  return (
    <>
      <PageHeader
        title={t('page.settings')}
        note={data && t('settings.fixed', { zone: data.timeZone, currency: data.currency })}
      />
      {data ? (
        <div className="grid items-start gap-4 xl:grid-cols-2">
          <QueueSection enterprise={data} />
          <AddressSection enterprise={data} />
          <EdgeSection enterprise={data} />
        </div>
      ) : (
        <Panel>
          {error ? <ErrorState error={error} onRetry={() => void refetch()} /> : <Loading />}
        </Panel>
      )}
    </>
  );
}

function QueueSection({ enterprise }: { enterprise: EnterpriseRow }) {
  const { t } = useTranslation();
  const format = useFormat();
  const faults = {
    seconds: t('settings.secondsFault', { max: queueMax.seconds }),
    waiting: t('settings.waitingFault', { max: format.count(String(queueMax.waiting)) }),
  };
  const settings = useSettingsForm(enterprise, {
    valuesOf: (row) => queueValuesOf(row.settings.queue),
    changeOf: (values, form) => {
      const read = readQueue(values);
      if ('queue' in read) return { queue: read.queue };
      for (const field of read.faulty) form.setError(field, { message: faults[field] });
      return null;
    },
    place: (path, text) => {
      const field = fieldOfSetting[path];
      return field === undefined ? null : { field, text };
    },
  });
  const { register, watch, formState } = settings.form;
  const waits = watch('waits');
  return (
    <SettingsPanel title={t('settings.queue')} text={t('settings.queueText')} settings={settings}>
      <CheckField label={t('settings.waits')} {...register('waits')} />
      <fieldset disabled={!waits} className="flex flex-col gap-3.5 disabled:text-ink-3">
        <div className="grid gap-3.5 sm:grid-cols-2">
          <Field
            label={t('settings.seconds')}
            hint={t('settings.secondsHint')}
            error={formState.errors.seconds?.message}
          >
            {(props) => (
              <Input inputMode="decimal" className="tabular" {...props} {...register('seconds')} />
            )}
          </Field>
          <Field
            label={t('settings.waiting')}
            hint={t('settings.waitingHint')}
            error={formState.errors.waiting?.message}
          >
            {(props) => (
              <Input inputMode="numeric" className="tabular" {...props} {...register('waiting')} />
            )}
          </Field>
        </div>
        <CheckField
          label={t('settings.notices')}
          hint={t('settings.noticesHint')}
          {...register('notices')}
        />
      </fieldset>
    </SettingsPanel>
  );
}

const fieldOfSetting: Readonly<Record<string, 'seconds' | 'waiting' | 'notices'>> = {
  'settings.queue.maxWaitMs': 'seconds',
  'settings.queue.maxWaiting': 'waiting',
  'settings.queue.streamNotices': 'notices',
};

const lists = ['allow', 'deny'] as const;

function AddressSection({ enterprise }: { enterprise: EnterpriseRow }) {
  const { t } = useTranslation();
  const settings = useSettingsForm(enterprise, {
    valuesOf: ({ settings: { ipRules } }) => ({
      allow: ipRules.allow.join('\n'),
      deny: ipRules.deny.join('\n'),
    }),
    changeOf: (values, form) => {
      const faulty = lists.filter((list) => {
        const fault = ruleFault(values[list]);
        if (fault === null) return false;
        const message =
          fault.kind === 'rule'
            ? t('settings.ruleFault', { rule: fault.rule })
            : t('settings.rulesFault', { max: fault.max });
        form.setError(list, { message });
        return true;
      });
      if (faulty.length > 0) return null;
      return { ipRules: { allow: readRules(values.allow), deny: readRules(values.deny) } };
    },
    place: (path, text, values) => {
      const [, list, index] = /^settings\.ipRules\.(allow|deny)(?:\.(\d+))?$/.exec(path) ?? [];
      const field = lists.find((each) => each === list);
      if (field === undefined) return null;
      const rule = readRules(values[field])[Number(index)];
      return { field, text: rule === undefined ? text : `${rule}: ${text}` };
    },
  });
  const { register, watch, formState } = settings.form;
  const allowsSome = readRules(watch('allow')).length > 0;
  return (
    <SettingsPanel
      title={t('settings.addresses')}
      text={t('settings.addressesText')}
      settings={settings}
    >
      <div className="grid gap-3.5 sm:grid-cols-2">
        {lists.map((list) => (
          <Field
            key={list}
            label={t(`settings.${list}`)}
            hint={
              list === 'allow' && allowsSome ? t('settings.allowOnly') : t(`settings.${list}Hint`)
            }
            error={formState.errors[list]?.message}
          >
            {(props) => (
              <Textarea
                rows={7}
                spellCheck={false}
                className="font-mono text-xs"
                {...props}
                {...register(list)}
              />
            )}
          </Field>
        ))}
      </div>
    </SettingsPanel>
  );
}

function EdgeSection({ enterprise }: { enterprise: EnterpriseRow }) {
  const { t } = useTranslation();
  const settings = useSettingsForm(enterprise, {
    valuesOf: (row) => edgeValuesOf(row.settings),
    changeOf: (values, form) => {
      const read = readEdge(values);
      if ('edge' in read) return read.edge;
      for (const name of read.faulty) form.setError(name, { message: t(`settings.${name}Fault`) });
      return null;
    },
    place: (path, text) => {
      const field = edgeFields[path];
      return field === undefined ? null : { field, text };
    },
  });
  const { register, watch, formState } = settings.form;
  const mode = watch('degradedMode');
  const number = (name: (typeof edgeNumbers)[number]) => (
    <Field
      label={t(`settings.${name}`)}
      hint={t(`settings.${name}Hint`)}
      error={formState.errors[name]?.message}
    >
      {(props) => <Input inputMode="decimal" className="tabular" {...props} {...register(name)} />}
    </Field>
  );
  return (
    <SettingsPanel title={t('settings.edge')} text={t('settings.edgeText')} settings={settings}>
      <div className="grid gap-3.5 sm:grid-cols-2">
        <Field label={t('settings.cap')} hint={t('settings.capHint')}>
          {(props) => (
            <Select
              options={(['refuse', 'clamp'] as const).map((value) => ({
                value,
                label: t(`settings.capChoice.${value}`),
              }))}
              {...props}
              {...register('onCapBeyondBudget')}
            />
          )}
        </Field>
        {number('windowPercent')}
        <Field label={t('settings.degraded')} hint={t(`settings.degradedHint.${mode}`)}>
          {(props) => (
            <Select
              options={degradedModes.map((value) => ({
                value,
                label: t(`settings.degradedChoice.${value}`),
              }))}
              {...props}
              {...register('degradedMode')}
            />
          )}
        </Field>
        {number('degradedPercent')}
        {number('leaseSeconds')}
      </div>
    </SettingsPanel>
  );
}

const edgeFields: Readonly<Record<string, keyof EdgeValues>> = {
  'settings.onCapBeyondBudget': 'onCapBeyondBudget',
  'settings.windowOutputReservePercent': 'windowPercent',
  'settings.degradedMode': 'degradedMode',
  'settings.degradedBudgetSharePercent': 'degradedPercent',
  'settings.leaseMs': 'leaseSeconds',
};

/** One section: its fields, and its own way to save or leave them. */
function SettingsPanel<Values extends FieldValues>({
  title,
  text,
  settings: { form, save, discard, conflict },
  children,
}: {
  title: string;
  text: string;
  settings: SettingsForm<Values>;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  const denied = useDenied()('settings.write');
  const { isDirty, isSubmitting, errors } = form.formState;
  return (
    <Panel title={title}>
      <form
        noValidate
        aria-label={title}
        onSubmit={(event) => {
          event.preventDefault();
          if (denied === null && !isSubmitting) save();
        }}
        className="flex flex-col gap-3.5"
      >
        <p className="text-xs text-ink-3">{text}</p>
        <fieldset disabled={denied !== null} className="flex flex-col gap-3.5">
          {children}
        </fieldset>
        {conflict && (
          <div
            role="alert"
            className="flex flex-wrap items-center gap-2 rounded-md bg-warn-soft px-3 py-2 text-xs text-warn"
          >
            <span className="min-w-0 flex-1">{t('settings.conflict')}</span>
            <Button size="sm" onClick={conflict.takeTheirs}>
              {t('conflict.takeTheirs')}
            </Button>
            <Button size="sm" onClick={conflict.keepMine}>
              {t('conflict.goOn')}
            </Button>
          </div>
        )}
        <FormAlert text={faultText(errors.root, '')} />
        <div className="flex justify-end gap-2">
          {isDirty && <Button onClick={discard}>{t('action.discard')}</Button>}
          <Button
            type="submit"
            variant="primary"
            denied={denied}
            busy={isSubmitting}
            disabled={denied === null && !isDirty}
          >
            {t('action.save')}
          </Button>
        </div>
      </form>
    </Panel>
  );
}
