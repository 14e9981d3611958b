import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from './button.js';
import { Dialog } from './dialog.js';
import { FormAlert } from './form-alert.js';

/** A dialog around one form: its fields, what is wrong with the form as a whole, and the two ways out. */
export function FormDialog({
  title,
  description,
  className,
  submit,
  busy,
  fault,
  onSubmit,
  onClose,
  children,
}: {
  title: string;
  description?: ReactNode;
  className?: string;
  /** The name of what the form does, where that is more than to save. */
  submit?: string;
  busy: boolean;
  /** A fault that belongs to no single field. */
  fault: string | undefined;
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  return (
    <Dialog
      title={title}
      description={description}
      {...(className === undefined ? {} : { className })}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t('action.cancel')}</Button>
          <Button variant="primary" busy={busy} onClick={onSubmit}>
            {submit ?? t('action.save')}
          </Button>
        </>
      }
    >
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (!busy) onSubmit();
        }}
        className="flex flex-col gap-3.5"
      >
        {children}
        <FormAlert text={fault} />
        {/* Enter saves: the buttons are outside of the form. */}
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
