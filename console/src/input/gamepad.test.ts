import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Gamepads, PRESSED_QUIET_MAX_MS, type PadReading, RELEASED_QUIET_MAX_MS, type Surroundings } from './gamepad';
import type { Motion } from '../generated/kinds';
import { STANDARD, type Mapping } from './mapping';

interface FakePad {
  id: string;
  index: number;
  mapping: string;
  connected: boolean;
  timestamp: number;
  axes: number[];
  buttons: { value: number; pressed: boolean }[];
}

let connected: (FakePad | null)[];
let kept: Map<string, string>;
let nowMs: number;
const events = { emergencyStop: vi.fn(), toggleReverse: vi.fn(), gone: vi.fn() };

const [STOP, REVERSE, BRAKE, THROTTLE] = [1, 3, 6, 7];
const STANDS: Surroundings = { driven: true, moves: false, keysDrive: false, holdsSpeed: false };
const MOVES: Surroundings = { ...STANDS, moves: true };
const TICK_MS = 20;
const G29 = 'Logitech G29 Driving Force Racing Wheel (Vendor: 046d Product: c24f)';
const PEDALS = 'Loadcell Pedals (Vendor: 0001 Product: 0002)';
const PEDALS_MAPPING: Mapping = {
  ...STANDARD, steering: null, throttle: { kind: 'axis', axis: 0, released: -1, pressed: 1 },
  brake: { kind: 'axis', axis: 1, released: -1, pressed: 1 },
};

beforeEach(() => {
  connected = [];
  kept = new Map();
  nowMs = 0;
  vi.clearAllMocks();
  vi.stubGlobal('navigator', { getGamepads: () => connected });
});

afterEach(() => vi.unstubAllGlobals());

function plug(index = 0, part: Partial<FakePad> = {}): FakePad {
  const buttons = Array.from({ length: 17 }, () => ({ value: 0, pressed: false }));
  const pad = { id: 'pad', index, mapping: 'standard', connected: true, timestamp: 1, axes: [0, 0, 0, 0], buttons, ...part };
  connected[index] = pad;
  return pad;
}

/** Sets a button's value. As in a browser, the change has a new timestamp. */
function press(pad: FakePad, button: number, value: number): void {
  pad.buttons[button] = { value, pressed: value > 0.5 };
  pad.timestamp = nowMs + 2;
}

function turn(pad: FakePad, axis: number, value: number): void {
  pad.axes[axis] = value;
  pad.timestamp = nowMs + 2;
}

/** Reads the devices once a tick of the test's clock. */
class Reader extends Gamepads {
  tick(around: Surroundings = STANDS): PadReading | null {
    nowMs += TICK_MS;
    return this.read(around, nowMs);
  }

  during(ms: number, around: Surroundings): PadReading | null {
    let reading = null;
    for (let passed = 0; passed < ms; passed += TICK_MS) reading = this.tick(around);
    return reading;
  }
}

function open(): Reader {
  return new Reader(events, {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => { kept.set(key, value); },
    removeItem: (key) => { kept.delete(key); },
  }, 'packed');
}

/** Returns a pad that is in use because its stick was pushed and released. */
function taken(index = 0): { pad: FakePad; pads: Reader } {
  const pad = plug(index);
  const pads = open();
  pads.tick();
  take(pads, pad);
  return { pad, pads };
}

function take(pads: Reader, pad: FakePad): void {
  turn(pad, 0, 1);
  pads.tick();
  turn(pad, 0, 0);
  pads.tick();
}

