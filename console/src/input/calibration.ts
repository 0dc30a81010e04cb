import {
  BUTTONS, type Mapping, type PadState, type Pedal, type Steering, TRAVEL_MIN, WHEEL_DEAD_ZONE, contradictionOf, sharesTravel,
} from './mapping';

export type Step = 'rest' | 'left' | 'right' | 'throttle' | 'brake' | 'check';

export const STEPS: readonly Step[] = ['rest', 'left', 'right', 'throttle', 'brake', 'check'];

/** Instruction of each step. */
export const ASKED: Readonly<Record<Step, string>> = {
  rest: 'Centre the wheel or stick, take hands and feet off, then press Next.',
  left: 'Turn fully left, then press Next.',
  right: 'Turn fully right, then press Next.',
  throttle: 'Press the throttle fully, release it, then press Next.',
  brake: 'Press the brake fully, release it, then press Next.',
  check: 'Take hands and feet off once more, then press Next.',
};

/** Smallest, largest and last value of an axis since the step began. */
interface Trace {
  min: number;
  max: number;
  last: number;
}

// Smallest travel of a pedal: a quarter of its axis, which spans 2. A brushed lever moves less.
const PEDAL_TRAVEL_MIN = 0.5;
// Largest distance from its rest, on an axis that spans 2, at which a pedal counts as released.
const REST_MAX = 0.15;
// Another axis that moves by this share of the largest travel makes the answer ambiguous.
const AMBIGUOUS = 0.7;

/**
 * Learns a device's mapping. The operator moves one control at a time, and both of its ends are
 * measured.
 *
 * A contradictory answer is refused, and its step repeated. Chromium shows an axis as exactly 0
 * until it has once been near 0. So a pedal's rest is measured after it was pressed, and every
 * pedal is checked at rest once more at the end.
 */
export class Calibration {
  #step = 0;
  #refusal: string | null = null;
  #rest: readonly number[] = [];
  #restButtons: readonly number[] = [];
  #traces: Trace[] = [];
  #downButtons = new Set<number>();
  #steering: Steering | null = null;
  #throttle: Pedal | null = null;
  #brake: Pedal | null = null;

  /** The buttons and the dead zone are those of `base`, or else the defaults. */
  constructor(readonly base: Mapping | null) {}

