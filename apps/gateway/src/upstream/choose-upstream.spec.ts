import type { CallerPolicy } from '@weir/domain';
import { describe, expect, it } from 'vitest';
import { model, upstream } from '../testing/documents.js';
import { candidateKey, chooseUpstream } from './choose-upstream.js';

const upstreams = ['A', 'B', 'C'].map((name) => upstream(`http://${name}.example/v1`, { name }));
const [a, b, c] = upstreams.map(({ id }) => id) as [string, string, string];
const route = (upstreamId: string, weight: number, priority = 0) => ({
  upstreamId,
  upstreamModel: 'm',
  weight,
  priority,
});
const policy = (change: object = {}) =>
  ({
    upstreams: new Map(upstreams.map((each) => [each.id, { ...each, ...change }])),
  }) as unknown as CallerPolicy;
const yes = () => true;

describe('chooseUpstream', () => {
  it('shares equal priorities by weight', () => {
    const served = model('m', a, { routes: [route(a, 3), route(b, 1)] });
    const counts = new Map<string, number>();
    for (let ticket = 0; ticket < 400; ticket += 1) {
      const found = chooseUpstream(policy(), served, new Set(), yes, () => ticket / 400);
      if (found === null || found === 'busy') throw new Error('there are upstreams');
      counts.set(found.upstream.name, (counts.get(found.upstream.name) ?? 0) + 1);
    }
    expect(Object.fromEntries(counts)).toEqual({ A: 300, B: 100 });
  });

  it('goes on to the next priority only when those before were tried, and ends when all were', () => {
    const served = model('m', a, { routes: [route(c, 1, 2), route(a, 1, 0), route(b, 0, 1)] });
    const tried = new Set<string>();
    const names: string[] = [];
    for (;;) {
      const found = chooseUpstream(policy(), served, tried, yes, () => 0.5);
      if (found === null || found === 'busy') break;
      names.push(found.upstream.name);
      tried.add(candidateKey(found));
    }
    // Weight 0 is still better than no answer.
    expect(names).toEqual(['A', 'B', 'C']);
  });

  it('passes over an upstream without room, and says when none has any', () => {
    const served = model('m', a, { routes: [route(a, 1, 0), route(b, 1, 1)] });
    const withoutA = chooseUpstream(
      policy(),
      served,
      new Set(),
      ({ upstream: { name } }) => name !== 'A',
      () => 0,
    );
    expect(withoutA).toMatchObject({ upstream: { name: 'B' } });
    expect(
      chooseUpstream(
        policy(),
        served,
        new Set(),
        () => false,
        () => 0,
      ),
    ).toBe('busy');
  });

  it('never takes one that is switched off or speaks another dialect', () => {
    const served = model('m', a, { routes: [route(a, 1)] });
    for (const change of [{ enabled: false }, { dialect: 'anthropic' }]) {
      expect(() => chooseUpstream(policy(change), served, new Set(), yes, () => 0)).toThrow(
        /no provider/,
      );
    }
  });
});
