/** Distances ahead, and their place in the picture of a camera over flat ground. */
import type { Deceleration } from './guard';

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
  /** Distance between the axles in metres. */
  wheelbase: number;
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
 * Returns position and heading (rad, left positive) after `metres` along the arc of this steering,
 * relative to the middle of the rear axle.
 */
export function alongArc(
  wheelbase: number, steeringAngleRad: number, metres: number,
): { ahead: number; left: number; heading: number } {
  const curvature = Math.tan(steeringAngleRad) / wheelbase;
  const heading = curvature * metres;
  if (Math.abs(curvature) < 1e-6) return { ahead: metres, left: 0, heading: 0 };
  return { ahead: Math.sin(heading) / curvature, left: (1 - Math.cos(heading)) / curvature, heading };
}

/**
 * Returns the vehicle's track from `fromM` to `toM` ahead of its front, as a closed line in the
 * picture: along its left side and back along its right. Empty if no part of it is in front of the
 * camera.
 */
export function track(
  geometry: Geometry, aspect: number, steeringAngleRad: number, fromM: number, toM: number,
): { x: number; y: number }[] {
  const left: { x: number; y: number }[] = [];
  const right: { x: number; y: number }[] = [];
  const count = Math.max(1, Math.ceil((toM - fromM) / STEP_M));
  for (let step = 0; step <= count; step += 1) {
    const metres = fromM + ((toM - fromM) * step) / count;
    const rear = alongArc(geometry.wheelbase, steeringAngleRad, metres);
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

/** Reads the geometry from the vehicle's named values; `null` if one is missing or invalid. */
export function geometryOf(values: readonly { name: string; number: number }[]): Geometry | null {
  const geometry: Partial<Geometry> = {};
  for (const [key, name] of Object.entries(NAMES) as [keyof Geometry, string][]) {
    const value = values.find((told) => told.name === name)?.number;
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
// With a larger turn the track would cross itself in the picture.
const HEADING_MAX_RAD = Math.PI / 3;