describe('a device', () => {
  it('is not read if there is none, or the page may not read any', () => {
    expect(open().tick()).toBeNull();
    vi.stubGlobal('navigator', { getGamepads: () => { throw new Error('not allowed'); } });
    expect(open().tick()).toBeNull();
  });

  it('is in use after its first move, not after noise', () => {
    const pad = plug();
    const pads = open();
    expect(pads.tick()).toBeNull();
    turn(pad, 0, 0.1);
    expect(pads.tick()).toBeNull();
    turn(pad, 0, -1);
    expect(pads.tick()).toMatchObject({ touched: true, steers: true, steering: 1 });
    expect(pads.views()[0]).toMatchObject({ state: 'in use', parts: ['steering', 'throttle', 'brake'] });
  });

  it('drives nothing before calibration if unknown, however it moves', () => {
    const pad = plug(0, { id: PEDALS, mapping: '', axes: [-1, -1] });
    const pads = open();
    for (const value of [-1, 1, 0, -1, 1]) {
      turn(pad, 0, value);
      turn(pad, 1, value);
      press(pad, STOP, value);
      expect(pads.tick()).toBeNull();
    }
    expect(pads.views()[0]).toMatchObject({ state: 'not known', parts: [], wasTouched: true });
    expect(events.emergencyStop).not.toHaveBeenCalled();
    pads.use(0, true);
    expect(pads.tick()).toBeNull();
    pads.remember(0, PEDALS_MAPPING);
    turn(pad, 1, -1);
    pads.tick();
    turn(pad, 1, 1);
    expect(pads.tick()).toMatchObject({ brake: 1, steers: false });
  });

  it('drives nothing until a person moves it, whatever it reads', () => {
    // A radio: throttle at its lower end, everything else centred, once calibrated as a throttle
    // and a brake.
    kept.set(`tautline.device.${PEDALS}`, JSON.stringify(PEDALS_MAPPING));
    plug(0, { id: PEDALS, mapping: '', axes: [1, 1] });
    const pads = open();
    expect(pads.during(1_000, STANDS)).toBeNull();
  });

  it('drives if it is the second of two to be moved, though listed last', () => {
    const [first, second] = [plug(0), plug(1)];
    const pads = open();
    pads.tick();
    take(pads, second);
    press(second, THROTTLE, 1);
    expect(pads.tick()).toMatchObject({ throttle: 1 });
    press(first, BRAKE, 0);
    expect(pads.tick()).toMatchObject({ throttle: 1 });
    expect(pads.views().map(({ state }) => state)).toEqual(['ready', 'in use']);
  });

  it('takes over at standstill, but not from a driving device on the move', () => {
    const { pad, pads } = taken();
    const other = plug(1);
    pads.tick(MOVES);
    turn(other, 0, 1);
    expect(pads.tick(MOVES)).toMatchObject({ steering: 0 });
    // A device that was moved while the machine moved does not take over once the machine stands.
    expect(pads.tick(STANDS)).toMatchObject({ steering: 0 });
    turn(other, 0, -1);
    expect(pads.tick(STANDS)).toMatchObject({ steering: 1 });
    expect(pads.views().map(({ state }) => state)).toEqual(['ready', 'in use']);
    turn(pad, 0, 1);
    expect(pads.tick(STANDS)).toMatchObject({ steering: -1 });
  });

  it('leaves pedals to separate pedals if it is a complete seat, until its own are moved', () => {
    kept.set(`tautline.device.${PEDALS}`, JSON.stringify(PEDALS_MAPPING));
    const pedals = plug(0, { id: PEDALS, mapping: '', axes: [-1, -1] });
    const pad = plug(1);
    const pads = open();
    pads.tick();
    turn(pedals, 1, 1);
    pads.tick();
    turn(pad, 0, 1);
    pads.tick();
    expect(pads.views().map(({ parts }) => parts)).toEqual([['throttle', 'brake'], ['steering']]);
    pads.use(1, true);
    expect(pads.views().map(({ parts }) => parts)).toEqual([[], ['steering', 'throttle', 'brake']]);
  });

  it('takes over from a frozen device while the machine moves', () => {
    const { pads } = taken();
    const other = plug(1);
    pads.during(RELEASED_QUIET_MAX_MS + TICK_MS, MOVES);
    expect(pads.frozen).toBe('pad');
    turn(other, 0, -1);
    expect(pads.tick(MOVES)).toMatchObject({ steering: 1 });
    expect(pads.frozen).toBeNull();
  });

  it('is used and set aside in the list', () => {
    const { pad, pads } = taken();
    const other = plug(1);
    pads.tick();
    pads.use(1, true);
    turn(other, 0, -1);
    expect(pads.tick(MOVES)).toMatchObject({ steering: 1 });
    pads.use(1, false);
    expect(pads.tick()).toBeNull();
    turn(other, 0, 1);
    expect(pads.tick()).toBeNull();
    expect(pads.views().map(({ state }) => state)).toEqual(['ready', 'set aside']);
    turn(pad, 0, 1);
    expect(pads.tick()).toMatchObject({ steering: -1 });
  });

  it('yields to driving keys at rest, so that it is not required later', () => {
    const { pads } = taken();
    pads.during(1_500, { ...MOVES, keysDrive: true });
    expect(pads.during(20_000, MOVES)).toBeNull();
    expect([pads.frozen, pads.quiet]).toEqual([null, null]);
  });

  it('is not required while keys drive even off its centre, and its time starts when they are released', () => {
    const { pad, pads } = taken();
    turn(pad, 0, 0.5);
    pads.during(20_000, { ...MOVES, keysDrive: true });
    expect(pads.frozen).toBeNull();
    pads.during(RELEASED_QUIET_MAX_MS - 2 * TICK_MS, MOVES);
    expect(pads.frozen).toBeNull();
    pads.during(2 * TICK_MS, MOVES);
    expect(pads.frozen).toBe('pad');
  });

  it('reports its loss once if it was in use, and never otherwise', () => {
    const { pads } = taken();
    plug(1);
    pads.tick();
    connected[1] = null;
    pads.tick();
    expect(events.gone).not.toHaveBeenCalled();
    connected[0] = null;
    expect(pads.tick()).toBeNull();
    expect(pads.tick()).toBeNull();
    expect(events.gone).toHaveBeenCalledOnce();
  });

  it('is lost when the browser reports a disconnect or another device in its place', () => {
    const { pad, pads } = taken();
    pad.connected = false;
    expect(pads.tick()).toBeNull();
    const replaced = taken();
    plug(0, { id: 'another' });
    expect(replaced.pads.tick()).toBeNull();
    expect(events.gone).toHaveBeenCalledTimes(2);
  });
});

