import { DEAD_MAN_BUTTON, type Mapping, type PadState, apply, guessMapping, parseMapping } from './mapping';
import { type Position, REST } from './ramp';

export interface PadEvents {
  emergencyStop(): void;
  toggleReverse(): void;
  /** The pad that was driving is gone. */
  gone(): void;
}

export interface PadReading extends Position {
  /** The pad was moved since the last reading. */
  touched: boolean;
  /** Its dead-man button is held. */
  deadMan: boolean;
  /** Nothing was heard from it for too long while its throttle was pressed: what it says is not to be believed. */
  frozen: boolean;
  /** So long nothing has been heard from it while its throttle was pressed, ms: a hint is due before it counts as frozen. */
  stillMs: number;
}

const STORE = 'tautline.mapping.';
const TOUCH = 0.02;
// A pedal counts as let go of below this.
const RELEASED = 0.05;
/**
 * A pad's `timestamp` that stands still for so long with the throttle pressed: frozen. A hand on a stick or a wheel
 * moves more often than that; a pedal at its end may not, so the person is warned at half the time.
 */
export const FROZEN_MS = 2_000;

/** The first gamepad or wheel, through its mapping. */
export class Gamepads {
  #index: number | null = null;
  #mapping: Mapping | null = null;
  #before: Position | null = null;
  #buttonsBefore: boolean[] = [];
  /** Many pads report half pressed pedals until first moved: they must be seen released first. */
  #armed = false;
  readonly #pulse = new Pulse();

  constructor(readonly events: PadEvents, readonly store: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>) {}

  /** Null without a pad. Call once a tick. */
  read(nowMs: number): PadReading | null {
    const pad = this.pad();
    if (pad === null) return null;
    const mapping = this.mapping(pad);
    const position = apply(mapping, pad);
    const stillMs = this.#pulse.observe(pad.timestamp ?? 0, position.throttle >= RELEASED, nowMs);
    if (this.#pulse.frozen) {
      this.disarm();
      return { ...REST, touched: false, deadMan: false, frozen: true, stillMs };
    }
    const before = this.#before;
    this.#before = position;
    this.#watchButtons(pad, mapping);
    if (position.throttle < RELEASED) this.#armed = true;
    const touched = before !== null && (Math.abs(position.steering - before.steering) > TOUCH
      || Math.abs(position.throttle - before.throttle) > TOUCH || Math.abs(position.brake - before.brake) > TOUCH);
    const deadMan = pad.buttons[mapping.deadManButton ?? DEAD_MAN_BUTTON]?.pressed === true;
    return { ...position, throttle: this.#armed ? position.throttle : 0, touched, deadMan, frozen: false, stillMs };
  }

  /** The throttle works again once it has been let go of. */
  disarm(): void {
    this.#armed = false;
  }

  pad(): PadState | null {
    const pads = navigator.getGamepads();
    const held = this.#index === null ? null : pads[this.#index] ?? null;
    if (held?.connected === true) return held;
    if (this.#index !== null) {
      this.#forget();
      this.events.gone();
    }
    const found = pads.find((pad) => pad?.connected === true && pad.axes.length > 0) ?? null;
    if (found !== null) this.#index = found.index;
    return found;
  }

  mapping(pad: PadState): Mapping {
    this.#mapping ??= this.#stored(pad) ?? guessMapping(pad);
    return this.#mapping;
  }

  /** Keeps a mapping for this kind of pad; null goes back to the guess. */
  remember(pad: PadState, mapping: Mapping | null): void {
    this.#mapping = mapping ?? guessMapping(pad);
    this.#armed = false;
    try {
      if (mapping === null) this.store.removeItem(STORE + pad.id);
      else this.store.setItem(STORE + pad.id, JSON.stringify(mapping));
    } catch {
      // A browser that keeps nothing: the mapping lasts until the page is closed.
    }
  }

  #stored(pad: PadState): Mapping | null {
    try {
      return parseMapping(this.store.getItem(STORE + pad.id) ?? '');
    } catch {
      return null;
    }
  }

  #watchButtons(pad: PadState, mapping: Mapping): void {
    const pressed = pad.buttons.map((button) => button.pressed);
    const went = (index: number): boolean => pressed[index] === true && this.#buttonsBefore[index] === false;
    if (went(mapping.stopButton)) this.events.emergencyStop();
    if (went(mapping.reverseButton)) this.events.toggleReverse();
    this.#buttonsBefore = pressed;
  }

  #forget(): void {
    this.#index = null;
    this.#mapping = null;
    this.#before = null;
    this.#buttonsBefore = [];
    this.#armed = false;
    this.#pulse.reset();
  }
}

/** Whether a pad is still heard from, by its timestamp. Once frozen, only a new timestamp ends that. */
class Pulse {
  #timestamp = 0;
  #stillSinceMs: number | null = null;
  frozen = false;

  /** `pressed`: its throttle is; a pad that nobody presses may lie still. Returns for how long it has, ms. */
  observe(timestamp: number, pressed: boolean, nowMs: number): number {
    if (timestamp === 0) return 0;
    if (timestamp !== this.#timestamp) {
      this.#timestamp = timestamp;
      this.#stillSinceMs = nowMs;
      this.frozen = false;
      return 0;
    }
    if (!pressed && !this.frozen) this.#stillSinceMs = nowMs;
    const stillMs = nowMs - (this.#stillSinceMs ?? nowMs);
    this.frozen ||= stillMs >= FROZEN_MS;
    return stillMs;
  }

  reset(): void {
    this.#timestamp = 0;
    this.#stillSinceMs = null;
    this.frozen = false;
  }
}
