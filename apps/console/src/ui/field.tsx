import { ChevronDown } from 'lucide-react';
import { useId, type ComponentProps, type ReactNode } from 'react';
import { cn } from './cn.js';

const control =
  'w-full rounded-md border border-line-strong bg-surface px-2.5 text-ink placeholder:text-ink-3 disabled:bg-sunken disabled:text-ink-3 aria-invalid:border-bad-fill';

type FieldProps = {
  label: string;
  hint?: ReactNode;
  error?: string | null | undefined;
  className?: string;
  children: (props: {
    id: string;
    'aria-describedby': string | undefined;
    'aria-invalid': true | undefined;
  }) => ReactNode;
};

/** A label, its control, a hint, and the fault if there is one; tied together for everyone who cannot see them. */
export function Field({ label, hint, error, className, children }: FieldProps) {
  const id = useId();
  const note = `${id}-note`;
  const described = hint || error ? note : undefined;
  return (
    <div className={cn('flex flex-col gap-1', className)}>
      <label htmlFor={id} className="text-xs font-medium text-ink-2">
        {label}
      </label>
      {children({
        id,
        'aria-describedby': described,
        'aria-invalid': error ? true : undefined,
      })}
      {(error || hint) && (
        <div id={note} className="text-xs">
          {error ? (
            <span role="alert" className="text-bad">
              {error}
            </span>
          ) : (
            <span className="text-ink-3">{hint}</span>
          )}
        </div>
      )}
    </div>
  );
}

/** A box to tick, with what it means beside it and a hint beneath. */
export function CheckField({
  label,
  hint,
  ...rest
}: ComponentProps<'input'> & { label: string; hint?: ReactNode }) {
  const id = useId();
  const note = `${id}-note`;
  return (
    <div className="grid grid-cols-[auto_minmax(0,1fr)] items-baseline gap-x-2 gap-y-0.5">
      <input
        id={id}
        type="checkbox"
        aria-describedby={hint ? note : undefined}
        className="translate-y-0.5 accent-accent"
        {...rest}
      />
      <label htmlFor={id}>{label}</label>
      {hint && (
        <span id={note} className="col-start-2 text-xs text-ink-3">
          {hint}
        </span>
      )}
    </div>
  );
}

export function Input({ className, ...rest }: ComponentProps<'input'>) {
  return <input className={cn(control, 'h-8', className)} {...rest} />;
}

export function Textarea({ className, ...rest }: ComponentProps<'textarea'>) {
  return <textarea className={cn(control, 'py-1.5', className)} {...rest} />;
}

export function Select({
  options,
  className,
  ...rest
}: ComponentProps<'select'> & {
  options: readonly { value: string; label: string; disabled?: boolean }[];
}) {
  return (
    <span className={cn('relative inline-flex', className ?? 'w-full')}>
      <select className={cn(control, 'h-8 appearance-none truncate pr-7')} {...rest}>
        {options.map(({ value, label, disabled }) => (
          <option key={value} value={value} disabled={disabled}>
            {label}
          </option>
        ))}
      </select>
      <ChevronDown
        aria-hidden
        className="pointer-events-none absolute top-2 right-2 size-4 text-ink-3"
      />
    </span>
  );
}
