import {
  WeirError,
  type CallerPolicy,
  type ModelDocument,
  type UpstreamDocument,
} from '@weir/domain';

/** One way to serve a model. */
export type Candidate = { readonly upstream: UpstreamDocument; readonly upstreamModel: string };

/** Names a candidate; one that was tried is not tried again for the same call. */
export function candidateKey(candidate: Candidate): string {
  return `${candidate.upstream.id} ${candidate.upstreamModel}`;
}

/**
 * The next upstream to try: the lowest priority first, equal priorities drawn by weight. Weight 0 is served only when
 * nothing else of its priority is left.
 *
 * @param hasRoom whether an upstream takes another call at the moment
 * @param random in [0, 1)
 * @returns null when every one was tried, `busy` when those that were not have no room
 * @throws WeirError `unavailable` when the model has no usable upstream at all
 */
export function chooseUpstream(
  policy: CallerPolicy,
  model: ModelDocument,
  tried: ReadonlySet<string>,
  hasRoom: (candidate: Candidate) => boolean,
  random: () => number,
): Candidate | 'busy' | null {
  const usable = model.routes.flatMap((route) => {
    const upstream = policy.upstreams.get(route.upstreamId);
    if (upstream === undefined || !upstream.enabled || upstream.dialect !== model.dialect)
      return [];
    return [{ upstream, upstreamModel: route.upstreamModel, route }];
  });
  if (usable.length === 0) {
    throw new WeirError(
      'unavailable',
      `The model "${model.alias}" has no provider at the moment. Ask your administrator.`,
    );
  }
  const untried = usable.filter((candidate) => !tried.has(candidateKey(candidate)));
  if (untried.length === 0) return null;
  const open = untried.filter(hasRoom);
  if (open.length === 0) return 'busy';
  const [only] = open;
  if (open.length === 1 && only !== undefined) return only;
  const priority = Math.min(...open.map(({ route }) => route.priority));
  const equals = open.filter(({ route }) => route.priority === priority);
  const total = equals.reduce((sum, { route }) => sum + route.weight, 0);
  let ticket = random() * total;
  for (const candidate of equals) {
    ticket -= candidate.route.weight;
    if (ticket < 0) return candidate;
  }
  return equals[0] ?? null;
}
