import {
  calendarWindows,
  limitModes,
  metrics,
  slidingWindows,
  windowFault,
  type LimitMode,
  type Metric,
  type Window,
} from '@weir/domain';
import { TriangleAlert } from 'lucide-react';
import { useState } from 'react';
import { useForm, useWatch } from 'react-hook-form';
import { useTranslation } from 'react-i18next';
import { toast } from 'sonner';
import { asApiError } from '../../api/api-error.js';
import { api, client, ifMatch } from '../../api/client.js';
import { liveMs } from '../../api/live.js';
import { refreshAll } from '../../api/refresh.js';
import type { LimitRow, LimitUse, NodeDetail } from '../../api/types.js';
import { bodyOf } from '../../api/use-pages.js';
import { useDenied } from '../../app/me.js';
import { readAmount } from '../../format/amount-input.js';
import { exactMoney, percentText } from '../../format/decimal.js';
import { useFormat } from '../../format/use-format.js';
import { Button } from '../../ui/button.js';
import { ConfirmDialog, Dialog } from '../../ui/dialog.js';
import { Field, Input, Select } from '../../ui/field.js';
import { FormAlert } from '../../ui/form-alert.js';
import { useServerFaults } from '../../ui/form-faults.js';
import { Meter } from '../../ui/meter.js';
import { Segmented } from '../../ui/segmented.js';
import { ErrorState, Loading, State } from '../../ui/states.js';
import { ConflictDialog, type LimitVersion } from './conflict-dialog.js';
import { prepareProposal, usedNow } from './prepare-proposal.js';

const choices = ['amount', 'none', 'block'] as const;
type Choice = (typeof choices)[number];
type Values = {
  metric: Metric;
  /** Empty for concurrency, which has none. */
  window: Window | '';
  /** Empty for all models. */
  model: string;
  choice: Choice;
  amount: string;
  mode: LimitMode;
};

