import 'i18next';
import type { en } from './en.js';

declare module 'i18next' {
  interface CustomTypeOptions {
    defaultNS: 'translation';
    // Keys have `_` of their own, and no text of ours depends on a context.
    contextSeparator: '|';
    resources: { translation: typeof en };
  }
}