describe('pedals', () => {
  it('give throttle only after it was seen released, and not after a disarm', () => {
    const { pad, pads } = taken();
    press(pad, THROTTLE, 1);
    expect(pads.tick()?.throttle).toBe(1);
    pads.disarm();
    expect(pads.tick()?.throttle).toBe(0);
    press(pad, THROTTLE, 0);
    pads.tick();
    press(pad, THROTTLE, 1);
    expect(pads.tick()?.throttle).toBe(1);
  });

  it('brake whether the throttle is armed or not', () => {
    const pad = plug();
    const pads = open();
    pads.tick();
    press(pad, BRAKE, 1);
    press(pad, THROTTLE, 1);
    expect(pads.tick()).toMatchObject({ brake: 1, throttle: 0 });
  });

  it('are released while their values are unknown, and without a known brake no throttle counts', () => {
    const wheel = plug(0, { id: G29, mapping: '', axes: [0, 0, 0, 0, 0, 0] });
    const pads = open();
    pads.tick();
    turn(wheel, 0, -0.5);
    expect(pads.tick()).toMatchObject({ throttle: 0, brake: 0 });
    // The throttle's axis becomes known: Chromium shows it from the middle of its travel on.
    for (const value of [-0.05, -1, 1, -1]) {
      turn(wheel, 2, value);
      expect(pads.tick()).toMatchObject({ throttle: 0, brake: 0 });
    }
    expect(pads.views()[0]).toMatchObject({ brakeNeed: 'press' });
    for (const value of [-0.05, -1, 1]) {
      turn(wheel, 3, value);
      pads.tick();
    }
    // It is pressed now. A press does not count before the throttle was seen released.
    expect(pads.tick()).toMatchObject({ throttle: 0, brake: 0 });
    turn(wheel, 2, 1);
    pads.tick();
    turn(wheel, 2, -1);
    expect(pads.tick()).toMatchObject({ throttle: 1, brake: 0 });
    expect(pads.views()[0]).toMatchObject({ brakeNeed: null });
  });

  it('give no throttle without a brake', () => {
    kept.set(`tautline.device.${PEDALS}`, JSON.stringify({ ...PEDALS_MAPPING, brake: null }));
    const pedal = plug(0, { id: PEDALS, mapping: '', axes: [-1, -1] });
    const pads = open();
    pads.tick();
    for (const value of [1, -1, 1]) {
      turn(pedal, 0, value);
      expect(pads.tick()).toMatchObject({ throttle: 0 });
    }
    expect(pads.views()[0]).toMatchObject({ brakeNeed: 'other device' });
  });

  it('on a device of their own form one seat with another device\'s wheel', () => {
    kept.set(`tautline.device.${PEDALS}`, JSON.stringify(PEDALS_MAPPING));
    const wheel = plug(0, { id: G29, mapping: '', axes: [0, 0, 0, 0, 0, 0] });
    const pedals = plug(1, { id: PEDALS, mapping: '', axes: [-1, -1], buttons: [] });
    const pads = open();
    pads.tick();
    turn(wheel, 0, -1);
    pads.tick();
    turn(pedals, 1, 1);
    expect(pads.tick()).toMatchObject({ steering: 1, brake: 1, throttle: 0 });
    turn(pedals, 1, -1);
    pads.tick();
    turn(pedals, 0, 1);
    turn(wheel, 0, 0.5);
    expect(pads.tick()).toMatchObject({ throttle: 1, brake: 0 });
    expect(pads.tick()!.steering).toBeLessThan(-0.4);
    expect(pads.views().map(({ parts }) => parts)).toEqual([['steering'], ['throttle', 'brake']]);
    connected[1] = null;
    expect(pads.tick(MOVES)).toMatchObject({ throttle: 0, steers: true });
    expect(events.gone).toHaveBeenCalledOnce();
  });
});

