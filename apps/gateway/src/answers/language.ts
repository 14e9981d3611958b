/** Languages that limits are explained in. Codes, types and field names are the same in all of them. */
export type Language = 'en' | 'zh';

/** The language of an `Accept-Language` header (RFC 9110, 12.5.4) that we speak and that it likes best; else English. */
export function languageOf(acceptLanguage: string | undefined): Language {
  if (acceptLanguage === undefined || acceptLanguage === '*') return 'en';
  let best: Language = 'en';
  let bestQuality = 0;
  for (const range of acceptLanguage.split(',')) {
    const [tag = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const language = tag.split('-', 1)[0];
    if (language !== 'zh' && language !== 'en') continue;
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    const quality = weight === undefined ? 1 : Number(weight.slice(2));
    if (quality > bestQuality) {
      best = language;
      bestQuality = quality;
    }
  }
  return best;
}
