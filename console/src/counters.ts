/**
 * Counters of this page's drops, by name. Every name exists from the start, so that zeros are shown
 * too.
 */
export class Counters<Name extends string> {
  readonly #counts: Map<Name, number>;

  constructor(names: readonly Name[]) {
    this.#counts = new Map(names.map((name) => [name, 0]));
  }

  add(name: Name, amount = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + amount);
  }

  list(): { name: string; count: number }[] {
    return Array.from(this.#counts, ([name, count]) => ({ name, count }));
  }
}