describe('buttons', () => {
  it('request the emergency stop once a press, not if held from the start', () => {
    const pad = plug();
    press(pad, STOP, 1);
    const pads = open();
    pads.tick();
    pads.tick();
    expect(events.emergencyStop).not.toHaveBeenCalled();
    press(pad, STOP, 0);
    pads.tick();
    press(pad, STOP, 1);
    pads.tick();
    pads.tick();
    expect(events.emergencyStop).toHaveBeenCalledOnce();
  });

  it('request the emergency stop on any known device that is not set aside', () => {
    const { pads } = taken();
    const other = plug(1);
    pads.tick(MOVES);
    press(other, STOP, 1);
    press(other, REVERSE, 1);
    pads.tick(MOVES);
    expect(events.emergencyStop).toHaveBeenCalledOnce();
    expect(events.toggleReverse).not.toHaveBeenCalled();
  });
});

describe('a mapping', () => {
  const mine = { ...STANDARD, stopButton: 5 };

  it('is stored and forgotten', () => {
    plug();
    const pads = open();
    pads.tick();
    pads.remember(0, mine);
    const next = open();
    next.tick();
    expect([next.mapping(0), next.views()[0]!.isCalibrated]).toEqual([mine, true]);
    next.remember(0, null);
    expect([next.mapping(0), next.views()[0]!.isCalibrated]).toEqual([STANDARD, false]);
  });

  it.each(['{"steering":', JSON.stringify({ ...PEDALS_MAPPING, brake: PEDALS_MAPPING.throttle })])('that is broken is not taken: %s', (text) => {
    kept.set(`tautline.device.${PEDALS}`, text);
    plug(0, { id: PEDALS, mapping: '', axes: [-1, -1] });
    const pads = open();
    pads.tick();
    expect(pads.mapping(0)).toBeNull();
  });

  it('is not loaded from an earlier version if it contradicts itself', () => {
    kept.set(`tautline.mapping.${PEDALS}`, JSON.stringify(PEDALS_MAPPING));
    plug(0, { id: PEDALS, mapping: '', axes: [-1, -1] });
    const pads = open();
    pads.tick();
    expect(pads.mapping(0)).toBeNull();
  });

  it('keeps the device in use when only the dead zone changes', () => {
    const { pads } = taken();
    pads.setDeadZone(0, 0.2);
    expect(pads.tick()).not.toBeNull();
    expect(pads.mapping(0)).toMatchObject({ deadZone: 0.2 });
  });
});