/** The drawer that sets or changes one limit. `limitId` is `new` for a new one. */
export function LimitEditor({
  nodeId,
  limitId,
  onClose,
}: {
  nodeId: string;
  limitId: string;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const denied = useDenied()('limits.write');
  const node = api.useQuery(
    'get',
    '/api/v1/nodes/{id}',
    { params: { path: { id: nodeId } } },
    { refetchInterval: liveMs },
  );
  const limit = node.data?.limits.find(({ id }) => id === limitId);
  // The form keeps what it was opened with; the live node around it goes on changing.
  const [opened, setOpened] = useState<LimitUse | null>(null);
  if (opened === null && limit !== undefined) setOpened(limit);

  if (node.data && denied === null && (limitId === 'new' || opened !== null)) {
    return <LimitForm node={node.data} base={opened} onClose={onClose} />;
  }
  return (
    <Dialog shape="drawer" title={t('limit.title')} onClose={onClose}>
      {denied !== null ? (
        <State kind="denied" title={t('state.denied')} text={denied} />
      ) : node.data ? (
        <State kind="absent" title={t('limit.gone')} />
      ) : node.error ? (
        <ErrorState error={node.error} onRetry={() => void node.refetch()} />
      ) : (
        <Loading rows={6} />
      )}
    </Dialog>
  );
}

function choiceOf(amount: string | null): Choice {
  if (amount === null) return 'none';
  return /^0(\.0+)?$/.test(amount) ? 'block' : 'amount';
}

function initialValues(base: LimitUse | null): Values {
  if (base === null) {
    return {
      metric: 'cost',
      window: 'month',
      model: '',
      choice: 'amount',
      amount: '',
      mode: 'hard',
    };
  }
  const choice = choiceOf(base.amount);
  const text = choice === 'amount' && base.amount !== null ? base.amount : '';
  return {
    metric: base.metric,
    window: base.window ?? '',
    model: base.model ?? '',
    choice,
    amount: base.metric === 'cost' && text !== '' ? exactMoney(text) : text,
    mode: base.mode,
  };
}

function LimitForm({
  node,
  base,
  onClose,
}: {
  node: NodeDetail;
  base: LimitUse | null;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const models = api.useQuery('get', '/api/v1/models', {}, { staleTime: 60_000 });
  const [asking, setAsking] = useState<'block' | 'discard' | null>(null);
  const [theirs, setTheirs] = useState<LimitRow | null>(null);
  const form = useForm<Values>({ defaultValues: initialValues(base) });
  const { errors, isDirty } = form.formState;
  const values = useWatch({ control: form.control, compute: (all) => all });
  const counter = {
    metric: values.metric,
    window: values.window === '' ? null : values.window,
    model: values.model === '' ? null : values.model,
  };
  const reading = readAmount(values.metric, values.amount, format.currency);
  const amount =
    values.choice === 'none'
      ? null
      : values.choice === 'block'
        ? '0'
        : reading.ok
          ? reading.amount
          : undefined;
  const live = base && node.limits.find(({ id }) => id === base.id);

  const onFault = useServerFaults(form);
  const onSuccess = (row: LimitRow) => {
    toast.success(
      t('limit.saved', {
        name: format.limitName(row),
        amount:
          row.amount === null
            ? t('limit.noOwn')
            : choiceOf(row.amount) === 'block'
              ? t('limit.blocked')
              : format.amount(row.metric, row.amount),
      }),
    );
    void refreshAll();
    onClose();
  };
  const create = api.useMutation('post', '/api/v1/limits', { onSuccess, onError: onFault });
  const patch = api.useMutation('patch', '/api/v1/limits/{id}', {
    onSuccess,
    onError: async (error, { params }) => {
      if (asApiError(error).code !== 'version_conflict') {
        onFault(error);
        return;
      }
      try {
        setTheirs(
          bodyOf(await client.GET('/api/v1/limits/{id}', { params: { path: params.path } })),
        );
      } catch (failure) {
        onFault(failure);
      }
    },
  });

  const send = (version: number | null) => {
    if (amount === undefined) return;
    setAsking(null);
    if (base === null || version === null) {
      create.mutate({
        body: {
          scopeLevel: node.level,
          scopeId: node.id,
          ...counter,
          amount,
          mode: values.mode,
        },
      });
    } else {
      patch.mutate({
        params: { path: { id: base.id }, header: ifMatch(version) },
        body: { amount, mode: values.mode },
      });
    }
  };
  const save = form.handleSubmit(() => {
    if (values.choice === 'amount' && !reading.ok) {
      form.setError('amount', {
        type: 'client',
        message: t(`amountFault.${reading.fault}`, { currency: format.currency }),
      });
      form.setFocus('amount');
      return;
    }
    // To stop everyone is asked about, unless that is how it already was.
    if (values.choice === 'block' && (base === null || choiceOf(base.amount) !== 'block')) {
      setAsking('block');
      return;
    }
    send(base?.version ?? null);
  });
  const mine: LimitVersion = { amount: amount ?? null, mode: values.mode };
  const busy = create.isPending || patch.isPending;

  return (
    <Dialog
      shape="drawer"
      testId="limit-drawer"
      title={base ? t('limit.editTitle', { name: format.limitName(base) }) : t('limit.add')}
      description={t('org.scope', { level: t(`level.${node.level}`), name: node.name })}
      onClose={() => (isDirty ? setAsking('discard') : onClose())}
      footer={
        <>
          <Button onClick={() => (isDirty ? setAsking('discard') : onClose())}>
            {t('action.cancel')}
          </Button>
          <Button
            variant="primary"
            busy={busy}
            denied={base !== null && !isDirty ? t('limit.unchanged') : null}
            onClick={save}
          >
            {t('action.save')}
          </Button>
        </>
      }
    >
      <form noValidate onSubmit={save} className="flex flex-col gap-4">
        {base && live && live.version !== base.version && (
          <p role="status" className="rounded-md bg-warn-soft px-3 py-2 text-xs text-warn">
            {t('limit.changedMeanwhile')}
          </p>
        )}
        <div className="grid grid-cols-2 gap-3">
          <Field label={t('limit.metric')} error={errors.metric?.message}>
            {(props) => (
              <Select
                options={metrics.map((metric) => ({ value: metric, label: t(`metric.${metric}`) }))}
                disabled={base !== null}
                {...props}
                {...form.register('metric', {
                  onChange: ({ target }: { target: { value: Metric } }) => {
                    if (windowFault(target.value, counter.window) === null) return;
                    form.setValue('window', target.value === 'concurrency' ? '' : 'month');
                  },
                })}
              />
            )}
          </Field>
          <Field label={t('limit.window')} error={errors.window?.message}>
            {(props) => (
              <Select
                options={
                  values.metric === 'concurrency'
                    ? [{ value: '', label: t('window.none') }]
                    : [...slidingWindows, ...calendarWindows]
                        .filter((window) => windowFault(values.metric, window) === null)
                        .map((window) => ({ value: window, label: t(`windowLong.${window}`) }))
                }
                disabled={base !== null || values.metric === 'concurrency'}
                {...props}
                {...form.register('window')}
              />
            )}
          </Field>
          <Field label={t('limit.model')} className="col-span-2" error={errors.model?.message}>
            {(props) => (
              <Select
                options={[
                  { value: '', label: t('limit.allModels') },
                  ...(models.data?.items ?? []).map(({ alias }) => ({
                    value: alias,
                    label: alias,
                  })),
                  // Until the list is there, or if the model has left it.
                  ...(base?.model && !models.data?.items.some(({ alias }) => alias === base.model)
                    ? [{ value: base.model, label: base.model }]
                    : []),
                ]}
                disabled={base !== null}
                {...props}
                {...form.register('model')}
              />
            )}
          </Field>
        </div>

        <div className="flex flex-col gap-2">
          <Segmented
            label={t('limit.kind')}
            value={values.choice}
            options={choices.map((choice) => ({
              value: choice,
              label: t(`limit.choice.${choice}`),
            }))}
            onChange={(choice) => {
              form.setValue('choice', choice, { shouldDirty: true });
              form.clearErrors('amount');
            }}
            className="self-start"
          />
          {values.choice === 'amount' && (
            <Field
              label={t('limit.amount')}
              error={errors.amount?.message}
              hint={
                reading.ok ? (
                  <span data-testid="amount-echo" className="tabular text-ink-2">
                    {t('limit.echo', {
                      amount: format.amount(values.metric, reading.amount),
                      name: format.limitName(counter),
                    })}
                  </span>
                ) : values.amount === '' ? (
                  t(values.metric === 'cost' ? 'limit.hintMoney' : 'limit.hintCount')
                ) : (
                  <span className="text-warn">
                    {t(`amountFault.${reading.fault}`, { currency: format.currency })}
                  </span>
                )
              }
            >
              {(props) => (
                <Input
                  autoFocus
                  inputMode="text"
                  autoComplete="off"
                  placeholder={values.metric === 'cost' ? `${format.sign}500` : '1,500,000'}
                  className="tabular h-10 text-base"
                  {...props}
                  {...form.register('amount')}
                />
              )}
            </Field>
          )}
          {values.choice !== 'amount' && (
            <p className="rounded-md bg-sunken px-3 py-2 text-xs text-ink-2">
              {t(values.choice === 'none' ? 'limit.noneText' : 'limit.blockText')}
            </p>
          )}
        </div>

        <Field
          label={t('limit.mode')}
          hint={t(`modeText.${values.mode}`)}
          error={errors.mode?.message}
        >
          {(props) => (
            <Select
              options={limitModes.map((mode) => ({ value: mode, label: t(`mode.${mode}`) }))}
              {...props}
              {...form.register('mode')}
            />
          )}
        </Field>

        <Impact node={node} counter={counter} amount={amount} mode={values.mode} />
        <FormAlert text={errors.root?.message} />
        <button type="submit" hidden />
      </form>

      {asking === 'block' && (
        <ConfirmDialog
          danger
          title={t('limit.blockTitle')}
          text={t('limit.blockAsk', { name: node.name, limit: format.limitName(counter) })}
          confirm={t('limit.choice.block')}
          onCancel={() => setAsking(null)}
          onConfirm={() => send(base?.version ?? null)}
        />
      )}
      {asking === 'discard' && (
        <ConfirmDialog
          danger
          title={t('limit.discardTitle')}
          text={t('limit.discardText')}
          confirm={t('action.discard')}
          onCancel={() => setAsking(null)}
          onConfirm={onClose}
        />
      )}
      {theirs && base && (
        <ConflictDialog
          metric={base.metric}
          base={base}
          theirs={theirs}
          mine={mine}
          onGoOn={() => setTheirs(null)}
          onTakeTheirs={() => {
            void refreshAll();
            onClose();
          }}
          onKeepMine={() => {
            const { version } = theirs;
            setTheirs(null);
            send(version);
          }}
        />
      )}
    </Dialog>
  );
}

/** What the proposal would mean now, from the live figures. */
function Impact({
  node,
  counter,
  amount,
  mode,
}: {
  node: NodeDetail;
  counter: { metric: Metric; window: Window | null; model: string | null };
  amount: string | null | undefined;
  mode: LimitMode;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const now = usedNow(node, counter);
  const proposal =
    amount === null || amount === undefined ? null : prepareProposal(node, counter, amount);
  const share = proposal?.share ?? null;
  const percent =
    share && now ? percentText(share.used + share.reserved, /^0(\.0+)?$/.test(now.used)) : null;
  return (
    <section
      aria-label={t('limit.impact')}
      data-testid="limit-impact"
      className="flex flex-col gap-2 rounded-lg border border-line bg-canvas p-3 text-xs"
    >
      <div className="flex items-baseline justify-between gap-2">
        <h3 className="font-semibold text-ink-2">{t('limit.impact')}</h3>
        {percent && <span className="tabular font-medium">{percent}</span>}
      </div>
      {share && now && percent && (
        <Meter
          thick
          label={t('limit.impact')}
          text={t('limit.usedNow', {
            used: format.used(counter.metric, now.used),
            reserved: format.used(counter.metric, now.reserved),
          })}
          share={share}
        />
      )}
      <p className="tabular text-ink-3">
        {now
          ? t('limit.usedNow', {
              used: format.used(counter.metric, now.used),
              reserved: format.used(counter.metric, now.reserved),
            })
          : t('limit.notCountedYet')}
      </p>
      {proposal?.refusesNow && (
        <p className="flex gap-1.5 text-bad">
          <TriangleAlert aria-hidden className="mt-0.5 size-3.5 shrink-0" />
          {t(mode === 'hard' ? 'limit.refusesNow' : 'limit.passedNow')}
        </p>
      )}
      {proposal?.lowerAbove && (
        <p className="flex gap-1.5 text-warn">
          <TriangleAlert aria-hidden className="mt-0.5 size-3.5 shrink-0" />
          {t('limit.lowerAbove', {
            name: proposal.lowerAbove.name,
            amount: format.amount(counter.metric, proposal.lowerAbove.limit.amount ?? '0'),
          })}
        </p>
      )}
    </section>
  );
}
