import { useTranslation } from 'react-i18next';
import { Dialog } from '../ui/dialog.js';
import { pages } from './nav.js';

const general = [
  ['⌘K', 'palette'],
  ['/', 'search'],
  ['?', 'help'],
  ['Esc', 'close'],
  ['↑ ↓ ← →', 'tree'],
  ['Enter', 'open'],
] as const;

export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Dialog title={t('shell.shortcuts')} onClose={onClose} className="max-w-lg">
      <div className="grid gap-x-8 sm:grid-cols-2">
        <dl>
          {general.map(([keys, name]) => (
            <Row key={name} keys={[keys]} text={t(`shortcut.${name}`)} />
          ))}
        </dl>
        <dl>
          {pages.map(({ key, name }) => (
            <Row key={name} keys={['g', key]} text={t(`page.${name}`)} />
          ))}
        </dl>
      </div>
    </Dialog>
  );
}

function Row({ keys, text }: { keys: readonly string[]; text: string }) {
  return (
    <div className="flex h-8 items-center justify-between gap-3">
      <dt className="text-ink-2">{text}</dt>
      <dd className="flex gap-1">
        {keys.map((key) => (
          <kbd
            key={key}
            className="rounded border border-line-strong bg-sunken px-1.5 py-px font-sans text-2xs whitespace-nowrap"
          >
            {key}
          </kbd>
        ))}
      </dd>
    </div>
  );
}
