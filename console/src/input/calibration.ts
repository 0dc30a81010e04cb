import type { Motion } from '../generated/kinds';
import {
  BUTTONS, type Mapping, type PadState, type Pedal, TRAVEL_MIN, WHEEL_DEAD_ZONE, contradictionOf, sharesTravel,
} from './mapping';

export type Step =
  | 'rest' | 'left' | 'right' | 'forward' | 'back' | 'sideways left' | 'sideways right' | 'throttle' | 'brake' | 'check';

/** Steps for each kind of machine, in their order. */
export const STEPS: Readonly<Record<Motion, readonly Step[]>> = {
  ackermann: ['rest', 'left', 'right', 'throttle', 'brake', 'check'],
  differential: ['rest', 'left', 'right', 'forward', 'back', 'throttle', 'brake', 'check'],
  omni: ['rest', 'left', 'right', 'forward', 'back', 'sideways left', 'sideways right', 'throttle', 'brake', 'check'],
};

/** Instruction of each step. */
export const ASKED: Readonly<Record<Step, string>> = {
  rest: 'Centre the wheel or stick, take hands and feet off, then press Next.',
  left: 'Turn fully left, then press Next.',
  right: 'Turn fully right, then press Next.',
  forward: 'Push the lever or stick for the speed fully forward, then press Next.',
  back: 'Pull it fully back, then press Next.',
  'sideways left': 'Push the lever or stick for sideways motion fully left, then press Next.',
  'sideways right': 'Push it fully right, then press Next.',
  throttle: 'Press the throttle fully, release it, then press Next.',
  brake: 'Press the brake fully, release it, then press Next.',
  check: 'Take hands and feet off once more, then press Next.',
};

/** Part with two ends around a centre. */
type Swinging = 'steering' | 'speed' | 'sideways';

/** Axis of such a part with its raw values; `plus` is left or forward. */
interface Swing {
  axis: number;
  plus: number;
  centre: number;
  minus: number;
}

