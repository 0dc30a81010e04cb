import { describe, expect, it } from 'vitest';
import type { Bounds } from '../twist';
import { SetPoint, SpeedSetting } from './set-point';

const BOUNDS: Bounds = { forward: 2, back: 1, sideways: 0, yawRate: 1 };
const TICK_S = 0.02;

/** Holds the control in a position, and returns the speed after that. */
function hold(setPoint: SetPoint, lever: number, seconds: number, bounds = BOUNDS): number {
  let mps = 0;
  for (let tick = 0; tick < Math.round(seconds / TICK_S); tick += 1) mps = setPoint.next(lever, bounds, TICK_S);
  return mps;
}

/** Returns a set point of 1 m/s, with the control released. */
function held(): SetPoint {
  const setPoint = new SetPoint();
  hold(setPoint, 0, 0.1);
  hold(setPoint, 1, 1);
  hold(setPoint, 0, 0.1);
  return setPoint;
}

describe('a set point', () => {
  it('changes by half of the bound in a second, up to the bound, and stays', () => {
    const setPoint = held();
    expect(hold(setPoint, 0, 10)).toBeCloseTo(1);
    expect(hold(setPoint, 0.5, 0.4)).toBeCloseTo(1.2);
    expect(hold(setPoint, 1, 10)).toBe(2);
    expect(hold(setPoint, -1, 0.5)).toBeCloseTo(1.5);
  });

  it('stops at 0, and drives the other way only once the control was released', () => {
    const setPoint = held();
    expect(hold(setPoint, -1, 9)).toBe(0);
    hold(setPoint, 0, 0.1);
    expect(hold(setPoint, -1, 9)).toBe(-1);
    expect(hold(setPoint, 1, 9)).toBe(0);
  });

  it('is exactly 0 after it was ended, until the control was released and moved again', () => {
    const setPoint = held();
    setPoint.zero();
    expect(setPoint.mps).toBe(0);
    expect(hold(setPoint, 1, 1)).toBe(0);
    expect(hold(setPoint, 0, 1)).toBe(0);
    expect(hold(setPoint, 1, 0.1)).toBeCloseTo(0.1);
  });

  it('begins at rest with a control that is held from the start', () => {
    expect(hold(new SetPoint(), 1, 5)).toBe(0);
  });

  it('does not stay below the speed of a standing machine', () => {
    const setPoint = new SetPoint();
    hold(setPoint, 0, 0.1);
    expect(hold(setPoint, 1, 0.04)).toBeCloseTo(0.04);
    expect(hold(setPoint, 0, 0.02)).toBe(0);
  });

  it('follows bounds that fall below it, and lowers from there', () => {
    const setPoint = held();
    const low = { ...BOUNDS, forward: 0.5 };
    expect(hold(setPoint, 0, 0.1, low)).toBe(0.5);
    expect(hold(setPoint, 0, 0.1)).toBeCloseTo(1);
    expect(hold(setPoint, -1, 0.4, low)).toBeCloseTo(0.4);
    expect(hold(setPoint, 0, 0.1)).toBeCloseTo(0.4);
    expect(hold(held(), 0, 1, { forward: 0, back: 0, sideways: 0, yawRate: 0 })).toBe(0);
  });
});

describe('the speed mode', () => {
  it('is kept by the browser, and is the stick without storage or with other text', () => {
    const kept = new Map<string, string>();
    const store = { getItem: (key: string) => kept.get(key) ?? null, setItem: (key: string, value: string) => { kept.set(key, value); } };
    const setting = new SpeedSetting(store);
    expect(setting.mode).toBe('stick');
    setting.mode = 'set point';
    expect(new SpeedSetting(store).mode).toBe('set point');
    kept.set('tautline.speed', 'fast');
    expect(new SpeedSetting(store).mode).toBe('stick');
    const refusing = new SpeedSetting({ getItem: () => { throw new Error('no'); }, setItem: () => { throw new Error('no'); } });
    refusing.mode = 'set point';
    expect(refusing.mode).toBe('set point');
  });
});
