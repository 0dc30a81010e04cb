/** Milliseconds since 1970 that never step back; the same in page and worker to within a millisecond. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

interface Sample {
  takenAtMs: number;
  rttMs: number;
  offsetMs: number;
}

const WINDOW_MS = 30_000; // Long enough for a quiet round trip, short enough for 50 ppm of drift to stay under 2 ms.

/** The operator's clock seen from here, by the quickest round trip of the last half minute. */
export class OperatorClock {
  #samples: Sample[] = [];

  observe(askedAtMs: number, operatorMs: number, receivedAtMs: number): void {
    const rttMs = receivedAtMs - askedAtMs;
    if (rttMs < 0) return;
    this.#samples = this.#samples.filter((sample) => receivedAtMs - sample.takenAtMs < WINDOW_MS);
    this.#samples.push({ takenAtMs: receivedAtMs, rttMs, offsetMs: operatorMs - (askedAtMs + rttMs / 2) });
  }

  /** The estimate is off by half the round trip at most. */
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