  /** Current step; `null` when all are done. */
  get step(): Step | null {
    return STEPS[this.#step] ?? null;
  }

  /** Why the last answer was refused; `null` if it was accepted. */
  get refusal(): string | null {
    return this.#refusal;
  }

  /** True if the step is about a part that a device may lack. */
  get maySkip(): boolean {
    return this.step === 'left' || this.step === 'throttle' || this.step === 'brake';
  }

  /** Handles the device's state; call it once a tick. */
  observe(pad: PadState): void {
    pad.axes.forEach((value, axis) => {
      if (!Number.isFinite(value)) return;
      const trace = this.#traces[axis] ??= { min: value, max: value, last: value };
      trace.min = Math.min(trace.min, value);
      trace.max = Math.max(trace.max, value);
      trace.last = value;
    });
    pad.buttons.forEach(({ value }, button) => {
      if (value - (this.#restButtons[button] ?? 0) > 0.5) this.#downButtons.add(button);
    });
  }

  /** Ends the step. Returns false if the answer is refused; `refusal` has the reason. */
  next(pad: PadState): boolean {
    const { step } = this;
    if (step === null) return false;
    this.observe(pad);
    this.#refusal = this.#learn(step, pad);
    this.#begin(pad);
    if (this.#refusal === null) this.#step += 1;
    return this.#refusal === null;
  }

  /** Skips a part that the device lacks. Returns false if this step cannot be skipped. */
  skip(pad: PadState): boolean {
    if (!this.maySkip) return false;
    if (this.step === 'brake' && this.#steering === null && this.#throttle === null) {
      this.#refusal = 'Without a brake the device would control nothing. Press the brake, or Cancel.';
      return false;
    }
    this.#step += this.step === 'left' ? 2 : 1;
    this.#refusal = null;
    this.#begin(pad);
    return true;
  }

  /** Returns the mapping; `null` until all steps are done. */
  mapping(): Mapping | null {
    if (this.step !== null) return null;
    const { reverseButton, stopButton, deadManButton, deadZone } = this.base ?? { ...BUTTONS, deadZone: WHEEL_DEAD_ZONE };
    const learned = { steering: this.#steering, throttle: this.#throttle, brake: this.#brake };
    return { ...learned, reverseButton, stopButton, deadManButton, deadZone };
  }

  /**
   * Begins a step. Earlier movements are forgotten, so that a mistake does not affect the next try.
   */
  #begin(pad: PadState): void {
    this.#traces = [];
    this.#downButtons = new Set();
    this.observe(pad);
  }

  #learn(step: Step, pad: PadState): string | null {
    switch (step) {
      case 'rest':
        this.#rest = [...pad.axes];
        this.#restButtons = pad.buttons.map(({ value }) => value);
        return null;
      case 'left':
        return this.#learnLeft();
      case 'right':
        return this.#learnRight();
      case 'throttle':
      case 'brake':
        return this.#learnPedal(step, pad);
      case 'check':
        return this.#check();
    }
  }

  #learnLeft(): string | null {
    const centre = (axis: number): number => this.#rest[axis] ?? 0;
    const end = ({ min, max }: Trace, axis: number): number => (max - centre(axis) >= centre(axis) - min ? max : min);
    const found = this.#furthest((trace, axis) => Math.abs(end(trace, axis) - centre(axis)), TRAVEL_MIN);
    if (typeof found === 'string') return found;
    const left = end(this.#traces[found]!, found);
    this.#steering = { axis: found, left, centre: centre(found), right: centre(found) };
    return null;
  }

  #learnRight(): string | null {
    const { axis, left, centre } = this.#steering!;
    const right = left > centre ? this.#traces[axis]?.min ?? centre : this.#traces[axis]?.max ?? centre;
    // The wheel may already be at the right end, after a refused answer.
    const reach = left > centre ? centre - right : right - centre;
    const found = this.#furthest((trace, other) => (other === axis ? Math.max(0, reach) : trace.max - trace.min), TRAVEL_MIN);
    if (typeof found === 'string') return reach < 0 ? 'That was the left side again. Turn fully right.' : found;
    if (found !== axis) return `Axis ${found} moved; to the left it was axis ${axis}. Turn the same wheel or stick fully right.`;
    this.#steering = { axis, left, centre, right };
    return null;
  }

  #learnPedal(name: 'throttle' | 'brake', pad: PadState): string | null {
    const found = this.#furthest(({ min, max }, axis) => (axis === this.#steering?.axis ? 0 : max - min), PEDAL_TRAVEL_MIN);
    const [button] = this.#downButtons;
    if (typeof found === 'string' && button === undefined) return found;
    let pedal: Pedal;
    if (typeof found === 'number') {
      const { min, max, last } = this.#traces[found]!;
      const rest = this.#rest[found];
      const letGo = rest === undefined || rest === 0 || Math.abs(last - rest) <= REST_MAX;
      if (!letGo) return `Axis ${found} rests at ${figure(rest)} and is at ${figure(last)} now. Press the ${name}, release it, and only then press Next.`;
      pedal = { kind: 'axis', axis: found, released: last, pressed: max - last >= last - min ? max : min };
    } else {
      if ((pad.buttons[button!]?.value ?? 0) > 0.5) return `Button ${button} is still down. Press the ${name}, release it, and only then press Next.`;
      pedal = { kind: 'button', button: button! };
    }
    if (name === 'brake' && this.#throttle !== null && sharesTravel(this.#throttle, pedal)) {
      return `That is the throttle again (${nameOf(pedal)}). Press only the brake.`;
    }
    if (name === 'throttle') this.#throttle = pedal;
    else this.#brake = pedal;
    return null;
  }

  /**
   * Checks that each pedal is at its measured rest, and that the mapping has no contradiction.
   * Returns the refusal; `null` if there is none. A pedal that rests elsewhere was measured in
   * reverse, and its step is repeated.
   */
  #check(): string | null {
    for (const [name, pedal] of [['throttle', this.#throttle], ['brake', this.#brake]] as const) {
      if (pedal?.kind !== 'axis') continue;
      const { last } = this.#traces[pedal.axis]!;
      if (Math.abs(last - pedal.released) <= REST_MAX) continue;
      this.#step = STEPS.indexOf(name);
      return `Axis ${pedal.axis} is at ${figure(last)} now, but was at ${figure(pedal.released)} when the ${name} should have been released: `
        + 'it was not released before Next, or is pressed now.';
    }
    const contradiction = contradictionOf({ ...BUTTONS, steering: this.#steering, throttle: this.#throttle, brake: this.#brake, deadZone: 0 });
    if (contradiction !== null) this.#step = 0;
    return contradiction;
  }

  /** Returns the axis that moved furthest, or why it cannot be determined. */
  #furthest(travelOf: (trace: Trace, axis: number) => number, least: number): number | string {
    const travels = this.#traces.map((trace, axis) => ({ axis, travel: trace === undefined ? 0 : travelOf(trace, axis) }))
      .sort((one, other) => other.travel - one.travel);
    const [best, second] = travels;
    if (best === undefined || best.travel < least) {
      return this.#traces.length === 0 ? 'The device has no axes.' : 'Nothing moved far enough.';
    }
    if (second !== undefined && second.travel >= Math.max(least, best.travel * AMBIGUOUS)) {
      return `Axes ${best.axis} and ${second.axis} both moved. Move only one control.`;
    }
    return best.axis;
  }
}

function nameOf(pedal: Pedal): string {
  return pedal.kind === 'axis' ? `axis ${pedal.axis}` : `button ${pedal.button}`;
}

function figure(value: number): string {
  return value.toFixed(1);
}
