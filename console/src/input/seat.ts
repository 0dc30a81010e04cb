import { Gear } from '../message/gear';
import type { Controlled } from '../report';
import type { PadReading } from './gamepad';
import type { Absence } from './presence';
import { type Keys, type Position, REST, approach, ramp } from './ramp';

/** Why the pedals are released, whatever the devices report. */
export type Release = 'none' | Absence;

export interface Devices {
  keys: Keys;
  pad: PadReading | null;
  /** `null` if telemetry is stale or missing. */
  speedMps: number | null;
}

/** Speed below which the machine counts as standing still. */
export const STANDSTILL_MPS = 0.3;
// Brake while the pedals are released. Enough to stop gently on level ground, too little to lock a
// wheel.
const GENTLE_BRAKE = 0.3;
const CENTRE_PER_SECOND = 2;
// Longest time by which one tick advances the ramps, so that nothing jumps after a late tick.
const TICK_SECONDS_MAX = 0.1;

/** Combines keys, devices and the state of the page into commands. */
export class Seat {
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

  /** Brakes fully until `resume`. */
  stop(): void {
    this.#emergencyStop = true;
    this.#keys = { ...REST, steering: this.#keys.steering };
  }

  resume(): void {
    this.#emergencyStop = false;
  }

  /** Releases the pedals, brakes gently and centres the steering until `takeUp`. */
  letGo(reason: Release): void {
    this.#release = reason;
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
    if (this.#release !== 'none') return this.#neutral(step);
    this.#keys = ramp(this.#keys, devices.keys, devices.speedMps, step);
    const { pad } = devices;
    if (pad?.touched === true) this.#padSteers = true;
    if (pad?.steers !== true || devices.keys.left || devices.keys.right) this.#padSteers = false;
    this.#steering = this.#padSteers && pad !== null ? pad.steering : this.#keys.steering;
    if (this.#emergencyStop) {
      // A key held during the stop must not build up throttle for its end.
      this.#keys = { ...this.#keys, throttle: 0 };
      return this.#made(0, 1);
    }
    const brake = Math.max(this.#keys.brake, pad?.brake ?? 0);
    const throttle = Math.max(this.#keys.throttle, pad?.throttle ?? 0);
    // If both are pressed, the brake wins.
    return this.#made(brake > 0.1 ? 0 : throttle, brake);
  }

  #neutral(step: number): Controlled {
    this.#steering = approach(this.#steering, 0, CENTRE_PER_SECOND * step);
    return this.#made(0, this.#emergencyStop ? 1 : GENTLE_BRAKE);
  }

  #made(throttle: number, brake: number): Controlled {
    this.#throttle = throttle;
    const { gear } = this;
    return { steering: this.#steering, throttle, brake, gear, emergencyStop: this.#emergencyStop };
  }
}
