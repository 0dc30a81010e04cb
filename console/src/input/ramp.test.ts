import { describe, expect, it } from 'vitest';
import { type Keys, NO_KEYS, type Position, REST, approach, ramp, rampLevers, steeringLimit } from './ramp';

const TICK_S = 0.02;

function hold(keys: Partial<Keys>, seconds: number, from: Position = REST, speedMps: number | null = 0): Position {
  let position = from;
  for (let tick = 0; tick < Math.round(seconds / TICK_S); tick += 1) {
    position = ramp(position, { ...NO_KEYS, ...keys }, speedMps, TICK_S);
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
        ...NO_KEYS, left: bit(0), right: bit(1), forward: bit(2), back: bit(3), hardBrake: bit(4),
      }, tick % 40, 0.05);
      expect(Math.abs(position.steering)).toBeLessThanOrEqual(1);
      for (const pedal of [position.throttle, position.brake]) {
        expect(pedal).toBeGreaterThanOrEqual(0);
        expect(pedal).toBeLessThanOrEqual(1);
      }
    }
  });

  it('presses the throttle slowly and releases it quickly', () => {
    const pressed = hold({ forward: true }, 0.5);
    expect(pressed.throttle).toBeCloseTo(0.8);
    expect(hold({}, 0.2, pressed).throttle).toBe(0);
  });

  it('brakes fully in a third of a second, hard in a twelfth', () => {
    expect(hold({ back: true }, 0.34).brake).toBe(1);
    expect(hold({ back: true }, 0.1).brake).toBeCloseTo(0.3);
    expect(hold({ hardBrake: true }, 0.1).brake).toBe(1);
  });

  it.each(['back', 'hardBrake'] as const)('lets go of the throttle while %s is held', (key) => {
    const pressed = hold({ forward: true }, 1);
    expect(hold({ forward: true, [key]: true }, 0.22, pressed).throttle).toBe(0);
  });

  it('does not move in zero time', () => {
    expect(ramp(REST, { ...NO_KEYS, left: true, forward: true }, 0, 0)).toEqual(REST);
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

describe('levers by keys', () => {
  const press = (keys: Partial<Keys>, seconds: number, from: Position = REST, pace: number | null = 0): Position => {
    let position = from;
    for (let tick = 0; tick < Math.round(seconds / TICK_S); tick += 1) position = rampLevers(position, { ...NO_KEYS, ...keys }, pace, TICK_S);
    return position;
  };

  it('grow to the end and return to exactly 0', () => {
    const [full, half] = [press({ forward: true, left: true, sidewaysRight: true }, 1), press({ back: true, right: true }, 0.3)];
    expect(full).toEqual({ ...REST, speed: 1, steering: 1, sideways: -1 });
    expect([half.speed, half.steering]).toEqual([expect.closeTo(-0.48), expect.closeTo(-0.6)]);
    for (const held of [full, half]) expect(press({}, 0.3, held)).toEqual(REST);
  });

  it('are at rest with opposite keys, and have no pedals', () => {
    expect(press({ forward: true, back: true, left: true, right: true, sidewaysLeft: true, sidewaysRight: true, hardBrake: true }, 1)).toEqual(REST);
  });

  it('turn by half at the bound, also at an unknown speed, and keep a larger turn then', () => {
    expect([press({ left: true }, 1, REST, 1).steering, press({ left: true }, 1, REST, -1).steering]).toEqual([0.5, 0.5]);
    expect(press({ right: true }, 1, REST, null).steering).toBe(-0.5);
    expect(press({ left: true }, 1, { ...REST, steering: 0.9 }, null).steering).toBe(0.9);
  });
});
