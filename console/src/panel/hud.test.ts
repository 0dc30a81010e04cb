import { describe, expect, it } from 'vitest';
import type { GuardView } from '../guard';
import { Gear } from '../message/gear';
import type { TelemetryView } from '../report';
import { courseOfTwist, courseOfWheels, geometryOf } from '../road';
import { ageWords, aheadOf, countdownOf, gearAskedWords, sidewaysWords, sourceWords, turnWords } from './hud';

const guard = (mode: GuardView['mode'], leftMs: number | null) => ({
  mode, countdown: leftMs === null ? null : { cause: 'picture age', leftMs },
}) as GuardView;

describe('the countdown', () => {
  it('is shown while driving if little is left', () => {
    expect(countdownOf(guard('driving', 151))).toBeNull();
    expect(countdownOf(guard('driving', 150))).toMatchObject({ leftMs: 150 });
    expect(countdownOf(guard('limited', 0))).toMatchObject({ leftMs: 0 });
  });

  it('is hidden if nothing can stop', () => {
    expect([countdownOf(null), countdownOf(guard('held', 10)), countdownOf(guard('driving', null))]).toEqual([null, null, null]);
  });
});

describe('the requested gear', () => {
  it('is shown if the machine is in another one', () => {
    expect(gearAskedWords(Gear.Drive, Gear.Reverse)).toBe('R requested');
    expect([gearAskedWords(Gear.Reverse, Gear.Reverse), gearAskedWords(null, Gear.Reverse)]).toEqual(['', '']);
  });
});

describe('the picture\'s age', () => {
  const told = (pictureAgeMs: number | null, expectsNone = false) => ageWords({ pictureAgeMs, expectsNone });

  it('is shown once it makes driving difficult', () => {
    expect([told(375), told(380), told(4_210)]).toEqual([null, 'Picture 0.4 s old', 'Picture 4.2 s old']);
  });

  it('is shown as unknown, and never as fresh', () => {
    expect(told(Infinity)).toBe('Picture age unknown');
  });

  it('is shown as missing, unless none is expected', () => {
    expect([told(null), told(null, true), told(9_000, true)]).toEqual(['No picture seen yet', null, null]);
  });
});

describe('the distances on the road', () => {
  // Values of a vehicle whose camera's place was measured.
  const values = [
    ['cones hit', 0], ['camera height', 1.4], ['camera before rear axle', 1.35], ['camera focal length', 0.714], ['camera centre', 0.5],
    ['camera pitch', 3], ['front before rear axle', 3.45], ['half width', 0.9], ['wheelbase', 2.6],
  ].map(([name, number]) => ({ name: name as string, number: number as number }));
  const geometry = geometryOf(values);
  const braking = { begin: 4, end: 4, jerk: 5, yaw: 2 };
  const ahead = (change: Partial<TelemetryView>, delayMs: number | null = 500) => {
    const drives = { speedMps: 4, steeringAngleRad: 0.1, gear: Gear.Drive, guard: { braking, motion: 'ackermann' }, ...change };
    return aheadOf({ telemetry: drives as unknown as TelemetryView, geometry, delayMs });
  };

  it('are reaction and braking by speed, delay and manoeuvre', () => {
    expect(geometry).not.toBeNull();
    expect(ahead({})).toEqual({ geometry, course: courseOfWheels(2.6, 0.1), reactionM: 2, stopM: 4, courseM: 0 });
  });

  it('follow speed and yaw rate of a machine that a twist moves, or its turn on the spot', () => {
    const robot = (change: Partial<TelemetryView>, delayMs: number | null = 500) => ahead(
      { guard: { braking, motion: 'omni' }, speedMps: 0, sidewaysMps: 0, yawRate: 0, steeringAngleRad: null, gear: null, ...change } as unknown as TelemetryView, delayMs);
    expect(robot({ speedMps: 0.8, sidewaysMps: 0.6, yawRate: -0.5 })).toEqual({
      geometry, course: courseOfTwist({ forward: 0.8, sideways: 0.6, yawRate: -0.5 }), reactionM: 0.5, stopM: expect.closeTo(0.625), courseM: 3,
    });
    expect(robot({ yawRate: -1 })).toEqual({ geometry, reactionRad: -0.5, stopRad: -0.75 });
    expect(robot({ speedMps: 0.8, sidewaysMps: null })).toMatchObject({ reactionM: 0.4 });
    expect([robot({}), robot({ speedMps: -0.5 }), robot({ yawRate: null }), robot({ speedMps: null }), robot({ yawRate: 1 }, null)])
      .toEqual(Array(5).fill(null));
  });

  it('are hidden without the camera\'s position', () => {
    const told = { speedMps: 4, steeringAngleRad: 0.1, gear: Gear.Drive, guard: { braking, motion: 'ackermann' } } as unknown as TelemetryView;
    expect(aheadOf({ telemetry: told, geometry: geometryOf(values.slice(0, 1)), delayMs: 500 })).toBeNull();
  });

  it('are hidden if speed, angle, gear, delay or guard is unknown, in reverse, or at a crawl', () => {
    const unknown = [{ speedMps: null }, { steeringAngleRad: null }, { gear: null }, { guard: null }].map((change) => ahead(change));
    expect([...unknown, ahead({}, null), ahead({ gear: Gear.Reverse }), ahead({ speedMps: 0.4 })]).toEqual(Array(7).fill(null));
  });
});

describe('turn and sideways motion', () => {
  it('are shown with their direction, and not at rest', () => {
    expect([turnWords(0.5), turnWords(-1), turnWords(0.005)]).toEqual(['↺ 29', '↻ 57', null]);
    expect([sidewaysWords(0.4), sidewaysWords(-12), sidewaysWords(0.04)]).toEqual(['← 0.4', '12 →', null]);
  });
});

describe('the source of the pictures', () => {
  it('is shown if it is not a camera', () => {
    expect([['drawn'], ['recorded', 'repeats'], ['uniform']].map((sight) => sourceWords(sight as never))).toEqual(
      ['Simulated picture', 'Recorded clip', '']);
  });
});
