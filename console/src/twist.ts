/** Motions of machines that no steering wheel and no pedals move. */
import type { Motion } from './generated/kinds';

/** Motion of a machine along and about its own axes. */
export interface Twist {
  /** Speed forwards in m/s, negative backwards. */
  forward: number;
  /** Speed to the left in m/s; 0 unless the machine is omnidirectional. */
  sideways: number;
  /** Yaw rate in rad/s, counterclockwise positive. */
  yawRate: number;
}

export const STILL: Twist = { forward: 0, sideways: 0, yawRate: 0 };

/** Largest values of a twist that the guard allows now: m/s, m/s, m/s, rad/s. */
export interface Bounds {
  forward: number;
  back: number;
  sideways: number;
  yawRate: number;
}

/** Returns whether a twist moves the machine, and not steering and pedals. */
export function isTwisted(motion: Motion): boolean {
  return motion === 'differential' || motion === 'omni';
}

/** Speeds in m/s and yaw rate in rad/s up to which a machine counts as standing still. */
const STANDING = { speed: 0.05, yawRate: 0.05 };

/** Returns whether the machine stands still. */
export function stands({ forward, sideways, yawRate }: Twist): boolean {
  return Math.max(Math.abs(forward), Math.abs(sideways)) <= STANDING.speed && Math.abs(yawRate) <= STANDING.yawRate;
}
