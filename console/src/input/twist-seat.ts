import { type Bounds, STILL, type Twist } from '../twist';
import { Gear } from '../message/gear';
import { type Keys, type Position, REST, rampLevers } from './ramp';
import { SetPoint, type SpeedMode } from './set-point';

/** Controls of a machine that a twist moves, in one tick. */
export interface TwistDevices {
  keys: Keys;
  /** Positions of devices and of touch controls; `null` if none is used. */
  others: readonly (Position | null)[];
  bounds: Bounds;
  speedMode: SpeedMode;
  /** True while the guard lets this console drive: only then a speed is held. */
  driven: boolean;
  /** Reported speed in m/s; `null` if unknown. */
  speedMps: number | null;
  /** Direction in which a throttle drives. */
  gear: Gear;
}

/** Brake above which nothing else counts. A foot may rest on it below that. */
export const BRAKE_REST = 0.1;

/** Combines keys, devices and touch controls into the wanted twist. */
export class TwistSeat {
  #keys: Position = REST;
  readonly #setPoint = new SetPoint();

  /** Held speed in m/s; 0 if none is held. */
  get setPointMps(): number {
    return this.#setPoint.mps;
  }

  /** Starts again from rest: ramps and held speed are 0. */
  rest(): void {
    this.#keys = REST;
    this.#setPoint.zero();
  }

  /** Ends the held speed. */
  zeroSpeed(): void {
    this.#setPoint.zero();
  }

  /**
   * Returns the wanted twist, `seconds` after the last call. It is exactly 0 without a control.
   * While a brake is pressed it is 0 too, and the held speed ends.
   */
  next(devices: TwistDevices, seconds: number): Twist {
    const { keys, bounds, gear, speedMps } = devices;
    const others = devices.others.filter((position) => position !== null);
    if (keys.hardBrake || others.some(({ brake }) => brake > BRAKE_REST)) {
      this.rest();
      return STILL;
    }
    const pace = speedMps === null || bounds.forward === 0 ? null : speedMps / bounds.forward;
    this.#keys = rampLevers(this.#keys, keys, pace, seconds);
    const direction = gear === Gear.Reverse ? -1 : 1;
    const speeds = others.map(({ speed, throttle }) => combined([speed, direction * throttle]));
    const turn = combined([this.#keys.steering, ...others.map(({ steering }) => steering)]);
    const sideways = combined([this.#keys.sideways, ...others.map((position) => position.sideways)]);
    return {
      forward: this.#forward(devices, speeds, seconds), sideways: sideways * bounds.sideways, yawRate: turn * bounds.yawRate,
    };
  }

  #forward({ keys, bounds, speedMode, driven }: TwistDevices, speeds: readonly number[], seconds: number): number {
    if (speedMode === 'stick') {
      this.#setPoint.zero();
      const lever = combined([this.#keys.speed, ...speeds]);
      return lever * (lever > 0 ? bounds.forward : bounds.back);
    }
    if (!driven) {
      this.#setPoint.zero();
      return 0;
    }
    const key = (keys.forward ? 1 : 0) - (keys.back ? 1 : 0);
    return this.#setPoint.next(combined([key, ...speeds]), bounds, seconds);
  }
}

/** Returns the furthest of these positions; 0 if two contradict each other. */
export function combined(positions: readonly number[]): number {
  const [least, most] = [Math.min(0, ...positions), Math.max(0, ...positions)];
  return least < 0 && most > 0 ? 0 : least + most;
}

/** Returns whether a key asks for the opposite of a device's position, in any part. */
export function opposes(keys: Keys, { speed, steering, sideways }: Position): boolean {
  const against = (plus: boolean, minus: boolean, position: number): boolean => (plus && position < 0) || (minus && position > 0);
  return against(keys.forward, keys.back, speed) || against(keys.left, keys.right, steering)
    || against(keys.sidewaysLeft, keys.sidewaysRight, sideways);
}
