/** Amount per second over the last `windowMs`, in buckets of a tenth of the window. */
export class Rate {
  readonly #buckets: { startMs: number; amount: number }[] = [];

  constructor(readonly windowMs: number) {}

  add(amount: number, atMs: number): void {
    const newest = this.#buckets.at(-1);
    if (newest !== undefined && atMs - newest.startMs < this.windowMs / 10) {
      newest.amount += amount;
    } else {
      this.#buckets.push({ startMs: atMs, amount });
    }
    this.#expire(atMs);
  }

  perSecond(atMs: number): number {
    this.#expire(atMs);
    const sum = this.#buckets.reduce((total, bucket) => total + bucket.amount, 0);
    return (sum * 1000) / this.windowMs;
  }

  #expire(atMs: number): void {
    while (this.#buckets.length > 0 && atMs - this.#buckets[0]!.startMs >= this.windowMs) this.#buckets.shift();
  }
}
