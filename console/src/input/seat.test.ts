import { describe, expect, it } from 'vitest';
import { Gear } from '../message/gear';
import type { Controlled } from '../report';
import type { PadReading } from './gamepad';
import { type Keys, NO_KEYS } from './ramp';
import { type Devices, Seat } from './seat';

const PAD: PadReading = { steering: 0, throttle: 0, brake: 0, speed: 0, sideways: 0, steers: true, touched: false, deadMan: false };
const CAR: Devices = {
  keys: NO_KEYS, pad: null, touch: null, speedMps: 0, motion: 'ackermann', bounds: { forward: 0, back: 0, sideways: 0, yawRate: 0 },
  speedMode: 'stick', driven: true,
};
const TICK_S = 0.02;

function drive(seat: Seat, keys: Partial<Keys>, seconds = TICK_S, pad: PadReading | null = null): Controlled {
  let command = seat.command({ ...CAR, keys: { ...NO_KEYS, ...keys }, pad }, 0);
  for (let tick = 0; tick < Math.round(seconds / TICK_S); tick += 1) {
    command = seat.command({ ...CAR, keys: { ...NO_KEYS, ...keys }, pad }, TICK_S);
  }
  return command;
}

describe('a new seat', () => {
  it('commands rest in drive', () => {
    expect(drive(new Seat(), {})).toEqual({ steering: 0, throttle: 0, brake: 0, gear: Gear.Drive, emergencyStop: false, twist: null });
  });
});

describe('driving', () => {
  it('follows the keys', () => {
    expect(drive(new Seat(), { left: true, forward: true }, 1)).toMatchObject({ steering: 1, throttle: 1, brake: 0 });
  });

  it('neither jumps after a late tick nor goes back in time', () => {
    const seat = new Seat();
    const keys = { ...NO_KEYS, forward: true };
    expect(seat.command({ ...CAR, keys }, 10).throttle).toBeCloseTo(0.16);
    expect(seat.command({ ...CAR, keys }, -10).throttle).toBeCloseTo(0.16);
  });

  it('brakes if brake and throttle are pressed together', () => {
    const both = { ...PAD, throttle: 1, brake: 0.5 };
    expect(drive(new Seat(), {}, TICK_S, both)).toMatchObject({ throttle: 0, brake: 0.5 });
    expect(drive(new Seat(), { hardBrake: true }, 1, { ...PAD, throttle: 1 })).toMatchObject({ throttle: 0, brake: 1 });
  });

  it('does not brake for a foot that rests on the brake', () => {
    expect(drive(new Seat(), {}, TICK_S, { ...PAD, throttle: 1, brake: 0.1 })).toMatchObject({ throttle: 1, brake: 0.1 });
  });

  it('steers by the pad from its first move on', () => {
    const seat = new Seat();
    expect(drive(seat, {}, TICK_S, { ...PAD, steering: 0.4 }).steering).toBe(0);
    expect(drive(seat, {}, TICK_S, { ...PAD, steering: 0.5, touched: true }).steering).toBe(0.5);
    expect(drive(seat, {}, TICK_S, { ...PAD, steering: 0.5 }).steering).toBe(0.5);
  });

  it('steers by keys while only pedals without a wheel are in use', () => {
    const pedals = { ...PAD, steers: false, touched: true, throttle: 0.5 };
    expect(drive(new Seat(), { left: true }, 1, pedals)).toMatchObject({ steering: 1, throttle: 0.5 });
  });

  it('steers by keys as soon as one is pressed, even if a pad was steering', () => {
    const seat = new Seat();
    drive(seat, {}, TICK_S, { ...PAD, steering: 0.5, touched: true });
    expect(drive(seat, { right: true }, 1, { ...PAD, steering: 0.5 }).steering).toBe(-1);
  });
});

