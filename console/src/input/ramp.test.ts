import { describe, expect, it } from 'vitest';
import { type Keys, type Position, REST, approach, ramp, steeringLimit } from './ramp';

const NONE: Keys = { left: false, right: false, throttle: false, brake: false, hardBrake: false };
const TICK_S = 0.02;

function hold(keys: Partial<Keys>, seconds: number, from: Position = REST, speedMps: number | null = 0): Position {
  let position = from;
  for (let tick = 0; tick < Math.round(seconds / TICK_S); tick += 1) {
    position = ramp(position, { ...NONE, ...keys }, speedMps, TICK_S);
  }
  return position;
}

describe('approach', () => {
  it('steps towards the target from either side without overshoot', () => {
    expect([approach(0, 1, 0.3), approach(0, 1, 3), approach(1, 0, 0.25), approach(1, 0, 3)]).toEqual([0.3, 1, 0.75, 0]);
  });
});

describe('ramp', () => {
  it('stays at rest without keys', () => expect(hold({}, 1)).toEqual(REST));

  it('steers left to positive, right to negative, full in half a second', () => {
    expect(hold({ left: true }, 0.26).steering).toBeCloseTo(0.52);
    expect(hold({ left: true }, 0.5).steering).toBeCloseTo(1);
    expect(hold({ right: true }, 0.5).steering).toBeCloseTo(-1);
    expect(hold({ right: true }, 5).steering).toBe(-1);
  });

  it('steers straight with left and right together', () => {
    expect(hold({ left: true, right: true }, 1).steering).toBe(0);
  });

  it('centres faster than it steers in, and stops at the centre', () => {
    const turned = hold({ left: true }, 1);
    expect(hold({}, 0.2, turned).steering).toBeCloseTo(0.3);
    expect(hold({}, 0.3, turned).steering).toBe(0);
  });

  it('goes through the centre to the other side', () => {
    const turned = hold({ left: true }, 1);
    expect(hold({ right: true }, 1.5, turned).steering).toBe(-1);
  });

  it('stays within its bounds for any keys', () => {
    let position = REST;
    for (let tick = 0; tick < 2_000; tick += 1) {
      const bit = (n: number): boolean => ((tick * 2_654_435_761) >>> (20 + n)) % 2 === 1;
      position = ramp(position, {
        left: bit(0), right: bit(1), throttle: bit(2), brake: bit(3), hardBrake: bit(4),
      }, tick % 40, 0.05);
      expect(Math.abs(position.steering)).toBeLessThanOrEqual(1);
      for (const pedal of [position.throttle, position.brake]) {
        expect(pedal).toBeGreaterThanOrEqual(0);
        expect(pedal).toBeLessThanOrEqual(1);
      }
    }
  });

  it('presses the throttle slowly and releases it quickly', () => {
    const pressed = hold({ throttle: true }, 0.5);
    expect(pressed.throttle).toBeCloseTo(0.8);
    expect(hold({}, 0.2, pressed).throttle).toBe(0);
  });

  it('brakes fully in a third of a second, hard in a twelfth', () => {
    expect(hold({ brake: true }, 0.34).brake).toBe(1);
    expect(hold({ brake: true }, 0.1).brake).toBeCloseTo(0.3);
    expect(hold({ hardBrake: true }, 0.1).brake).toBe(1);
  });

  it.each(['brake', 'hardBrake'] as const)('lets go of the throttle while %s is held', (key) => {
    const pressed = hold({ throttle: true }, 1);
    expect(hold({ throttle: true, [key]: true }, 0.22, pressed).throttle).toBe(0);
  });

  it('does not move in zero time', () => {
    expect(ramp(REST, { ...NONE, left: true, throttle: true }, 0, 0)).toEqual(REST);
  });
});

describe('steering by speed', () => {
  it('allows full lock at standstill, half at 14 m/s, less beyond', () => {
    expect([steeringLimit(0), steeringLimit(14)]).toEqual([1, 0.5]);
    expect(steeringLimit(28)).toBeCloseTo(0.2);
  });

  it('is the same in both directions', () => expect(steeringLimit(-7)).toBe(steeringLimit(7)));

  it('limits the keys', () => expect(hold({ right: true }, 3, REST, 14).steering).toBeCloseTo(-0.5));

  it('reduces the steering when the car speeds up under a held key', () => {
    const slow = hold({ left: true }, 1);
    expect(hold({ left: true }, 1, slow, 14).steering).toBeCloseTo(0.5);
  });

  it('allows half the lock at an unknown speed, and keeps a larger present angle', () => {
    expect(hold({ left: true }, 1, REST, null).steering).toBe(0.5);
    const turned = hold({ left: true }, 1);
    expect(hold({ left: true }, 1, turned, null).steering).toBe(1);
    expect(hold({ right: true }, 2, turned, null).steering).toBe(-0.5);
  });
});
