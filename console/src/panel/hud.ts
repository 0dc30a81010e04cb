import { type Band, LATE_MS, bandOf } from '../delay';
import type { GuardMode, Sight as PictureSight } from '../generated/kinds';
import { type GuardView, causeWords } from '../guard';
import { Gear } from '../message/gear';
import {
  type Course, type Geometry, brakingAngle, brakingDistance, courseOfTwist, courseOfWheels, reactionDistance, sweep, track,
} from '../road';
import type { TelemetryView } from '../report';
import { isTwisted, stands } from '../twist';
import { GUARD_SILENT, silentWords } from './banner';
import { byId, setData, setText } from './element';
import { UNKNOWN, degrees, kmh, mps } from './format';

/** Content of the overlay on the picture. */
export interface Sight {
  /** `null` if it is not live. */
  telemetry: TelemetryView | null;
  /** Gear requested on this page; of a machine by a twist, the direction of a throttle. */
  gearAsked: Gear;
  /** Held speed in m/s; 0 if none is held. */
  setPointMps: number;
  /**
   * Age in ms of the newest picture seen; `null` before the first, Infinity if its capture time is
   * unknown.
   */
  pictureAgeMs: number | null;
  /** True if no picture is expected: this console does not drive, or nothing is connected. */
  expectsNone: boolean;
  /** `null` if the place of the vehicle's camera is unknown. */
  geometry: Geometry | null;
  /** Width of the picture divided by its height. */
  aspect: number;
}

const GUARD_WORDS: Readonly<Record<GuardMode, string>> = {
  held: 'Held', armed: 'Armed', driving: 'Driving', limited: 'Speed limited', manoeuvre: 'Stopping',
};

const BAND_WORDS: Readonly<Record<Band, string>> = {
  unnoticed: 'not noticed', noticed: 'noticed', challenging: 'challenging', difficult: 'difficult',
  'too late': 'too late to drive',
};

const GEARS: Readonly<Record<Gear, string>> = { [Gear.Drive]: 'D', [Gear.Reverse]: 'R' };

/** Largest time left at which a countdown is shown. Longer ones are normal while driving. */
const COUNTDOWN_TOLD_MS = 150;

/** Returns the countdown to a stop if it is short enough to show; `null` otherwise. */
export function countdownOf(guard: GuardView | null): GuardView['countdown'] {
  if (guard === null || (guard.mode !== 'driving' && guard.mode !== 'limited')) return null;
  return guard.countdown !== null && guard.countdown.leftMs <= COUNTDOWN_TOLD_MS ? guard.countdown : null;
}

/** Describes the picture's age; `null` if the picture is fresh or none is expected. */
export function ageWords({ pictureAgeMs, expectsNone }: Pick<Sight, 'pictureAgeMs' | 'expectsNone'>): string | null {
  if (expectsNone) return null;
  if (pictureAgeMs === null) return 'No picture seen yet';
  if (pictureAgeMs === Infinity) return 'Picture age unknown';
  return pictureAgeMs <= LATE_MS ? null : `Picture ${(pictureAgeMs / 1000).toFixed(1)} s old`;
}

/** Describes the requested gear if it differs from the machine's; empty otherwise. */
export function gearAskedWords(told: Gear | null, asked: Gear): string {
  return told === null || told === asked ? '' : `${GEARS[asked]} requested`;
}

/** Describes a turn: its direction and rate; `null` if there is none. */
export function turnWords(yawRate: number): string | null {
  const words = degrees(Math.abs(yawRate));
  return words === '0' ? null : `${yawRate > 0 ? '↺' : '↻'} ${words}`;
}

/** Describes a motion to the side; `null` if there is none. */
export function sidewaysWords(sideways: number): string | null {
  const words = mps(Math.abs(sideways));
  return words === '0.0' ? null : sideways > 0 ? `← ${words}` : `${words} →`;
}

/** Describes a picture source other than a camera; empty for a camera. */
export function sourceWords(sight: readonly PictureSight[]): string {
  if (sight.includes('drawn')) return 'Simulated picture';
  return sight.includes('recorded') ? 'Recorded clip' : '';
}

/**
 * The overlay on the picture: mode, speed, gear, delay, countdown, and the distances on the road.
 */