describe('releasing', () => {
  it('commands no throttle, a gentle brake and a centring wheel, whatever is held', () => {
    const seat = new Seat();
    drive(seat, { left: true, forward: true }, 1);
    seat.letGo('unfocused');
    const held = { left: true, forward: true };
    const pad = { ...PAD, steering: 1, throttle: 1, touched: true };
    const first = drive(seat, held, TICK_S, pad);
    expect(first).toMatchObject({ throttle: 0, brake: 0.3 });
    expect(first.steering).toBeCloseTo(0.96);
    expect(drive(seat, held, 0.6, pad)).toMatchObject({ steering: 0, throttle: 0, brake: 0.3 });
    expect(seat.released).toBe('unfocused');
  });

  it('lasts until the person is back; then pedals start from rest and the wheel from its position', () => {
    const seat = new Seat();
    drive(seat, { left: true, forward: true }, 1);
    seat.letGo('pad gone');
    drive(seat, {}, 0.2);
    seat.takeUp();
    expect(seat.released).toBe('none');
    const command = drive(seat, { left: true, forward: true });
    expect(command.throttle).toBeCloseTo(0.032);
    expect(command.steering).toBeGreaterThan(0.5);
    expect(command.steering).toBeLessThan(0.7);
  });

  it('brakes fully under an emergency stop', () => {
    const seat = new Seat();
    seat.stop();
    seat.letGo('unfocused');
    expect(drive(seat, {})).toMatchObject({ throttle: 0, brake: 1, emergencyStop: true });
  });
});

describe('reverse', () => {
  it('changes at standstill', () => {
    const seat = new Seat();
    expect(seat.toggleReverse(0)).toBe(true);
    expect(drive(seat, {}).gear).toBe(Gear.Reverse);
    expect(seat.toggleReverse(-0.3)).toBe(true);
    expect(drive(seat, {}).gear).toBe(Gear.Drive);
  });

  it('is refused while the car rolls in either direction', () => {
    const seat = new Seat();
    expect([0.31, 5, -0.31, -5].map((speed) => seat.toggleReverse(speed))).toEqual([false, false, false, false]);
    expect(seat.gear).toBe(Gear.Drive);
  });

  it('is refused if the speed is unknown', () => {
    const seat = new Seat();
    expect(seat.toggleReverse(null)).toBe(false);
    expect(seat.gear).toBe(Gear.Drive);
  });

  it('is refused while the throttle is held', () => {
    const seat = new Seat();
    drive(seat, { forward: true });
    expect(seat.toggleReverse(0)).toBe(false);
    drive(seat, {});
    drive(seat, {});
    expect(seat.toggleReverse(0)).toBe(true);
  });
});

describe('emergency stop', () => {
  it('commands no throttle and the full brake at once, whatever is held', () => {
    const seat = new Seat();
    drive(seat, { forward: true }, 1);
    seat.stop();
    expect(seat.emergencyStopped).toBe(true);
    expect(drive(seat, { forward: true }, 1, { ...PAD, throttle: 1, touched: true }))
      .toMatchObject({ throttle: 0, brake: 1, emergencyStop: true });
  });

  it('still steers', () => {
    const seat = new Seat();
    seat.stop();
    expect(drive(seat, { left: true }, 1).steering).toBe(1);
  });

  it('outlasts a lost and regained focus', () => {
    const seat = new Seat();
    seat.stop();
    seat.letGo('unfocused');
    seat.takeUp();
    expect(drive(seat, {})).toMatchObject({ brake: 1, emergencyStop: true });
  });

  it('ends only when resumed, and a throttle key held meanwhile starts from rest', () => {
    const seat = new Seat();
    seat.stop();
    drive(seat, { forward: true }, 2);
    seat.resume();
    const command = seat.command({ ...CAR, keys: { ...NO_KEYS, forward: true }, pad: null }, TICK_S);
    expect(command).toMatchObject({ emergencyStop: false, brake: 0 });
    expect(command.throttle).toBeCloseTo(0.032);
  });

  it('leaves a held brake pressed when it ends', () => {
    const seat = new Seat();
    seat.stop();
    drive(seat, { back: true }, 1);
    seat.resume();
    expect(seat.command({ ...CAR, keys: { ...NO_KEYS, back: true }, pad: null }, TICK_S).brake).toBe(1);
  });
});
