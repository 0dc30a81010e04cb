/**
 * Decodes the guard's status frame: docs/guard.md, frame *status*. Invalid bytes give `null` and
 * throw nothing.
 */
import type { Twist } from './twist';
import {
  BLACK_BOXES, BLOCKERS, type BlackBox, type Blocker, CAUSES, type Cause, FAULTS, type Fault, GEARS, GUARD_MODES, type GuardMode,
  MOTIONS, type Motion, NOTICES, type Notice, STATUS_FRAME, TOLD,
} from './generated/kinds';
import { type RawMachine, type RawStatus, readRawStatus } from './generated/frames';

/** Optional values that a machine reports for people; `null` if unknown. */
export type Told = Record<(typeof TOLD)[number]['key'], number | null>;

export interface MachineFrame {
  ageMs: number;
  /** Speed along the machine in m/s; `null` if unknown. */
  speedMps: number | null;
  /** Speed to the left in m/s; `null` if unknown. */
  sidewaysMps: number | null;
  /** Yaw rate in rad/s, counterclockwise positive; `null` if unknown. */
  yawRate: number | null;
  /** Angle of the road wheels in rad, left positive; `null` if unknown. */
  steeringAngleRad: number | null;
  /** Index of the gear in `GEARS`. */
  gear: number;
  notices: Notice[];
  faults: Fault[];
  /** Measured values of the declared axes, by number; NaN if unknown. */
  axes: number[];
  /** Bit n: declared action n is on. */
  actions: number;
  /** Revision of the machine's description; 0 if it declares nothing. */
  description: number;
  told: Told;
}

export interface StatusFrame {
  mode: GuardMode;
  cause: Cause;
  value: number;
  limit: number;
  stop: number;
  latched: boolean;
  /** Number of the newest emergency stop that was carried out; 0 if none. */
  emergencyStop: number;
  answer: { console: bigint; number: number; outcome: 'done' | Blocker } | null;
  blockers: Blocker[];
  /** Console that armed the machine; 0n if none. */
  holder: bigint;
  loopAgeMs: number | null;
  speedBoundMps: number;
  /** Largest sideways speed that is allowed now; 0 unless the machine is omnidirectional. */
  sidewaysBoundMps: number;
  /** Largest yaw rate in rad/s that is allowed now; 0 of a car. */
  yawRateBound: number;
  /** Kind of the machine's motion. */
  motion: Motion;
  countdown: { cause: Cause; leftMs: number } | null;
  /** Throttle that the guard applies, 0 to 1. */
  throttle: number;
  /** Brake that the guard applies, 0 to 1. */
  brake: number;
  /** Motion that the guard asks of a machine that a twist moves; 0 of a car. */
  twist: Twist;
  /** Set points of the declared axes that the guard applies, by number; NaN: none. */
  setPoints: number[];
  /** `null` if the machine has not reported its state yet. */
  machine: MachineFrame | null;
  blackBox: BlackBox;
  decelerationBegin: number;
  deceleration: number;
  jerk: number;
  /** Deceleration of a turn in rad/s² in a stop by the guard; 0 of a car. */
  yawDeceleration: number;
  /** Largest speed backwards of a machine that a twist moves; 0 of a car. */
  reverseMaxMps: number;
}

/** Returns the frame of these bytes; `null` if they are no valid frame. */
export function readStatusFrame(bytes: Uint8Array): StatusFrame | null {
  const { dataId, bytesLeast, bytesMax } = STATUS_FRAME;
  const numbers = (bytes.length - bytesLeast) / 4;
  if (numbers < 0 || bytes.length > bytesMax || !Number.isInteger(numbers)) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.getUint16(0) !== bytes.length || view.getUint32(4) !== dataId || view.getUint32(8) !== crcOf(bytes)) return null;
  return convert(readRawStatus(view));
}

/** Returns the CRC-32/P4 of a frame, computed without the CRC's own bytes. */
export function crcOf(frame: Uint8Array): number {
  let crc = 0xffff_ffff;
  frame.forEach((byte, at) => {
    if (at < CRC_AT || at >= CRC_AT + 4) crc = CRC_TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  });
  return ~crc >>> 0;
}

