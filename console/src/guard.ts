/** State of the vehicle's guard, and the texts that the page shows for it. */
import type { BlackBox, Blocker, Cause, GuardMode, Motion } from './generated/kinds';
import { type Bounds, type Twist, isTwisted } from './twist';

/**
 * Guard's report on the newest action other than an emergency stop: the console that requested it,
 * the action's number there, and its outcome. An outcome other than `done` names what prevented the
 * action.
 */
export interface ActReport {
  console: bigint;
  number: number;
  outcome: 'done' | Blocker;
}

export interface GuardView {
  mode: GuardMode;
  /** Rule that caused the mode. */
  cause: Cause;
  /** Value that the rule in `cause` measured, in the rule's own unit. */
  value: number;
  /** Limit of the rule in `cause`, in the same unit. */
  limit: number;
  /** Number of the current stop, or of the last one. */
  stop: number;
  /** True if the stop in `stop` ends only with a reset that names it. */
  latched: boolean;
  /** Number of the newest emergency stop that was carried out; 0 if none. */
  emergencyStop: number;
  /** `null` before the first action. */
  report: ActReport | null;
  /** Conditions that prevent arming. */
  blockers: Blocker[];
  /** Console that armed the machine; 0n if none. */
  holder: bigint;
  /**
   * Time from the capture of the picture seen here until the guard received a command that cites
   * it; `null` if unknown.
   */
  loopAgeMs: number | null;
  /** Kind of the machine's motion. */
  motion: Motion;
  /** Current speed limit of the machine. */
  speedBoundMps: number;
  /** Current limits of a machine that a twist moves; sideways and yaw rate are 0 of a car. */
  bounds: Bounds;
  /** Motion that the guard asks of a machine that a twist moves. */
  twist: Twist;
  /**
   * Rule that stops the machine next if no more data arrives, and the time until then; `null` if
   * there is none.
   */
  countdown: { cause: Cause; leftMs: number } | null;
  blackBox: BlackBox;
  /** Deceleration of a stop by the guard; `null` if unknown. */
  braking: Deceleration | null;
  /** Set points of the declared axes that the guard applies, by number; NaN: none. */
  setPoints: number[];
  /** Measured values of the declared axes, by number; NaN if unknown. */
  axes: number[];
  /** Bit n: the machine reports the declared action n as on. */
  actions: number;
  /**
   * Revision of the machine's description; 0 if it declares nothing, `null` if the machine has not
   * reported yet.
   */
  description: number | null;
  parkingBrake: boolean;
}

/** Deceleration of a stop: it grows from `begin` to `end` (m/s²) at `jerk` (m/s³). */
export interface Deceleration {
  begin: number;
  end: number;
  jerk: number;
  /** Deceleration of a turn in rad/s²; `null` of a car. */
  yaw: number | null;
}

/** Returns the members of `list` whose bits are set: bit n stands for member n. */
export function membersOf<Name extends string>(list: readonly Name[], bits: number): Name[] {
  return list.filter((_, number) => (bits >>> number) & 1);
}

/** Returns the mask with the bits of these members of `list` set. */
export function bitsOf<Name extends string>(list: readonly Name[], members: Iterable<Name>): number {
  let bits = 0;
  for (const member of members) bits |= 1 << list.indexOf(member);
  return bits >>> 0;
}

/** Describes the fault of the black box; empty if it has none, or if nothing is to be recorded. */
export function blackBoxWords(blackBox: BlackBox): string {
  switch (blackBox) {
    case 'absent':
    case 'records': return '';
    case 'disk full': return 'The black box does not record: disk full';
    case 'disk refuses': return 'The black box does not record: the disk cannot be written';
    case 'disk behind': return 'The black box does not record everything: the disk is too slow';
    case 'ended': return 'The black box does not record: its process has ended';
  }
}

