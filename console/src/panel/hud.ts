import { type Band, LATE_MS, bandOf } from '../delay';
import type { GuardMode, Sight as PictureSight } from '../generated/kinds';
import { type GuardView, causeWords } from '../guard';
import { Gear } from '../message/gear';
import { type Geometry, brakingDistance, reactionDistance, track } from '../road';
import type { TelemetryView } from '../report';
import { GUARD_SILENT, silentWords } from './banner';
import { byId, setData, setText } from './element';
import { UNKNOWN, kmh } from './format';

/** Content of the overlay on the picture. */
export interface Sight {
  /** `null` if it is not live. */
  telemetry: TelemetryView | null;
  /** Gear requested on this page. */
  gearAsked: Gear;
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
    setText(this.#speed, kmh(telemetry?.speedMps ?? null));
    setText(this.#bound, guard?.mode === 'limited' ? `of ${kmh(guard.speedBoundMps)}` : '');
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

/** Speed below which the distances are not drawn: they would only cover the bonnet. */
const SPEED_MIN_MPS = 0.5;

/** The vehicle's track ahead, with distances from its front. */
interface Ahead {
  geometry: Geometry;
  steeringAngleRad: number;
  /** Metres driven before the vehicle can react to what is seen now. */
  reactionM: number;
  /** Metres driven until standstill, if it brakes after `reactionM`. */
  stopM: number;
}

/**
 * Returns the track ahead; `null` if a value for it is unknown, or the vehicle hardly moves
 * forward.
 */
export function aheadOf(
  { telemetry, geometry, delayMs }: Pick<Sight, 'telemetry' | 'geometry'> & { delayMs: number | null },
): Ahead | null {
  const braking = telemetry?.guard?.braking ?? null;
  if (telemetry === null || geometry === null || delayMs === null || braking === null) return null;
  const { speedMps, steeringAngleRad, gear } = telemetry;
  if (speedMps === null || steeringAngleRad === null || gear !== Gear.Drive || speedMps < SPEED_MIN_MPS) return null;
  const reactionM = reactionDistance(speedMps, delayMs);
  return { geometry, steeringAngleRad, reactionM, stopM: reactionM + brakingDistance(speedMps, braking) };
}

/**
 * Draws the reaction distance and the braking distance after it, on flat ground ahead of a level
 * vehicle. The braking is that of a stop by the guard; a person who brakes fully stops sooner.
 */
class Road {
  readonly #box = byId<SVGSVGElement>('road');
  readonly #reaction = byId<SVGPolygonElement>('road-reaction');
  readonly #braking = byId<SVGPolygonElement>('road-braking');

  show(ahead: Ahead | null, aspect: number): void {
    this.#box.classList.toggle('gone', ahead === null);
    if (ahead === null) return;
    const { geometry, steeringAngleRad, reactionM, stopM } = ahead;
    const draw = (polygon: SVGPolygonElement, fromM: number, toM: number): void => {
      const line = track(geometry, aspect, steeringAngleRad, fromM, toM);
      polygon.setAttribute('points', line.map(({ x, y }) => `${(x * 1000).toFixed(1)},${(y * 1000).toFixed(1)}`).join(' '));
    };
    draw(this.#reaction, 0, reactionM);
    draw(this.#braking, reactionM, stopM);
  }
}
