import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';

/**
 * A list that is read page by page with the server's cursor.
 *
 * @param key makes the list's cache entry; a path first, so that {@link refreshAll} finds it
 */
export function usePages<Item>(
  key: readonly unknown[],
  read: (
    cursor: string | undefined,
    signal: AbortSignal,
  ) => Promise<{ items: Item[]; nextCursor: string | null }>,
  options: { refetchInterval?: (items: readonly Item[]) => number | false } = {},
) {
  const query = useInfiniteQuery({
    queryKey: ['get', ...key, 'pages'],
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
    placeholderData: keepPreviousData,
    ...(options.refetchInterval
      ? {
          refetchInterval: (state: {
            state: { data?: { pages: { items: Item[] }[] } | undefined };
          }) =>
            options.refetchInterval?.(
              state.state.data?.pages.flatMap((page) => page.items) ?? [],
            ) ?? false,
        }
      : {}),
  });
  return { ...query, items: query.data?.pages.flatMap((page) => page.items) };
}

/** The body of an answer whose failure the client's middleware has already thrown. */
export function bodyOf<Data>(answer: { data?: Data | undefined }): Data {
  if (answer.data === undefined) throw new Error('the answer has no body');
  return answer.data;
}
