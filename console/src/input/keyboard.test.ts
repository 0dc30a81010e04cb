import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Motion } from '../generated/kinds';
import { Keyboard, hasFunction, keysOf } from './keyboard';

type Told = Partial<Pick<KeyboardEvent, 'repeat' | 'ctrlKey' | 'metaKey' | 'altKey' | 'key'>> & { target?: unknown };

const events = { press: vi.fn(), touched: vi.fn(), braked: vi.fn(), metaKey: vi.fn(), free: vi.fn(() => false) };
let listeners: Record<string, (event: unknown) => void>;
let keyboard: Keyboard;

beforeEach(() => {
  vi.clearAllMocks();
  listeners = {};
  keyboard = new Keyboard({
    addEventListener: (name: string, listener: unknown) => { listeners[name] = listener as (event: unknown) => void; },
  }, events);
});

function fire(name: 'keydown' | 'keyup', code: string, told: Told = {}): { prevented: boolean } {
  const result = { prevented: false };
  listeners[name]!({
    code, key: code, repeat: false, ctrlKey: false, metaKey: false, altKey: false, target: null,
    preventDefault: () => { result.prevented = true; }, ...told,
  });
  return result;
}

describe('held keys', () => {
  it('are down until they are released', () => {
    fire('keydown', 'KeyW');
    fire('keydown', 'ArrowLeft');
    expect(keyboard.keys()).toMatchObject({ forward: true, left: true });
    fire('keyup', 'KeyW');
    expect(keyboard.keys()).toMatchObject({ forward: false, left: true });
    expect(events.touched).toHaveBeenCalledTimes(2);
  });

  it('report the full brake at once, even if it is up again before they are read', () => {
    fire('keydown', 'ArrowDown');
    fire('keydown', 'Space');
    fire('keyup', 'Space');
    expect(events.braked).toHaveBeenCalledOnce();
    expect(keyboard.keys().hardBrake).toBe(false);
  });

  it('must be pressed again after a release of all keys', () => {
    fire('keydown', 'KeyW');
    keyboard.releaseAll();
    fire('keydown', 'KeyW', { repeat: true });
    expect(keyboard.keys().forward).toBe(false);
  });

  it('include the dead-man input, which drives nothing', () => {
    fire('keydown', 'ShiftLeft');
    fire('keydown', 'KeyW');
    expect([keyboard.deadMan, keyboard.keys().forward]).toEqual([true, true]);
    fire('keyup', 'ShiftLeft');
    expect(keyboard.deadMan).toBe(false);
  });
});

describe('the keys of sideways motion', () => {
  it('count only for an omnidirectional machine', () => {
    const held = () => {
      const { prevented } = fire('keydown', 'KeyZ');
      const { sidewaysLeft } = keyboard.keys();
      fire('keyup', 'KeyZ');
      return [prevented, sidewaysLeft, keyboard.keys().sidewaysLeft];
    };
    for (const motion of ['ackermann', 'differential'] as const) {
      keyboard.motion = motion;
      expect(held()).toEqual([false, false, false]);
    }
    expect(events.touched).not.toHaveBeenCalled();
    keyboard.motion = 'omni';
    expect(held()).toEqual([true, true, false]);
    expect(events.touched).toHaveBeenCalledOnce();
  });
});

describe('a key without a function', () => {
  it('is down only if it is assigned, and reported once', () => {
    expect([fire('keydown', 'KeyK').prevented, keyboard.isDown('KeyK')]).toEqual([false, false]);
    events.free.mockReturnValueOnce(true);
    expect([fire('keydown', 'KeyK').prevented, keyboard.isDown('KeyK')]).toEqual([true, true]);
    expect(fire('keydown', 'KeyK', { repeat: true }).prevented).toBe(true);
    expect(events.free).toHaveBeenCalledTimes(2);
    fire('keyup', 'KeyK');
    expect(keyboard.isDown('KeyK')).toBe(false);
    expect(hasFunction('KeyW') && hasFunction('Escape') && !hasFunction('KeyK')).toBe(true);
  });
});

describe('a Meta key', () => {
  it('releases every key, whatever name the browser uses for it', () => {
    for (const told of [{ code: 'MetaLeft' }, { code: 'OSRight' }, { code: '', key: 'Meta' }, { code: '', key: 'OS' }]) {
      fire('keydown', 'KeyW');
      fire('keydown', told.code, told);
      expect(keyboard.keys().forward).toBe(false);
    }
    expect(events.metaKey).toHaveBeenCalledTimes(4);
  });

  it('does the same if only seen in another key\'s event, and that key is ignored', () => {
    fire('keydown', 'KeyW');
    fire('keydown', 'KeyA', { metaKey: true });
    expect(keyboard.keys()).toMatchObject({ forward: false, left: false });
    fire('keydown', 'KeyW');
    fire('keyup', 'KeyK', { metaKey: true });
    expect(keyboard.keys().forward).toBe(false);
  });

  it('may be released last, when other key-up events were lost', () => {
    fire('keydown', 'KeyW');
    fire('keyup', 'MetaLeft');
    expect(keyboard.keys().forward).toBe(false);
  });

  it('does not keep Escape from stopping', () => {
    fire('keydown', 'Escape', { metaKey: true });
    expect(events.press).toHaveBeenCalledExactlyOnceWith('emergency-stop');
  });
});

describe('presses', () => {
  it('act once, not while the key repeats', () => {
    fire('keydown', 'Enter');
    fire('keydown', 'Enter', { repeat: true });
    expect(events.press).toHaveBeenCalledExactlyOnceWith('arm');
  });

  it('prevent the browser\'s own action', () => {
    for (const code of ['F1', 'Backspace', 'Space', 'Escape']) expect(fire('keydown', code).prevented).toBe(true);
  });

  it('go to the focused element, except stop and help', () => {
    const target = { tagName: 'INPUT' };
    for (const code of ['KeyP', 'Enter', 'KeyE', 'Escape', 'F1']) fire('keydown', code, { target });
    expect(events.press.mock.calls.flat()).toEqual(['emergency-stop', 'emergency-stop', 'help']);
    fire('keydown', 'Enter', { target: { tagName: 'BUTTON' } });
    expect(events.press).toHaveBeenCalledTimes(3);
  });

  it('with Ctrl or Alt belong to the browser', () => {
    fire('keydown', 'KeyR', { ctrlKey: true });
    fire('keydown', 'KeyE', { ctrlKey: true });
    fire('keydown', 'ArrowLeft', { altKey: true });
    expect([events.press.mock.calls, keyboard.keys().left]).toEqual([[], false]);
  });
});

describe('the help', () => {
  it('names every key', () => {
    const named = keysOf('ackermann').flatMap(({ keys }) => keys);
    for (const key of ['Esc', 'Enter', 'Backspace', 'P', 'R', 'Shift', 'F1', 'Space']) {
      expect(named).toContain(key);
    }
  });

  it('names the keys of this kind of machine', () => {
    const does = (motion: Motion, key: string) => keysOf(motion).find(({ keys }) => keys.includes(key))?.does;
    expect([does('ackermann', 'W'), does('ackermann', 'S'), does('ackermann', 'Z')]).toEqual(['throttle', 'brake', undefined]);
    expect([does('differential', 'S'), does('differential', 'Z')]).toEqual([expect.stringMatching(/^back/), undefined]);
    expect(does('omni', 'C')).toMatch(/sideways/);
  });
});
