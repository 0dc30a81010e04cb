import { LatencyWindow } from '../latency';
import type { StageView } from '../report';
import { type Origin, handedOnAtMs } from './strip';

// By eye, and sorting thousands of samples five times over has its price.
const VIEW_EVERY_MS = 1_000;

const NAMES = ['camera-and-encoder', 'network', 'bridge', 'decoder', 'canvas'] as const;

/**
 * Where the time from capture to canvas goes: to the end of encoding, over the links until the operator's
 * process hands the slice on, to the worker's decoder, through it, and onto the canvas. The last three are
 * the browser's.
 */
export class Stages {
  readonly #windows: readonly LatencyWindow[];
  #view: StageView[] = [];
  #viewedAtMs = -Infinity;

  constructor(windowMs: number, countMax: number) {
    this.#windows = NAMES.map(() => new LatencyWindow(windowMs, countMax));
  }

  /** `offsetMs`: the operator's clock less the page's, by which all `...AtMs` are. */
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
