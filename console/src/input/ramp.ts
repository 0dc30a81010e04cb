/** Smooth pedals and steering from keys that are only down or up. */
export interface Keys {
  left: boolean;
  right: boolean;
  throttle: boolean;
  brake: boolean;
  /** The whole brake at once. */
  hardBrake: boolean;
}

export interface Position {
  /** -1 to 1, left positive. */
  steering: number;
  throttle: number;
  brake: number;
}

export const REST: Position = { steering: 0, throttle: 0, brake: 0 };

// Full travel per second: turning in takes half a second, letting go centres quicker, brakes come fast.
const STEER_IN = 2;
const STEER_BACK = 3.5;
const THROTTLE_DOWN = 1.6;
const THROTTLE_UP = 5;
const BRAKE_DOWN = 3;
const HARD_BRAKE_DOWN = 12;
const BRAKE_UP = 6;
// At this speed keys reach half the lock: beyond, full lock only throws the car about.
const HALF_LOCK_MPS = 14;

/** The next position after `seconds`; `speedMps` null: not known. */
export function ramp(position: Position, keys: Keys, speedMps: number | null, seconds: number): Position {
  const side = (keys.left ? 1 : 0) - (keys.right ? 1 : 0);
  const target = side * (speedMps === null ? limitUnknown(position) : steeringLimit(speedMps));
  const turnsIn = side !== 0 && Math.abs(target) > Math.abs(position.steering);
  const braking = keys.brake || keys.hardBrake;
  const brakeSpeed = keys.hardBrake ? HARD_BRAKE_DOWN : BRAKE_DOWN;
  const throttled = keys.throttle && !braking;
  return {
    steering: approach(position.steering, target, (turnsIn ? STEER_IN : STEER_BACK) * seconds),
    throttle: approach(position.throttle, throttled ? 1 : 0, (throttled ? THROTTLE_DOWN : THROTTLE_UP) * seconds),
    brake: approach(position.brake, braking ? 1 : 0, (braking ? brakeSpeed : BRAKE_UP) * seconds),
  };
}

export function steeringLimit(speedMps: number): number {
  return 1 / (1 + (speedMps / HALF_LOCK_MPS) ** 2);
}

export function approach(from: number, to: number, step: number): number {
  return from < to ? Math.min(to, from + step) : Math.max(to, from - step);
}

/** At a speed that nobody knows, keys turn in as at a high one; a wheel that is turned further may stay so. */
function limitUnknown({ steering }: Position): number {
  return Math.max(Math.abs(steering), steeringLimit(HALF_LOCK_MPS));
}
