import type { LatencyView } from './report';

/**
 * Latencies of the last `windowMs` and their percentiles. At most `countMax` samples are kept; the
 * oldest are dropped first.
 */
export class LatencyWindow {
  readonly #times: Float64Array;
  readonly #values: Float64Array;
  #written = 0;
  #worstEver: number | null = null;

  constructor(readonly windowMs: number, countMax: number) {
    this.#times = new Float64Array(countMax);
    this.#values = new Float64Array(countMax);
  }

  add(latencyMs: number, atMs: number): void {
    const slot = this.#written % this.#times.length;
    this.#times[slot] = atMs;
    this.#values[slot] = latencyMs;
    this.#written += 1;
    this.#worstEver = Math.max(this.#worstEver ?? latencyMs, latencyMs);
  }

  get worstEver(): number | null {
    return this.#worstEver;
  }

  /** Returns the percentiles; `null` without samples in the window. */
  view(atMs: number): LatencyView | null {
    const held = Math.min(this.#written, this.#times.length);
    const recent = new Float64Array(held);
    let count = 0;
    for (let slot = 0; slot < held; slot += 1) {
      if (atMs - this.#times[slot]! <= this.windowMs) recent[count++] = this.#values[slot]!;
    }
    if (count === 0) return null;
    const ascending = recent.subarray(0, count).sort();
    return {
      p50: percentile(ascending, 0.5),
      p95: percentile(ascending, 0.95),
      p99: percentile(ascending, 0.99),
      worst: ascending[count - 1]!,
      count,
    };
  }
}

/**
 * Returns the nearest-rank percentile for a share of 0 to 1. `ascending` must hold at least one
 * value.
 */
export function percentile(ascending: ArrayLike<number>, share: number): number {
  const rank = Math.max(1, Math.ceil(share * ascending.length));
  return ascending[rank - 1]!;
}
