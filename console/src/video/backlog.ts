/** Whether what should come at once stands too long, and catching up has failed. */
export class Backlog {
  #sinceMs: number | null = null;

  /**
   * `stoodMaxMs`: what stands for longer is behind. `catchUpMs`: for how long that is forgiven, because a
   * standstill of the whole page leaves a burst behind, which is soon dealt with.
   */
  constructor(readonly stoodMaxMs: number, readonly catchUpMs: number) {}

  /** Whether that which has stood for `stoodMs` is better skipped. */
  isStale(stoodMs: number, nowMs: number): boolean {
    if (stoodMs <= this.stoodMaxMs) {
      this.#sinceMs = null;
      return false;
    }
    this.#sinceMs ??= nowMs;
    return nowMs - this.#sinceMs >= this.catchUpMs;
  }

  clear(): void {
    this.#sinceMs = null;
  }
}
