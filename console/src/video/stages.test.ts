import { describe, expect, it } from 'vitest';
import { Stages } from './stages';

const ORIGIN = {
  strip: 0, picture: 1, skip: false, clean: true, tick: 0, capturedAtUs: 1_000_000, encodedAfterUs: 3_500, handedOnAfterUs: 23_500, fedAtMs: 525,
};

describe('stages', () => {
  it('add up to the time from capture to canvas', () => {
    const stages = new Stages(1_000, 10);
    // The operator's clock is 500 ms ahead of the page's.
    stages.add(ORIGIN, 500, 526, 528.5);
    const view = stages.view(530);
    expect(view.map(({ name, p50 }) => [name, p50])).toEqual([
      ['camera-and-encoder', 3.5], ['network', 20], ['bridge', 1.5], ['decoder', 1], ['canvas', 2.5]]);
    expect(view.reduce((sum, { p99 }) => sum + p99, 0)).toBe(528.5 + 500 - 1_000);
  });

  it('are computed once a second, and empty before anything was drawn', () => {
    const stages = new Stages(1_000, 10);
    expect(stages.view(0)).toEqual([]);
    stages.add(ORIGIN, 500, 526, 528.5);
    expect(stages.view(999)).toEqual([]);
    expect(stages.view(1_000)).toHaveLength(5);
  });
});
