/** Driving keys, which are only down or up. */
export interface Keys {
  left: boolean;
  right: boolean;
  /** Throttle of a car; forwards for a machine that a twist moves. */
  forward: boolean;
  /** Brake of a car; backwards for a machine that a twist moves. */
  back: boolean;
  /** Sideways motion of an omnidirectional machine. */
  sidewaysLeft: boolean;
  sidewaysRight: boolean;
  /** Full brake, pressed faster than `back`. */
  hardBrake: boolean;
}

export const NO_KEYS: Keys = {
  left: false, right: false, forward: false, back: false, sidewaysLeft: false, sidewaysRight: false, hardBrake: false,
};

export interface Position {
  /** -1 to 1 of full lock, left positive; of a machine that a twist moves, of its yaw rate. */
  steering: number;
  /** 0 to 1. */
  throttle: number;
  /** 0 to 1. */
  brake: number;
  /** -1 back to 1 forward, of a lever or stick. */
  speed: number;
  /** -1 right to 1 left, of a lever or stick. */
  sideways: number;
}

export const REST: Position = { steering: 0, throttle: 0, brake: 0, speed: 0, sideways: 0 };

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
  const braking = keys.back || keys.hardBrake;
  const brakeSpeed = keys.hardBrake ? HARD_BRAKE_DOWN : BRAKE_DOWN;
  const throttled = keys.forward && !braking;
  return {
    ...REST,
    steering: approach(position.steering, target, (turnsIn ? STEER_IN : STEER_BACK) * seconds),
    throttle: approach(position.throttle, throttled ? 1 : 0, (throttled ? THROTTLE_DOWN : THROTTLE_UP) * seconds),
    brake: approach(position.brake, braking ? 1 : 0, (braking ? brakeSpeed : BRAKE_UP) * seconds),
  };
}

/**
 * Returns the position of levers after `seconds` under these keys, for a machine that a twist
 * moves: lever and turn only, the pedals at rest. `pace` is the speed as a share of the bound,
 * `null` if unknown.
 *
 * Keys turn less at speed: half of the yaw rate at the bound, all of it at standstill.
 */
export function rampLevers(position: Position, keys: Keys, pace: number | null, seconds: number): Position {
  const side = (plus: boolean, minus: boolean): number => (plus ? 1 : 0) - (minus ? 1 : 0);
  const towards = (from: number, target: number, inwards: number, outwards: number): number => {
    const goesOut = target !== 0 && Math.abs(target) > Math.abs(from) && from * target >= 0;
    return approach(from, target, (goesOut ? outwards : inwards) * seconds);
  };
  const turnMax = pace === null ? Math.max(Math.abs(position.steering), 0.5) : 1 / (1 + Math.min(1, Math.abs(pace)) ** 2);
  return {
    ...REST,
    steering: towards(position.steering, side(keys.left, keys.right) * turnMax, STEER_BACK, STEER_IN),
    speed: towards(position.speed, side(keys.forward, keys.back), THROTTLE_UP, THROTTLE_DOWN),
    sideways: towards(position.sideways, side(keys.sidewaysLeft, keys.sidewaysRight), THROTTLE_UP, THROTTLE_DOWN),
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
