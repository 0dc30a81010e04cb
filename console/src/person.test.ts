import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Person } from './person';
import type { GuardView } from './guard';
import { Gear } from './message/gear';

let person: Person;

beforeEach(() => {
  vi.stubGlobal('window', new EventTarget());
  vi.stubGlobal('navigator', { getGamepads: () => [] });
  const storage = { getItem: () => null, setItem: () => {}, removeItem: () => {} } as unknown as Storage;
  person = new Person(7n, 0.5, storage, { urgent: () => {}, stopAsked: () => {}, help: () => {} });
});
afterEach(() => vi.unstubAllGlobals());

function guard(told: Partial<GuardView>): GuardView {
  return { mode: 'held', latched: false, blockers: [], report: null, emergencyStop: 0, ...told } as GuardView;
}

const command = () => person.command(0, true, 0.02);

describe('an emergency stop', () => {
  it('is acknowledged by the guard alone: one that says nothing leaves it asked for, and nothing releases it', () => {
    person.stop(0);
    const { emergencyStopNumber } = command();
    person.observe({ guard: null }, 60_000);
    person.press('arm');
    expect(person.view(60_000)).toMatchObject({ stopAsked: true, stopUnacknowledgedMs: 60_000, pending: null });
    expect(command()).toMatchObject({ emergencyStopNumber, emergencyStop: true, throttle: 0, brake: 1, act: null });
    person.observe({ guard: guard({ emergencyStop: emergencyStopNumber }) }, 60_010);
    expect(person.view(60_010)).toMatchObject({ stopAsked: false, stopUnacknowledgedMs: null });
    expect(command()).toMatchObject({ emergencyStopNumber: 0, emergencyStop: false });
  });

  it('is not acknowledged by a guard that has not taken it', () => {
    person.stop(0);
    const { emergencyStopNumber } = command();
    person.observe({ guard: guard({ mode: 'manoeuvre', emergencyStop: emergencyStopNumber - 1 }) }, 100);
    expect(command()).toMatchObject({ emergencyStopNumber, emergencyStop: true });
  });
});

describe('a vehicle that was let go of', () => {
  it('leaves nothing to be asked of the next one, and before one is picked nothing is asked', () => {
    person.observe({ guard: guard({}) }, 0);
    person.press('arm');
    person.stop(10);
    expect(command().emergencyStopNumber).not.toBe(0);
    person.mayAct = false;
    person.forget();
    for (const press of ['arm', 'emergency-stop', 'lights'] as const) person.press(press);
    expect(command()).toMatchObject({ emergencyStopNumber: 0, emergencyStop: false, act: null, signals: 0 });
    person.mayAct = true;
    expect(person.view(20)).toMatchObject({ stopAsked: false, stopUnacknowledgedMs: null, pending: null, last: null });
    person.press('arm');
    expect(command().act).toBeNull();
    person.press('emergency-stop');
    expect(command().emergencyStopNumber).not.toBe(0);
  });
});

describe('Enter', () => {
  it('asks a guard that speaks, and nobody else', () => {
    person.observe({ guard: null }, 0);
    person.press('arm');
    expect(command().act).toBeNull();
    person.observe({ guard: guard({}) }, 10);
    person.press('arm');
    expect(command().act).toEqual({ number: 1, deed: { kind: 'arm' } });
  });
});

describe('reverse', () => {
  it('stays out while the speed is not known, and goes in at standstill', () => {
    const gears = [null, 0].map((speedMps) => {
      person.command(speedMps, true, 0.02);
      person.press('reverse');
      return person.seat.gear;
    });
    expect(gears).toEqual([Gear.Drive, Gear.Reverse]);
  });
});
