import { useSyncExternalStore } from 'react';

function subscriber(query: string) {
  return (listener: () => void) => {
    const media = matchMedia(query);
    media.addEventListener('change', listener);
    return () => media.removeEventListener('change', listener);
  };
}

const wide = '(min-width: 1100px)';
const narrow = '(max-width: 639px)';
const subscribeWide = subscriber(wide);
const subscribeNarrow = subscriber(narrow);

/** Whether a panel fits beside the page. */
export function useIsWide(): boolean {
  return useSyncExternalStore(subscribeWide, () => matchMedia(wide).matches);
}

/** Whether the page is as narrow as a phone. */
export function useIsNarrow(): boolean {
  return useSyncExternalStore(subscribeNarrow, () => matchMedia(narrow).matches);
}
