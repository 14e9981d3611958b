import { useFormat, usageDecimals } from '../format/use-format.js';
import { cn } from './cn.js';

/** Money that was used, at fixed decimals so that columns align; the exact value is in `value` and on hover. */
export function Money({
  text,
  className,
  testId,
}: {
  text: string;
  className?: string;
  testId?: string;
}) {
  const format = useFormat();
  const shown = format.money(text);
  const tail = shown.startsWith('<') ? 0 : usageDecimals - 2;
  return (
    <data
      value={text}
      title={format.exactMoney(text)}
      data-testid={testId}
      className={cn('tabular whitespace-nowrap', className)}
    >
      {tail === 0 ? (
        shown
      ) : (
        <>
          {shown.slice(0, -tail)}
          <span className="text-ink-3">{shown.slice(-tail)}</span>
        </>
      )}
    </data>
  );
}

export function Count({ text, className }: { text: string; className?: string }) {
  const format = useFormat();
  return (
    <data value={text} className={cn('tabular whitespace-nowrap', className)}>
      {format.count(text)}
    </data>
  );
}

export function When({ at, className }: { at: string; className?: string }) {
  const format = useFormat();
  return (
    <time dateTime={at} title={format.relative(at)} className={cn('tabular', className)}>
      {format.dateTime(at)}
    </time>
  );
}

/** One figure of a page's head line. */
export function Figure({
  label,
  children,
  note,
}: {
  label: string;
  children: React.ReactNode;
  note?: React.ReactNode;
}) {
  return (
    <div className="flex min-w-0 flex-col gap-0.5">
      <span className="text-xs text-ink-3">{label}</span>
      <span className="text-xl leading-7 font-semibold tracking-tight">{children}</span>
      {note && <span className="text-xs text-ink-3">{note}</span>}
    </div>
  );
}
