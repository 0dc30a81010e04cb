import { describe, expect, it } from 'vitest';
import {
  type Mapping, type PadState, STANDARD, type Steering, apply, contradictionOf, isSound, parseMapping, standardMapping, sticksOf, withSticks,
} from './mapping';
import { REST } from './ramp';

function padOf(axes: number[], buttons: number[] = [], mapping = ''): PadState {
  return { id: 'test pad', index: 0, mapping, axes, buttons: buttons.map((value) => ({ value, pressed: value > 0.5 })) };
}

const STEERING: Steering = { axis: 0, left: -1, centre: 0, right: 1 };
const WHEEL: Mapping = {
  steering: STEERING,
  throttle: { kind: 'axis', axis: 2, released: 1, pressed: -1 },
  brake: { kind: 'axis', axis: 3, released: -1, pressed: 1 },
  speed: null,
  sideways: null,
  reverseButton: 3,
  stopButton: 1,
  deadManButton: 4,
  deadZone: 0.1,
};
const wheelAt = (raw: number, mapping = WHEEL): number => apply(mapping, padOf([raw, 0, 1, -1])).steering;

describe('apply: steering', () => {
  it('makes left positive and right negative', () => {
    expect([wheelAt(-1), wheelAt(1)]).toEqual([1, -1]);
  });

  it('is exactly zero within the dead zone and grows from zero at its edge', () => {
    for (const raw of [0, 0.05, -0.05, 0.0999, -0.0999]) expect(Math.abs(wheelAt(raw))).toBe(0);
    expect(wheelAt(-0.11)).toBeCloseTo(0.0111, 3);
    expect(wheelAt(-0.55)).toBeCloseTo(0.5);
  });

  it('reaches full lock on both sides of an offset centre', () => {
    const skewed = { ...WHEEL, steering: { axis: 0, left: -0.6, centre: 0.2, right: 1 } };
    expect([wheelAt(-0.6, skewed), wheelAt(0.2, skewed), wheelAt(1, skewed)]).toEqual([1, 0, -1]);
  });

  it('does not exceed the lock', () => expect([wheelAt(-1.7), wheelAt(1.7)]).toEqual([1, -1]));

  it('handles a reversed axis', () => {
    const flipped = { ...WHEEL, steering: { axis: 0, left: 1, centre: 0, right: -1 } };
    expect([wheelAt(1, flipped), wheelAt(-1, flipped)]).toEqual([1, -1]);
  });

  it('is straight if the axis is missing or has no travel', () => {
    expect(apply({ ...WHEEL, steering: { ...STEERING, axis: 9 } }, padOf([1])).steering).toBe(0);
    const stuck = { ...WHEEL, steering: { axis: 0, left: 0, centre: 0, right: 0 } };
    expect([wheelAt(1, stuck), wheelAt(-1, stuck)]).toEqual([0, 0]);
  });
});

describe('apply: pedals', () => {
  const throttleAt = (raw: number): number => apply(WHEEL, padOf([0, 0, raw, -1])).throttle;

  it('maps an axis from released to pressed, in either direction', () => {
    expect([throttleAt(1), throttleAt(-1)]).toEqual([0, 1]);
    expect(throttleAt(0)).toBeCloseTo(0.5);
    expect(apply(WHEEL, padOf([0, 0, 1, 1])).brake).toBe(1);
    expect(apply(WHEEL, padOf([0, 0, 1, -1])).brake).toBe(0);
  });

  it('is fully released and fully pressed slightly before the ends', () => {
    expect([throttleAt(0.93), throttleAt(-0.93)]).toEqual([0, 1]);
  });

  it('stays between 0 and 1 beyond the ends', () => expect([throttleAt(1.5), throttleAt(-1.5)]).toEqual([0, 1]));

  it('reads a trigger button', () => {
    const mapping: Mapping = { ...WHEEL, throttle: { kind: 'button', button: 1 } };
    expect([0, 0.5, 1].map((value) => apply(mapping, padOf([0], [0, value])).throttle)).toEqual([0, 0.5, 1]);
  });

  it('is released if its axis or button is missing or has no travel', () => {
    expect(apply(WHEEL, padOf([0]))).toEqual(REST);
    expect(apply({ ...WHEEL, throttle: { kind: 'button', button: 9 } }, padOf([0])).throttle).toBe(0);
    expect(apply({ ...WHEEL, throttle: { kind: 'axis', axis: 0, released: 1, pressed: 1 } }, padOf([1])).throttle).toBe(0);
  });
});

describe('apply: levers', () => {
  const ROBOT: Mapping = { ...WHEEL, throttle: null, brake: null, speed: { axis: 1, forward: -1, centre: 0, back: 1 }, sideways: { axis: 2, left: -1, centre: 0, right: 1 } };

  it('makes forward and left positive, with the dead zone of the steering', () => {
    const at = (y: number, x: number) => apply(ROBOT, padOf([0, y, x]));
    expect(at(-1, -1)).toEqual({ ...REST, speed: 1, sideways: 1 });
    expect(at(1, 1)).toEqual({ ...REST, speed: -1, sideways: -1 });
    expect(at(-0.05, 0.05)).toEqual(REST);
    expect(at(-0.55, 0).speed).toBeCloseTo(0.5);
  });

  it('names a lever that shares its axis or has both ends on one side', () => {
    expect(contradictionOf(ROBOT)).toBeNull();
    expect(contradictionOf({ ...ROBOT, sideways: { ...STEERING, axis: 0 } })).toMatch(/sideways lever uses the steering/);
    expect(contradictionOf({ ...ROBOT, speed: { axis: 1, forward: 0.5, centre: 0, back: 1 } })).toMatch(/^Forward and back/);
    expect(contradictionOf({ ...ROBOT, throttle: { kind: 'axis', axis: 1, released: 0, pressed: 1 } })).toMatch(/uses the speed lever/);
  });

  it('are unsound without numbers', () => {
    expect([isSound(ROBOT, padOf([0, 0, 0])), isSound(ROBOT, padOf([0, NaN, 0])), isSound(ROBOT, padOf([0, 0]))]).toEqual([true, false, false]);
  });
});

