import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Person } from './person';
import type { GuardView } from './guard';
import { Gear } from './message/gear';

let person: Person;

beforeEach(() => {
  vi.stubGlobal('window', new EventTarget());
  vi.stubGlobal('navigator', { getGamepads: () => [] });
  const storage = { getItem: () => null, setItem: () => {}, removeItem: () => {} } as unknown as Storage;
  person = new Person(7n, 0.5, storage, 'packed', { urgent: () => {}, stopAsked: () => {}, help: () => {} });
});
afterEach(() => vi.unstubAllGlobals());

function guard(told: Partial<GuardView>): GuardView {
  return { mode: 'held', latched: false, blockers: [], report: null, emergencyStop: 0, ...told } as GuardView;
}

const command = () => person.command(0, false, 0.02);

describe('an emergency stop', () => {
  it('is acknowledged only by the guard: while it is silent, the stop stays requested', () => {
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

describe('a released vehicle', () => {
  it('leaves no requests for the next one, and without a vehicle nothing is requested', () => {
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
  it('arms only if a guard reports', () => {
    person.observe({ guard: null }, 0);
    person.press('arm');
    expect(command().act).toBeNull();
    person.observe({ guard: guard({}) }, 10);
    person.press('arm');
    expect(command().act).toEqual({ number: 1, deed: { kind: 'arm' } });
  });
});

describe('reverse', () => {
  it('is not possible at an unknown speed, only at standstill', () => {
    const gears = [null, 0].map((speedMps) => {
      person.command(speedMps, false, 0.02);
      person.press('reverse');
      return person.seat.gear;
    });
    expect(gears).toEqual([Gear.Drive, Gear.Reverse]);
  });
});

describe('unsound inputs', () => {
  const INPUTS_UNHEALTHY = 8;
  let pad: { id: string; index: number; mapping: string; connected: boolean; timestamp: number; axes: number[]; buttons: { value: number; pressed: boolean }[] };
  let nowMs: number;

  beforeEach(() => {
    nowMs = 1_000;
    vi.stubGlobal('performance', { now: () => nowMs });
    const buttons = Array.from({ length: 17 }, () => ({ value: 0, pressed: false }));
    pad = { id: 'pad', index: 0, mapping: 'standard', connected: true, timestamp: 1, axes: [0, 0, 0, 0], buttons };
    vi.stubGlobal('navigator', { getGamepads: () => [pad] });
    person.observe({ guard: guard({ mode: 'driving' }) }, nowMs);
    command();
    pad.axes[0] = 1;
    command();
    pad.axes[0] = 0;
    command();
  });

  const during = (ms: number, speedMps: number | null) => {
    let demand = person.command(speedMps, false, 0.02);
    for (let passed = 0; passed < ms; passed += 20) {
      nowMs += 20;
      demand = person.command(speedMps, false, 0.02);
    }
    return demand;
  };

  it.each([5, null])('a frozen pad with released throttle at a speed of %s is reported to the guard and braked for', (speedMps) => {
    expect(during(2_900, speedMps)).toMatchObject({ absences: 0, brake: 0 });
    expect(person.view(nowMs).padQuiet).toMatchObject({ name: 'pad' });
    expect(during(200, speedMps)).toMatchObject({ absences: INPUTS_UNHEALTHY, throttle: 0, brake: 0.3 });
    expect(person.view(nowMs).padTroubled).toBe('pad');
    pad.axes[0] = 0.3;
    expect(during(0, speedMps)).toMatchObject({ absences: 0, brake: 0 });
  });

  it('a brake key takes the throttle from a pad until it was released, since it may be frozen', () => {
    pad.buttons[7] = { value: 1, pressed: true };
    expect(command().throttle).toBe(1);
    const key = (name: string, code: string) => window.dispatchEvent(Object.assign(new Event(name, { cancelable: true }), { code }));
    key('keydown', 'Space');
    expect(command()).toMatchObject({ throttle: 0 });
    key('keyup', 'Space');
    expect(during(1_000, 5)).toMatchObject({ throttle: 0, brake: 0 });
    pad.buttons[7] = { value: 0, pressed: false };
    command();
    pad.buttons[7] = { value: 1, pressed: true };
    expect(command().throttle).toBe(1);
  });

  it('a pad may lie still while the machine is held or stands', () => {
    expect(during(30_000, 0).absences).toBe(0);
    person.observe({ guard: guard({ mode: 'held' }) }, nowMs);
    expect(during(30_000, 5).absences).toBe(0);
  });

  it('a pad without numbers is reported to the guard until keys are used', () => {
    pad.axes[0] = NaN;
    expect(command()).toMatchObject({ absences: INPUTS_UNHEALTHY, steering: 0, throttle: 0, brake: 0.3 });
    person.takeUp();
    expect(command()).toMatchObject({ absences: 0 });
  });

  it('a calibration is reported to the guard while it lasts, whatever is pressed', () => {
    pad.buttons[7] = { value: 1, pressed: true };
    expect(person.command(5, true, 0.02)).toMatchObject({ absences: INPUTS_UNHEALTHY, throttle: 0, brake: 0.3 });
    person.takeUp();
    expect(person.command(5, true, 0.02)).toMatchObject({ absences: INPUTS_UNHEALTHY, throttle: 0 });
    expect(person.command(5, false, 0.02)).toMatchObject({ absences: 0, throttle: 0 });
  });

  it('a disconnected pad is missed until the person drives with something else', () => {
    pad.connected = false;
    expect(command().absences).toBe(INPUTS_UNHEALTHY);
    pad.connected = true;
    expect(command().absences).toBe(INPUTS_UNHEALTHY);
    pad.axes[0] = 1;
    expect(command().absences).toBe(0);
  });
});
