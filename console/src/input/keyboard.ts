import type { Keys } from './ramp';

export interface KeyEvents {
  emergencyStop(): void;
  releaseEmergencyStop(): void;
  toggleReverse(): void;
  /** Any driving key: the page evidently has the focus. */
  touched(): void;
}

type Held = keyof Keys;

const HELD: Readonly<Record<string, Held>> = {
  ArrowLeft: 'left', KeyA: 'left',
  ArrowRight: 'right', KeyD: 'right',
  ArrowUp: 'throttle', KeyW: 'throttle',
  ArrowDown: 'brake', KeyS: 'brake',
  Space: 'hardBrake',
};

/** Which driving keys are down. Repeats count for nothing: after a lost focus a key must be pressed anew. */
export class Keyboard {
  readonly #down = new Set<string>();

  constructor(target: Pick<EventTarget, 'addEventListener'>, readonly events: KeyEvents) {
    target.addEventListener('keydown', (event) => this.#pressed(event as KeyboardEvent));
    target.addEventListener('keyup', (event) => this.#down.delete((event as KeyboardEvent).code));
  }

  keys(): Keys {
    const keys: Keys = { left: false, right: false, throttle: false, brake: false, hardBrake: false };
    for (const code of this.#down) {
      const held = HELD[code];
      if (held !== undefined) keys[held] = true;
    }
    return keys;
  }

  releaseAll(): void {
    this.#down.clear();
  }

  #pressed(event: KeyboardEvent): void {
    if (event.code === 'Escape' || (event.code === 'KeyE' && !event.ctrlKey && !event.metaKey)) {
      event.preventDefault();
      this.events.emergencyStop();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || wantsKeys(event)) return;
    if (HELD[event.code] !== undefined) {
      event.preventDefault();
      if (event.repeat) return;
      this.#down.add(event.code);
      this.events.touched();
    } else if (event.code === 'KeyR' && !event.repeat) {
      this.events.toggleReverse();
    } else if (event.code === 'Enter' && !event.repeat) {
      this.events.releaseEmergencyStop();
    }
  }
}

/** A slider, a list or a button under the focus needs its keys; arrows on a button do nothing there, so drive. */
function wantsKeys(event: KeyboardEvent): boolean {
  const target = event.target as { tagName?: string } | null;
  const tag = target?.tagName ?? '';
  if (tag === 'INPUT' || tag === 'SELECT' || tag === 'TEXTAREA') return true;
  return (tag === 'BUTTON' || tag === 'SUMMARY') && (event.code === 'Space' || event.code === 'Enter');
}
