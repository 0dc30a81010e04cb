/** Driving keys, which are only down or up. */
export interface Keys {
  left: boolean;
  right: boolean;
  throttle: boolean;
  brake: boolean;
  /** Full brake, pressed faster than `brake`. */
  hardBrake: boolean;
}

export interface Position {
  /** -1 to 1 of full lock, left positive. */
  steering: number;
  /** 0 to 1. */
  throttle: number;
  /** 0 to 1. */
  brake: number;
}

export const REST: Position = { steering: 0, throttle: 0, brake: 0 };

// Speeds in travels per second. Steering away from the centre takes half a second, back to it less;
// brakes act fast. `..._DOWN` presses a pedal, `..._UP` releases it.
const STEER_IN = 2;
const STEER_BACK = 3.5;
const THROTTLE_DOWN = 1.6;
const THROTTLE_UP = 5;
const BRAKE_DOWN = 3;
const HARD_BRAKE_DOWN = 12;
const BRAKE_UP = 6;
// Speed at which keys steer at most to half of the lock. At higher speeds full lock makes the car
// unstable.
const HALF_LOCK_MPS = 14;

/**
 * Returns the position to which the keys move steering and pedals from `position` in `seconds`.
 * `speedMps` is `null` if unknown.
 */
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

/** Returns the share of the lock to which keys steer at most. */
export function steeringLimit(speedMps: number): number {
  return 1 / (1 + (speedMps / HALF_LOCK_MPS) ** 2);
}

/** Returns `from`, moved towards `to` by at most `step`. */
export function approach(from: number, to: number, step: number): number {
  return from < to ? Math.min(to, from + step) : Math.max(to, from - step);
}

/**
 * Returns the limit at an unknown speed: that of a high speed, or the present steering if it is
 * larger.
 */
function limitUnknown({ steering }: Position): number {
  return Math.max(Math.abs(steering), steeringLimit(HALF_LOCK_MPS));
}
