import { describe, expect, it } from 'vitest';
import {
  type Geometry, along, brakingAngle, brakingDistance, courseOfTwist, courseOfWheels, geometryOf, project, reactionDistance, sweep, track,
} from './road';

/** The guard's default deceleration. */
const MANOEUVRE = { begin: 1.5, end: 4, jerk: 5, yaw: null };

/** The simulated windscreen camera. */
const CAMERA: Geometry = {
  height: 1.25, mount: 1.35, focal: 0.714, centre: 0.41, pitch: 0, front: 3.45, halfWidth: 0.9, wheelbase: 2.6,
};
const ASPECT = 16 / 9;
const STRAIGHT = { curvature: 0, drift: 0 };
/** A robot's camera, at knee height. */
const ROBOT: Geometry = { height: 0.5, mount: 0.3, focal: 0.7, centre: 0.45, pitch: 5, front: 0.4, halfWidth: 0.25, wheelbase: null };

/** Returns the braking distance, integrated in steps of 0.1 ms. */
function brakedBySteps(speed: number): number {
  const step = 1e-4;
  let [left, metres, deceleration] = [speed, 0, MANOEUVRE.begin];
  while (left > 0) {
    metres += left * step;
    left -= deceleration * step;
    deceleration = Math.min(MANOEUVRE.end, deceleration + MANOEUVRE.jerk * step);
  }
  return metres;
}

describe('distances', () => {
  it('of the reaction are speed times loop age, also in reverse', () => {
    expect(reactionDistance(10, 250)).toBe(2.5);
    expect(reactionDistance(-4, 500)).toBe(2);
  });

  it('of braking follow a ramped deceleration, below and above the ramp\'s end', () => {
    for (const speed of [0, 0.1, 0.5, 1.37, 1.38, 3, 8, 15, 25]) {
      expect(brakingDistance(speed, MANOEUVRE)).toBeCloseTo(brakedBySteps(speed), 2);
    }
    expect(brakingDistance(8, { begin: 4, end: 4, jerk: 1, yaw: null })).toBeCloseTo(8);
  });
});

describe('the projection', () => {
  it('agrees with the camera\'s own for ground ahead', () => {
    const point = project(CAMERA, ASPECT, 1.35 + 10, 0)!;
    expect(point.x).toBe(0.5);
    // 0.714 x 1280 pixels of focal length, 1.25 m down in 10 m, below the horizon's row of 720.
    expect(point.y * 720).toBeCloseTo(0.41 * 720 + 0.714 * 1280 * 0.125);
  });

  it('puts left points on the left, nearer to the middle at greater depth', () => {
    const [near, far] = [project(CAMERA, ASPECT, 6, 1)!, project(CAMERA, ASPECT, 40, 1)!];
    expect(near.x).toBeLessThan(far.x);
    expect(far.x).toBeLessThan(0.5);
    expect(near.y).toBeGreaterThan(far.y);
    expect(far.y).toBeGreaterThan(CAMERA.centre);
  });

  it('returns null behind the camera', () => expect(project(CAMERA, ASPECT, 1.4, 0)).toBeNull());

  it('of a camera that looks down has the ground nearer to the middle, and on it where the axis meets the ground', () => {
    const down: Geometry = { ...CAMERA, centre: 0.5, pitch: 7 };
    const met = CAMERA.height / Math.tan((7 * Math.PI) / 180);
    expect(project(down, ASPECT, 1.35 + met, 0)!.y).toBeCloseTo(0.5);
    // By the angle below the axis: a point 5 m ahead is seen at atan(1.25 / 5).
    const below = Math.atan(1.25 / 5) - (7 * Math.PI) / 180;
    const point = project(down, ASPECT, 1.35 + 5, 1)!;
    expect(point.y).toBeCloseTo(0.5 + 0.714 * ASPECT * Math.tan(below));
    expect(point.x).toBeCloseTo(0.5 - 0.714 / (Math.hypot(5, 1.25) * Math.cos(below)));
    expect(project({ ...down, pitch: -7 }, ASPECT, 1.35 + 5, 0)!.y).toBeGreaterThan(project({ ...down, pitch: 0 }, ASPECT, 1.35 + 5, 0)!.y);
  });
});

