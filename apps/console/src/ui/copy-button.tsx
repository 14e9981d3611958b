import { Check, Copy } from 'lucide-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from './button.js';
import { copyText } from './copy-text.js';

export function CopyButton({ text, label }: { text: string; label: string }) {
  const { t } = useTranslation();
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  return (
    <Button
      variant={state === 'copied' ? 'secondary' : 'primary'}
      icon={state === 'copied' ? <Check /> : <Copy />}
      onClick={async () => setState((await copyText(text)) ? 'copied' : 'failed')}
    >
      <span aria-live="polite">
        {state === 'idle' ? label : t(state === 'copied' ? 'action.copied' : 'action.copyFailed')}
      </span>
    </Button>
  );
}
