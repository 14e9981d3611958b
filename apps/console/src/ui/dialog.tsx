import { X } from 'lucide-react';
import { AlertDialog as RadixAlert, Dialog as Radix } from 'radix-ui';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Button, IconButton } from './button.js';
import { cn } from './cn.js';

const overlay = 'appear fixed inset-0 z-40 bg-[rgb(8_14_18_/_0.45)]';

/** Focus goes to the dialog itself, not to its first button, unless a field in it has asked for it. */
export function focusContent(event: Event): void {
  event.preventDefault();
  (event.currentTarget as HTMLElement).focus();
}

type DialogProps = {
  title: string;
  description?: ReactNode;
  onClose: () => void;
  children: ReactNode;
  footer?: ReactNode;
  /** A drawer comes from the side and leaves the page behind it in sight. */
  shape?: 'centre' | 'drawer';
  className?: string;
  testId?: string;
};

/** Shown while it is mounted; who shows it holds the state. Esc and the overlay close it. */
export function Dialog({
  title,
  description,
  onClose,
  children,
  footer,
  shape = 'centre',
  className,
  testId,
}: DialogProps) {
  const { t } = useTranslation();
  return (
    <Radix.Root open onOpenChange={(open) => !open && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className={overlay} />
        <Radix.Content
          data-testid={testId}
          onOpenAutoFocus={focusContent}
          {...(description ? {} : { 'aria-describedby': undefined })}
          className={cn(
            'fixed z-50 flex flex-col bg-surface shadow-float outline-none',
            shape === 'drawer'
              ? 'slide-in inset-y-0 right-0 w-full max-w-[26rem] border-l border-line'
              : 'appear top-[12vh] left-1/2 max-h-[80vh] w-[calc(100vw-2rem)] max-w-md -translate-x-1/2 rounded-xl border border-line',
            className,
          )}
        >
          <header className="flex items-start gap-3 border-b border-line px-4 py-3">
            <div className="min-w-0 flex-1">
              <Radix.Title className="truncate text-sm font-semibold">{title}</Radix.Title>
              {description && (
                <Radix.Description className="mt-0.5 text-xs text-ink-3">
                  {description}
                </Radix.Description>
              )}
            </div>
            <Radix.Close asChild>
              <IconButton size="icon-sm" label={t('action.close')} icon={<X />} />
            </Radix.Close>
          </header>
          <div className="min-h-0 flex-1 overflow-y-auto p-4">{children}</div>
          {footer && (
            <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-4 py-3">
              {footer}
            </footer>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** Asks before something that cannot be taken back. Esc is "no". */
export function ConfirmDialog({
  title,
  text,
  confirm,
  danger = false,
  busy = false,
  onConfirm,
  onCancel,
}: {
  title: string;
  text: ReactNode;
  confirm: string;
  danger?: boolean;
  busy?: boolean;
  onConfirm: () => void;
  onCancel: () => void;
}) {
  const { t } = useTranslation();
  return (
    <RadixAlert.Root open onOpenChange={(open) => !open && onCancel()}>
      <RadixAlert.Portal>
        <RadixAlert.Overlay className={cn(overlay, 'z-50')} />
        <RadixAlert.Content className="appear fixed top-[20vh] left-1/2 z-50 w-[calc(100vw-2rem)] max-w-sm -translate-x-1/2 rounded-xl border border-line bg-surface p-4 shadow-float">
          <RadixAlert.Title className="text-sm font-semibold">{title}</RadixAlert.Title>
          <RadixAlert.Description className="mt-1.5 text-ink-2">{text}</RadixAlert.Description>
          <div className="mt-4 flex justify-end gap-2">
            <RadixAlert.Cancel asChild>
              <Button>{t('action.cancel')}</Button>
            </RadixAlert.Cancel>
            <Button variant={danger ? 'danger' : 'primary'} busy={busy} onClick={onConfirm}>
              {confirm}
            </Button>
          </div>
        </RadixAlert.Content>
      </RadixAlert.Portal>
    </RadixAlert.Root>
  );
}
