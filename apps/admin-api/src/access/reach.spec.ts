import { describe, expect, it } from 'vitest';
import { subtreeOf } from './reach.js';

const tree = new Map([
  ['top', { parentId: null }],
  ['a', { parentId: 'top' }],
  ['b', { parentId: 'top' }],
  ['a1', { parentId: 'a' }],
  ['other', { parentId: null }],
]);

describe('a subtree', () => {
  it('is the department and all below it, and nothing beside or above', () => {
    expect(subtreeOf(tree, 'a')).toEqual(new Set(['a', 'a1']));
    expect(subtreeOf(tree, 'top')).toEqual(new Set(['top', 'a', 'b', 'a1']));
  });

  it('of an unknown department is empty: nothing is in reach', () => {
    expect(subtreeOf(tree, 'nowhere')).toEqual(new Set());
  });

  it('ends even where rows form a circle', () => {
    const circle = new Map([
      ['x', { parentId: 'y' }],
      ['y', { parentId: 'x' }],
    ]);
    expect(subtreeOf(circle, 'x')).toEqual(new Set(['x', 'y']));
  });
});
