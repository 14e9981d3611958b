import { CircleCheck, CircleX, Download, X } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { toast } from 'sonner';
import { asApiError } from '../../api/api-error.js';
import { api } from '../../api/client.js';
import { refreshAll } from '../../api/refresh.js';
import type { ExportRow } from '../../api/types.js';
import { useFormat } from '../../format/use-format.js';
import { Badge, type Tone } from '../../ui/badge.js';
import { Button } from '../../ui/button.js';
import { ProgressBar } from '../../ui/meter.js';
import { exportPercent } from './export-percent.js';

export const exportPollMs = 1_000;
export function isUnfinished({ status }: ExportRow): boolean {
  return status === 'queued' || status === 'running';
}

const tones: Readonly<Record<ExportRow['status'], Tone>> = {
  queued: 'neutral',
  running: 'accent',
  done: 'good',
  failed: 'bad',
  cancelled: 'warn',
};

export function ExportStatus({ row }: { row: ExportRow }) {
  const { t } = useTranslation();
  return (
    <Badge tone={tones[row.status]}>
      {row.status === 'done' && <CircleCheck aria-hidden />}
      {row.status === 'failed' && <CircleX aria-hidden />}
      {t(`exportStatus.${row.status}`)}
    </Badge>
  );
}

export function ExportBar({ row }: { row: ExportRow }) {
  const { t } = useTranslation();
  const format = useFormat();
  const percent = exportPercent(row);
  const text =
    row.rowsTotal === null
      ? t('exports.rowsSoFar', { done: format.count(row.rowsDone) })
      : t('exports.rows', {
          done: format.count(row.rowsDone),
          total: format.count(row.rowsTotal),
          percent: percent ?? 0,
        });
  return (
    <div className="flex min-w-40 flex-col gap-1">
      <ProgressBar label={t('exports.progress')} text={text} percent={percent} />
      <span className="tabular text-2xs text-ink-3">{text}</span>
    </div>
  );
}

/** What can be done with an export now: stop it or fetch the file. */
export function ExportAction({ row }: { row: ExportRow }) {
  const { t } = useTranslation();
  const cancel = api.useMutation('post', '/api/v1/exports/{id}/cancel', {
    onError: (error) => toast.error(t(`error.${asApiError(error).code}`)),
    onSettled: () => void refreshAll(),
  });
  if (isUnfinished(row)) {
    return (
      <Button
        size="sm"
        icon={<X />}
        busy={cancel.isPending}
        onClick={() => cancel.mutate({ params: { path: { id: row.id } } })}
      >
        {t('exports.cancel')}
      </Button>
    );
  }
  if (row.status !== 'done') return null;
  return (
    <a
      href={`/api/v1/exports/${row.id}/file`}
      download={row.fileName ?? true}
      data-testid="export-download"
      className="inline-flex h-7 items-center gap-1.5 rounded-md bg-accent px-2 text-xs font-medium whitespace-nowrap text-on-accent hover:bg-accent-strong"
    >
      <Download aria-hidden className="size-4" />
      {t('exports.download')}
    </a>
  );
}