function convert(raw: RawStatus): StatusFrame | null {
  const checks = new Checks();
  const mode = checks.kind(GUARD_MODES, raw.mode);
  const cause = checks.kind(CAUSES, raw.cause);
  const answer = answerOf(raw);
  const countdownCause = checks.kind(CAUSES, raw.countdownsCause);
  const leftMs = millis(raw.countdown);
  const ageMs = millis(raw.machinesAge);
  const machine = checks.machine(raw.machine);
  const frame = {
    mode, cause, value: finite(raw.value), limit: finite(raw.limit), stop: raw.stop, latched: checks.flag(raw.latched),
    emergencyStop: raw.emergencyStop, blockers: checks.set(BLOCKERS, raw.blockers), holder: raw.holder, loopAgeMs: millis(raw.loopAge),
    speedBoundMps: finite(raw.speedBound), sidewaysBoundMps: finite(raw.sidewaysSpeedBound), yawRateBound: finite(raw.yawRateBound),
    motion: checks.kind(MOTIONS, raw.motion),
    countdown: leftMs === null ? null : { cause: countdownCause, leftMs },
    throttle: share(raw.applied.throttle, 0), brake: share(raw.applied.brake, 1),
    twist: { forward: finite(raw.applied.forward), sideways: finite(raw.applied.sideways), yawRate: finite(raw.applied.yawRate) },
    setPoints: raw.applied.axes,
    machine: ageMs === null ? null : { ...machine, ageMs, told: toldOf(raw.numbers) },
    blackBox: checks.kind(BLACK_BOXES, raw.blackBox),
    decelerationBegin: finite(raw.decelerationBegin), deceleration: finite(raw.deceleration), jerk: finite(raw.jerk),
    yawDeceleration: finite(raw.yawDeceleration), reverseMaxMps: finite(raw.reverseSpeedMax),
  };
  if (checks.unsound || raw.tick === 0 || raw.stop === 0 || answer === undefined) return null;
  return { ...frame, answer };
}

/**
 * Returns the guard's report on the newest action: `null` if there was none, `undefined` if its
 * fields contradict each other.
 */
function answerOf(raw: RawStatus): StatusFrame['answer'] | undefined {
  const [console, number, outcome] = [raw.actsConsole, raw.actsNumber, raw.actsOutcome];
  if (console === 0n && number === 0 && outcome === 0) return null;
  const said = outcome === 1 ? 'done' : BLOCKERS[outcome - 2];
  return console === 0n || number === 0 || said === undefined ? undefined : { console, number, outcome: said };
}

/**
 * Returns the optional values. Those that an older guard does not send are unknown; further ones of
 * a newer guard are skipped.
 */
function toldOf(numbers: number[]): Told {
  // The fourth is the guard's command timeout, which is no value of the machine.
  const present = numbers.filter((_, at) => at !== TIMEOUT_AT);
  const known = (number: number | undefined): number | null => (number !== undefined && Number.isFinite(number) ? number : null);
  return Object.fromEntries(TOLD.map(({ key }, at) => [key, known(present[at])])) as Told;
}

/** Returns the number, or 0 for one that is not finite. */
function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}

/** Returns the number limited to 0 to 1; `otherwise` replaces NaN. */
function share(value: number, otherwise: number): number {
  return Number.isNaN(value) ? otherwise : Math.min(1, Math.max(0, value));
}

/** Returns the number; `null` if it is unknown or its magnitude is above `most`. */
function within(value: number, most: number): number | null {
  return Math.abs(value) <= most ? value : null;
}

/** Returns a time in ms; `null` if it is unknown. */
function millis(value: number): number | null {
  return value === UNKNOWN_MS ? null : value;
}

/** Conversion of numbers that have names, which notes invalid ones. */
class Checks {
  /** True once a number had an invalid value. */
  unsound = false;

  machine(raw: RawMachine): Omit<MachineFrame, 'ageMs' | 'told'> {
    this.kind(GEARS, raw.gear);
    return {
      speedMps: within(raw.speed, SPEED_MOST), sidewaysMps: within(raw.sidewaysSpeed, SPEED_MOST),
      yawRate: within(raw.yawRate, YAW_RATE_MOST), steeringAngleRad: within(raw.steeringAngle, ANGLE_MOST), gear: raw.gear,
      notices: this.set(NOTICES, raw.notices), faults: this.set(FAULTS, raw.faults),
      axes: raw.axes, actions: raw.actions, description: raw.description,
    };
  }

  flag(value: number): boolean {
    if (value > 1) this.unsound = true;
    return value === 1;
  }

  /**
   * Returns the name of an index into `names`. An index beyond them is noted as invalid and gives
   * the first.
   */
  kind<Name extends string>(names: readonly Name[], index: number): Name {
    const name = names[index];
    if (name === undefined) this.unsound = true;
    return name ?? names[0]!;
  }

  /** Returns the `names` whose bits are set. A set bit beyond them is noted as invalid. */
  set<Name extends string>(names: readonly Name[], bits: number): Name[] {
    if (bits >>> names.length !== 0) this.unsound = true;
    return names.filter((_, number) => (bits >>> number) & 1);
  }
}

const CRC_AT = 8;
const UNKNOWN_MS = 65_535;
/** Index of the command timeout among the optional values. */
const TIMEOUT_AT = 3;
/** Largest speed in m/s that the guard accepts from a machine. A larger one counts as unknown. */
const SPEED_MOST = 150;
/**
 * Largest yaw rate in rad/s that the guard accepts from a machine. A larger one counts as unknown.
 */
const YAW_RATE_MOST = 100;
/**
 * Largest angle of the road wheels in rad that the guard accepts from a machine. A larger one
 * counts as unknown.
 */
const ANGLE_MOST = Math.fround(Math.PI / 2);

/** CRC of each byte by the reflected polynomial 0xF4ACFB13. */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xc8df_352f : 0);
  return crc >>> 0;
});
