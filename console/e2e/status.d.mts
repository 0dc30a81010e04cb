/** What a test says of a guard; what is left out is 0, none or not known. Kinds are numbers, sets are bits. */
export interface Said {
  motion?: number;
  tick?: number; mode?: number; cause?: number; value?: number; limit?: number; stop?: number; latched?: boolean; emergencyStop?: number;
  /** `outcome`: 1 done, 2 + blocker: refused. */
  report?: { console: bigint; number: number; outcome: number };
  blockers?: number; holder?: bigint; loopAgeMs?: number; speedBound?: number; sidewaysBound?: number; yawRateBound?: number;
  countdown?: { cause: number; leftMs: number };
  throttle?: number; brake?: number;
  reverseMax?: number;
  /** Applied set points and measured values of declared axes, the actions that are on, and the revision of their description. */
  setPoints?: number[]; axes?: number[]; actions?: number; description?: number;
  /** Applied: m/s forward, m/s to the left, rad/s. */
  twist?: [forward: number, sideways: number, yawRate: number];
  /** Age of the machine's state, ms; 65535: none arrived yet. */
  machineAge?: number;
  speed?: number; sideways?: number; yawRate?: number; steeringAngle?: number; gear?: number; notices?: number; faults?: number; signals?: number;
  blackBox?: number; braking?: [begin: number, end: number, jerk: number]; yawDeceleration?: number;
  /** The optional numbers at the end of the frame. */
  numbers?: number[];
}

export function statusFrame(said?: Said): Uint8Array<ArrayBuffer>;

/** Sets the CRC of a frame that was changed. */
export function seal(frame: Uint8Array): Uint8Array;
