import { LatencyWindow } from '../latency';
import type { StageView } from '../report';
import { type Origin, handedOnAtMs } from './strip';

// Shortest time between two updates. People read these figures, and sorting thousands of samples
// five times is expensive.
const VIEW_EVERY_MS = 1_000;

const NAMES = ['camera-and-encoder', 'network', 'bridge', 'decoder', 'canvas'] as const;

/**
 * Latency from capture to canvas by stage: encoding, the links up to the operator's process, the
 * bridge from there to the worker's decoder, decoding, and drawing. The last three depend on this
 * browser.
 */
export class Stages {
  readonly #windows: readonly LatencyWindow[];
  #view: StageView[] = [];
  #viewedAtMs = -Infinity;

  constructor(windowMs: number, countMax: number) {
    this.#windows = NAMES.map(() => new LatencyWindow(windowMs, countMax));
  }

  /**
   * Adds a drawn slice. `offsetMs` is the operator's clock minus the page's; all `...AtMs` are on
   * the page's clock.
   */
  add(origin: Origin, offsetMs: number, decodedAtMs: number, drawnAtMs: number): void {
    const spans = [
      origin.encodedAfterUs / 1000,
      (origin.handedOnAfterUs - origin.encodedAfterUs) / 1000,
      origin.fedAtMs - handedOnAtMs(origin, offsetMs),
      decodedAtMs - origin.fedAtMs,
      drawnAtMs - decodedAtMs,
    ];
    this.#windows.forEach((window, stage) => window.add(spans[stage]!, drawnAtMs));
  }

  view(nowMs: number): StageView[] {
    if (nowMs - this.#viewedAtMs >= VIEW_EVERY_MS) {
      this.#viewedAtMs = nowMs;
      this.#view = NAMES.flatMap((name, stage) => {
        const view = this.#windows[stage]!.view(nowMs);
        return view === null ? [] : [{ name, p50: view.p50, p95: view.p95, p99: view.p99 }];
      });
    }
    return this.#view;
  }
}
