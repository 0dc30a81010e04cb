import { describe, expect, it } from 'vitest';
import { OperatorClock, nowMs } from './clock';

describe('OperatorClock', () => {
  it('has no estimate before the first pong', () => expect(new OperatorClock().best()).toBeNull());

  it('takes the operator\'s answer as the middle of the round trip', () => {
    const clock = new OperatorClock();
    clock.observe(1_000, 5_010, 1_020);
    expect(clock.best()).toEqual({ rttMs: 20, offsetMs: 4_000 });
  });

  it('uses the fastest round trip, not the newest', () => {
    const clock = new OperatorClock();
    clock.observe(0, 4_000 + 1, 2);
    clock.observe(1_000, 5_000 + 290, 1_300);
    expect(clock.best()).toEqual({ rttMs: 2, offsetMs: 4_000 });
  });

  it('uses the newer of two equally fast round trips', () => {
    const clock = new OperatorClock();
    clock.observe(0, 101, 2);
    clock.observe(1_000, 1_201, 1_002);
    expect(clock.best()).toEqual({ rttMs: 2, offsetMs: 200 });
  });

  it('forgets a round trip after thirty seconds', () => {
    const clock = new OperatorClock();
    clock.observe(0, 101, 2);
    clock.observe(29_000, 29_200 + 10, 29_020);
    expect(clock.best()?.offsetMs).toBe(100);
    clock.observe(29_990, 30_190 + 15, 30_020);
    expect(clock.best()).toEqual({ rttMs: 20, offsetMs: 200 });
  });

  it('is wrong by at most half the round trip, however asymmetric the path', () => {
    for (const there of [0, 10, 40, 80]) {
      const clock = new OperatorClock();
      clock.observe(0, 7_000 + there, 80);
      expect(Math.abs(clock.best()!.offsetMs - 7_000)).toBeLessThanOrEqual(40);
    }
  });

  it('ignores an answer that is older than its question', () => {
    const clock = new OperatorClock();
    clock.observe(100, 100, 99);
    expect(clock.best()).toBeNull();
  });

  it('starts over after a reset', () => {
    const clock = new OperatorClock();
    clock.observe(0, 1, 2);
    clock.reset();
    expect(clock.best()).toBeNull();
  });
});

describe('nowMs', () => {
  it('is Unix time and never steps back', () => {
    const before = nowMs();
    expect(Math.abs(before - Date.now())).toBeLessThan(60_000);
    expect(nowMs()).toBeGreaterThanOrEqual(before);
  });
});
