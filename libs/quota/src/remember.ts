/** Sets an entry of a map that is bounded: beyond `max` entries the one that was set first is forgotten. */
export function remember<Value>(
  map: Map<string, Value>,
  key: string,
  value: Value,
  max: number,
): void {
  if (map.size >= max) {
    const [oldest] = map.keys();
    if (oldest !== undefined) map.delete(oldest);
  }
  map.set(key, value);
}
