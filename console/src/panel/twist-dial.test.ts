import { describe, expect, it } from 'vitest';
import { STILL } from '../twist';
import { place } from './twist-dial';

const BOUNDS = { forward: 2, back: 1, sideways: 0.5, yawRate: 1 };

describe('the place of a motion', () => {
  it('is up and left for forward and left, and a left turn goes against the clock', () => {
    expect(place({ forward: 1, sideways: 0.5, yawRate: 0.5 }, BOUNDS)).toEqual({ degrees: -70, x: -30, y: -15 });
    expect(place({ forward: -1, sideways: -0.25, yawRate: -1 }, BOUNDS)).toEqual({ degrees: 140, x: 15, y: 30 });
  });

  it('stays within the dial beyond a bound, and in the middle without bounds', () => {
    expect(place({ forward: 9, sideways: 9, yawRate: -9 }, BOUNDS)).toEqual({ degrees: 140, x: -30, y: -30 });
    expect(place({ forward: 1, sideways: 1, yawRate: 1 }, { forward: 0, back: 0, sideways: 0, yawRate: 0 })).toEqual({ degrees: 0, x: 0, y: 0 });
    expect([place(STILL, BOUNDS), place({ forward: 1, sideways: 0, yawRate: 1 }, null)]).toEqual(Array(2).fill({ degrees: 0, x: 0, y: 0 }));
  });
});
