import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FROZEN_MS, Gamepads, type PadReading } from './gamepad';
import { guessMapping } from './mapping';

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
const events = { emergencyStop: vi.fn(), toggleReverse: vi.fn(), gone: vi.fn() };

const THROTTLE = 7;
const STOP = 1;

beforeEach(() => {
  connected = [];
  kept = new Map();
  vi.clearAllMocks();
  vi.stubGlobal('navigator', { getGamepads: () => connected });
});

afterEach(() => vi.unstubAllGlobals());

function plug(index = 0): FakePad {
  const buttons = Array.from({ length: 17 }, () => ({ value: 0, pressed: false }));
  const pad = { id: 'pad', index, mapping: 'standard', connected: true, timestamp: 0, axes: [0, 0, 0, 0], buttons };
  connected[index] = pad;
  return pad;
}

function press(pad: FakePad, button: number, value: number): void {
  pad.buttons[button] = { value, pressed: value > 0.5 };
}

/** Read at one instant, unless the time is what matters. */
class Reader extends Gamepads {
  override read(nowMs = 0): PadReading | null {
    return super.read(nowMs);
  }
}

function open(): Reader {
  return new Reader(events, {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => { kept.set(key, value); },
    removeItem: (key) => { kept.delete(key); },
  });
}

describe('gamepads', () => {
  it('reads nothing without a pad', () => {
    expect(open().read()).toBeNull();
  });

  it('gives no throttle until the pedal was seen released', () => {
    const pad = plug();
    press(pad, THROTTLE, 1);
    const pads = open();
    expect(pads.read()?.throttle).toBe(0);
    press(pad, THROTTLE, 0);
    pads.read();
    press(pad, THROTTLE, 1);
    expect(pads.read()?.throttle).toBe(1);
  });

  it('gives no throttle after it was disarmed, until released', () => {
    const pad = plug();
    const pads = open();
    pads.read();
    press(pad, THROTTLE, 1);
    pads.disarm();
    expect(pads.read()?.throttle).toBe(0);
  });

  it('brakes whether armed or not', () => {
    const pad = plug();
    press(pad, 6, 1);
    press(pad, THROTTLE, 1);
    expect(open().read()).toMatchObject({ brake: 1, throttle: 0 });
  });

  it('calls the emergency stop once a press, and not for a button held from the start', () => {
    const pad = plug();
    press(pad, STOP, 1);
    const pads = open();
    pads.read();
    pads.read();
    expect(events.emergencyStop).not.toHaveBeenCalled();
    press(pad, STOP, 0);
    pads.read();
    press(pad, STOP, 1);
    pads.read();
    pads.read();
    expect(events.emergencyStop).toHaveBeenCalledOnce();
  });

  it('says once that the driving pad is gone', () => {
    plug();
    const pads = open();
    pads.read();
    connected[0] = null;
    expect(pads.read()).toBeNull();
    expect(pads.read()).toBeNull();
    expect(events.gone).toHaveBeenCalledOnce();
  });

  it('is touched by a move, not by noise', () => {
    const pad = plug();
    const pads = open();
    expect(pads.read()?.touched).toBe(false);
    pad.axes[0] = 0.01;
    expect(pads.read()?.touched).toBe(false);
    pad.axes[0] = -1;
    expect(pads.read()).toMatchObject({ touched: true, steering: 1 });
  });

  it('keeps a mapping for the next time, and goes back to the guess', () => {
    const pad = plug();
    const mine = { ...guessMapping(pad), stopButton: 5 };
    open().remember(pad, mine);
    expect(open().mapping(pad)).toEqual(mine);
    open().remember(pad, null);
    expect(open().mapping(pad)).toEqual(guessMapping(pad));
  });

  it('takes the guess when what was kept is broken', () => {
    const pad = plug();
    kept.set('tautline.mapping.pad', '{"steering":');
    expect(open().mapping(pad)).toEqual(guessMapping(pad));
  });
});

describe('a pad whose timestamp stands still', () => {
  function pressed(): { pad: FakePad; pads: Reader } {
    const pad = plug();
    pad.timestamp = 100;
    const pads = open();
    pads.read(0);
    press(pad, THROTTLE, 1);
    pad.timestamp = 200;
    expect(pads.read(10)).toMatchObject({ throttle: 1, frozen: false, stillMs: 0 });
    return { pad, pads };
  }

  it('is frozen after two seconds with the throttle pressed, and then presses and holds nothing', () => {
    const { pad, pads } = pressed();
    press(pad, 4, 1);
    expect(pads.read(10 + FROZEN_MS - 1)).toMatchObject({ throttle: 1, deadMan: true, frozen: false, stillMs: FROZEN_MS - 1 });
    expect(pads.read(10 + FROZEN_MS)).toMatchObject({ throttle: 0, brake: 0, deadMan: false, frozen: true });
  });

  it('stays frozen until it is heard again, and its throttle must be let go of then', () => {
    const { pad, pads } = pressed();
    pads.read(10 + FROZEN_MS);
    press(pad, THROTTLE, 0);
    expect(pads.read(20_000)?.frozen).toBe(true);
    press(pad, THROTTLE, 1);
    pad.timestamp = 300;
    expect(pads.read(20_020)).toMatchObject({ frozen: false, throttle: 0 });
    press(pad, THROTTLE, 0);
    pads.read(20_040);
    press(pad, THROTTLE, 1);
    expect(pads.read(20_060)?.throttle).toBe(1);
  });

  it('may lie there for as long as nobody presses its throttle', () => {
    const pad = plug();
    pad.timestamp = 100;
    const pads = open();
    for (let nowMs = 0; nowMs <= 60_000; nowMs += 1_000) expect(pads.read(nowMs)).toMatchObject({ frozen: false, stillMs: 0 });
  });

  it('is not frozen while it is heard, nor where a browser tells no timestamp', () => {
    const { pad, pads } = pressed();
    for (let nowMs = 20; nowMs < 10_000; nowMs += 1_900) {
      pad.timestamp += 1;
      expect(pads.read(nowMs)?.frozen).toBe(false);
    }
    pad.timestamp = 0;
    expect(pads.read(60_000)?.frozen).toBe(false);
  });
});
