import { beforeEach, describe, expect, it } from 'vitest';
import { LoadAdaptation } from './load-adaptation';

const PERIOD_MS = 1_000 / 60;
let load: LoadAdaptation;
let nowMs: number;
let picture: number;

beforeEach(() => { [load, nowMs, picture] = [new LoadAdaptation(), 0, 0]; });

/**
 * Adds slices of six strips for this long, each shown `tookMs(pictureInterval)` after its earliest
 * time. Returns the picture interval at the end.
 */
function run(seconds: number, tookMs: (pictureInterval: number) => number, periodMs = PERIOD_MS): number {
  const untilMs = nowMs + seconds * 1_000;
  while (nowMs < untilMs) {
    picture += load.pictureInterval;
    nowMs += periodMs * load.pictureInterval;
    const origin = { picture, capturedAtUs: nowMs * 1_000, skip: false, clean: true, tick: 0, encodedAfterUs: 0, handedOnAfterUs: 0, fedAtMs: 0 };
    for (let strip = 0; strip < 6; strip += 1) load.add({ ...origin, strip }, tookMs(load.pictureInterval), nowMs);
  }
  return load.pictureInterval;
}

const keepsUpWithHalf = (pictureInterval: number) => (pictureInterval >= 2 ? 8 : 90);

describe('load adaptation', () => {
  it('requests every second picture while decoders start, and then all', () => {
    expect(run(0.9, () => 400)).toBe(2);
    expect(run(0.2, () => 25)).toBe(1);
    expect(run(20, () => 25)).toBe(1);
  });

  it('returns to fewer at once if all are too many', () => {
    expect(run(1.1, keepsUpWithHalf)).toBe(1);
    expect(run(0.3, keepsUpWithHalf)).toBe(2);
  });

  it('requests every picture while slices are shown in time', () => {
    expect(run(60, () => 25)).toBe(1);
  });

  it('omits as many as the computer needs, within seconds', () => {
    expect(run(2, keepsUpWithHalf)).toBe(2);
    expect(run(5, (pictureInterval) => (pictureInterval >= 4 ? 8 : 90))).toBe(4);
  });

  it('counts dropped slices as late', () => {
    run(1, () => 8);
    run(0.9, () => { load.addLost(2); return 8; });
    expect(load.pictureInterval).toBe(2);
  });

  it('ignores a burst of slices that come late after an outage', () => {
    // The outage may end in any phase of a span, so its slices may make up most of two spans.
    for (let phase = 0; phase < 0.3; phase += 0.03) {
      load = new LoadAdaptation();
      run(3 + phase, () => 5);
      run(0.3, () => 300);
      expect(run(3, () => 5)).toBe(1);
    }
  });

  it('leaves ten pictures a second, however late they are', () => {
    expect(run(60, () => 500)).toBe(6);
    load = new LoadAdaptation();
    expect(run(60, () => 500, 1_000 / 30)).toBe(3);
  });

  it('tries one more after a while, less often after each failure', () => {
    run(5, keepsUpWithHalf);
    const raised: number[] = [];
    const takes = (pictureInterval: number) => {
      if (pictureInterval === 1 && nowMs - (raised.at(-1) ?? -Infinity) > 3_000) raised.push(nowMs);
      return keepsUpWithHalf(pictureInterval);
    };
    run(1_300, takes);
    const waits = raised.slice(1).map((atMs, at) => Math.round((atMs - raised[at]!) / 1_000));
    expect(waits).toEqual([20, 40, 81, 161, 300, 300, 300]);
  });

  it('returns to every picture when the computer has time again', () => {
    run(10, () => 90);
    expect(load.pictureInterval).toBe(6);
    expect(run(60, () => 8)).toBe(1);
  });
});
