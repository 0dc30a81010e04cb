import type { Motion } from '../generated/kinds';
import { isTwisted } from '../twist';
import { type Keys, NO_KEYS } from './ramp';

/** Action of a single key press. */
export type Press =
  | 'emergency-stop' | 'arm' | 'reset' | 'park' | 'reverse' | 'help';

export interface KeyEvents {
  press(press: Press): void;
  /** Called for any driving key: the page evidently has the focus. */
  touched(): void;
  /** Called for a key without a function of its own; returns whether it is assigned to anything. */
  free(code: string): boolean;
  /** Called when the full brake goes down, which may be up again before the keys are read. */
  braked(): void;
  /**
   * Called for a Meta key: while it is down, browsers and window managers withhold key-up events.
   */
  metaKey(): void;
}

type Held = keyof Keys | 'dead-man';

const HELD: Readonly<Record<string, Held>> = {
  ArrowLeft: 'left', KeyA: 'left',
  ArrowRight: 'right', KeyD: 'right',
  ArrowUp: 'forward', KeyW: 'forward',
  ArrowDown: 'back', KeyS: 'back',
  // Below A and D, since E is the emergency stop.
  KeyZ: 'sidewaysLeft', KeyC: 'sidewaysRight',
  Space: 'hardBrake',
  // A modifier key: every keyboard reports it together with any other keys.
  ShiftLeft: 'dead-man', ShiftRight: 'dead-man',
};

const PRESSES: Readonly<Record<string, Press>> = {
  Escape: 'emergency-stop', KeyE: 'emergency-stop',
  Enter: 'arm', NumpadEnter: 'arm', Backspace: 'reset', KeyP: 'park', KeyR: 'reverse',
  F1: 'help',
};

/** Returns whether the page itself has a function for this key. */
export function hasFunction(code: string): boolean {
  return code in HELD || code in PRESSES;
}

/** Keys and their function. */
export interface KeyLine {
  keys: readonly string[];
  does: string;
}

/** Returns all keys and their function for this kind of machine, for the help. */
export function keysOf(motion: Motion): KeyLine[] {
  return isTwisted(motion) ? [...TWIST_KEYS, ...(motion === 'omni' ? OMNI_KEYS : []), ...STOP_KEYS, ...OTHER_KEYS] : [...CAR_KEYS, ...OTHER_KEYS];
}

const CAR_KEYS: readonly KeyLine[] = [
  { keys: ['W', '↑'], does: 'throttle' },
  { keys: ['S', '↓'], does: 'brake' },
  { keys: ['A', 'D', '←', '→'], does: 'steer' },
  { keys: ['Space'], does: 'full brake' },
];
const TWIST_KEYS: readonly KeyLine[] = [
  { keys: ['W', '↑'], does: 'forward; faster, if the speed is a set point' },
  { keys: ['S', '↓'], does: 'back; slower, if the speed is a set point' },
  { keys: ['A', 'D', '←', '→'], does: 'turn left, right; alone: on the spot' },
];
const OMNI_KEYS: readonly KeyLine[] = [{ keys: ['Z', 'C'], does: 'move sideways to the left, to the right' }];
const STOP_KEYS: readonly KeyLine[] = [{ keys: ['Space'], does: 'brake: speed and turn 0' }];

const OTHER_KEYS: readonly KeyLine[] = [
  { keys: ['Esc', 'E'], does: 'emergency stop' },
  { keys: ['Enter'], does: 'arm, with all controls released and the vehicle held' },
  { keys: ['Backspace'], does: 'reset the latched stop, at standstill' },
  { keys: ['P'], does: 'park: hold the vehicle in place' },
  { keys: ['R'], does: 'change the direction in which a throttle drives, at standstill' },
  { keys: ['Shift'], does: 'dead-man input, if one is used: hold it to drive' },
  { keys: ['F1'], does: 'this help' },
];

/**
 * The driving keys that are down. Repeats by the keyboard are ignored, so a key that was held while
 * the focus was lost must be pressed again.
 */
export class Keyboard {
  readonly #down = new Set<string>();
  /** Kind of the machine: only an omnidirectional one has keys for sideways motion. */
  motion: Motion = 'ackermann';

  constructor(target: Pick<EventTarget, 'addEventListener'>, readonly events: KeyEvents) {
    target.addEventListener('keydown', (event) => this.#pressed(event as KeyboardEvent));
    target.addEventListener('keyup', (event) => this.#released(event as KeyboardEvent));
  }

  keys(): Keys {
    const keys: Keys = { ...NO_KEYS };
    for (const code of this.#down) {
      const held = this.#held(code);
      if (held !== undefined && held !== 'dead-man') keys[held] = true;
    }
    return keys;
  }

  get deadMan(): boolean {
    return this.#holds('dead-man');
  }

  /** Returns whether this key is down, if it has a function or is assigned to one. */
  isDown(code: string): boolean {
    return this.#down.has(code);
  }

  releaseAll(): void {
    this.#down.clear();
  }

  /** Returns what this key does while it is held; `undefined` if nothing. */
  #held(code: string): Held | undefined {
    const held = HELD[code];
    const isSideways = held === 'sidewaysLeft' || held === 'sidewaysRight';
    return isSideways && this.motion !== 'omni' ? undefined : held;
  }

  #holds(held: Held): boolean {
    return Array.from(this.#down).some((code) => HELD[code] === held);
  }

  #released(event: KeyboardEvent): void {
    // A Meta key may have gone down without an event, and other keys may have been released
    // unnoticed since then.
    if (isMeta(event)) this.#letGo();
    this.#down.delete(event.code);
  }

  #pressed(event: KeyboardEvent): void {
    const press = PRESSES[event.code];
    if (press === 'emergency-stop' && (event.code === 'Escape' || !(event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      if (!event.repeat) this.events.press(press);
      return;
    }
    if (isMeta(event)) {
      this.#letGo();
      return;
    }
    if (event.ctrlKey || event.altKey || wantsKeys(event)) return;
    const held = this.#held(event.code);
    if (held !== undefined) {
      // Shift alone does nothing in a browser, and other keys need its default.
      if (held !== 'dead-man') event.preventDefault();
      if (event.repeat) return;
      this.#down.add(event.code);
      if (held !== 'dead-man') this.events.touched();
      if (held === 'hardBrake') this.events.braked();
    } else if (press !== undefined) {
      event.preventDefault();
      if (!event.repeat) this.events.press(press);
    } else if (event.repeat ? this.#down.has(event.code) : this.events.free(event.code)) {
      event.preventDefault();
      this.#down.add(event.code);
    }
  }

  /** Handles a Meta key: no key counts as down any more. */
  #letGo(): void {
    this.#down.clear();
    this.events.metaKey();
  }
}

/** Returns whether the key is a Meta key under any of its names, or pressed together with one. */
function isMeta(event: KeyboardEvent): boolean {
  return event.metaKey || META.has(event.code) || event.key === 'Meta' || event.key === 'OS';
}

const META: ReadonlySet<string> = new Set(['MetaLeft', 'MetaRight', 'OSLeft', 'OSRight']);

/**
 * Returns whether the focused element needs the key. Arrow keys do nothing on a button, so they
 * drive.
 */
function wantsKeys(event: KeyboardEvent): boolean {
  if (event.code === 'F1') return false;
  const target = event.target as { tagName?: string; type?: string } | null;
  const tag = target?.tagName ?? '';
  if (tag === 'INPUT' || tag === 'SELECT' || tag === 'TEXTAREA') return true;
  return (tag === 'BUTTON' || tag === 'SUMMARY') && (event.code === 'Space' || event.code === 'Enter');
}
