import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  errorCodes,
  limitModes,
  metrics,
  permissions,
  roles,
  scopeLevels,
  tokenKinds,
} from '@weir/domain';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { pages } from '../app/nav.js';
import { amountFaults } from '../format/amount-input.js';
import { rangePresets } from '../format/dates.js';
import { en } from './en.js';
import { zh } from './zh.js';

type Texts = { [key: string]: string | Texts };

function flatten(texts: Texts, prefix = ''): Map<string, string> {
  return new Map(
    Object.entries(texts).flatMap(([key, value]) =>
      typeof value === 'string'
        ? [[`${prefix}${key}`, value] as const]
        : [...flatten(value, `${prefix}${key}.`)],
    ),
  );
}

const english = flatten(en);
const chinese = flatten(zh);
const placeholders = (text: string) => (text.match(/\{\{\w+\}\}/g) ?? []).toSorted();

describe('the two languages', () => {
  it('have the same keys', () => {
    expect([...chinese.keys()].toSorted()).toEqual([...english.keys()].toSorted());
  });

  it('have the same placeholders in each text', () => {
    for (const [key, text] of english) {
      expect(placeholders(chinese.get(key) ?? ''), key).toEqual(placeholders(text));
    }
  });

  it('have no empty text', () => {
    for (const [key, text] of [...english, ...chinese]) expect(text.trim(), key).not.toBe('');
  });

  it('differ, but for names and signs that are the same in both', () => {
    const same = [...english]
      .filter(([key, text]) => chinese.get(key) === text)
      .map(([key]) => key);
    const allowed =
      /^(product|shell\.jumpKey|language\.|state\.none|limit\.(of|name|echo)|org\.(liveAt|scope)|keys\.prefix|exports\.checksum|usage\.rangeNote|dialect\.|models\.(route|dialect)|audit\.target)/;
    expect(same.filter((key) => !allowed.test(key))).toEqual([]);
  });

  it('know every word of the domain', () => {
    const expected = [
      ...Object.keys(errorCodes).map((code) => `error.${code}`),
      ...roles.map((role) => `role.${role}`),
      ...permissions.map((permission) => `permission.${permission}`),
      ...metrics.map((metric) => `metric.${metric}`),
      ...limitModes.flatMap((mode) => [`mode.${mode}`, `modeText.${mode}`]),
      ...scopeLevels.map((level) => `level.${level}`),
      ...tokenKinds.map((kind) => `tokenKind.${kind}`),
      ...amountFaults.map((fault) => `amountFault.${fault}`),
      ...rangePresets.map((preset) => `range.${preset}`),
      ...pages.map(({ name }) => `page.${name}`),
    ];
    expect(expected.filter((key) => !english.has(key))).toEqual([]);
  });
});

const sourceFolder = join(import.meta.dirname, '..');
const sources = readdirSync(sourceFolder, { recursive: true, encoding: 'utf8' }).filter(
  (name) => /\.tsx?$/.test(name) && !/\.(spec|d)\.tsx?$/.test(name),
);

/** Attributes whose text people see or hear. */
const spoken =
  /^(title|label|placeholder|alt|aria-label|aria-description|aria-valuetext|text|note|hint|description|confirm)$/;
const hasLetters = (text: string) => /\p{L}/u.test(text);

/** Literal texts that a component would show, with their lines. */
function literalTexts(name: string, code: string): string[] {
  const file = ts.createSourceFile(name, code, ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const found: string[] = [];
  const report = (node: ts.Node, text: string) => {
    const { line } = file.getLineAndCharacterOfPosition(node.getStart(file));
    found.push(`${name}:${line + 1} ${text.trim()}`);
  };
  const shownLiteral = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) {
      if (hasLetters(node.text)) report(node, node.text);
    } else if (ts.isTemplateExpression(node)) {
      for (const part of [node.head, ...node.templateSpans.map(({ literal }) => literal)]) {
        if (hasLetters(part.text)) report(node, part.text);
      }
    } else if (ts.isConditionalExpression(node)) {
      shownLiteral(node.whenTrue);
      shownLiteral(node.whenFalse);
    } else if (ts.isBinaryExpression(node)) {
      // Of `a && b` only b is shown; the operands of a comparison are not.
      const { kind } = node.operatorToken;
      const shown = kind === ts.SyntaxKind.PlusToken || kind === ts.SyntaxKind.BarBarToken;
      if (shown || kind === ts.SyntaxKind.QuestionQuestionToken) shownLiteral(node.left);
      if (
        shown ||
        kind === ts.SyntaxKind.QuestionQuestionToken ||
        kind === ts.SyntaxKind.AmpersandAmpersandToken
      ) {
        shownLiteral(node.right);
      }
    } else if (ts.isParenthesizedExpression(node)) {
      shownLiteral(node.expression);
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isJsxText(node) && hasLetters(node.text)) report(node, node.text);
    if (ts.isJsxExpression(node) && node.expression && !ts.isJsxAttribute(node.parent)) {
      shownLiteral(node.expression);
    }
    if (ts.isJsxAttribute(node) && spoken.test(node.name.getText(file)) && node.initializer) {
      if (ts.isStringLiteral(node.initializer)) shownLiteral(node.initializer);
      else if (ts.isJsxExpression(node.initializer) && node.initializer.expression) {
        shownLiteral(node.initializer.expression);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

describe('components', () => {
  it('show no text but from the language files', () => {
    // The key’s letter beside its `g` is a key, not a word.
    const keys = /palette\.tsx:\d+ g$/;
    const found = sources
      .filter((name) => name.endsWith('.tsx'))
      .flatMap((name) => literalTexts(name, readFileSync(join(sourceFolder, name), 'utf8')))
      .filter((text) => !keys.test(text));
    expect(found).toEqual([]);
  });

  it('are watched by a check that sees literal texts', () => {
    const planted = `const a = <p title="Hello">World {ok ? 'yes' : t('no')} {\`\${n} calls\`}</p>;`;
    expect(
      literalTexts('planted.tsx', planted).map((text) => text.split(' ').slice(1).join(' ')),
    ).toEqual(['Hello', 'World', 'yes', 'calls']);
  });

  it('use every text', () => {
    const code = sources
      .filter((name) => !/i18n[\\/](en|zh)\.ts$/.test(name))
      .map((name) => readFileSync(join(sourceFolder, name), 'utf8'))
      .join('\n');
    // A key is used as it stands, or its last part is put in where the code has `prefix.${…}`.
    const unused = [...english.keys()].filter((key) => {
      const parts = key.split('.');
      const prefixes = parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('.'));
      return (
        !code.includes(`'${key}'`) &&
        !prefixes.some((prefix) => code.includes(`\`${prefix}.\${`)) &&
        !/^(callStatus|outcome)\./.test(key)
      );
    });
    expect(unused).toEqual([]);
  });
});