describe('a device in use without data while the machine moves', () => {
  it('counts as frozen within its limit with the throttle released: its brake may be unusable', () => {
    const { pads } = taken();
    expect(pads.during(RELEASED_QUIET_MAX_MS - 2 * TICK_MS, MOVES)).not.toBeNull();
    expect([pads.frozen, pads.quiet]).toEqual([null, expect.objectContaining({ name: 'pad', limitMs: RELEASED_QUIET_MAX_MS })]);
    expect(pads.during(2 * TICK_MS, MOVES)).toBeNull();
    expect(pads.frozen).toBe('pad');
    expect(RELEASED_QUIET_MAX_MS).toBeLessThanOrEqual(3_000);
  });

  it('drives on at full throttle for longer than 10 s, and asks for a move meanwhile', () => {
    const { pad, pads } = taken();
    press(pad, THROTTLE, 1);
    expect(pads.during(5_900, MOVES)).toMatchObject({ throttle: 1 });
    expect(pads.quiet).toBeNull();
    expect(pads.during(4_500, MOVES)).toMatchObject({ throttle: 1 });
    expect(pads.quiet).toMatchObject({ limitMs: PRESSED_QUIET_MAX_MS });
    expect(pads.during(PRESSED_QUIET_MAX_MS, MOVES)).toBeNull();
    expect(pads.frozen).toBe('pad');
  });

  it('is not frozen while its timestamps advance, though no value changes', () => {
    const { pad, pads } = taken();
    press(pad, THROTTLE, 1);
    for (let second = 0; second < 20; second += 1) {
      pad.timestamp += 1;
      expect(pads.during(1_000, MOVES)).toMatchObject({ throttle: 1 });
    }
    expect(pads.quiet).toBeNull();
  });

  it('is not trusted by timestamps that the browser makes itself', () => {
    const pad = plug(0, { id: 'Xbox 360 Controller (XInput STANDARD GAMEPAD)' });
    const pads = open();
    pads.tick();
    take(pads, pad);
    for (let passed = 0; passed < RELEASED_QUIET_MAX_MS + TICK_MS; passed += TICK_MS) {
      pad.timestamp += TICK_MS;
      pads.tick(MOVES);
    }
    expect(pads.frozen).toBe('Xbox 360 Controller');
  });

  it('may lie still while nothing is driven, or at standstill with no pedal pressed', () => {
    const { pads } = taken();
    expect(pads.during(20_000, STANDS)).not.toBeNull();
    expect(pads.during(20_000, { ...MOVES, driven: false })).not.toBeNull();
    expect(pads.frozen).toBeNull();
  });

  it('is watched at standstill too while a pedal is pressed', () => {
    const { pad, pads } = taken();
    press(pad, THROTTLE, 1);
    pads.during(PRESSED_QUIET_MAX_MS + TICK_MS, STANDS);
    expect(pads.frozen).toBe('pad');
  });

  it('stays frozen until new data, and then its throttle must be released', () => {
    const { pad, pads } = taken();
    pads.during(RELEASED_QUIET_MAX_MS + TICK_MS, MOVES);
    expect(pads.during(1_000, STANDS)).toBeNull();
    press(pad, THROTTLE, 1);
    expect(pads.tick(STANDS)).toMatchObject({ throttle: 0 });
    expect(pads.frozen).toBeNull();
    press(pad, THROTTLE, 0);
    pads.tick(STANDS);
    press(pad, THROTTLE, 1);
    expect(pads.tick(STANDS)).toMatchObject({ throttle: 1 });
  });

  it('is missed even if another device of the seat has data; a wheel without pedals has the longer limit', () => {
    kept.set(`tautline.device.${PEDALS}`, JSON.stringify(PEDALS_MAPPING));
    const wheel = plug(0, { id: G29, mapping: '', axes: [0, 0, 0, 0, 0, 0] });
    const pedals = plug(1, { id: PEDALS, mapping: '', axes: [-1, -1], buttons: [] });
    const pads = open();
    pads.tick();
    turn(pedals, 1, 1);
    pads.tick();
    turn(pedals, 1, -1);
    turn(wheel, 0, -1);
    pads.tick();
    for (let passed = 0; passed < RELEASED_QUIET_MAX_MS + TICK_MS; passed += TICK_MS) {
      turn(wheel, 0, Math.sin(passed));
      pads.tick(MOVES);
    }
    expect(pads.frozen).toBe('Loadcell Pedals');
    pads.dropTroubled();
    pads.during(PRESSED_QUIET_MAX_MS / 2, MOVES);
    expect(pads.frozen).toBeNull();
    pads.during(PRESSED_QUIET_MAX_MS, MOVES);
    expect(pads.frozen).toBe('Logitech G29 Driving Force Racing Wheel');
  });

  it('is dropped until it is moved when the person drives with another', () => {
    const { pad, pads } = taken();
    turn(pad, 0, -0.5);
    pads.during(RELEASED_QUIET_MAX_MS + 2 * TICK_MS, MOVES);
    pads.dropTroubled();
    expect(pads.during(20_000, MOVES)).toBeNull();
    expect(pads.frozen).toBeNull();
    turn(pad, 0, -1);
    expect(pads.tick(MOVES)).toMatchObject({ steering: 1 });
  });
});

