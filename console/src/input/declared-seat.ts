import type { Axis, Description } from '../declared';

/** Inputs of a person for the declared controls in one tick. */
export interface DeclaredInputs {
  /** Position of the lever or keys of each axis, -1 to 1; 0 if nothing is held. */
  levers: readonly number[];
  /** Numbers of the momentary actions whose key or button is held. */
  held: ReadonlySet<number>;
  /** Reported position or speed of each axis; NaN if unknown. */
  measured: readonly number[];
  /** True while the guard lets this console drive. */
  driven: boolean;
}

/** Set points of the axes and the actions that are on, as a command has them. */
export interface DeclaredControls {
  /** NaN: no set point. */
  axes: number[];
  /** Bit n for action n. */
  actions: number;
}

/**
 * Combines what a person sets for declared axes and actions.
 *
 * A set point begins with the first touch and ends with every absence and stop: a position then
 * stays where it is, and no speed returns. A switch that a stop turns off stays off.
 */
export class DeclaredSeat {
  #description: Description | null = null;
  #setPoints: number[] = [];
  /** Position, -1 to 1, at which the page's own control of each axis is held. */
  #pushed: number[] = [];
  readonly #switched = new Set<number>();
  readonly #pressed = new Set<number>();
  #wasDriven = false;

  /** Takes the machine's description; another one has other numbers, so everything ends. */
  describe(description: Description | null): void {
    if (description?.revision === this.#description?.revision) return;
    this.#description = description;
    this.#switched.clear();
    this.release();
  }

  /** Ends all set points and everything that is held down. */
  release(): void {
    this.#setPoints = (this.#description?.axes ?? []).map(() => NaN);
    this.#pushed = (this.#description?.axes ?? []).map(() => 0);
    this.#pressed.clear();
  }

  /** Sets a position axis, within its range, while the guard lets this console drive. */
  setPosition(index: number, position: number): void {
    const axis = this.#description?.axes[index];
    if (axis?.form === 'position' && this.#wasDriven) this.#setPoints[index] = within(position, axis);
  }

  /** Holds the page's control of an axis at -1 to 1; 0 releases it. */
  push(index: number, share: number): void {
    if (index < this.#pushed.length) this.#pushed[index] = share;
  }

  /** Presses or releases the page's button of a momentary action. */
  press(index: number, isDown: boolean): void {
    if (isDown && this.#description?.actions[index]?.form === 'momentary') this.#pressed.add(index);
    else this.#pressed.delete(index);
  }

  /**
   * Switches an action on, or off if it is on. Returns false if it is not a switch, or if the
   * machine does not allow it while it is held. An indicator that is switched on ends the other
   * one.
   */
  toggle(index: number): boolean {
    const action = this.#description?.actions[index];
    if (action?.form !== 'switch') return false;
    if (this.#switched.delete(index)) return true;
    if (!this.#wasDriven && !action.allowedHeld) return false;
    this.#switched.add(index);
    // One indicator ends the other.
    const other = action.name === 'left' ? 'right' : action.name === 'right' ? 'left' : null;
    if (other !== null) this.#switched.delete(this.#description!.actions.findIndex(({ name }) => name === other));
    return true;
  }

  isOn(index: number): boolean {
    return this.#switched.has(index) || this.#pressed.has(index);
  }

  /** Returns the controls of a tick, `seconds` after the last one. */
  next({ levers, held, measured, driven }: DeclaredInputs, seconds: number): DeclaredControls {
    const description = this.#description;
    if (this.#wasDriven && !driven) this.#stop();
    this.#wasDriven = driven;
    if (description === null) return { axes: [], actions: 0 };
    const axes = description.axes.map((axis, index) => {
      const lever = clamp((levers[index] ?? 0) + this.#pushed[index]!);
      return driven ? this.#axis(axis, index, lever, measured[index] ?? NaN, seconds) : NaN;
    });
    let actions = 0;
    description.actions.forEach(({ form, allowedHeld }, index) => {
      const isHeld = form === 'momentary' && held.has(index);
      if ((isHeld || this.isOn(index)) && (driven || allowedHeld || form === 'switch')) actions |= 1 << index;
    });
    return { axes, actions: actions >>> 0 };
  }

  #axis(axis: Axis, index: number, lever: number, measured: number, seconds: number): number {
    const before = this.#setPoints[index]!;
    if (axis.form === 'speed') {
      // Once used, an axis at rest gets a speed of exactly 0.
      const next = lever === 0 ? before * 0 : lever > 0 ? lever * axis.high : -lever * axis.low;
      this.#setPoints[index] = next === 0 ? 0 : next;
    } else if (lever !== 0) {
      const from = Number.isNaN(before) ? measured : before;
      // An axis at an unknown position would jump; the slider sets a position instead.
      if (!Number.isNaN(from)) this.#setPoints[index] = within(from + lever * axis.rate * seconds, axis);
    }
    return this.#setPoints[index]!;
  }

  #stop(): void {
    this.release();
    for (const index of this.#switched) {
      const action = this.#description?.actions[index];
      // A switch that is allowed while the machine is held stays as the person wants.
      if (action?.onStop === 'off' && !action.allowedHeld) this.#switched.delete(index);
    }
  }
}

function within(value: number, { low, high }: Axis): number {
  return Math.min(high, Math.max(low, value));
}

function clamp(share: number): number {
  return Math.min(1, Math.max(-1, share));
}
