import { describe, expect, it } from 'vitest';
import { languageOf } from './language.js';

describe('languageOf', () => {
  it.each([
    [undefined, 'en'],
    ['*', 'en'],
    ['', 'en'],
    ['fr-FR, de;q=0.5', 'en'],
    ['zh', 'zh'],
    ['zh-CN,zh;q=0.9,en;q=0.8', 'zh'],
    ['ZH-Hant-TW', 'zh'],
    ['en-US,en;q=0.9,zh-CN;q=0.8', 'en'],
    ['en;q=0.5, zh;q=0.7', 'zh'],
    ['fr, zh;q=0.1', 'zh'],
    ['zh;q=0', 'en'],
    ['zh;q=nonsense', 'en'],
    ['zhx', 'en'],
  ] as const)('reads %s as %s', (header, language) => {
    expect(languageOf(header)).toBe(language);
  });
});
