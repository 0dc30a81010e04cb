import type { Position } from './ramp';

/** The fields of the browser's Gamepad that are read. */
export interface PadState {
  readonly id: string;
  readonly index: number;
  readonly mapping: string;
  /** Time of the newest data in ms; 0 or missing if the browser does not report it. */
  readonly timestamp?: number;
  readonly axes: readonly number[];
  readonly buttons: readonly { readonly value: number; readonly pressed: boolean }[];
}

/**
 * A button, or an axis with its raw values when released and when fully pressed, of which either
 * may be the larger.
 */
export type Pedal =
  | { kind: 'button'; button: number }
  | { kind: 'axis'; axis: number; released: number; pressed: number };

/** Raw values of the steering axis at its ends and in the middle. */
export interface Steering {
  axis: number;
  left: number;
  centre: number;
  right: number;
}

/** Part of the seat that a device controls. */
export type Part = 'steering' | 'throttle' | 'brake';
export const PARTS: readonly Part[] = ['steering', 'throttle', 'brake'];

/** Assignment of a device's axes and buttons. A part is `null` if the device does not have it. */
export interface Mapping {
  steering: Steering | null;
  throttle: Pedal | null;
  brake: Pedal | null;
  reverseButton: number;
  stopButton: number;
  /** Held while driving, if a dead-man input is used. */
  deadManButton: number;
  /** Share of the steering travel around the centre that counts as straight, 0 to 0.3. */
  deadZone: number;
}

const STICK_DEAD_ZONE = 0.08; // Sticks of worn gamepads rest within this.
export const WHEEL_DEAD_ZONE = 0.01;
export const DEAD_ZONE_MAX = 0.3;
/**
 * Buttons of a standard pad: right and top face button, left shoulder. Wheels use the same numbers.
 */
export const BUTTONS = { stopButton: 1, reverseButton: 3, deadManButton: 4 } as const;
// Share of a pedal's travel at each end that counts as that end: sensors rarely reach their nominal
// ends.
const PEDAL_DEAD_ZONE = 0.04;
/**
 * Smallest travel of an axis (at most 2) that counts as a movement; less is noise or a brushed
 * lever.
 */
export const TRAVEL_MIN = 0.25;

/** Mapping of a pad that the browser knows: the standard layout of the Gamepad API. */
export const STANDARD: Mapping = {
  ...BUTTONS,
  steering: { axis: 0, left: -1, centre: 0, right: 1 },
  throttle: { kind: 'button', button: 7 },
  brake: { kind: 'button', button: 6 },
  deadZone: STICK_DEAD_ZONE,
};

/** Returns the positions of the device's wheel and pedals; missing parts are at rest. */
export function apply(mapping: Mapping, pad: Pick<PadState, 'axes' | 'buttons'>): Position {
  const { steering } = mapping;
  return {
    steering: steering === null ? 0 : steer(steering, mapping.deadZone, pad.axes[steering.axis] ?? steering.centre),
    throttle: mapping.throttle === null ? 0 : press(mapping.throttle, pad),
    brake: mapping.brake === null ? 0 : press(mapping.brake, pad),
  };
}

/** Returns whether the axis or button of each part exists and has a number. */
export function isSound(mapping: Mapping, pad: Pick<PadState, 'axes' | 'buttons'>): boolean {
  return PARTS.every((part) => {
    const source = mapping[part];
    if (source === null) return true;
    return Number.isFinite('button' in source ? pad.buttons[source.button]?.value : pad.axes[source.axis]);
  });
}

/** Returns why the mapping is contradictory; `null` if it is not. */
export function contradictionOf({ steering, throttle, brake }: Mapping): string | null {
  if (steering === null && throttle === null && brake === null) return 'It has neither steering nor a pedal.';
  if (steering !== null) {
    const [left, right] = [steering.left - steering.centre, steering.right - steering.centre];
    if (Math.min(Math.abs(left), Math.abs(right)) < TRAVEL_MIN || left * right > 0) return 'Left and right must be on opposite sides of the centre.';
  }
  for (const [name, pedal] of [['throttle', throttle], ['brake', brake]] as const) {
    if (pedal?.kind !== 'axis') continue;
    if (Math.abs(pedal.pressed - pedal.released) < TRAVEL_MIN) return `The ${name} has no travel.`;
    if (pedal.axis === steering?.axis) return `The ${name} uses the steering's axis.`;
  }
  return throttle !== null && brake !== null && sharesTravel(throttle, brake) ? 'Throttle and brake are the same.' : null;
}

/**
 * Returns whether two pedals are the same button or the same travel of an axis. Two sides of one
 * axis, with the rest between them, are two pedals.
 */
export function sharesTravel(one: Pedal, other: Pedal): boolean {
  if (one.kind === 'button' || other.kind === 'button') {
    return one.kind === 'button' && other.kind === 'button' && one.button === other.button;
  }
  if (one.axis !== other.axis) return false;
  const apart = (one.pressed - one.released) * (other.pressed - other.released) < 0;
  return !apart || Math.abs(one.released - other.released) > TRAVEL_MIN;
}

/** Returns the steering, -1 to 1, left positive. */
function steer({ left, centre, right }: Steering, deadZone: number, raw: number): number {
  const towardsLeft = (raw - centre) * (left - centre) > 0;
  const travel = Math.abs((towardsLeft ? left : right) - centre);
  if (travel === 0) return 0;
  const share = Math.min(1, Math.abs(raw - centre) / travel);
  const beyond = Math.max(0, share - deadZone) / (1 - deadZone);
  return towardsLeft ? beyond : beyond === 0 ? 0 : -beyond;
}

/** Returns how far the pedal is pressed, 0 to 1. */
function press(pedal: Pedal, pad: Pick<PadState, 'axes' | 'buttons'>): number {
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

/** Parses a stored mapping; `null` if the text is invalid or the mapping contradictory. */
export function parseMapping(text: string): Mapping | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const mapping = value as Partial<Mapping> | null;
  if (typeof mapping !== 'object' || mapping === null) return null;
  const { steering, throttle, brake, deadZone } = mapping;
  const whole = (steering === null || isNumbers(steering, ['axis', 'left', 'centre', 'right'])) && isPedal(throttle) && isPedal(brake)
    && isNumbers(mapping, ['reverseButton', 'stopButton', 'deadManButton', 'deadZone'])
    && deadZone! >= 0 && deadZone! <= DEAD_ZONE_MAX;
  return whole && contradictionOf(mapping as Mapping) === null ? mapping as Mapping : null;
}

function isPedal(value: unknown): value is Pedal | null {
  if (value === null) return true;
  const pedal = value as { kind?: unknown } | undefined;
  if (pedal?.kind === 'button') return isNumbers(pedal, ['button']);
  return pedal?.kind === 'axis' && isNumbers(pedal, ['axis', 'released', 'pressed']);
}

function isNumbers(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return names.every((name) => Number.isFinite((value as Record<string, unknown>)[name]));
}
