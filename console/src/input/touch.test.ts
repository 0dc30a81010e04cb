import { beforeEach, describe, expect, it, vi } from 'vitest';
import { REST } from './ramp';
import { type Area, type Side, TRAVEL_PX, Touch } from './touch';

type Told = { pointerId: number; clientX: number; clientY: number; button: number; preventDefault(): void };

let listeners: Record<Side, Record<string, (event: Told) => void>>;
let touch: Touch;
const capture = vi.fn();

beforeEach(() => {
  vi.clearAllMocks();
  listeners = { left: {}, right: {} };
  const area = (side: Side): Area => ({
    addEventListener: ((name: string, listener: (event: Told) => void) => { listeners[side][name] = listener; }) as Area['addEventListener'],
    setPointerCapture: capture,
  });
  touch = new Touch({ left: area('left'), right: area('right') });
});

function fire(side: Side, name: string, pointerId: number, x = 0, y = 0, button = 0): void {
  listeners[side][name]!({ pointerId, clientX: 100 + x * TRAVEL_PX, clientY: 300 - y * TRAVEL_PX, button, preventDefault: () => {} });
}

function push(side: Side, pointerId: number, x: number, y: number): void {
  fire(side, 'pointerdown', pointerId);
  fire(side, 'pointermove', pointerId, x, y);
}

describe('two thumbs', () => {
  it('begin at 0 wherever they touch, and are captured', () => {
    fire('left', 'pointerdown', 7, 3, 2);
    expect(touch.position('differential')).toEqual(REST);
    expect([touch.isHeld, touch.thumb('left')?.origin]).toEqual([true, { x: 100 + 3 * TRAVEL_PX, y: 300 - 2 * TRAVEL_PX }]);
    expect(capture).toHaveBeenCalledExactlyOnceWith(7);
  });

  it('drive each kind of machine', () => {
    push('left', 1, -1, 1);
    push('right', 2, -1, 1);
    expect(touch.position('ackermann')).toEqual({ ...REST, steering: 1, throttle: 1 });
    expect(touch.position('differential')).toEqual({ ...REST, steering: 1, speed: 1 });
    expect(touch.position('omni')).toEqual({ ...REST, steering: 1, speed: 1, sideways: 1 });
    fire('left', 'pointermove', 1, 5, -5);
    fire('right', 'pointermove', 2, 5, -5);
    expect(touch.position('ackermann')).toEqual({ ...REST, steering: -1, brake: 1 });
    expect(touch.position('omni')).toEqual({ ...REST, steering: -1, speed: -1, sideways: -1 });
  });

  it('are 0 near the first touch, and grow from there', () => {
    push('left', 1, 0.11, -0.11);
    expect(touch.position('omni')).toEqual(REST);
    fire('left', 'pointermove', 1, 0, 0.56);
    expect(touch.position('differential')?.speed).toBeCloseTo(0.5);
  });

  it.each(['pointerup', 'pointercancel', 'lostpointercapture'])('are released by %s of their own pointer', (end) => {
    push('left', 1, 0, 1);
    push('right', 2, 1, 0);
    fire('left', end, 2);
    expect(touch.position('differential')?.speed).toBe(1);
    fire('left', end, 1);
    expect(touch.position('differential')).toEqual({ ...REST, steering: -1 });
    fire('right', end, 2);
    expect([touch.isHeld, touch.position('differential')]).toEqual([false, null]);
  });

  it('must be lifted after all were released', () => {
    push('left', 1, 0, 1);
    touch.releaseAll();
    fire('left', 'pointermove', 1, 0, 1);
    expect(touch.position('differential')).toBeNull();
    push('left', 3, 0, 1);
    expect(touch.position('differential')?.speed).toBe(1);
  });

  it('ignore a second pointer in the same area, and other mouse buttons', () => {
    push('left', 1, 0, 1);
    push('left', 2, 0, -1);
    expect(touch.position('differential')?.speed).toBe(1);
    fire('left', 'pointerup', 1);
    fire('right', 'pointerdown', 3, 0, 0, 2);
    expect(touch.isHeld).toBe(false);
  });
});
