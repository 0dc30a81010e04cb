import type { Motion } from '../generated/kinds';
import { Gear } from '../message/gear';
import type { Controlled } from '../report';
import { type Bounds, STILL, type Twist, isTwisted } from '../twist';
import type { PadReading } from './gamepad';
import type { Absence } from './presence';
import { type Keys, type Position, REST, approach, ramp } from './ramp';
import type { SpeedMode } from './set-point';
import { BRAKE_REST, TwistSeat } from './twist-seat';

/** Why the pedals are released, whatever the devices report. */
export type Release = 'none' | Absence;

export interface Devices {
  keys: Keys;
  pad: PadReading | null;
  /** Position of the touch controls; `null` if none is touched. */
  touch: Position | null;
  /** `null` if telemetry is stale or missing. */
  speedMps: number | null;
  /** Kind of the machine; that of a car until it is known. */
  motion: Motion;
  /** Limits of a machine that a twist moves. */
  bounds: Bounds;
  speedMode: SpeedMode;
  /** True while the guard lets this console drive. */
  driven: boolean;
}

/** Speed below which the machine counts as standing still. */
export const STANDSTILL_MPS = 0.3;
// Brake while the pedals are released. Enough to stop gently on level ground, too little to lock a
// wheel.
const GENTLE_BRAKE = 0.3;
const CENTRE_PER_SECOND = 2;
// Longest time by which one tick advances the ramps, so that nothing jumps after a late tick.
const TICK_SECONDS_MAX = 0.1;

/** Combines keys, devices, touch and the state of the page into commands. */
export class Seat {
  readonly #twist = new TwistSeat();
  #motion: Motion = 'ackermann';
  #keys: Position = REST;
  /** Steering of the last command. */
  #steering = 0;
  /** Throttle of the last command. */
  #throttle = 0;
  /** True if the steering follows a device instead of the keys. */
  #padSteers = false;
  #gear = Gear.Drive;
  #emergencyStop = false;
  #release: Release = 'none';

  get gear(): Gear {
    return this.#gear;
  }

  get emergencyStopped(): boolean {
    return this.#emergencyStop;
  }

  get released(): Release {
    return this.#release;
  }

  /** Held speed in m/s; 0 if none is held. */
  get setPointMps(): number {
    return this.#twist.setPointMps;
  }

  /** Ends the held speed. */
  zeroSpeed(): void {
    this.#twist.zeroSpeed();
  }

  /** Brakes fully until `resume`. */
  stop(): void {
    this.#emergencyStop = true;
    this.#twist.rest();
    this.#keys = { ...REST, steering: this.#keys.steering };
  }

  resume(): void {
    this.#emergencyStop = false;
  }

  /** Releases the pedals, brakes gently and centres the steering until `takeUp`. */
  letGo(reason: Release): void {
    this.#release = reason;
    this.#twist.rest();
    this.#keys = REST;
  }

  /** Ends a release: the operator is present again. */
  takeUp(): void {
    this.#release = 'none';
    this.#keys = { ...REST, steering: this.#steering };
  }

  /**
   * Changes between drive and reverse. Returns false and changes nothing while the car rolls or may
   * roll, or the throttle is pressed.
   */
  toggleReverse(speedMps: number | null): boolean {
    if (this.#throttle > 0 || speedMps === null || Math.abs(speedMps) > STANDSTILL_MPS) return false;
    this.#gear = this.#gear === Gear.Drive ? Gear.Reverse : Gear.Drive;
    return true;
  }

  /** Returns the command of a tick, `seconds` after the last one. */
  command(devices: Devices, seconds: number): Controlled {
    const step = Math.min(TICK_SECONDS_MAX, Math.max(0, seconds));
    if (devices.motion !== this.#motion) this.#change(devices.motion);
    if (this.#release !== 'none') return this.#neutral(step);
    return isTwisted(this.#motion) ? this.#twisted(devices, step) : this.#steered(devices, step);
  }

  /** Begins with another kind of machine: nothing of the last one counts. */
  #change(motion: Motion): void {
    this.#motion = motion;
    this.#twist.rest();
    this.#keys = REST;
    this.#steering = 0;
    this.#throttle = 0;
    this.#padSteers = false;
  }

  #steered(devices: Devices, step: number): Controlled {
    const { pad, touch } = devices;
    this.#keys = ramp(this.#keys, devices.keys, devices.speedMps, step);
    if (pad?.touched === true) this.#padSteers = true;
    if (pad?.steers !== true || devices.keys.left || devices.keys.right || touch !== null) this.#padSteers = false;
    const byKeys = touch !== null && touch.steering !== 0 ? touch.steering : this.#keys.steering;
    this.#steering = this.#padSteers && pad !== null ? pad.steering : byKeys;
    if (this.#emergencyStop) {
      // A key held during the stop must not build up throttle for its end.
      this.#keys = { ...this.#keys, throttle: 0 };
      return this.#made(0, 1);
    }
    const brake = Math.max(this.#keys.brake, pad?.brake ?? 0, touch?.brake ?? 0);
    const throttle = Math.max(this.#keys.throttle, pad?.throttle ?? 0, touch?.throttle ?? 0);
    // If both are pressed, the brake wins.
    return this.#made(brake > BRAKE_REST ? 0 : throttle, brake);
  }

  #twisted({ keys, pad, touch, ...rest }: Devices, step: number): Controlled {
    const brake = Math.max(keys.hardBrake ? 1 : 0, pad?.brake ?? 0, touch?.brake ?? 0);
    this.#throttle = pad?.throttle ?? 0;
    if (this.#emergencyStop) {
      this.#twist.rest();
      return this.#made(0, 1);
    }
    const twist = this.#twist.next({ keys, others: [pad, touch], gear: this.#gear, ...rest }, step);
    return this.#made(0, brake, twist);
  }

  #neutral(step: number): Controlled {
    this.#steering = approach(this.#steering, 0, CENTRE_PER_SECOND * step);
    return this.#made(0, this.#emergencyStop ? 1 : GENTLE_BRAKE);
  }

  /** Returns a command; of a machine that a twist moves, `throttle` and steering are 0. */
  #made(throttle: number, brake: number, twist: Twist = STILL): Controlled {
    const { gear } = this;
    const emergencyStop = this.#emergencyStop;
    if (isTwisted(this.#motion)) return { steering: 0, throttle: 0, brake, gear: Gear.Drive, emergencyStop, twist };
    this.#throttle = throttle;
    return { steering: this.#steering, throttle, brake, gear, emergencyStop, twist: null };
  }
}
