/**
 * A collection of what comes and goes with each call: whoever adds an item is told its place, and gives the place back. The
 * places are used again. A set would do the same, but leaves tables behind that keep ended calls alive
 * (docs/adr/0041-what-outlives-a-call.md).
 */
export class Roster<T extends object> implements Iterable<T> {
  private readonly items: (T | undefined)[] = [];
  private readonly free: number[] = [];

  get size(): number {
    return this.items.length - this.free.length;
  }

  /** @returns the place, for {@link remove}. */
  add(item: T): number {
    const place = this.free.pop() ?? this.items.length;
    this.items[place] = item;
    return place;
  }

  /** Removes what is at a place; once only, as the place then belongs to whoever comes next. */
  remove(place: number): void {
    this.items[place] = undefined;
    this.free.push(place);
  }

  *[Symbol.iterator](): Iterator<T> {
    for (const item of this.items) if (item !== undefined) yield item;
  }
}