describe('a standard pad', () => {
  const pushed = (mapping: Mapping, ...axes: number[]) => apply(mapping, padOf(axes, Array(8).fill(0)));

  it('drives and turns a differential machine by one stick, or turns it by the other', () => {
    const robot = standardMapping('differential');
    expect(pushed(robot, -1, -1, 1, 1)).toEqual({ ...REST, speed: 1, steering: 1 });
    const both = withSticks(robot, 'both');
    expect(pushed(both, -1, -1, 1, 1)).toEqual({ ...REST, speed: 1, steering: -1 });
    expect([robot, both, withSticks(both, 'left')].map(sticksOf)).toEqual(['left', 'both', 'left']);
  });

  it('moves an omnidirectional machine to all sides by the left stick and turns it by the right one', () => {
    expect(pushed(standardMapping('omni'), 1, 1, -1, 0)).toEqual({ ...REST, speed: -1, sideways: -1, steering: 1 });
  });
});

describe('a part that the device does not have', () => {
  it('is at rest, and sound', () => {
    const pedals = { ...WHEEL, steering: null };
    expect(apply(pedals, padOf([1, 0, -1, 1]))).toEqual({ ...REST, throttle: 1, brake: 1 });
    expect(isSound({ ...WHEEL, throttle: null, brake: null }, padOf([0.5]))).toBe(true);
  });
});

describe('isSound', () => {
  it('rejects an axis or button that is missing or has no number', () => {
    expect(isSound(WHEEL, padOf([0, 0, 1, -1]))).toBe(true);
    expect(isSound(WHEEL, padOf([0, 0, 1]))).toBe(false);
    for (const value of [NaN, Infinity, -Infinity]) expect(isSound(WHEEL, padOf([value, 0, 1, -1]))).toBe(false);
    expect(isSound(STANDARD, padOf([0], [0, 0, 0, 0, 0, 0, 0]))).toBe(false);
  });
});

describe('contradictionOf', () => {
  const pedal = (axis: number, released: number, pressed: number) => ({ kind: 'axis', axis, released, pressed }) as const;

  it.each<[string, Partial<Mapping>]>([
    ['both pedals on the same side of one axis', { brake: pedal(2, 1, -1) }],
    ['both pedals on one axis, the brake the wrong way round', { brake: pedal(2, -1, 1) }],
    ['both pedals on one button', { throttle: { kind: 'button', button: 2 }, brake: { kind: 'button', button: 2 } }],
    ['a pedal on the steering\'s axis', { brake: pedal(0, 0, 1) }],
    ['a pedal without travel', { throttle: pedal(2, 1, 0.9) }],
    ['left and right on the same side', { steering: { axis: 0, left: -1, centre: 0, right: -0.5 } }],
    ['nothing at all', { steering: null, throttle: null, brake: null }],
  ])('names %s', (_, part) => expect(contradictionOf({ ...WHEEL, ...part })).not.toBeNull());

  it('allows two sides of one axis that rests between them', () => {
    expect(contradictionOf({ ...WHEEL, throttle: pedal(1, 0, -1), brake: pedal(1, 0, 1) })).toBeNull();
    expect(contradictionOf(WHEEL)).toBeNull();
  });
});

describe('parseMapping', () => {
  it('returns what was stored', () => {
    const button: Mapping = { ...WHEEL, brake: { kind: 'button', button: 6 } };
    for (const mapping of [WHEEL, button, standardMapping('omni')]) expect(parseMapping(JSON.stringify(mapping))).toEqual(mapping);
  });

  it('reads a mapping without levers, as earlier pages stored it', () => {
    const { speed, sideways, ...earlier } = WHEEL;
    expect([speed, sideways]).toEqual([null, null]);
    expect(parseMapping(JSON.stringify(earlier))).toEqual(WHEEL);
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['a number', 5],
    ['nothing in it', {}],
    ['one that contradicts itself', { ...WHEEL, brake: WHEEL.throttle }],
    ['no centre', { ...WHEEL, steering: { axis: 0, left: -1, right: 1 } }],
    ['a wheel end that is text', { ...WHEEL, steering: { ...STEERING, left: '-1' } }],
    ['a pedal of unknown kind', { ...WHEEL, throttle: { kind: 'foot', axis: 1 } }],
    ['a pedal without its button', { ...WHEEL, brake: { kind: 'button' } }],
    ['a speed lever without its back', { ...WHEEL, speed: { axis: 1, forward: -1, centre: 0 } }],
    ['no word of a pedal', { ...WHEEL, brake: undefined }],
    ['no stop button', { ...WHEEL, stopButton: undefined }],
    ['a negative dead zone', { ...WHEEL, deadZone: -0.1 }],
    ['a dead zone beyond 0.3', { ...WHEEL, deadZone: 0.31 }],
  ])('refuses %s', (_, stored) => expect(parseMapping(JSON.stringify(stored))).toBeNull());

  it('rejects invalid JSON', () => {
    expect([parseMapping(''), parseMapping('{"steering":')]).toEqual([null, null]);
  });
});