describe('the track', () => {
  it('follows a circle of the wheelbase over the angle\'s tangent', () => {
    const radius = 2.6 / Math.tan(0.2);
    const quarter = along(courseOfWheels(2.6, 0.2), (Math.PI / 2) * radius);
    expect(quarter.ahead).toBeCloseTo(radius);
    expect(quarter.left).toBeCloseTo(radius);
    expect(along(STRAIGHT, 12)).toEqual({ ahead: 12, left: 0, heading: 0 });
  });

  it('is as wide as the vehicle and as long as requested', () => {
    const line = track(CAMERA, ASPECT, STRAIGHT, 5, 20);
    expect(line[0]).toEqual(project(CAMERA, ASPECT, 3.45 + 5, 0.9));
    expect(line.at(-1)).toEqual(project(CAMERA, ASPECT, 3.45 + 5, -0.9));
    expect(Math.min(...line.map((point) => point.y))).toBeCloseTo(project(CAMERA, ASPECT, 3.45 + 20, 0)!.y);
  });

  it('bends with the wheels and ends before it would turn back', () => {
    const end = (angle: number): number => {
      const line = track(CAMERA, ASPECT, courseOfWheels(2.6, angle), 0, 20);
      return (line[line.length / 2]!.x + line[line.length / 2 - 1]!.x) / 2;
    };
    expect(end(0.1)).toBeLessThan(0.5);
    expect(end(-0.1)).toBeGreaterThan(0.5);
    expect(track(CAMERA, ASPECT, courseOfWheels(2.6, 0.5), 0, 200).every(({ x, y }) => Number.isFinite(x) && Number.isFinite(y))).toBe(true);
  });
});

describe('the course of a twist', () => {
  it('turns by yaw rate over speed, around a point to its left', () => {
    // 1 m/s and 0.5 rad/s: a circle of 2 m.
    const half = along(courseOfTwist({ forward: 1, sideways: 0, yawRate: 0.5 }), 2 * Math.PI);
    expect([half.ahead, half.left, half.heading]).toEqual([expect.closeTo(0), expect.closeTo(4), expect.closeTo(Math.PI)]);
    expect(along(courseOfTwist({ forward: 1, sideways: 0, yawRate: -0.5 }), 1).left).toBeLessThan(0);
  });

  it('drifts to the side of an omnidirectional machine', () => {
    const end = along(courseOfTwist({ forward: 0.3, sideways: 0.4, yawRate: 0 }), 1);
    expect([end.ahead, end.left, end.heading]).toEqual([expect.closeTo(0.6), expect.closeTo(0.8), 0]);
    const turned = along(courseOfTwist({ forward: 0, sideways: 1, yawRate: 1 }), Math.PI / 2);
    expect([turned.ahead, turned.left]).toEqual([expect.closeTo(-1), expect.closeTo(1)]);
  });

  it('bends a short track too', () => {
    const line = track(ROBOT, ASPECT, courseOfTwist({ forward: 0.8, sideways: 0, yawRate: 0.5 }), 0, 0.9);
    const furthest = line.reduce((one, other) => (other.y < one.y ? other : one));
    expect(furthest.x).toBeLessThan(0.4);
    expect(line.length).toBeGreaterThan(10);
  });
});

describe('a turn on the spot', () => {
  it('falls by its deceleration', () => expect(brakingAngle(-1, 2)).toBe(0.25));

  it('sweeps the ground from the middle to the left or right, within the lower part of the picture', () => {
    const left = sweep(ROBOT, ASPECT, 0, 0.3);
    expect([left[0]!.x, left.at(-1)!.x]).toEqual([0.5, 0.5]);
    expect([left[0]!.y, left.at(-1)!.y]).toEqual([expect.closeTo(0.93), expect.closeTo(0.8)]);
    expect(Math.min(...left.map(({ x }) => x))).toBeCloseTo(0.5 - 0.7 * Math.tan(0.3) * 1.27, 2);
    expect(Math.max(...sweep(ROBOT, ASPECT, -0.1, -0.4).map(({ x }) => x))).toBeGreaterThan(0.7);
    expect(sweep(ROBOT, ASPECT, 0, 9).every(({ x, y }) => Number.isFinite(x) && Number.isFinite(y))).toBe(true);
  });

  it('is not drawn by a camera that sees no ground', () => expect(sweep({ ...ROBOT, pitch: -60 }, ASPECT, 0, 0.3)).toEqual([]));
});

describe('the geometry', () => {
  const told = [
    ['camera height', 1.25], ['camera before rear axle', 1.35], ['camera focal length', 0.714], ['camera centre', 0.41],
    ['camera pitch', 0], ['front before rear axle', 3.45], ['half width', 0.9], ['wheelbase', 2.6],
  ].map(([name, number]) => ({ name: name as string, number: number as number }));

  it('is read by name', () => expect(geometryOf([{ name: 'cones hit', number: 0 }, ...told])).toEqual(CAMERA));

  it('has no wheelbase if the vehicle reports none', () => {
    expect(geometryOf(told.filter(({ name }) => name !== 'wheelbase'))).toEqual({ ...CAMERA, wheelbase: null });
  });

  it('is null if a value is missing or invalid', () => {
    expect(geometryOf([])).toBeNull();
    expect(geometryOf(told.slice(1))).toBeNull();
    expect(geometryOf(told.map((value) => ({ ...value, number: Number.NaN })))).toBeNull();
    const of = (name: string, number: number) => geometryOf(told.map((value) => (value.name === name ? { name, number } : value)));
    expect([of('camera height', 0), of('camera focal length', -1), of('wheelbase', 0)]).toEqual([null, null, null]);
    expect(of('camera pitch', -2)).toEqual({ ...CAMERA, pitch: -2 });
  });
});
