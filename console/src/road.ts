/** Distances ahead, and their place in the picture of a camera over flat ground. */
import type { Deceleration } from './guard';
import type { Twist } from './twist';

/** Position and view of the vehicle's camera, as the vehicle reports them. */
export interface Geometry {
  /** Height above the ground in metres. */
  height: number;
  /** Distance from the rear axle forward to the camera in metres. */
  mount: number;
  /** Focal length in picture widths. */
  focal: number;
  /** Row of the camera's axis, in picture heights from the top. */
  centre: number;
  /** Downward tilt in degrees in a level vehicle; negative if it looks up. */
  pitch: number;
  /** Distance from the rear axle to the vehicle's front in metres. */
  front: number;
  /** Half of the vehicle's width in metres. */
  halfWidth: number;
  /** Distance between the axles in metres; `null` of a machine without steered wheels. */
  wheelbase: number | null;
}

/** Path of a machine over the ground, which keeps its curvature. */
export interface Course {
  /** Change of the heading in rad per metre, left positive. */
  curvature: number;
  /** Direction of travel relative to the heading in rad, left positive. */
  drift: number;
}

/** Returns the course of a car with this angle of its road wheels. */
export function courseOfWheels(wheelbase: number, steeringAngleRad: number): Course {
  return { curvature: Math.tan(steeringAngleRad) / wheelbase, drift: 0 };
}

/** Returns the course of a machine in this motion; its speed must not be 0. */
export function courseOfTwist({ forward, sideways, yawRate }: Twist): Course {
  return { curvature: yawRate / Math.hypot(forward, sideways), drift: Math.atan2(sideways, forward) };
}

/** Returns the metres driven before the vehicle can react to what is seen now. */
export function reactionDistance(speedMps: number, loopAgeMs: number): number {
  return Math.abs(speedMps) * (loopAgeMs / 1000);
}

/** Returns the metres from the start of braking to standstill. */
export function brakingDistance(speedMps: number, { begin, end, jerk }: Deceleration): number {
  const speed = Math.abs(speedMps);
  const rampS = Math.max(0, end - begin) / jerk;
  const lost = begin * rampS + (jerk * rampS ** 2) / 2;
  // A slower vehicle stands before the deceleration has grown to `end`.
  const rampedS = lost < speed ? rampS : (Math.sqrt(begin ** 2 + 2 * jerk * speed) - begin) / jerk;
  const ramped = speed * rampedS - (begin * rampedS ** 2) / 2 - (jerk * rampedS ** 3) / 6;
  return lost < speed ? ramped + (speed - lost) ** 2 / (2 * end) : ramped;
}

/** Returns the angle in rad, without a sign, of a turn that falls at `deceleration` rad/s². */
export function brakingAngle(yawRate: number, deceleration: number): number {
  return yawRate ** 2 / (2 * deceleration);
}

/**
 * Projects a point on the ground into the picture, in shares of its width and height; `null` if it
 * is not in front of the camera. `aheadM` and `leftM` are measured from the middle of the rear
 * axle.
 */
export function project(
  geometry: Geometry, aspect: number, aheadM: number, leftM: number,
): { x: number; y: number } | null {
  const { height, mount, focal, centre, pitch } = geometry;
  const [sin, cos] = [Math.sin((pitch * Math.PI) / 180), Math.cos((pitch * Math.PI) / 180)];
  const ahead = aheadM - mount;
  // Distance along the camera's axis.
  const depth = ahead * cos + height * sin;
  if (Math.min(ahead, depth) < DEPTH_MIN_M) return null;
  return {
    x: 0.5 - (focal * leftM) / depth,
    y: centre + (focal * aspect * (height * cos - ahead * sin)) / depth,
  };
}

/**
 * Returns position and heading (rad, left positive) after `metres` on a course, relative to the
 * middle of the rear axle, or to the point on which a machine by a twist turns.
 */
export function along({ curvature, drift }: Course, metres: number): { ahead: number; left: number; heading: number } {
  const heading = curvature * metres;
  const isStraight = Math.abs(curvature) < 1e-6;
  const [straight, across] = isStraight ? [metres, 0] : [Math.sin(heading) / curvature, (1 - Math.cos(heading)) / curvature];
  const [sin, cos] = [Math.sin(drift), Math.cos(drift)];
  return { ahead: straight * cos - across * sin, left: straight * sin + across * cos, heading: isStraight ? 0 : heading };
}

/**
 * Returns the vehicle's track from `fromM` to `toM` ahead of its front, as a closed line in the
 * picture: along its left side and back along its right. It ends where the vehicle has turned by
 * 60°. Empty if no part of it is in front of the camera.
 */
