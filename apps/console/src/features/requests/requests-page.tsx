import { useNavigate, useSearch } from '@tanstack/react-router';
import { Search } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { api } from '../../api/client.js';
import type { RequestDetail } from '../../api/types.js';
import { term } from '../../i18n/term.js';
import { Badge } from '../../ui/badge.js';
import { Button } from '../../ui/button.js';
import { Input } from '../../ui/field.js';
import { Count, Money, When } from '../../ui/figures.js';
import { PageHeader, Panel } from '../../ui/panel.js';
import { ErrorState, Loading, State } from '../../ui/states.js';

/** Any call by the id that the caller was given, whatever its date. */
export function RequestsPage() {
  const { t } = useTranslation();
  const navigate = useNavigate({ from: '/requests' });
  const { id = '' } = useSearch({ from: '/_app/requests' });
  const request = api.useQuery(
    'get',
    '/api/v1/requests',
    { params: { query: { id } } },
    { enabled: id !== '' },
  );
  return (
    <>
      <PageHeader title={t('page.requests')} note={t('requests.note')} />
      <form
        role="search"
        className="flex max-w-xl gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          const typed = new FormData(event.currentTarget).get('id');
          void navigate({ search: { id: String(typed).trim() || undefined } });
        }}
      >
        <label className="flex-1">
          <span className="sr-only">{t('requests.id')}</span>
          <Input
            key={id}
            name="id"
            data-page-search
            defaultValue={id}
            autoComplete="off"
            spellCheck={false}
            placeholder={t('requests.id')}
            className="font-mono"
          />
        </label>
        <Button type="submit" variant="primary" icon={<Search />}>
          {t('requests.find')}
        </Button>
      </form>
      {id === '' ? (
        <Panel>
          <State kind="empty" title={t('requests.ask')} text={t('requests.askText')} />
        </Panel>
      ) : request.error ? (
        <Panel>
          <ErrorState error={request.error} onRetry={() => void request.refetch()} />
        </Panel>
      ) : !request.data ? (
        <Panel>
          <Loading rows={6} />
        </Panel>
      ) : (
        <Found request={request.data} />
      )}
    </>
  );
}

function Found({ request }: { request: RequestDetail }) {
  const { t } = useTranslation();
  const { attempts, refusals } = request;
  if (attempts.length === 0 && refusals.length === 0) {
    return (
      <Panel>
        <State kind="absent" title={t('requests.none')} text={t('requests.noneText')} />
      </Panel>
    );
  }
  return (
    <>
      {attempts.map((attempt, index) => (
        <Attempt key={attempt.eventId} attempt={attempt} number={index + 1} />
      ))}
      {refusals.length > 0 && (
        <Panel title={t('requests.refusals')} flush>
          <ul className="divide-y divide-line">
            {refusals.map((refusal) => (
              <li
                key={`${refusal.at}-${refusal.code}`}
                className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5"
              >
                <When at={refusal.at} className="text-ink-2" />
                <Badge tone="bad">{term(t, 'outcome', refusal.outcome)}</Badge>
                <code className="font-mono text-xs">{refusal.code}</code>
                {refusal.scopeName && (
                  <span className="text-ink-2">
                    {refusal.scopeLevel && `${term(t, 'level', refusal.scopeLevel)} · `}
                    {refusal.scopeName}
                    {refusal.metric && ` · ${term(t, 'metric', refusal.metric)}`}
                  </span>
                )}
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

/** Milliseconds between two instants; times, not money, so a number will do. */
const millisBetween = (from: string, to: string) => Date.parse(to) - Date.parse(from);

function Attempt({
  attempt,
  number,
}: {
  attempt: RequestDetail['attempts'][number];
  number: number;
}) {
  const { t } = useTranslation();
  const whole = Math.max(1, millisBetween(attempt.startedAt, attempt.endedAt));
  const first =
    attempt.firstTokenAt === null ? null : millisBetween(attempt.startedAt, attempt.firstTokenAt);
  const facts: [string, React.ReactNode][] = [
    [t('level.department'), attempt.department],
    [t('level.user'), attempt.user],
    [t('level.key'), attempt.key],
    [t('limit.model'), attempt.model],
    [t('grouping.provider'), attempt.provider],
    [t('requests.route'), attempt.route],
    [t('metric.input_tokens'), <Count key="in" text={attempt.inputTokens} />],
    [t('metric.output_tokens'), <Count key="out" text={attempt.outputTokens} />],
    [t('metric.cost'), <Money key="cost" text={attempt.cost} />],
    [t('requests.booked'), <When key="at" at={attempt.at} />],
  ];
  return (
    <Panel
      title={t('requests.attempt', { number })}
      note={<code className="font-mono">{attempt.eventId}</code>}
      actions={
        <>
          <Badge tone={attempt.status === 'ok' ? 'good' : 'warn'}>
            {term(t, 'callStatus', attempt.status)}
          </Badge>
          {attempt.estimated && <Badge tone="warn">{t('requests.estimated')}</Badge>}
          {attempt.late && <Badge tone="warn">{t('requests.late')}</Badge>}
        </>
      }
    >
      <div className="mb-4 flex flex-col gap-1.5">
        <div aria-hidden className="flex h-2.5 overflow-hidden rounded-full bg-sunken">
          {first !== null && (
            <span
              className="hatched h-full [--hatch:var(--chart-2)]"
              style={{ width: `${(first / whole) * 100}%` }}
            />
          )}
          <span className="h-full flex-1 bg-accent" />
        </div>
        <div className="tabular flex justify-between text-xs text-ink-3">
          <When at={attempt.startedAt} />
          {first !== null && <span>{t('requests.firstToken', { ms: first })}</span>}
          <span>{t('requests.whole', { ms: whole })}</span>
        </div>
      </div>
      <dl className="grid grid-cols-2 gap-x-6 gap-y-3 md:grid-cols-5">
        {facts.map(([name, value]) => (
          <div key={name} className="min-w-0">
            <dt className="text-xs text-ink-3">{name}</dt>
            <dd className="truncate">{value}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
