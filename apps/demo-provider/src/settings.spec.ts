import { describe, expect, it } from 'vitest';
import {
  defaultSettings,
  parseDirectives,
  parseHeaders,
  parsePatch,
  settingsSchema,
  SettingsError,
} from './settings.js';

describe('settings', () => {
  it('has defaults that satisfy the schema', () => {
    expect(settingsSchema.parse(defaultSettings)).toEqual(defaultSettings);
  });

  it('reads directives: a name is a fault, name=value a setting', () => {
    expect(parseDirectives('eof_mid_stream;output_tokens=5;crlf=true; usage=never')).toEqual({
      fault: 'eof_mid_stream',
      output_tokens: 5,
      crlf: true,
      usage: 'never',
    });
    expect(parseDirectives('status:429,retry_after_seconds=3')).toEqual({
      fault: 'status:429',
      retry_after_seconds: 3,
    });
    expect(parseDirectives('')).toEqual({});
  });

  it('reads headers and ignores those that are not its own', () => {
    expect(
      parseHeaders({
        host: 'x',
        'x-demo-tokens-per-second': '12.5',
        'x-demo-output-tokens': 'null',
      }),
    ).toEqual({
      tokens_per_second: 12.5,
      output_tokens: null,
    });
    expect(parseHeaders({ host: 'x' })).toBeUndefined();
  });

  it('refuses what it does not know, naming it', () => {
    expect(() => parsePatch({ speed: 3 })).toThrow(/speed/);
    expect(() => parsePatch({ output_tokens: -1 })).toThrow(/output_tokens/);
    for (const text of ['explode', 'status:200', 'output_tokens=many', 'split_bytes=1.5']) {
      expect(() => parseDirectives(text)).toThrow(SettingsError);
    }
  });
});