/** Describes the cause of the guard's mode, with the measured value and its limit. */
export function causeWords({ cause, value, limit, motion }: Pick<GuardView, 'cause' | 'value' | 'limit' | 'motion'>): string {
  const speed = (mps: number): string => speedWords(mps, motion);
  const age = `${value.toFixed(0)} ms (limit ${limit.toFixed(0)} ms)`;
  switch (cause) {
    case 'started': return 'The guard has just started';
    case 'picture age': return `The newest picture seen here was too old: ${age}`;
    case 'command timeout': return `No fresh command reached the vehicle for ${age}`;
    case 'proposal timeout': return `The vehicle's computer sent nothing for ${age}`;
    case 'machine timeout': return `The machine sent nothing for ${age}`;
    case 'brake does not answer': return `The brake did not respond: ${value.toFixed(1)} m/s² of the requested ${limit.toFixed(1)} m/s²`;
    case 'emergency stop': return 'An emergency stop was requested';
    case 'console gone': return 'The console was closed or disconnected';
    case 'page hidden': return 'This page was hidden';
    case 'focus lost': return 'This page did not have the keyboard focus';
    case 'inputs unhealthy': return 'The keyboard or an input device was not usable';
    case 'dead man released': return 'The dead-man input was released';
    case 'session ended': return 'The session in which the vehicle was armed has ended';
    case 'console changed': return 'Commands came from another console than the one that armed the vehicle';
    case 'local stop': return 'Somebody at the machine pressed its stop button';
    case 'local control': return 'Somebody at the machine drives it';
    case 'machine fault': return 'The machine reports a fault';
    case 'guard silent': return 'The machine braked by itself: it received nothing from the guard';
    case 'guard late': return `The guard itself was late: ${age}`;
    case 'overspeed': return `Too fast: ${speed(value)} (limit ${speed(limit)})`;
    case 'rolling': return isTwisted(motion)
      ? `The machine moves while held, or otherwise than asked: ${speed(value)}`
      : `The machine rolls while held, or against its gear: ${speed(value)}`;
    case 'camera stopped': return 'The vehicle\'s camera delivers no pictures';
    case 'encoder stopped': return 'The vehicle\'s encoders deliver no pictures';
    case 'parked': return 'Parked';
    case 'arm expired': return 'Nobody drove after arming';
    case 'arm': return 'Armed';
    case 'throttle': return 'Driving';
    case 'loop age': return `The picture seen here is ${value.toFixed(0)} ms old: above ${limit.toFixed(0)} ms the speed is limited`;
    case 'standstill': return 'The machine stands still';
    case 'reset': return 'The stop was reset';
    case 'unattended': return `Unattended: no control was touched for ${(value / 1e3).toFixed(0)} s`;
    case 'speed implausible':
      return `The reported speed of ${speed(value)} is not plausible: ${speed(limit)} are possible`;
    case 'camera blind': return 'The picture has the same brightness everywhere: is the lens covered, or is it dark?';
    case 'steering wrong': return 'The steering check failed: the picture is mirrored or the steering is wrong. Repair it before driving';
  }
}

/**
 * Requirement for arming the machine, or for another action, for each condition that prevents it.
 */
export const NEEDS: Readonly<Record<Blocker, string>> = {
  mode: 'not possible in this mode',
  latched: 'reset the stop first',
  moving: 'the machine must stand still',
  'machine silent': 'the machine must answer',
  'local person': 'the person at the machine must release it',
  'machine fault': 'the machine\'s fault must be repaired',
  'vehicle silent': 'the vehicle\'s computer must answer',
  'no session': 'there must be a session',
  'no command': 'commands must arrive',
  'other console': 'another console drives',
  'throttle pressed': 'release throttle, keys and sticks',
  'picture age': 'a fresh picture must be seen here',
  'person absent': 'this page must be in front, with working inputs',
  'dead man': 'hold the dead-man input',
  'vehicle trouble': 'the vehicle\'s camera must work',
  'stale act': 'the links are too slow: try again',
  'other stop': 'another stop is latched now',
  'not named': 'the console that drives must agree',
  'latch not kept': 'the vehicle must be able to store a stop on its disk',
  'no steering': 'this machine has no wheels that turn while it stands: look at its first turn',
  description: 'the description of the machine\'s axes and actions must arrive',
  'unknown action': 'the machine has no such action',
  busy: 'the machine has not answered the last request yet',
  'machine refused': 'the machine refused',
  'no answer': 'the machine did not answer',
};

/** Joins the texts of these conditions into one sentence; empty if there are none. */
export function needWords(blockers: readonly Blocker[]): string {
  if (blockers.length === 0) return '';
  const words = blockers.map((blocker) => NEEDS[blocker]).join('; ');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

/** Formats a speed: of a car in km/h, of other machines in m/s with one decimal below 10. */
export function speedWords(mps: number, motion: Motion): string {
  return isTwisted(motion) ? `${mps.toFixed(Math.abs(mps) < 9.95 ? 1 : 0)} m/s` : `${(mps * 3.6).toFixed(0)} km/h`;
}
