interface Totals {
  atMs: number;
  good: number;
  bad: number;
}

/** A share of late or lost over the last `windowMs`, from totals that only grow. */
export class WindowShare {
  #history: Totals[] = [];

  constructor(readonly windowMs: number) {}

  add(good: number, bad: number, atMs: number): void {
    const newest = this.#history.at(-1);
    // Totals that shrink belong to another session.
    if (newest !== undefined && (good < newest.good || bad < newest.bad)) this.#history = [];
    this.#history.push({ atMs, good, bad });
    // One from before the window stays, to count from.
    while (this.#history.length > 2 && atMs - this.#history[1]!.atMs >= this.windowMs) this.#history.shift();
  }

  /** Null when nothing happened in the window. */
  share(): number | null {
    const [oldest, newest] = [this.#history[0], this.#history.at(-1)];
    if (oldest === undefined || newest === undefined) return null;
    const bad = newest.bad - oldest.bad;
    const all = newest.good - oldest.good + bad;
    return all > 0 ? bad / all : null;
  }
}
