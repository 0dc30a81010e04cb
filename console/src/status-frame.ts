/**
 * Decodes the guard's status frame: docs/guard.md, frame *status*. Invalid bytes give `null` and
 * throw nothing.
 */
import type { Twist } from './twist';
import {
  BLACK_BOXES, BLOCKERS, type BlackBox, type Blocker, CAUSES, type Cause, FAULTS, type Fault, GEARS, GUARD_MODES, type GuardMode,
  MOTIONS, type Motion, NOTICES, type Notice, SIGNALS, type Signal, STATUS_FRAME, TOLD,
} from './generated/kinds';

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
  signals: Signal[];
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
  /** `null` if the machine has not reported its state yet. */
  machine: MachineFrame | null;
  blackBox: BlackBox;
  decelerationBegin: number;
  deceleration: number;
  jerk: number;
  /** Deceleration of a turn in rad/s² in a stop by the guard; 0 of a car. */
  yawDeceleration: number;
}

/** Returns the frame of these bytes; `null` if they are no valid frame. */
export function readStatusFrame(bytes: Uint8Array): StatusFrame | null {
  const { dataId, bytesLeast, bytesMax } = STATUS_FRAME;
  const numbers = (bytes.length - bytesLeast) / 4;
  if (numbers < 0 || bytes.length > bytesMax || !Number.isInteger(numbers)) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.getUint16(0) !== bytes.length || view.getUint32(4) !== dataId || view.getUint32(8) !== crcOf(bytes)) return null;
  return readPayload(new Fields(view, PAYLOAD_AT), numbers);
}

/** Returns the CRC-32/P4 of a frame, computed without the CRC's own bytes. */
export function crcOf(frame: Uint8Array): number {
  let crc = 0xffff_ffff;
  frame.forEach((byte, at) => {
    if (at < CRC_AT || at >= CRC_AT + 4) crc = CRC_TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  });
  return ~crc >>> 0;
}

function readPayload(fields: Fields, numbers: number): StatusFrame | null {
  const tick = fields.u32();
  const [mode, cause] = [fields.kind(GUARD_MODES), fields.kind(CAUSES)];
  const [value, limit] = [fields.finite(), fields.finite()];
  const stop = fields.u32();
  const latched = fields.flag();
  const emergencyStop = fields.u32();
  const answer = readAnswer(fields);
  const blockers = fields.set(BLOCKERS);
  const holder = fields.u64();
  fields.skip(4); // The session.
  const loopAgeMs = fields.millis();
  fields.skip(2); // The command's age.
  const speedBoundMps = fields.finite();
  const [sidewaysBoundMps, yawRateBound] = [fields.finite(), fields.finite()];
  const motion = fields.kind(MOTIONS);
  const countdownCause = fields.kind(CAUSES);
  const leftMs = fields.millis();
  fields.skip(4 + 12); // Limits, and what was refused.
  fields.skip(4); // The applied steering.
  const [throttle, brake] = [fields.share(0), fields.share(1)];
  fields.skip(6); // Gear, parking brake and signals as applied.
  const twist = { forward: fields.finite(), sideways: fields.finite(), yawRate: fields.finite() };
  const ageMs = fields.millis();
  const machine = readMachine(fields);
  const blackBox = fields.kind(BLACK_BOXES);
  fields.skip(4); // The ages of pictures and commands.
  const [decelerationBegin, deceleration, jerk] = [fields.finite(), fields.finite(), fields.finite()];
  const yawDeceleration = fields.finite();
  const told = readTold(fields, numbers);
  if (fields.unsound || tick === 0 || stop === 0 || answer === undefined) return null;
  return {
    mode, cause, value, limit, stop, latched, emergencyStop, answer, blockers, holder, loopAgeMs,
    speedBoundMps, sidewaysBoundMps, yawRateBound, motion,
    countdown: leftMs === null ? null : { cause: countdownCause, leftMs },
    throttle, brake, twist,
    machine: ageMs === null ? null : { ...machine, ageMs, told },
    blackBox, decelerationBegin, deceleration, jerk, yawDeceleration,
  };
}

/**
 * Reads the guard's report on the newest action: `null` if there was none, `undefined` if its
 * fields contradict each other.
 */
function readAnswer(fields: Fields): StatusFrame['answer'] | undefined {
  const [console, number, outcome] = [fields.u64(), fields.u32(), fields.u8()];
  if (console === 0n && number === 0 && outcome === 0) return null;
  const said = outcome === 1 ? 'done' : BLOCKERS[outcome - 2];
  return console === 0n || number === 0 || said === undefined ? undefined : { console, number, outcome: said };
}