describe('for any input of the devices', () => {
  it('the seat stays within its bounds, and has no throttle without a healthy brake', () => {
    let state = 41;
    const random = (): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
    const oneOf = <T>(...values: T[]): T => values[Math.floor(random() * values.length)]!;
    kept.set(`tautline.device.${PEDALS}`, JSON.stringify(PEDALS_MAPPING));
    const pads = open();
    for (let tick = 0; tick < 5_000; tick += 1) {
      const index = Math.floor(random() * 4);
      if (random() < 0.02) plug(index, { id: oneOf('pad', G29, PEDALS, ''), mapping: oneOf('', 'standard'), axes: Array<number>(oneOf(0, 2, 4, 6)).fill(0) });
      else if (random() < 0.01) connected[index] = null;
      const pad = connected[index];
      if (pad != null) {
        turn(pad, Math.floor(random() * pad.axes.length), oneOf(-1, -0.05, 0, 0.3, 1, 1.29, -7, NaN, Infinity));
        press(pad, Math.floor(random() * 17), oneOf(0, 0, 0.4, 1, NaN));
      }
      if (random() < 0.01) pads.use(index, random() < 0.8);
      if (random() < 0.005) pads.dropTroubled();
      if (random() < 0.005) pads.motion = oneOf('ackermann', 'differential', 'omni');
      const reading = pads.tick({ driven: random() < 0.9, moves: random() < 0.5, keysDrive: random() < 0.1, holdsSpeed: random() < 0.5 });
      if (reading === null) continue;
      for (const lever of [reading.steering, reading.speed, reading.sideways]) expect(Math.abs(lever)).toBeLessThanOrEqual(1);
      for (const pedal of [reading.throttle, reading.brake]) {
        expect(pedal).toBeGreaterThanOrEqual(0);
        expect(pedal).toBeLessThanOrEqual(1);
      }
      const brakes = pads.views().some(({ parts, state: told }) => told === 'in use' && parts.includes('brake'));
      if (reading.throttle > 0) expect(brakes).toBe(true);
    }
  });
});

