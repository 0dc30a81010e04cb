import { describe, expect, it } from 'vitest';
import { Gear } from '../message/gear';
import { type Bounds, STILL, type Twist } from '../twist';
import { type Keys, NO_KEYS, type Position, REST } from './ramp';
import { type TwistDevices, TwistSeat, combined, opposes } from './twist-seat';

const BOUNDS: Bounds = { forward: 1.5, back: 0.5, sideways: 0.4, yawRate: 1 };
const TICK_S = 0.02;

function drive(seat: TwistSeat, keys: Partial<Keys>, seconds: number, change: Partial<TwistDevices> = {}): Twist {
  let twist = STILL;
  for (let tick = 0; tick < Math.round(seconds / TICK_S); tick += 1) {
    twist = seat.next({
      keys: { ...NO_KEYS, ...keys }, others: [], bounds: BOUNDS, speedMode: 'stick', driven: true, speedMps: 0, gear: Gear.Drive, ...change,
    }, TICK_S);
  }
  return twist;
}
const at = (part: Partial<Position>): Partial<TwistDevices> => ({ others: [null, { ...REST, ...part }] });

describe('a twist by keys', () => {
  it('is the bound of each part once they are held, and exactly 0 after their release', () => {
    const seat = new TwistSeat();
    expect(drive(seat, { forward: true, left: true, sidewaysLeft: true }, 1)).toEqual({ forward: 1.5, sideways: 0.4, yawRate: 1 });
    expect(drive(seat, {}, 0.3)).toEqual(STILL);
    expect(drive(seat, { back: true, right: true, sidewaysRight: true }, 1)).toEqual({ forward: -0.5, sideways: -0.4, yawRate: -1 });
    expect(drive(seat, {}, 0.3)).toEqual(STILL);
  });

  it('turns on the spot by a turn key alone', () => {
    expect(drive(new TwistSeat(), { left: true }, 1)).toEqual({ forward: 0, sideways: 0, yawRate: 1 });
  });

  it('turns less at speed', () => {
    expect(drive(new TwistSeat(), { left: true }, 1, { speedMps: 1.5 }).yawRate).toBe(0.5);
    expect(drive(new TwistSeat(), { left: true }, 1, { speedMps: null }).yawRate).toBe(0.5);
  });

  it('is 0 at once while Space is held, and grows from 0 after it', () => {
    const seat = new TwistSeat();
    drive(seat, { forward: true, left: true }, 1);
    expect(drive(seat, { forward: true, left: true, hardBrake: true }, TICK_S)).toEqual(STILL);
    const first = drive(seat, { forward: true }, TICK_S);
    expect([first.forward, first.yawRate]).toEqual([expect.closeTo(0.048), 0]);
  });

  it('is 0 without bounds', () => {
    const none = { forward: 0, back: 0, sideways: 0, yawRate: 0 };
    expect(drive(new TwistSeat(), { forward: true, left: true, sidewaysLeft: true }, 1, { bounds: none })).toEqual(STILL);
  });
});

describe('a twist by devices', () => {
  it('follows sticks, and pedals in the direction of the gear', () => {
    expect(drive(new TwistSeat(), {}, TICK_S, at({ speed: 0.5, steering: -0.5, sideways: 1 }))).toEqual({ forward: 0.75, sideways: 0.4, yawRate: -0.5 });
    expect(drive(new TwistSeat(), {}, TICK_S, at({ throttle: 0.5 })).forward).toBe(0.75);
    expect(drive(new TwistSeat(), {}, TICK_S, { ...at({ throttle: 1 }), gear: Gear.Reverse }).forward).toBe(-0.5);
  });

  it('is 0 under a brake, not under a foot that rests on it', () => {
    expect(drive(new TwistSeat(), { left: true }, 1, at({ speed: 1, steering: 1, brake: 0.2 }))).toEqual(STILL);
    expect(drive(new TwistSeat(), {}, TICK_S, at({ speed: 1, brake: 0.1 })).forward).toBe(1.5);
  });

  it('is 0 in a part in which two contradict each other, else the furthest', () => {
    expect(drive(new TwistSeat(), { back: true, left: true }, 1, at({ speed: 1, steering: 0.2 }))).toEqual({ forward: 0, sideways: 0, yawRate: 1 });
    expect([combined([]), combined([0.2, 0.7]), combined([-0.2, -0.7, 0]), combined([0.1, -1])]).toEqual([0, 0.7, -0.7, 0]);
  });

  it('contradicts keys of the other direction', () => {
    const lever = { ...REST, speed: 1, steering: -0.5, sideways: 0.5 };
    const keys = (part: Partial<Keys>): Keys => ({ ...NO_KEYS, ...part });
    expect([{ back: true }, { left: true }, { sidewaysRight: true }].map((part) => opposes(keys(part), lever))).toEqual([true, true, true]);
    expect(opposes(keys({ forward: true, right: true, sidewaysLeft: true }), lever)).toBe(false);
    expect(opposes(keys({ back: true, left: true }), REST)).toBe(false);
  });
});

describe('a held speed', () => {
  const held = { speedMode: 'set point' } as const;

  /** Returns a seat that holds 0.75 m/s. */
  function cruising(): TwistSeat {
    const seat = new TwistSeat();
    drive(seat, {}, 0.1, held);
    drive(seat, { forward: true }, 1, held);
    expect(drive(seat, {}, 5, held)).toEqual({ forward: expect.closeTo(0.75), sideways: 0, yawRate: 0 });
    return seat;
  }

  it('stays without a control, while turn and sideways motion follow theirs', () => {
    const seat = cruising();
    expect(drive(seat, { left: true }, 1, held)).toMatchObject({ forward: expect.closeTo(0.75), yawRate: 1 });
    expect(drive(seat, {}, 1, held)).toMatchObject({ forward: expect.closeTo(0.75), yawRate: 0 });
    expect(drive(seat, {}, 0.4, { ...held, ...at({ speed: -0.5 }) }).forward).toBeCloseTo(0.6);
  });

  it.each<[string, Partial<Keys>, Partial<TwistDevices>]>([
    ['Space', { hardBrake: true }, {}],
    ['a brake pedal', {}, at({ brake: 0.5 })],
    ['a machine that this console may not drive', {}, { driven: false }],
    ['the other speed mode', {}, { speedMode: 'stick' }],
  ])('is ended by %s', (_, keys, change) => {
    const seat = cruising();
    expect(drive(seat, keys, TICK_S, { ...held, ...change })).toEqual(STILL);
    expect(seat.setPointMps).toBe(0);
    expect(drive(seat, {}, 1, held)).toEqual(STILL);
  });

  it('is ended by a rest, and a control that is still held must be released first', () => {
    const seat = cruising();
    seat.rest();
    expect(drive(seat, { forward: true }, 1, held)).toEqual(STILL);
    drive(seat, {}, 0.1, held);
    expect(drive(seat, { forward: true }, 0.2, held).forward).toBeGreaterThan(0.1);
  });
});
