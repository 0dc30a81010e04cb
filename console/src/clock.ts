/**
 * Returns the time in milliseconds since 1970, which never steps back. Page and worker read the
 * same time to within 1 ms.
 */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

interface Sample {
  takenAtMs: number;
  rttMs: number;
  offsetMs: number;
}

// Long enough to contain a fast round trip, short enough that clocks which drift by 50 ppm move by
// less than 2 ms.
const WINDOW_MS = 30_000;

/**
 * Offset of the operator's clock from this page's, estimated from the fastest round trip of the
 * last 30 s.
 */
export class OperatorClock {
  #samples: Sample[] = [];

  /**
   * Handles an answered ping: `operatorMs` is on the operator's clock, the other times are on this
   * page's. A negative round trip is ignored.
   */
  observe(askedAtMs: number, operatorMs: number, receivedAtMs: number): void {
    const rttMs = receivedAtMs - askedAtMs;
    if (rttMs < 0) return;
    this.#samples = this.#samples.filter((sample) => receivedAtMs - sample.takenAtMs < WINDOW_MS);
    this.#samples.push({ takenAtMs: receivedAtMs, rttMs, offsetMs: operatorMs - (askedAtMs + rttMs / 2) });
  }

  /**
   * Returns the operator's clock minus this page's, and the round trip that measured it; `null`
   * before the first. The error is at most half the round trip.
   */
  best(): { rttMs: number; offsetMs: number } | null {
    let best: Sample | null = null;
    for (const sample of this.#samples) {
      if (best === null || sample.rttMs <= best.rttMs) best = sample;
    }
    return best === null ? null : { rttMs: best.rttMs, offsetMs: best.offsetMs };
  }

  reset(): void {
    this.#samples = [];
  }
}
