import { CircleSlash, Inbox, Lock, SearchX, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { asApiError } from '../api/api-error.js';
import { Button } from './button.js';

const icons = {
  empty: Inbox,
  filtered: SearchX,
  denied: Lock,
  error: TriangleAlert,
  absent: CircleSlash,
};

/** Why there is nothing to see. The four reasons look and read differently, and say what to do. */
export function State({
  kind,
  title,
  text,
  action,
}: {
  kind: keyof typeof icons;
  title: string;
  text?: ReactNode;
  action?: ReactNode;
}) {
  const Icon = icons[kind];
  return (
    <div
      data-state-kind={kind}
      role={kind === 'error' ? 'alert' : undefined}
      className="flex flex-col items-center gap-2 px-6 py-10 text-center"
    >
      <span
        className={
          kind === 'error'
            ? 'rounded-full bg-bad-soft p-2.5 text-bad'
            : kind === 'denied'
              ? 'rounded-full bg-warn-soft p-2.5 text-warn'
              : 'rounded-full bg-sunken p-2.5 text-ink-3'
        }
      >
        <Icon aria-hidden className="size-5" />
      </span>
      <p className="font-medium">{title}</p>
      {text && <p className="max-w-sm text-xs text-balance text-ink-3">{text}</p>}
      {action}
    </div>
  );
}

/** A failed load: says what failed in the user's language, offers to try again, and names the request for support. */
export function ErrorState({
  error,
  onRetry,
}: {
  error: unknown;
  onRetry?: (() => void) | undefined;
}) {
  const { t } = useTranslation();
  const fault = asApiError(error);
  if (fault.code === 'forbidden') {
    return <State kind="denied" title={t('state.denied')} text={t('state.deniedText')} />;
  }
  return (
    <State
      kind={fault.code === 'not_found' ? 'absent' : 'error'}
      title={t(`error.${fault.code}`)}
      text={
        <>
          {fault.code !== 'not_found' && <span className="block">{fault.message}</span>}
          {fault.requestId && (
            <span className="mt-1 block font-mono">
              {t('state.requestId', { id: fault.requestId })}
            </span>
          )}
        </>
      }
      action={onRetry && <Button onClick={onRetry}>{t('action.retry')}</Button>}
    />
  );
}

export function Loading({ rows = 4 }: { rows?: number }) {
  const { t } = useTranslation();
  return (
    <div role="status" aria-label={t('state.loading')} className="flex flex-col gap-2.5 p-4">
      {Array.from({ length: rows }, (_, index) => (
        <div
          key={index}
          className="h-4 animate-pulse rounded bg-sunken"
          style={{ width: `${92 - ((index * 17) % 45)}%` }}
        />
      ))}
    </div>
  );
}
