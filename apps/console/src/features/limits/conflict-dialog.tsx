import type { LimitMode, Metric } from '@weir/domain';
import { useTranslation } from 'react-i18next';
import { useFormat } from '../../format/use-format.js';
import { Button } from '../../ui/button.js';
import { cn } from '../../ui/cn.js';
import { Dialog } from '../../ui/dialog.js';

export type LimitVersion = { amount: string | null; mode: LimitMode };

/** Someone else has saved meanwhile: shows what it was, what they made of it and what is in the form. Nothing is lost. */
export function ConflictDialog({
  metric,
  base,
  theirs,
  mine,
  onGoOn,
  onTakeTheirs,
  onKeepMine,
}: {
  metric: Metric;
  base: LimitVersion;
  theirs: LimitVersion;
  mine: LimitVersion;
  onGoOn: () => void;
  onTakeTheirs: () => void;
  onKeepMine: () => void;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const amountText = (amount: string | null) =>
    amount === null
      ? t('limit.noOwn')
      : /^0(\.0+)?$/.test(amount)
        ? t('limit.blocked')
        : format.amount(metric, amount);
  const columns = [
    { name: t('conflict.base'), version: base },
    { name: t('conflict.theirs'), version: theirs },
    { name: t('conflict.mine'), version: mine },
  ];
  const rows = [
    { name: t('limit.amount'), text: (version: LimitVersion) => amountText(version.amount) },
    { name: t('limit.mode'), text: (version: LimitVersion) => t(`mode.${version.mode}`) },
  ];
  return (
    <Dialog
      className="max-w-xl"
      testId="conflict-dialog"
      title={t('conflict.title')}
      description={t('conflict.text')}
      onClose={onGoOn}
      footer={
        <>
          <Button onClick={onGoOn}>{t('conflict.goOn')}</Button>
          <Button onClick={onTakeTheirs}>{t('conflict.takeTheirs')}</Button>
          <Button variant="primary" onClick={onKeepMine}>
            {t('conflict.keepMine')}
          </Button>
        </>
      }
    >
      <table className="w-full text-left">
        <thead>
          <tr className="text-xs text-ink-3">
            <td />
            {columns.map(({ name }) => (
              <th key={name} scope="col" className="pb-1.5 text-right font-medium">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, text }) => (
            <tr key={name}>
              <th scope="row" className="border-t border-line py-2 font-medium text-ink-2">
                {name}
              </th>
              {columns.map((column) => (
                <td
                  key={column.name}
                  className={cn(
                    'tabular border-t border-line py-2 pl-3 text-right',
                    text(column.version) !== text(base) && 'font-semibold text-accent',
                  )}
                >
                  {text(column.version)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  );
}
