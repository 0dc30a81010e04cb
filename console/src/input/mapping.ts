import type { Motion } from '../generated/kinds';
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

/** Raw values of the axis of steering or sideways motion at its ends and in the middle. */
export interface Steering {
  axis: number;
  left: number;
  centre: number;
  right: number;
}

/** Raw values of a speed lever's axis at its ends and in the middle. */
export interface Lever {
  axis: number;
  forward: number;
  centre: number;
  back: number;
}

/**
 * Part of the seat that a device controls. Steering turns a machine that a twist moves; such
 * machines alone have speed and sideways motion.
 */
export type Part = 'steering' | 'throttle' | 'brake' | 'speed' | 'sideways';
export const PARTS: readonly Part[] = ['steering', 'throttle', 'brake', 'speed', 'sideways'];

/** Assignment of a device's axes and buttons. A part is `null` if the device does not have it. */
export interface Mapping {
  steering: Steering | null;
  throttle: Pedal | null;
  brake: Pedal | null;
  speed: Lever | null;
  sideways: Steering | null;
  reverseButton: number;
  stopButton: number;
  /** Held while driving, if a dead-man input is used. */
  deadManButton: number;
  /** Share of the travel around the centre of steering and levers that counts as 0, 0 to 0.3. */
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

/** Mapping of a pad that the browser knows, for a car: the standard layout of the Gamepad API. */
export const STANDARD: Mapping = {
  ...BUTTONS,
  steering: { axis: 0, left: -1, centre: 0, right: 1 },
  throttle: { kind: 'button', button: 7 },
  brake: { kind: 'button', button: 6 },
  speed: null,
  sideways: null,
  deadZone: STICK_DEAD_ZONE,
};
const RIGHT_STICK: Steering = { axis: 2, left: -1, centre: 0, right: 1 };
const SPEED_STICK: Lever = { axis: 1, forward: -1, centre: 0, back: 1 };

/** Sticks of a standard pad that drive a differential machine: the left one turns, or the right. */
export type Sticks = 'left' | 'both';

/**
 * Returns the mapping of a standard pad for this kind of machine. Of a differential one, the left
 * stick drives and turns; of an omnidirectional one it moves to all sides, and the right one turns.
 */
export function standardMapping(motion: Motion): Mapping {
  switch (motion) {
    case 'ackermann': return STANDARD;
    case 'differential': return { ...STANDARD, speed: SPEED_STICK };
    case 'omni': return { ...STANDARD, steering: RIGHT_STICK, speed: SPEED_STICK, sideways: STANDARD.steering };
  }
}

/** Returns which sticks drive a differential machine by this mapping of a standard pad. */
export function sticksOf({ steering }: Mapping): Sticks {
  return steering?.axis === RIGHT_STICK.axis ? 'both' : 'left';
}

/** Returns the mapping of a standard pad with these sticks for a differential machine. */
export function withSticks(mapping: Mapping, sticks: Sticks): Mapping {
  return { ...mapping, steering: sticks === 'both' ? RIGHT_STICK : STANDARD.steering };
}

/** Returns the positions of the device's parts; missing ones are at rest. */
export function apply(mapping: Mapping, pad: Pick<PadState, 'axes' | 'buttons'>): Position {
  const { steering, speed, sideways, deadZone } = mapping;
  const across = (part: Steering | null): number => (part === null ? 0 : swing(part.left, part.centre, part.right, deadZone, pad.axes[part.axis]));
  return {
    steering: across(steering),
    throttle: mapping.throttle === null ? 0 : press(mapping.throttle, pad),
    brake: mapping.brake === null ? 0 : press(mapping.brake, pad),
    speed: speed === null ? 0 : swing(speed.forward, speed.centre, speed.back, deadZone, pad.axes[speed.axis]),
    sideways: across(sideways),
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
export function contradictionOf({ steering, throttle, brake, speed, sideways }: Mapping): string | null {
  if ([steering, throttle, brake, speed, sideways].every((part) => part === null)) return 'It has neither steering nor a pedal.';
  const swings = [
    ['steering', 'Left and right', steering, steering?.left, steering?.right],
    ['speed lever', 'Forward and back', speed, speed?.forward, speed?.back],
    ['sideways lever', 'Left and right', sideways, sideways?.left, sideways?.right],
  ] as const;
  const axes = new Map<number, string>();
  for (const [name, ends, part, one, other] of swings) {
    if (part === null) continue;
    const [plus, minus] = [one! - part.centre, other! - part.centre];
    if (Math.min(Math.abs(plus), Math.abs(minus)) < TRAVEL_MIN || plus * minus > 0) return `${ends} must be on opposite sides of the centre.`;
    const before = axes.get(part.axis);
    if (before !== undefined) return `The ${name} uses the ${before}'s axis.`;
    axes.set(part.axis, name);
  }
  for (const [name, pedal] of [['throttle', throttle], ['brake', brake]] as const) {
    if (pedal?.kind !== 'axis') continue;
    if (Math.abs(pedal.pressed - pedal.released) < TRAVEL_MIN) return `The ${name} has no travel.`;
    const before = axes.get(pedal.axis);
    if (before !== undefined) return `The ${name} uses the ${before}'s axis.`;
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

/** Returns the position between the ends, 1 at `plus` and -1 at `minus`; 0 without a value. */
function swing(plus: number, centre: number, minus: number, deadZone: number, raw = centre): number {
  const towardsPlus = (raw - centre) * (plus - centre) > 0;
  const travel = Math.abs((towardsPlus ? plus : minus) - centre);
  if (travel === 0) return 0;
  const share = Math.min(1, Math.abs(raw - centre) / travel);
  const beyond = Math.max(0, share - deadZone) / (1 - deadZone);
  return towardsPlus ? beyond : beyond === 0 ? 0 : -beyond;
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
  if (typeof value !== 'object' || value === null) return null;
  // A mapping stored for a car by an earlier page has no levers.
  const mapping = { speed: null, sideways: null, ...value as Partial<Mapping> };
  const { steering, throttle, brake, speed, sideways, deadZone } = mapping;
  const across = (part: unknown): boolean => part === null || isNumbers(part, ['axis', 'left', 'centre', 'right']);
  const whole = across(steering) && across(sideways) && (speed === null || isNumbers(speed, ['axis', 'forward', 'centre', 'back']))
    && isPedal(throttle) && isPedal(brake)
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
