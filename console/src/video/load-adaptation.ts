import type { Origin } from './strip';

// A slice is late if it is shown more than this after the earliest time at which it could have
// arrived. A fast enough computer needs half of it, including one frame at 60 Hz.
const LATE_MS = 60;
// Time over which late slices are counted. A span is late if most of its slices are.
const SPAN_MS = 300;
// The first second does not count: decoders are slow in it on every computer. Fewer pictures help
// them.
const BEGIN_MS = 1_000;
const BEGIN_INTERVAL = 2;
// Successive late spans after which fewer pictures are requested. A single one may be the end of an
// outage, when all delayed slices arrive at once.
const LATE_SPANS_MAX = 2;
// A span that is late within this time after a trial started is due to the trial.
const TRIAL_BEGIN_MS = 1_500;
// Longest period between requested pictures: below ten pictures a second nobody drives well,
// however fresh they are. 5 ms of tolerance for clocks.
const PERIOD_MAX_MS = 105;
// Largest picture interval that the video feedback message can request.
const INTERVAL_MAX = 8;
// Shortest and longest time without a late span before a trial.
const CALM_MIN_MS = 10_000;
const CALM_MAX_MS = 300_000;
// A trial has failed if fewer pictures are requested within this time after it started.
const TRIAL_MS = 10_000;

/**
 * Frame decimation: requests every n-th picture, so that this computer keeps up.
 *
 * It begins with every second picture and tries all of them after one second. When more than half
 * of the slices are late for 0.6 s, or for 0.3 s at the start of a trial, n grows by one, at most
 * to 8 and only while about ten pictures per second remain. After ten seconds without a late span,
 * a trial requests n - 1. Each failed trial doubles the time before the next.
 */
export class LoadAdaptation {
  #pictureInterval = BEGIN_INTERVAL;
  /** True during the first second. */
  #begins = true;
  /** Newest slice of the topmost strip. */
  #newest: Origin | null = null;
  /**
   * Interval between pictures of the camera, including those that were not requested; `null` if
   * unknown.
   */
  #periodMs: number | null = null;
  /** Late slices of the current span. */
  #late = 0;
  /** Other slices of the current span. */
  #inTime = 0;
  #spanFromMs: number | null = null;
  #lateSpans = 0;
  #calmSinceMs = 0;
  #triedAtMs = -Infinity;
  #trialBeginsUntilMs = -Infinity;
  #calmMs = CALM_MIN_MS;

  get pictureInterval(): number {
    return this.#pictureInterval;
  }

  /**
   * Handles a slice that was shown `tookMs` after the earliest time at which it could have arrived.
   */
  add(origin: Origin, tookMs: number, nowMs: number): void {
    if (origin.strip === 0) this.#watch(origin);
    if (this.#spanFromMs === null) {
      this.#spanFromMs = nowMs + BEGIN_MS;
      this.#calmSinceMs = nowMs;
    }
    if (nowMs < this.#spanFromMs) {
      this.#late = 0;
      return;
    }
    if (this.#begins) {
      this.#begins = false;
      this.#takeMore(nowMs);
    }
    if (tookMs > LATE_MS) this.#late += 1;
    else this.#inTime += 1;
    if (nowMs - this.#spanFromMs < SPAN_MS) return;
    if (this.#late > this.#inTime) this.#handleLateSpan(nowMs);
    else this.#handleCalmSpan(nowMs);
    this.#spanFromMs = nowMs;
    this.#late = 0;
    this.#inTime = 0;
  }

  /** Handles slices that were never shown for lack of time. */
  addLost(count: number): void {
    this.#late += count;
  }

  #watch(origin: Origin): void {
    const before = this.#newest;
    this.#newest = origin;
    if (before === null || before.capturedAtUs === 0 || origin.picture <= before.picture) return;
    this.#periodMs = (origin.capturedAtUs - before.capturedAtUs) / 1_000 / (origin.picture - before.picture);
  }

  #handleLateSpan(nowMs: number): void {
    this.#calmSinceMs = nowMs;
    this.#lateSpans += 1;
    const isTrial = nowMs < this.#trialBeginsUntilMs;
    if (!isTrial && this.#lateSpans < LATE_SPANS_MAX) return;
    this.#lateSpans = 0;
    this.#trialBeginsUntilMs = -Infinity;
    if (this.#periodMs === null || this.#periodMs * (this.#pictureInterval + 1) > PERIOD_MAX_MS) return;
    this.#pictureInterval = Math.min(this.#pictureInterval + 1, INTERVAL_MAX);
    const tried = nowMs - this.#triedAtMs < TRIAL_MS;
    this.#calmMs = tried ? Math.min(2 * this.#calmMs, CALM_MAX_MS) : CALM_MIN_MS;
  }

  #handleCalmSpan(nowMs: number): void {
    this.#lateSpans = 0;
    if (this.#pictureInterval === 1 || nowMs - this.#calmSinceMs < this.#calmMs) return;
    this.#calmSinceMs = nowMs;
    this.#triedAtMs = nowMs;
    this.#takeMore(nowMs);
  }

  #takeMore(nowMs: number): void {
    this.#pictureInterval -= 1;
    this.#trialBeginsUntilMs = nowMs + TRIAL_BEGIN_MS;
  }
}
