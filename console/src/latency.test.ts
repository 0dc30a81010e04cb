import { describe, expect, it } from 'vitest';
import { LatencyWindow, percentile } from './latency';

describe('percentile', () => {
  it('is the nearest rank, never a value in between', () => {
    const ascending = Array.from({ length: 100 }, (_, index) => index + 1);
    expect([0, 0.5, 0.95, 0.99, 1].map((share) => percentile(ascending, share))).toEqual([1, 50, 95, 99, 100]);
  });

  it('of one value is that value', () => {
    expect([0, 0.5, 0.99, 1].map((share) => percentile([7], share))).toEqual([7, 7, 7, 7]);
  });

  it('of few values tends to the worse', () => expect(percentile([1, 2, 3], 0.95)).toBe(3));
});

describe('LatencyWindow', () => {
  it('has no percentiles and no worst value before the first value', () => {
    const window = new LatencyWindow(1_000, 8);
    expect([window.view(0), window.worstEver]).toEqual([null, null]);
  });

  it('sorts by number, whatever the order of arrival', () => {
    const window = new LatencyWindow(1_000, 200);
    for (let value = 100; value >= 1; value -= 1) window.add(value, 0);
    expect(window.view(0)).toEqual({ p50: 50, p95: 95, p99: 99, worst: 100, count: 100 });
  });

  it('forgets what is older than the window, but not the worst ever', () => {
    const window = new LatencyWindow(1_000, 8);
    window.add(500, 0);
    window.add(10, 600);
    expect(window.view(1_000)).toMatchObject({ worst: 500, count: 2 });
    expect(window.view(1_001)).toMatchObject({ worst: 10, count: 1 });
    expect(window.view(1_601)).toBeNull();
    expect(window.worstEver).toBe(500);
  });

  it('keeps the newest values at its capacity', () => {
    const window = new LatencyWindow(1_000, 4);
    for (const value of [90, 80, 1, 2, 3, 4]) window.add(value, 0);
    expect(window.view(0)).toMatchObject({ p50: 2, worst: 4, count: 4 });
  });

  it('keeps negative values, which a wrong clock causes', () => {
    const window = new LatencyWindow(1_000, 4);
    window.add(-5, 0);
    window.add(3, 0);
    expect(window.view(0)).toMatchObject({ p50: -5, worst: 3 });
    const early = new LatencyWindow(1_000, 4);
    early.add(-5, 0);
    expect(early.worstEver).toBe(-5);
  });
});
