/** Returns monotonic milliseconds since 1970; page and worker agree to within 1 ms. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

interface Sample {
  takenAtMs: number;
  rttMs: number;
  offsetMs: number;
}

// Long enough to include a fast round trip, short enough that 50 ppm of drift stay below 2 ms.
const WINDOW_MS = 30_000;

/** The operator's clock, estimated from the fastest round trip of the last 30 s. */
export class OperatorClock {
  #samples: Sample[] = [];

  observe(askedAtMs: number, operatorMs: number, receivedAtMs: number): void {
    const rttMs = receivedAtMs - askedAtMs;
    if (rttMs < 0) return;
    this.#samples = this.#samples.filter((sample) => receivedAtMs - sample.takenAtMs < WINDOW_MS);
    this.#samples.push({ takenAtMs: receivedAtMs, rttMs, offsetMs: operatorMs - (askedAtMs + rttMs / 2) });
  }

  /** Returns the best estimate. Its error is at most half the round trip. */
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