/** Words for the two ends, and what the second step asks for again. */
const ENDS: Readonly<Record<Swinging, { plus: string; again: string }>> = {
  steering: { plus: 'to the left', again: 'That was the left side again. Turn fully right.' },
  speed: { plus: 'forward', again: 'That was forward again. Pull it fully back.' },
  sideways: { plus: 'to the left', again: 'That was the left side again. Push it fully right.' },
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
  readonly #swings = new Map<Swinging, Swing>();
  readonly #steps: readonly Step[];
  #throttle: Pedal | null = null;
  #brake: Pedal | null = null;

  /**
   * `motion` is the kind of the machine to drive. The buttons and the dead zone are those of
   * `base`, or else the defaults.
   */
  constructor(readonly base: Mapping | null, motion: Motion = 'ackermann') {
    this.#steps = STEPS[motion];
  }

  /** Current step; `null` when all are done. */
  get step(): Step | null {
    return this.#steps[this.#step] ?? null;
  }

  /** Why the last answer was refused; `null` if it was accepted. */
  get refusal(): string | null {
    return this.#refusal;
  }

  /** True if the step is about a part that a device may lack. */
  get maySkip(): boolean {
    return this.step !== null && SKIPPED[this.step] > 0;
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

  /**
   * Ends the step. Returns false if the answer is refused; `refusal` has the reason, and `step` is
   * the step to repeat.
   */
  next(pad: PadState): boolean {
    const { step } = this;
    if (step === null) return false;
    this.observe(pad);
    this.#refusal = this.#learn(step, pad);
    this.#begin(pad);
    if (this.#refusal === null) this.#step += 1;
    return this.#refusal === null;
  }

  /**
   * Skips a part that the device lacks. Returns false if this step cannot be skipped, or if the
   * device would then control nothing; in the second case `refusal` has the reason.
   */
  skip(pad: PadState): boolean {
    const { step } = this;
    if (step === null || !this.maySkip) return false;
    if (step === 'brake' && this.#swings.size === 0 && this.#throttle === null) {
      this.#refusal = 'Without a brake the device would control nothing. Press the brake, or Cancel.';
      return false;
    }
    this.#step += SKIPPED[step];
    this.#refusal = null;
    this.#begin(pad);
    return true;
  }

  /** Returns the mapping; `null` until all steps are done. */
  mapping(): Mapping | null {
    if (this.step !== null) return null;
    const { reverseButton, stopButton, deadManButton, deadZone } = this.base ?? { ...BUTTONS, deadZone: WHEEL_DEAD_ZONE };
    return { ...this.#learned(), reverseButton, stopButton, deadManButton, deadZone };
  }

  #learned(): Pick<Mapping, 'steering' | 'throttle' | 'brake' | 'speed' | 'sideways'> {
    const [steering, speed, sideways] = (['steering', 'speed', 'sideways'] as const).map((part) => this.#swings.get(part) ?? null);
    const across = (swing: Swing | null | undefined): Mapping['steering'] => (
      swing == null ? null : { axis: swing.axis, left: swing.plus, centre: swing.centre, right: swing.minus });
    return {
      steering: across(steering), throttle: this.#throttle, brake: this.#brake,
      speed: speed == null ? null : { axis: speed.axis, forward: speed.plus, centre: speed.centre, back: speed.minus },
      sideways: across(sideways),
    };
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
        return this.#learnPlus('steering');
      case 'right':
        return this.#learnMinus('steering');
      case 'forward':
        return this.#learnPlus('speed');
      case 'back':
        return this.#learnMinus('speed');
      case 'sideways left':
        return this.#learnPlus('sideways');
      case 'sideways right':
        return this.#learnMinus('sideways');
      case 'throttle':
      case 'brake':
        return this.#learnPedal(step, pad);
      case 'check':
        return this.#check();
    }
  }

  #learnPlus(part: Swinging): string | null {
    const centre = (axis: number): number => this.#rest[axis] ?? 0;
    const end = ({ min, max }: Trace, axis: number): number => (max - centre(axis) >= centre(axis) - min ? max : min);
    const found = this.#furthest((trace, axis) => Math.abs(end(trace, axis) - centre(axis)), TRAVEL_MIN);
    if (typeof found === 'string') return found;
    for (const [other, { axis }] of this.#swings) {
      if (other !== part && axis === found) return `That is the ${NAMES[other]} again (axis ${found}). Move another lever, or press It has none.`;
    }
    const plus = end(this.#traces[found]!, found);
    this.#swings.set(part, { axis: found, plus, centre: centre(found), minus: centre(found) });
    return null;
  }

  #learnMinus(part: Swinging): string | null {
    const { axis, plus, centre } = this.#swings.get(part)!;
    const minus = plus > centre ? this.#traces[axis]?.min ?? centre : this.#traces[axis]?.max ?? centre;
    // The wheel may already be at this end, after a refused answer.
    const reach = plus > centre ? centre - minus : minus - centre;
    const found = this.#furthest((trace, other) => (other === axis ? Math.max(0, reach) : trace.max - trace.min), TRAVEL_MIN);
    if (typeof found === 'string') return reach < 0 ? ENDS[part].again : found;
    if (found !== axis) return `Axis ${found} moved; ${ENDS[part].plus} it was axis ${axis}. Move the same wheel, stick or lever to its other end.`;
    this.#swings.set(part, { axis, plus, centre, minus });
    return null;
  }

  #learnPedal(name: 'throttle' | 'brake', pad: PadState): string | null {
    const taken = new Set(Array.from(this.#swings.values(), ({ axis }) => axis));
    const found = this.#furthest(({ min, max }, axis) => (taken.has(axis) ? 0 : max - min), PEDAL_TRAVEL_MIN);
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
   * reverse, and its step is repeated. After a contradiction all steps are repeated.
   */
  #check(): string | null {
    for (const [name, pedal] of [['throttle', this.#throttle], ['brake', this.#brake]] as const) {
      if (pedal?.kind !== 'axis') continue;
      const { last } = this.#traces[pedal.axis]!;
      if (Math.abs(last - pedal.released) <= REST_MAX) continue;
      this.#step = this.#steps.indexOf(name);
      return `Axis ${pedal.axis} is at ${figure(last)} now, but was at ${figure(pedal.released)} when the ${name} should have been released: `
        + 'it was not released before Next, or is pressed now.';
    }
    const contradiction = contradictionOf({ ...BUTTONS, ...this.#learned(), deadZone: 0 });
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

/** Number of steps to skip for a part that a device lacks; 0 if the step cannot be skipped. */
const SKIPPED: Readonly<Record<Step, number>> = {
  rest: 0, left: 2, right: 0, forward: 2, back: 0, 'sideways left': 2, 'sideways right': 0, throttle: 1, brake: 1, check: 0,
};

const NAMES: Readonly<Record<Swinging, string>> = { steering: 'steering', speed: 'speed lever', sideways: 'sideways lever' };

function nameOf(pedal: Pedal): string {
  return pedal.kind === 'axis' ? `axis ${pedal.axis}` : `button ${pedal.button}`;
}

function figure(value: number): string {
  return value.toFixed(1);
}
