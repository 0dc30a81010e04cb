import { beforeEach, describe, expect, it } from 'vitest';
import { type Description, levelOf } from '../declared';
import { type DeclaredControls, type DeclaredInputs, DeclaredSeat } from './declared-seat';

const MACHINE: Description = {
  revision: 7,
  axes: [
    { name: 'boom', unit: 'rad', form: 'position', low: -1, high: 2, rate: 0.5 },
    { name: 'gripper', unit: 'm/s', form: 'speed', low: -0.2, high: 0.4, rate: 1 },
  ],
  actions: [
    { name: 'horn', form: 'momentary', onStop: 'off', allowedHeld: true },
    { name: 'lights', form: 'switch', onStop: 'keep', allowedHeld: true },
    { name: 'blade', form: 'switch', onStop: 'off', allowedHeld: false },
    { name: 'dock', form: 'request', onStop: 'off', allowedHeld: false },
  ],
  values: [],
};
const [BOOM, GRIPPER] = [0, 1];
const [HORN, LIGHTS, BLADE, DOCK] = [0, 1, 2, 3];
const REST: DeclaredInputs = { levers: [0, 0], held: new Set(), measured: [0.5, 0], driven: true };
const TICK_S = 0.02;

let seat: DeclaredSeat;
beforeEach(() => {
  seat = new DeclaredSeat();
  seat.describe(MACHINE);
  seat.next(REST, TICK_S);
});

function during(seconds: number, change: Partial<DeclaredInputs> = {}): DeclaredControls {
  let controls = seat.next({ ...REST, ...change }, 0);
  for (let tick = 0; tick < Math.round(seconds / TICK_S); tick += 1) controls = seat.next({ ...REST, ...change }, TICK_S);
  return controls;
}

describe('a position axis', () => {
  it('has no set point before a person moves it, then moves from where it is at its rate and stays', () => {
    expect(during(1).axes).toEqual([NaN, NaN]);
    expect(during(1, { levers: [1, 0] }).axes[BOOM]).toBeCloseTo(1);
    expect(during(5).axes[BOOM]).toBeCloseTo(1);
    expect(during(9, { levers: [1, 0] }).axes[BOOM]).toBe(2);
    expect(during(0.4, { levers: [-0.5, 0] }).axes[BOOM]).toBeCloseTo(1.9);
  });

  it('does not move by a lever from an unknown position, and is set within its range', () => {
    expect(during(1, { levers: [1, 0], measured: [NaN, 0] }).axes[BOOM]).toBeNaN();
    seat.setPosition(BOOM, 9);
    expect(during(0).axes[BOOM]).toBe(2);
    seat.setPosition(GRIPPER, 0.1);
    expect(during(0).axes[GRIPPER]).toBeNaN();
  });

  it('has none after a stop, and none is taken while the machine is held', () => {
    seat.setPosition(BOOM, 1);
    expect(during(0).axes[BOOM]).toBe(1);
    expect(during(0, { driven: false }).axes[BOOM]).toBeNaN();
    seat.setPosition(BOOM, 1.5);
    expect(during(1, { driven: false, levers: [1, 1] }).axes).toEqual([NaN, NaN]);
    expect(during(0).axes).toEqual([NaN, NaN]);
  });
});

describe('a speed axis', () => {
  it('follows its control up to its ends and is exactly 0 after it', () => {
    expect(during(0, { levers: [0, 0.5] }).axes[GRIPPER]).toBe(0.2);
    expect(during(0, { levers: [0, -1] }).axes[GRIPPER]).toBe(-0.2);
    expect(during(0).axes[GRIPPER]).toBe(0);
    seat.push(GRIPPER, 1);
    expect(during(0).axes[GRIPPER]).toBe(0.4);
    seat.release();
    expect(during(0).axes[GRIPPER]).toBeNaN();
  });
});

describe('actions', () => {
  const bits = (...numbers: number[]) => numbers.reduce((all, number) => all | (1 << number), 0);

  it('are on while held, or until they are switched off', () => {
    expect(during(0, { held: new Set([HORN, LIGHTS, DOCK]) }).actions).toBe(bits(HORN));
    seat.press(HORN, true);
    expect([seat.toggle(LIGHTS), seat.toggle(BLADE), seat.toggle(DOCK), seat.toggle(HORN)]).toEqual([true, true, false, false]);
    expect(during(0).actions).toBe(bits(HORN, LIGHTS, BLADE));
    seat.press(HORN, false);
    seat.toggle(LIGHTS);
    expect(during(0).actions).toBe(bits(BLADE));
  });

  it('that a stop turns off stay off, and cannot be switched on while the machine is held', () => {
    seat.toggle(LIGHTS);
    seat.toggle(BLADE);
    expect(during(0, { driven: false }).actions).toBe(bits(LIGHTS));
    expect(seat.toggle(BLADE)).toBe(false);
    expect(during(0).actions).toBe(bits(LIGHTS));
  });

  it('end with another description, and those held down with an absence', () => {
    seat.press(HORN, true);
    seat.toggle(LIGHTS);
    seat.release();
    expect(during(0).actions).toBe(bits(LIGHTS));
    seat.describe({ ...MACHINE, revision: 8 });
    expect(during(0).actions).toBe(0);
    seat.describe(null);
    expect(during(0)).toEqual({ axes: [], actions: 0 });
  });
});

describe('the urgency of a value', () => {
  const value = { name: 'battery', unit: 'V', form: 'number' as const, warnLow: 22, warnHigh: null, alarmLow: 20, alarmHigh: 30 };
  it('is that of the limits it is beyond', () => {
    expect([25, 22, 21, 19, 31, null].map((number) => levelOf(value, number))).toEqual(['none', 'none', 'warn', 'alarm', 'alarm', 'none']);
  });
});

describe('the lights and horn of a car', () => {
  it('are switched while it is held, and one indicator ends the other', () => {
    const names = ['horn', 'lights', 'left', 'right'];
    const actions = names.map((name) => ({ name, form: name === 'horn' ? 'momentary' : 'switch', onStop: 'off', allowedHeld: true } as const));
    seat.describe({ revision: 8, axes: [], actions, values: [] });
    const [left, right] = [2, 3];
    for (const index of [LIGHTS, left, right]) expect(seat.toggle(index)).toBe(true);
    const on = during(0, { driven: false, held: new Set([HORN]) }).actions;
    expect(on).toBe((1 << HORN) | (1 << LIGHTS) | (1 << right));
  });
});