export function track(
  geometry: Geometry, aspect: number, course: Course, fromM: number, toM: number,
): { x: number; y: number }[] {
  const left: { x: number; y: number }[] = [];
  const right: { x: number; y: number }[] = [];
  const count = Math.max(STEPS_MIN, Math.ceil((toM - fromM) / STEP_M));
  for (let step = 0; step <= count; step += 1) {
    const metres = fromM + ((toM - fromM) * step) / count;
    const rear = along(course, metres);
    if (Math.abs(rear.heading) > HEADING_MAX_RAD) break;
    for (const [side, line] of [[1, left], [-1, right]] as const) {
      // Front corner of this side for this position of the rear axle.
      const ahead = rear.ahead + geometry.front * Math.cos(rear.heading) - side * geometry.halfWidth * Math.sin(rear.heading);
      const across = rear.left + geometry.front * Math.sin(rear.heading) + side * geometry.halfWidth * Math.cos(rear.heading);
      const point = project(geometry, aspect, ahead, across);
      if (point !== null) line.push(point);
    }
  }
  return left.length < 2 || right.length < 2 ? [] : [...left, ...right.reverse()];
}

/**
 * Returns the ground that the middle of the picture passes when the vehicle turns on the spot from
 * `fromRad` to `toRad` (left positive), as a closed line in the picture: a part of a ring near its
 * lower edge, at most 60° to either side. Empty if the camera sees no ground there.
 */
export function sweep(geometry: Geometry, aspect: number, fromRad: number, toRad: number): { x: number; y: number }[] {
  const [near, far] = [RING_NEAR_Y, RING_FAR_Y].map((y) => groundAt(geometry, aspect, y));
  if (near == null || far == null) return [];
  const [from, to] = [fromRad, toRad].map((angle) => Math.min(HEADING_MAX_RAD, Math.max(-HEADING_MAX_RAD, angle))) as [number, number];
  const count = Math.max(1, Math.ceil(Math.abs(to - from) / STEP_RAD));
  const ring = (radius: number): { x: number; y: number }[] => Array.from({ length: count + 1 }, (_, step) => {
    const heading = from + ((to - from) * step) / count;
    return project(geometry, aspect, radius * Math.cos(heading), radius * Math.sin(heading));
  }).filter((point) => point !== null);
  return [...ring(near), ...ring(far).reverse()];
}

/**
 * Returns how many metres ahead of the rear axle the ground is in this row of the picture; `null`
 * if the row shows none.
 */
function groundAt({ height, mount, focal, centre, pitch }: Geometry, aspect: number, y: number): number | null {
  const [sin, cos] = [Math.sin((pitch * Math.PI) / 180), Math.cos((pitch * Math.PI) / 180)];
  // Tangent of the angle below the camera's axis.
  const below = (y - centre) / (focal * aspect);
  const fall = below * cos + sin;
  return fall <= 0 ? null : mount + (height * (cos - below * sin)) / fall;
}

/**
 * Reads the geometry from the vehicle's named values; `null` if one is missing or invalid. The
 * wheelbase may be missing.
 */
export function geometryOf(values: readonly { name: string; number: number }[]): Geometry | null {
  const geometry: Partial<Geometry> = {};
  for (const [key, name] of Object.entries(NAMES) as [keyof Geometry, string][]) {
    const value = values.find((told) => told.name === name)?.number;
    if (key === 'wheelbase' && value === undefined) {
      geometry.wheelbase = null;
      continue;
    }
    if (value === undefined || !Number.isFinite(value) || (value <= 0 && !MAY_BE_ZERO.includes(key))) return null;
    geometry[key] = value;
  }
  return geometry as Geometry;
}

/** Names of the vehicle's values for these fields. */
const NAMES: Readonly<Record<keyof Geometry, string>> = {
  height: 'camera height',
  mount: 'camera before rear axle',
  focal: 'camera focal length',
  centre: 'camera centre',
  pitch: 'camera pitch',
  front: 'front before rear axle',
  halfWidth: 'half width',
  wheelbase: 'wheelbase',
};
/**
 * Fields that may be zero or negative: a camera may look level or up, and may be above or behind
 * the rear axle.
 */
const MAY_BE_ZERO: readonly (keyof Geometry)[] = ['pitch', 'mount'];
// Smallest distance in front of the camera. Anything nearer is below every picture.
const DEPTH_MIN_M = 0.3;
const STEP_M = 1;
/** Least number of steps of a track, so that a short one is bent too. */
const STEPS_MIN = 24;
const STEP_RAD = 0.05;
/** Rows of the ring of a turn on the spot, in picture heights from the top. */
const RING_NEAR_Y = 0.93;
const RING_FAR_Y = 0.8;
// With a larger turn the track would cross itself in the picture.
const HEADING_MAX_RAD = Math.PI / 3;