function readMachine(fields: Fields): Omit<MachineFrame, 'ageMs' | 'told'> {
  fields.skip(8); // When it was measured.
  const speedMps = fields.within(SPEED_MOST);
  const [sidewaysMps, yawRate] = [fields.within(SPEED_MOST), fields.within(YAW_RATE_MOST)];
  const steeringAngleRad = fields.within(ANGLE_MOST);
  const gear = fields.u8();
  const [notices, faults, signals] = [fields.set(NOTICES), fields.set(FAULTS), fields.set(SIGNALS)];
  fields.skip(12 + 20 + 1); // Position, place, and a byte that is reserved.
  if (gear >= GEARS.length) fields.unsound = true;
  return { speedMps, sidewaysMps, yawRate, steeringAngleRad, gear, notices, faults, signals };
}

/**
 * Reads the optional values. Those that an older guard does not send are unknown; further ones of a
 * newer guard are skipped.
 */
function readTold(fields: Fields, numbers: number): Told {
  // The fourth is the guard's command timeout, which is no value of the machine.
  const present = Array.from({ length: numbers }, () => fields.f32()).filter((_, at) => at !== TIMEOUT_AT);
  const known = (number: number | undefined): number | null => (number !== undefined && Number.isFinite(number) ? number : null);
  return Object.fromEntries(TOLD.map(({ key }, at) => [key, known(present[at])])) as Told;
}

/** Fields of a frame in sequence. */
class Fields {
  /** True once a field has had an invalid value. */
  unsound = false;
  #at: number;

  constructor(readonly view: DataView, at: number) {
    this.#at = at;
  }

  skip(bytes: number): void {
    this.#at += bytes;
  }

  u8(): number {
    return this.view.getUint8(this.#next(1));
  }

  u16(): number {
    return this.view.getUint16(this.#next(2));
  }

  u32(): number {
    return this.view.getUint32(this.#next(4));
  }

  u64(): bigint {
    return this.view.getBigUint64(this.#next(8));
  }

  f32(): number {
    return this.view.getFloat32(this.#next(4));
  }

  /** Reads a number; one that is not finite counts as 0. */
  finite(): number {
    const value = this.f32();
    return Number.isFinite(value) ? value : 0;
  }

  /** Reads a number and limits it to 0 to 1; `otherwise` replaces NaN. */
  share(otherwise: number): number {
    const value = this.f32();
    return Number.isNaN(value) ? otherwise : Math.min(1, Math.max(0, value));
  }

  /** Reads a number; `null` if it is unknown or its magnitude is above `most`. */
  within(most: number): number | null {
    const value = this.f32();
    return Math.abs(value) <= most ? value : null;
  }

  /** Reads a time in ms; `null` if it is unknown. */
  millis(): number | null {
    const value = this.u16();
    return value === UNKNOWN_MS ? null : value;
  }

  flag(): boolean {
    const value = this.u8();
    if (value > 1) this.unsound = true;
    return value === 1;
  }

  /** Reads an index into `names` and returns the name. */
  kind<Name extends string>(names: readonly Name[]): Name {
    const name = names[this.u8()];
    if (name === undefined) this.unsound = true;
    return name ?? names[0]!;
  }

  /** Reads a bit mask and returns the `names` whose bits are set. */
  set<Name extends string>(names: readonly Name[]): Name[] {
    const bits = this.u32();
    if (bits >>> names.length !== 0) this.unsound = true;
    return names.filter((_, number) => (bits >>> number) & 1);
  }

  #next(bytes: number): number {
    this.#at += bytes;
    return this.#at - bytes;
  }
}

const CRC_AT = 8;
const PAYLOAD_AT = 20;
const UNKNOWN_MS = 65_535;
/** Index of the command timeout among the optional values. */
const TIMEOUT_AT = 3;
/** Largest speed in m/s that the guard accepts from a machine. */
const SPEED_MOST = 150;
/** Largest yaw rate in rad/s that the guard accepts from a machine. */
const YAW_RATE_MOST = 100;
/** Largest angle of the road wheels in rad that the guard accepts from a machine. */
const ANGLE_MOST = Math.fround(Math.PI / 2);

/** CRC of each byte by the reflected polynomial 0xF4ACFB13. */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xc8df_352f : 0);
  return crc >>> 0;
});
