import { type Mapping, type PadState, type Pedal, guessMapping } from './mapping';

export type Step = 'rest' | 'left' | 'right' | 'throttle' | 'brake';

export const STEPS: readonly Step[] = ['rest', 'left', 'right', 'throttle', 'brake'];

/** What to do in each step, for the person. */
export const ASKED: Readonly<Record<Step, string>> = {
  rest: 'Centre the wheel, feet off the pedals, then press Next.',
  left: 'Turn the wheel fully left, then press Next.',
  right: 'Turn the wheel fully right, then press Next.',
  throttle: 'Press the throttle fully and let go, then press Next.',
  brake: 'Press the brake fully and let go, then press Next.',
};

interface Move {
  axis: number;
  value: number;
  travel: number;
}

// Less is noise, or a hand that brushed past.
const TRAVEL_MIN = 0.25;

/** Learns a mapping from what moves the furthest while the person is asked for one thing at a time. */
export class Calibration {
  #stepIndex = 0;
  #rest: number[] = [];
  #furthest: number[] = [];
  #button: number | null = null;
  #restButtons: number[] = [];
  readonly #moves = new Map<Step, Move>();
  readonly #pedals = new Map<Step, Pedal>();

  constructor(readonly base: Mapping) {}

  /** Null when all steps are done. */
  get step(): Step | null {
    return STEPS[this.#stepIndex] ?? null;
  }

  observe(pad: PadState): void {
    pad.axes.forEach((value, axis) => {
      const rest = this.#rest[axis] ?? value;
      const furthest = this.#furthest[axis] ?? rest;
      if (this.#isStillLeft(axis, value - rest)) return;
      if (Math.abs(value - rest) >= Math.abs(furthest - rest)) this.#furthest[axis] = value;
    });
    pad.buttons.forEach((button, index) => {
      if (button.value - (this.#restButtons[index] ?? 0) > 0.5) this.#button ??= index;
    });
  }

  /** Ends the step; false when nothing moved far enough to tell what was meant. */
  next(pad: PadState): boolean {
    const step = this.step;
    if (step === null) return false;
    this.observe(pad);
    if (step === 'rest') {
      this.#rest = [...pad.axes];
      this.#restButtons = pad.buttons.map((button) => button.value);
    }
    const learned = step === 'rest' || this.#learn(step);
    // After a failure too: what was moved by mistake must not stand in the way of another try.
    this.#furthest = [];
    this.#button = null;
    if (learned) this.#stepIndex += 1;
    return learned;
  }

  /** Null until all steps are done. */
  mapping(): Mapping | null {
    const left = this.#moves.get('left');
    const right = this.#moves.get('right');
    const throttle = this.#pedals.get('throttle');
    const brake = this.#pedals.get('brake');
    if (left === undefined || right === undefined || throttle === undefined || brake === undefined) return null;
    const steering = { axis: left.axis, left: left.value, centre: this.#rest[left.axis] ?? 0, right: right.value };
    return { ...this.base, steering, throttle, brake };
  }

  /** The wheel starts the step to the right from the left end, which may be further from the centre. */
  #isStillLeft(axis: number, travel: number): boolean {
    const left = this.#moves.get('left');
    return this.step === 'right' && axis === left?.axis && travel * (left.value - (this.#rest[axis] ?? 0)) > 0;
  }

  #learn(step: Step): boolean {
    const move = this.#furthestMove(step === 'throttle' || step === 'brake');
    if (step === 'left' || step === 'right') {
      if (move === null) return false;
      if (step === 'right' && move.axis !== this.#moves.get('left')?.axis) return false;
      this.#moves.set(step, move);
      return true;
    }
    if (move !== null) {
      const released = this.#rest[move.axis] ?? 0;
      this.#pedals.set(step, { kind: 'axis', axis: move.axis, released, pressed: move.value });
      return true;
    }
    if (this.#button === null) return false;
    this.#pedals.set(step, { kind: 'button', button: this.#button });
    return true;
  }

  /** `pedal`: the wheel, which never quite comes back to its centre, is left out. */
  #furthestMove(pedal: boolean): Move | null {
    const wheel = this.#moves.get('left')?.axis;
    let best: Move | null = null;
    this.#furthest.forEach((value, axis) => {
      if (pedal && axis === wheel) return;
      const travel = Math.abs(value - (this.#rest[axis] ?? 0));
      if (travel >= TRAVEL_MIN && travel > (best?.travel ?? 0)) best = { axis, value, travel };
    });
    return best;
  }
}

export function calibrationOf(pad: PadState, current: Mapping | null): Calibration {
  return new Calibration(current ?? guessMapping(pad));
}
