import { Link, type ErrorComponentProps } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { ErrorState, Loading, State } from '../ui/states.js';

export function AbsentPage() {
  const { t } = useTranslation();
  return (
    <State
      kind="absent"
      title={t('state.absentPage')}
      text={
        <Link to="/" className="text-accent underline">
          {t('page.overview')}
        </Link>
      }
    />
  );
}

export function FailedPage({ error, reset }: ErrorComponentProps) {
  return <ErrorState error={error} onRetry={reset} />;
}

export function PendingPage() {
  return <Loading rows={8} />;
}
