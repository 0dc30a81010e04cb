import type { Position } from './ramp';

/** The part of the browser's Gamepad that is read. */
export interface PadState {
  readonly id: string;
  readonly mapping: string;
  /** When the browser last heard from it, ms; 0 or missing: it does not tell. */
  readonly timestamp?: number;
  readonly axes: readonly number[];
  readonly buttons: readonly { readonly value: number; readonly pressed: boolean }[];
}

/** A pedal is a trigger button, or an axis between two raw values, in either direction. */
export type Pedal =
  | { kind: 'button'; button: number }
  | { kind: 'axis'; axis: number; released: number; pressed: number };

export interface Mapping {
  steering: { axis: number; left: number; centre: number; right: number };
  throttle: Pedal;
  brake: Pedal;
  reverseButton: number;
  stopButton: number;
  /** Held to drive, where a dead-man input is used; missing in mappings kept before there was one. */
  deadManButton?: number;
  /** Share of the steering's travel around the centre that counts as straight, 0 to 0.3. */
  deadZone: number;
}

const STICK_DEAD_ZONE = 0.08; // Sticks of worn gamepads rest up to here.
const WHEEL_DEAD_ZONE = 0.01;
export const DEAD_ZONE_MAX = 0.3;
/** The left shoulder of a standard pad, a paddle of most wheels. */
export const DEAD_MAN_BUTTON = 4;
// Sensors seldom reach their printed ends.
const PEDAL_DEAD_ZONE = 0.04;

/** A first guess; wheels differ too much for more, so there is the calibration. */
export function guessMapping(pad: PadState): Mapping {
  const axisCount = pad.axes.length;
  const steering = { axis: 0, left: -1, centre: 0, right: 1 };
  const common = { steering, reverseButton: 3, stopButton: 1, deadManButton: DEAD_MAN_BUTTON };
  if (pad.mapping === 'standard') {
    return {
      ...common,
      throttle: { kind: 'button', button: 7 },
      brake: { kind: 'button', button: 6 },
      deadZone: STICK_DEAD_ZONE,
    };
  }
  if (axisCount < 4) {
    // Both pedals on one axis, throttle forward.
    return {
      ...common,
      throttle: { kind: 'axis', axis: 1, released: 0, pressed: -1 },
      brake: { kind: 'axis', axis: 1, released: 0, pressed: 1 },
      deadZone: WHEEL_DEAD_ZONE,
    };
  }
  return {
    ...common,
    throttle: { kind: 'axis', axis: 2, released: 1, pressed: -1 },
    brake: { kind: 'axis', axis: axisCount > 5 ? 5 : 3, released: 1, pressed: -1 },
    deadZone: WHEEL_DEAD_ZONE,
  };
}

/** Where the pad's wheel and pedals stand. */
export function apply(mapping: Mapping, pad: PadState): Position {
  return {
    steering: steer(mapping, pad.axes[mapping.steering.axis] ?? mapping.steering.centre),
    throttle: press(mapping.throttle, pad),
    brake: press(mapping.brake, pad),
  };
}

function steer(mapping: Mapping, raw: number): number {
  const { left, centre, right } = mapping.steering;
  const towardsLeft = (raw - centre) * (left - centre) > 0;
  const travel = Math.abs((towardsLeft ? left : right) - centre);
  if (travel === 0) return 0;
  const share = Math.min(1, Math.abs(raw - centre) / travel);
  const beyond = Math.max(0, share - mapping.deadZone) / (1 - mapping.deadZone);
  return towardsLeft ? beyond : beyond === 0 ? 0 : -beyond;
}

function press(pedal: Pedal, pad: PadState): number {
  const share = pedal.kind === 'button'
    ? pad.buttons[pedal.button]?.value ?? 0
    : axisShare(pedal, pad.axes[pedal.axis]);
  return Math.min(1, Math.max(0, share - PEDAL_DEAD_ZONE) / (1 - 2 * PEDAL_DEAD_ZONE));
}

function axisShare(pedal: { released: number; pressed: number }, raw: number | undefined): number {
  const travel = pedal.pressed - pedal.released;
  if (raw === undefined || travel === 0) return 0;
  return (raw - pedal.released) / travel;
}

/** A stored mapping, or null when the text is not one. */
export function parseMapping(text: string): Mapping | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const mapping = value as Partial<Mapping> | null;
  if (typeof mapping !== 'object' || mapping === null) return null;
  const { steering, throttle, brake, reverseButton, stopButton, deadManButton = DEAD_MAN_BUTTON, deadZone } = mapping;
  const whole = isNumbers(steering, ['axis', 'left', 'centre', 'right']) && isPedal(throttle) && isPedal(brake)
    && isNumbers({ reverseButton, stopButton, deadManButton, deadZone }, ['reverseButton', 'stopButton', 'deadManButton', 'deadZone'])
    && deadZone! >= 0 && deadZone! <= DEAD_ZONE_MAX;
  return whole ? mapping as Mapping : null;
}

function isPedal(value: unknown): value is Pedal {
  const pedal = value as { kind?: unknown } | null | undefined;
  if (pedal?.kind === 'button') return isNumbers(pedal, ['button']);
  return pedal?.kind === 'axis' && isNumbers(pedal, ['axis', 'released', 'pressed']);
}

function isNumbers(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return names.every((name) => Number.isFinite((value as Record<string, unknown>)[name]));
}
