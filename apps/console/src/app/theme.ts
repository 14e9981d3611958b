import { useSyncExternalStore } from 'react';

export const themes = ['light', 'dark', 'system'] as const;
export type Theme = (typeof themes)[number];

const storageKey = 'weir.theme';
const listeners = new Set<() => void>();
const systemDark = () => matchMedia('(prefers-color-scheme: dark)');

let chosen: Theme = readChosen();

function readChosen(): Theme {
  try {
    const stored = localStorage.getItem(storageKey);
    return themes.find((theme) => theme === stored) ?? 'system';
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
    return 'system';
  }
}

function apply(): void {
  const dark = chosen === 'dark' || (chosen === 'system' && systemDark().matches);
  document.documentElement.classList.toggle('dark', dark);
  for (const listener of listeners) listener();
}

/** Follows the system's choice from now on. before-paint.js has already set the class for the first paint. */
export function startTheme(): void {
  systemDark().addEventListener('change', apply);
  apply();
}

export function setTheme(theme: Theme): void {
  chosen = theme;
  try {
    localStorage.setItem(storageKey, theme);
  } catch {
    // See readChosen.
  }
  apply();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, () => chosen);
}
