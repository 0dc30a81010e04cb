import type { Origin } from './strip';

// A computer that keeps up has a slice on the screen in half of this, a frame of 60 a second included.
const LATE_MS = 60;
const SPAN_MS = 300;
// While decoders begin, they are late on every computer, the less so the fewer pictures there are.
const BEGIN_MS = 1_000;
const BEGIN_INTERVAL = 2;
// One late span may be an outage's end, when all that waited comes at once.
const LATE_SPANS_MAX = 2;
// So soon after one less was tried, it is for that.
const TRIAL_BEGIN_MS = 1_500;
// With fewer than ten pictures a second nobody drives well, however fresh they are; a bit more, for clocks wobble.
const PERIOD_MAX_MS = 105;
// As the feedback has it.
const INTERVAL_MAX = 8;
const CALM_MIN_MS = 10_000;
const CALM_MAX_MS = 300_000;
// So soon after it was tried, what is late is late because of it.
const TRIAL_MS = 10_000;

/**
 * Frame decimation: every n-th picture is to be coded, so that this computer keeps up with those.
 *
 * It begins with every second one, and tries all after a second. When half of the slices are late for 0.6 s, or for 0.3 s as a trial begins, n grows by
 * one; after ten seconds without such a span, one less is tried. Each trial that fails doubles the time until the next.
 */
export class LoadAdaptation {
  #pictureInterval = BEGIN_INTERVAL;
  #begins = true;
  /** The topmost strip's newest. */
  #newest: Origin | null = null;
  /** From one picture of the camera to the next, those left out too. */
  #periodMs: number | null = null;
  #late = 0;
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

  /** A slice is on the screen, `tookMs` after it could have reached the page at the earliest. */
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

  /** So many slices were given up: it had no time for them. */
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
