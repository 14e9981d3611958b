import { useNavigate } from '@tanstack/react-router';
import { useEffect, useEffectEvent } from 'react';
import { pages } from './nav.js';

/** How long after `g` the second key still counts. */
const sequenceMs = 1_200;

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** The keys that work on every page. None of them acts while one types or a dialog is open, but for ⌘K. */
export function useShortcuts(open: { palette: () => void; help: () => void }): void {
  const navigate = useNavigate();
  const onKey = useEffectEvent((event: KeyboardEvent, sequence: { startedAt: number | null }) => {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      open.palette();
      return;
    }
    if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector('[role="dialog"],[role="alertdialog"]')) return;

    const inSequence =
      sequence.startedAt !== null && event.timeStamp - sequence.startedAt < sequenceMs;
    sequence.startedAt = null;
    const page = inSequence ? pages.find(({ key }) => key === event.key) : undefined;
    if (page) {
      event.preventDefault();
      void navigate({ to: page.path });
    } else if (event.key === 'g') {
      sequence.startedAt = event.timeStamp;
    } else if (event.key === '?') {
      event.preventDefault();
      open.help();
    } else if (event.key === '/') {
      const search = document.querySelector<HTMLInputElement>('input[data-page-search]');
      if (!search) return;
      event.preventDefault();
      search.focus();
      search.select();
    }
  });
  // External system: the window's key events.
  useEffect(() => {
    const sequence = { startedAt: null as number | null };
    const listener = (event: KeyboardEvent) => onKey(event, sequence);
    window.addEventListener('keydown', listener);
    return () => window.removeEventListener('keydown', listener);
  }, []);
}