describe('a device of a machine that a twist moves', () => {
  const [X, Y, RIGHT_X] = [0, 1, 2];

  /** Returns a pad that was pushed once and released, for this kind of machine. */
  function robot(motion: Motion): { pad: FakePad; pads: Reader } {
    const pad = plug();
    const pads = open();
    pads.motion = motion;
    pads.tick();
    turn(pad, Y, -1);
    expect(pads.tick()).toMatchObject({ speed: 0, steering: 0, sideways: 0 });
    expect(pads.views()[0]).toMatchObject({ state: 'in use', needsCentre: true });
    turn(pad, Y, 0);
    pads.tick();
    expect(pads.views()[0]!.needsCentre).toBe(false);
    return { pad, pads };
  }

  it('gives speed, turn and sideways motion once all were released', () => {
    const { pad, pads } = robot('omni');
    for (const [axis, value] of [[Y, -1], [X, -1], [RIGHT_X, -1]] as const) turn(pad, axis, value);
    expect(pads.tick()).toMatchObject({ speed: 1, sideways: 1, steering: 1, throttle: 0 });
    pads.disarm();
    turn(pad, Y, 0);
    turn(pad, X, 0);
    expect(pads.tick()).toMatchObject({ speed: 0, sideways: 0, steering: 0 });
    turn(pad, RIGHT_X, 0);
    pads.tick();
    turn(pad, RIGHT_X, 1);
    expect(pads.tick()).toMatchObject({ steering: -1 });
  });

  it('turns a differential machine by the stick that was chosen, and keeps the choice for it alone', () => {
    const { pad, pads } = robot('differential');
    expect(pads.views()[0]).toMatchObject({ sticks: 'left', parts: ['steering', 'throttle', 'brake', 'speed'] });
    turn(pad, X, -1);
    expect(pads.tick()).toMatchObject({ steering: 1 });
    pads.setSticks(0, 'both');
    expect(pads.views()[0]).toMatchObject({ sticks: 'both', state: 'in use' });
    pads.tick();
    turn(pad, RIGHT_X, 1);
    expect(pads.tick()).toMatchObject({ steering: -1 });
    pads.motion = 'ackermann';
    expect(pads.views()[0]).toMatchObject({ sticks: null, state: 'ready', isCalibrated: false });
    pads.motion = 'differential';
    expect(pads.views()[0]!.sticks).toBe('both');
  });

  it('drives by the pedals that were calibrated for a car', () => {
    kept.set(`tautline.device.${PEDALS}`, JSON.stringify(PEDALS_MAPPING));
    const pad = plug(0, { id: PEDALS, mapping: '', axes: [-1, -1] });
    const pads = open();
    pads.motion = 'differential';
    pads.tick();
    turn(pad, 1, 1);
    expect(pads.tick()).toMatchObject({ brake: 1 });
    pads.remember(0, null);
    expect(pads.views()[0]!.parts).toEqual([]);
    expect(kept.size).toBe(1);
  });

  it('goes out of use when the kind of machine changes, and drives nothing before its next move', () => {
    const { pad, pads } = robot('differential');
    turn(pad, Y, -1);
    expect(pads.tick()).toMatchObject({ speed: 1 });
    pads.motion = 'omni';
    expect(pads.tick()).toBeNull();
  });

  it('counts as frozen after 12 s with a stick or a speed held, else after 3 s', () => {
    const { pad, pads } = robot('differential');
    turn(pad, Y, -1);
    pads.during(PRESSED_QUIET_MAX_MS - TICK_MS, MOVES);
    expect(pads.frozen).toBeNull();
    pads.during(2 * TICK_MS, MOVES);
    expect(pads.frozen).toBe('pad');
    const cruising = robot('differential').pads;
    cruising.during(PRESSED_QUIET_MAX_MS - TICK_MS, { ...MOVES, holdsSpeed: true });
    expect(cruising.frozen).toBeNull();
    cruising.during(2 * TICK_MS, { ...MOVES, holdsSpeed: true });
    expect(cruising.frozen).toBe('pad');
    const released = robot('differential').pads;
    released.during(RELEASED_QUIET_MAX_MS + TICK_MS, MOVES);
    expect(released.frozen).toBe('pad');
  });
});

describe('a device in use without numbers', () => {
  it.each([NaN, Infinity])('is not read, and named: %s', (value) => {
    const { pad, pads } = taken();
    turn(pad, 0, value);
    expect(pads.tick(MOVES)).toBeNull();
    expect([pads.unsound, pads.views()[0]!.state]).toEqual(['pad', 'unsound']);
    turn(pad, 0, 0);
    expect(pads.tick(MOVES)).not.toBeNull();
    expect(pads.unsound).toBeNull();
  });

  it('includes one that has lost an axis', () => {
    const { pad, pads } = taken();
    pad.axes = [];
    pads.tick(MOVES);
    expect(pads.unsound).toBe('pad');
  });
});