export class Hud {
  readonly #stage = byId('picture').closest<HTMLElement>('.stage')!;
  readonly #mode = byId('mode');
  readonly #reason = byId('mode-reason');
  readonly #speed = byId('hud-speed');
  readonly #bound = byId('hud-bound');
  readonly #unit = byId('hud-unit');
  readonly #turn = byId('hud-turn');
  readonly #turnBound = byId('hud-turn-bound');
  readonly #sideways = byId('hud-sideways');
  readonly #setPoint = byId('hud-set-point');
  readonly #direction = byId('hud-direction');
  readonly #gear = byId('hud-gear');
  readonly #gearAsked = byId('hud-gear-asked');
  readonly #source = byId('hud-source');
  readonly #delay = byId('hud-delay');
  readonly #countdown = byId('countdown');
  readonly #age = byId('picture-age');
  readonly #road = new Road();

  show(sight: Sight): void {
    const { telemetry } = sight;
    const guard = telemetry?.guard ?? null;
    this.#showMode(telemetry);
    const source = sourceWords(telemetry?.sight ?? []);
    setText(this.#source, source);
    this.#source.hidden = source === '';
    this.#showMotion(telemetry, sight);
    const gear = telemetry?.gear ?? null;
    const letter = gear === null ? UNKNOWN : GEARS[gear];
    setText(this.#gear, letter);
    setData(this.#gear, 'gear', letter);
    setText(this.#gearAsked, gearAskedWords(gear, sight.gearAsked));
    // The guard's loop age also covers the way back to the vehicle. Without it, the picture's age
    // is shown.
    const delayMs = guard?.loopAgeMs ?? sight.pictureAgeMs;
    this.#showDelay(sight.expectsNone ? null : delayMs);
    const countdown = countdownOf(guard);
    this.#countdown.hidden = countdown === null;
    if (countdown !== null) setText(this.#countdown, `Stops in ${(countdown.leftMs / 1000).toFixed(2)} s: ${countdown.cause}`);
    const age = ageWords(sight);
    this.#age.hidden = age === null;
    setText(this.#age, age ?? '');
    setData(this.#stage, 'late', String(age !== null));
    this.#road.show(age === null ? aheadOf({ ...sight, delayMs }) : null, sight.aspect);
  }

  /** Shows speed, and turn and sideways speed of a machine that a twist moves, with its limits. */
  #showMotion(telemetry: TelemetryView | null, { setPointMps, gearAsked }: Sight): void {
    const guard = telemetry?.guard ?? null;
    // The words for an unreachable guard keep the units of the machine that was seen last.
    const isTwist = guard === null ? this.#unit.textContent === 'm/s' : isTwisted(guard.motion);
    const speed = isTwist ? mps : kmh;
    setText(this.#speed, speed(telemetry?.speedMps ?? null));
    this.#speed.ariaLabel = isTwist ? 'Speed in m/s' : 'Speed in km/h';
    setText(this.#unit, isTwist ? 'm/s' : 'km/h');
    setText(this.#bound, guard?.mode === 'limited' ? `of ${speed(guard.speedBoundMps)}` : '');
    const yawRate = telemetry?.yawRate ?? null;
    setText(this.#turn, yawRate === null ? UNKNOWN : turnWords(yawRate) ?? '0');
    setText(this.#turnBound, guard?.mode === 'limited' ? `of ${degrees(guard.bounds.yawRate)}` : '');
    const sideways = telemetry?.sidewaysMps ?? null;
    setText(this.#sideways, sideways === null ? UNKNOWN : sidewaysWords(sideways) ?? '0.0');
    this.#setPoint.hidden = setPointMps === 0;
    setText(this.#setPoint, `set ${mps(setPointMps)} m/s`);
    this.#direction.hidden = gearAsked !== Gear.Reverse;
  }

  /** Shows the mode and its reason. A reason that the banner shows is not repeated. */
  #showMode(telemetry: TelemetryView | null): void {
    if (telemetry === null) {
      this.#setMode('none', UNKNOWN, '');
    } else if (telemetry.guard === null) {
      this.#setMode('guard-silent', GUARD_SILENT, silentWords(telemetry));
    } else {
      const { guard } = telemetry;
      this.#setMode(guard.mode, GUARD_WORDS[guard.mode], guard.mode === 'limited' ? causeWords(guard) : '');
    }
  }

  #setMode(data: string, text: string, reason: string): void {
    setData(this.#mode, 'mode', data);
    setText(this.#mode, text);
    setText(this.#reason, reason === byId('banner-detail').textContent && !byId('banner').hidden ? '' : reason);
  }

  #showDelay(delayMs: number | null): void {
    const band = delayMs === null ? null : bandOf(delayMs);
    setData(this.#delay, 'band', band ?? 'unknown');
    setText(this.#delay, delayMs === null || band === null ? `delay ${UNKNOWN}` : `${delayMs.toFixed(0)} ms ${BAND_WORDS[band]}`);
  }
}

/**
 * Speed below which a car's distances are not drawn: they would only cover the bonnet. Other
 * machines are slower.
 */
const SPEED_MIN_MPS = { car: 0.5, twist: 0.1 };

/**
 * Time for which the course of a machine by a twist is drawn: it stops within a metre or two, too
 * near to judge a bend.
 */
const COURSE_S = 3;

/** Where a moving vehicle gets before it stands. */
export type Ahead = { geometry: Geometry } & ({
  course: Course;
  /** Metres driven before the vehicle can react to what is seen now. */
  reactionM: number;
  /** Metres driven until standstill, if it brakes after `reactionM`. */
  stopM: number;
  /** Metres for which the course itself is drawn; 0 if it is not. */
  courseM: number;
} | {
  /** Angle that a turn on the spot covers before the vehicle can react, left positive. */
  reactionRad: number;
  /** Angle until standstill, `reactionRad` included, left positive. */
  stopRad: number;
});

/**
 * Returns the way ahead; `null` if a value for it is unknown, or the vehicle moves neither forward
 * nor on the spot.
 */
export function aheadOf(
  { telemetry, geometry, delayMs }: Pick<Sight, 'telemetry' | 'geometry'> & { delayMs: number | null },
): Ahead | null {
  const guard = telemetry?.guard ?? null;
  const braking = guard?.braking ?? null;
  if (telemetry === null || guard === null || geometry === null || delayMs === null || braking === null) return null;
  const { speedMps, steeringAngleRad, gear } = telemetry;
  if (isTwisted(guard.motion)) return twistAhead(telemetry, geometry, delayMs);
  if (speedMps === null || steeringAngleRad === null || gear !== Gear.Drive || speedMps < SPEED_MIN_MPS.car || geometry.wheelbase === null) return null;
  const reactionM = reactionDistance(speedMps, delayMs);
  return {
    geometry, course: courseOfWheels(geometry.wheelbase, steeringAngleRad), reactionM, stopM: reactionM + brakingDistance(speedMps, braking),
    courseM: 0,
  };
}

function twistAhead({ speedMps, sidewaysMps, yawRate, guard }: TelemetryView, geometry: Geometry, delayMs: number): Ahead | null {
  const braking = guard?.braking ?? null;
  if (speedMps === null || yawRate === null || braking === null) return null;
  const moved = { forward: speedMps, sideways: sidewaysMps ?? 0, yawRate };
  const speed = Math.hypot(moved.forward, moved.sideways);
  if (speed < SPEED_MIN_MPS.twist) {
    if (stands({ ...moved, forward: 0, sideways: 0 }) || braking.yaw === null) return null;
    const reactionRad = (yawRate * delayMs) / 1000;
    return { geometry, reactionRad, stopRad: reactionRad + Math.sign(yawRate) * brakingAngle(yawRate, braking.yaw) };
  }
  if (moved.forward <= 0) return null;
  const reactionM = reactionDistance(speed, delayMs);
  return { geometry, course: courseOfTwist(moved), reactionM, stopM: reactionM + brakingDistance(speed, braking), courseM: speed * COURSE_S };
}

/**
 * Draws the way of the reaction and that of braking after it, on flat ground ahead of a level
 * vehicle: along its course, or around it on the spot. The braking is that of a stop by the guard;
 * a person who brakes fully stops sooner.
 */
class Road {
  readonly #box = byId<SVGSVGElement>('road');
  readonly #course = byId<SVGPolygonElement>('road-course');
  readonly #reaction = byId<SVGPolygonElement>('road-reaction');
  readonly #braking = byId<SVGPolygonElement>('road-braking');

  show(ahead: Ahead | null, aspect: number): void {
    this.#box.classList.toggle('gone', ahead === null);
    if (ahead === null) return;
    const { geometry } = ahead;
    const draw = (polygon: SVGPolygonElement, line: readonly { x: number; y: number }[]): void => {
      polygon.setAttribute('points', line.map(({ x, y }) => `${(x * 1000).toFixed(1)},${(y * 1000).toFixed(1)}`).join(' '));
    };
    if ('course' in ahead) {
      this.#box.dataset['way'] = 'course';
      draw(this.#course, track(geometry, aspect, ahead.course, 0, ahead.courseM));
      draw(this.#reaction, track(geometry, aspect, ahead.course, 0, ahead.reactionM));
      draw(this.#braking, track(geometry, aspect, ahead.course, ahead.reactionM, ahead.stopM));
    } else {
      this.#box.dataset['way'] = 'spot';
      draw(this.#course, []);
      draw(this.#reaction, sweep(geometry, aspect, 0, ahead.reactionRad));
      draw(this.#braking, sweep(geometry, aspect, ahead.reactionRad, ahead.stopRad));
    }
  }
}
