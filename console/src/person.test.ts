import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Person } from './person';
import type { Description } from './declared';
import type { GuardView } from './guard';
import { type Position, REST } from './input/ramp';
import type { Touch } from './input/touch';
import { Gear } from './message/gear';
import type { Demand } from './wire';

let person: Person;

beforeEach(() => {
  vi.stubGlobal('window', new EventTarget());
  vi.stubGlobal('navigator', { getGamepads: () => [] });
  const storage = { getItem: () => null, setItem: () => {}, removeItem: () => {} } as unknown as Storage;
  person = new Person(7n, 0.5, storage, 'packed', { urgent: () => {}, stopAsked: () => {}, help: () => {} });
});
afterEach(() => vi.unstubAllGlobals());

function guard(told: Partial<GuardView>): GuardView {
  return { mode: 'held', motion: 'ackermann', latched: false, blockers: [], report: null, emergencyStop: 0, ...told } as GuardView;
}

const moved = (forward: number | null) => ({ forward, sideways: 0, yawRate: 0 });
const command = () => person.command(moved(0), false, 0.02);

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
    for (const press of ['arm', 'emergency-stop'] as const) person.press(press);
    person.ask(1);
    expect(command()).toMatchObject({ emergencyStopNumber: 0, emergencyStop: false, act: null, actions: 0 });
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
      person.command(moved(speedMps), false, 0.02);
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
    let demand = person.command(moved(speedMps), false, 0.02);
    for (let passed = 0; passed < ms; passed += 20) {
      nowMs += 20;
      demand = person.command(moved(speedMps), false, 0.02);
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
    expect(person.command(moved(5), true, 0.02)).toMatchObject({ absences: INPUTS_UNHEALTHY, throttle: 0, brake: 0.3 });
    person.takeUp();
    expect(person.command(moved(5), true, 0.02)).toMatchObject({ absences: INPUTS_UNHEALTHY, throttle: 0 });
    expect(person.command(moved(5), false, 0.02)).toMatchObject({ absences: 0, throttle: 0 });
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

describe('a machine that a twist moves', () => {
  const BOUNDS = { forward: 1.5, back: 1.5, sideways: 0.5, yawRate: 1 };
  const ZERO = { forward: 0, sideways: 0, yawRate: 0 };
  const key = (name: string, code: string) => window.dispatchEvent(Object.assign(new Event(name, { cancelable: true }), { code }));
  const robot = (told: Partial<GuardView> = {}) => person.observe(
    { guard: guard({ mode: 'driving', motion: 'omni', bounds: BOUNDS, holder: 7n, ...told }) }, 0);
  const thumb = { position: (): Position | null => null, isHeld: false, releaseAll: vi.fn() };

  /** Returns the twist after this many seconds. */
  function during(seconds: number): Demand['twist'] {
    let { twist } = command();
    for (let tick = 0; tick < seconds / 0.02; tick += 1) ({ twist } = command());
    return twist;
  }

  beforeEach(() => robot());

  it('gets no steering, no throttle and no twist of keys that are up', () => {
    expect(command()).toMatchObject({ steering: 0, throttle: 0, gear: Gear.Drive, twist: ZERO });
    key('keydown', 'KeyW');
    key('keydown', 'KeyA');
    key('keydown', 'KeyZ');
    during(1);
    expect(command()).toMatchObject({ steering: 0, throttle: 0, twist: { forward: 1.5, sideways: 0.5, yawRate: 1 } });
    for (const code of ['KeyW', 'KeyA', 'KeyZ']) key('keyup', code);
    expect(during(0.4)).toEqual(ZERO);
  });

  it('gets a twist of 0 before its guard has reported, and none while a car is driven', () => {
    person.forget();
    key('keydown', 'KeyW');
    expect(during(1)).toEqual(ZERO);
    robot({ motion: 'ackermann' });
    expect(command()).toMatchObject({ twist: null });
    robot();
    expect(command().twist!.forward).toBeLessThan(0.1);
  });

  it.each<[string, () => void]>([
    ['a hidden page', () => person.leave('hidden')],
    ['a lost focus', () => person.leave('unfocused')],
    ['a Meta key', () => { key('keydown', 'MetaLeft'); }],
    ['a frozen device', () => person.leave('pad gone')],
    ['a dead-man input that nobody holds', () => { person.deadMan.wanted = true; }],
    ['an emergency stop', () => person.stop(0)],
    ['Space', () => { key('keydown', 'Space'); }],
  ])('gets exactly 0 at once with %s, whatever was held', (_, happen) => {
    for (const mode of ['stick', 'set point'] as const) {
      person.speed.mode = mode;
      during(0.1);
      key('keydown', 'KeyW');
      key('keydown', 'KeyD');
      expect(during(1)!.forward).toBeGreaterThan(0.5);
      happen();
      const told = command();
      expect([told.twist, told.throttle]).toEqual([ZERO, 0]);
      expect(person.seat.setPointMps).toBe(0);
      for (const code of ['KeyW', 'KeyD', 'Space']) key('keyup', code);
      person.deadMan.wanted = false;
      person.observe({ guard: guard({ mode: 'driving', motion: 'omni', bounds: BOUNDS, holder: 7n, emergencyStop: told.emergencyStopNumber }) }, 1);
      person.presence.set('hidden', false);
      person.takeUp();
      expect(during(1)).toEqual(ZERO);
    }
  });

  it.each<[string, () => void]>([
    ['the machine is held', () => robot({ mode: 'held' })],
    ['the guard stops it', () => robot({ mode: 'manoeuvre' })],
    ['another console has armed it', () => robot({ holder: 8n })],
    ['the guard is silent', () => person.observe({ guard: null }, 1)],
    ['another vehicle is picked', () => person.forget()],
    ['this page may only watch', () => { person.mayAct = false; }],
    ['Space was tapped between two ticks', () => { key('keydown', 'Space'); key('keyup', 'Space'); }],
    ['telemetry is not live', () => { person.command(null, false, 0.02); }],
  ])('keeps no held speed once %s', (_, happen) => {
    person.speed.mode = 'set point';
    during(0.1);
    key('keydown', 'KeyW');
    during(1);
    key('keyup', 'KeyW');
    expect(during(2)!.forward).toBeCloseTo(0.76, 1);
    happen();
    expect(command().twist).toEqual(ZERO);
    person.mayAct = true;
    robot();
    expect(during(1)).toEqual(ZERO);
  });

  it('is driven by thumbs, which hold the dead-man input and are released with everything else', () => {
    person.touch = thumb as unknown as Touch;
    person.deadMan.wanted = true;
    expect(command()).toMatchObject({ deadMan: 'released', twist: ZERO });
    Object.assign(thumb, { isHeld: true, position: () => ({ ...REST, speed: 1, steering: -0.5 }) });
    expect(command()).toMatchObject({ deadMan: 'held', twist: { forward: 1.5, sideways: 0, yawRate: -0.5 } });
    thumb.releaseAll.mockClear();
    person.leave('hidden');
    expect(thumb.releaseAll).toHaveBeenCalledOnce();
    expect(command()).toMatchObject({ twist: ZERO });
  });

  it('reads other sticks of a pad, which a key of the other direction silences until they are released', () => {
    const buttons = Array.from({ length: 17 }, () => ({ value: 0, pressed: false }));
    const pad = { id: 'pad', index: 0, mapping: 'standard', connected: true, timestamp: 1, axes: [0, -1, 0, 0], buttons };
    vi.stubGlobal('navigator', { getGamepads: () => [pad] });
    const push = (axis: number, value: number) => { pad.axes[axis] = value; };
    for (const value of [0, -1, 0, -1]) {
      push(1, value);
      command();
    }
    expect(command().twist).toEqual({ forward: 1.5, sideways: 0, yawRate: 0 });
    key('keydown', 'KeyS');
    expect(command().twist!.forward).toBe(0);
    key('keyup', 'KeyS');
    expect(during(1)).toEqual(ZERO);
    push(1, 0);
    command();
    push(1, -1);
    expect(command().twist!.forward).toBe(1.5);
  });
});

describe('declared axes and actions', () => {
  const ROVER: Description = {
    revision: 7,
    axes: [{ name: 'boom', unit: 'rad', form: 'position', low: -1, high: 2, rate: 0.5 }, { name: 'winch', unit: 'm/s', form: 'speed', low: -0.2, high: 0.4, rate: 1 }],
    actions: [
      { name: 'horn', form: 'momentary', onStop: 'off', allowedHeld: true }, { name: 'lights', form: 'switch', onStop: 'keep', allowedHeld: true },
      { name: 'dock', form: 'request', onStop: 'off', allowedHeld: false },
    ],
    values: [],
  };
  const BOUNDS = { forward: 1.5, back: 1.5, sideways: 0.5, yawRate: 1 };
  const key = (name: string, code: string) => window.dispatchEvent(Object.assign(new Event(name, { cancelable: true }), { code }));
  const rover = (told: Partial<GuardView> = {}) => person.observe(
    { guard: guard({ mode: 'driving', motion: 'differential', bounds: BOUNDS, holder: 7n, axes: [0.5, 0], ...told }) }, 0);

  beforeEach(() => {
    rover();
    person.describe(ROVER);
    person.bindings.assign('more winch', { kind: 'key', code: 'KeyU' });
    person.bindings.assign('action dock', { kind: 'key', code: 'KeyK' });
    command();
  });

  it('are moved by assigned keys, and requested once by each press', () => {
    key('keydown', 'KeyU');
    key('keydown', 'KeyH');
    key('keydown', 'KeyL');
    expect(command()).toMatchObject({ axes: [NaN, 0.4], actions: 0b11 });
    for (const code of ['KeyU', 'KeyH', 'KeyL']) key('keyup', code);
    expect(command()).toMatchObject({ axes: [NaN, 0], actions: 0b10, act: null });
    key('keydown', 'KeyK');
    expect(command().act).toEqual({ number: 1, deed: { kind: 'request', action: 2 } });
    expect(person.view(performance.now()).request).toEqual({ action: 2, outcome: 'pending' });
  });

  it.each<[string, () => void]>([
    ['an absence', () => person.leave('unfocused')],
    ['an emergency stop', () => person.stop(0)],
    ['a held machine', () => rover({ mode: 'held' })],
    ['another console\'s seat', () => rover({ holder: 8n })],
    ['stale telemetry', () => { person.command(null, false, 0.02); }],
    ['a page that may only watch', () => { person.mayAct = false; }],
  ])('lose their set points by %s, and a key that is still held moves nothing afterwards', (_, happen) => {
    person.declared.setPosition(0, 1);
    key('keydown', 'KeyU');
    expect(command().axes).toEqual([1, 0.4]);
    happen();
    const { axes, emergencyStopNumber } = command();
    expect(axes).toEqual([NaN, NaN]);
    person.mayAct = true;
    rover({ emergencyStop: emergencyStopNumber });
    person.takeUp();
    command();
    expect(command().axes[0]).toBeNaN();
  });
});
