import i18next from 'i18next';
import { initReactI18next } from 'react-i18next';
import { en } from './en.js';
import { zh } from './zh.js';

export const languages = ['en', 'zh'] as const;
export type Language = (typeof languages)[number];

const storageKey = 'weir.language';

function preferredLanguage(): Language {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(storageKey);
  } catch {
    // Storage may be forbidden; the browser's language is then used.
  }
  return (stored ?? navigator.language).toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

/** The tag that `Intl` and the document's `lang` take. */
export function localeOf(language: string): string {
  return language.startsWith('zh') ? 'zh-CN' : 'en';
}

/** Both languages are in the bundle: a switch is instant and cannot fail. */
export function startI18n(): void {
  i18next.on('languageChanged', (language) => {
    document.documentElement.lang = localeOf(language);
  });
  void i18next.use(initReactI18next).init({
    lng: preferredLanguage(),
    fallbackLng: false,
    contextSeparator: '|',
    resources: { en: { translation: en }, zh: { translation: zh } },
    interpolation: { escapeValue: false },
    initAsync: false,
  });
}

export function setLanguage(language: Language): void {
  try {
    localStorage.setItem(storageKey, language);
  } catch {
    // See preferredLanguage.
  }
  void i18next.changeLanguage(language);
}
