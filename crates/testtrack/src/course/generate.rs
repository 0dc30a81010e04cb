//! Generation of a course from a seed.

use std::f64::consts::TAU;

use super::map::GroundMap;
use super::road::ROAD_HALF_WIDTH;
use super::sample::Sample;
use super::tree::Tree;
use crate::noise;
use crate::trig::sin_cos;

/// The length of a lap is a multiple of this, m, so that dashes and kerb stones fit together at the
/// start line.
const PATTERN: f64 = 8.0;
/// Centre line samples per metre.
const SAMPLES_PER_METRE: f64 = 2.0;
/// Greatest curvature of the centre line, 1/m.
const CURVATURE_MAX: f64 = 1.0 / 18.0;
/// Minimum distance in metres between the centre lines of parts of the road that are not adjacent.
const CLEARANCE: f64 = 32.0;
/// Lateral offset of a careful driver where there are no cones, metres left of the centre line.
const LANE: f64 = -1.85;

/// Parts of a generated course: centre line, length of a lap in metres, cones, trees and map.
pub(super) struct Plan {
    pub(super) samples: Vec<Sample>,
    pub(super) length: f64,
    pub(super) cones: Vec<(f64, f64)>,
    pub(super) trees: Vec<Tree>,
    pub(super) map: GroundMap,
}

/// Generates the parts of the course of `seed`.
pub(super) fn plan(seed: u64) -> Plan {
    // Each attempt bends slightly less; the limit is a circle, so the search always ends.
    let (mut samples, length) = (0..)
        .find_map(|attempt| centre_line(noise::hash(seed, attempt), 0.985_f64.powi(attempt as i32)))
        .expect("a circle is drivable, and the attempts tend to it");
    let mut layout = Layout::new(seed, &samples, length);
    layout.fill();
    let Layout { cones, line, .. } = layout;
    draw_line(&mut samples, length, &line);
    limit_speeds(&mut samples, length);
    let map = GroundMap::new(&samples, length);
    let cones = cones.iter().map(|&(s, lateral)| place(&samples, length, s, lateral)).collect();
    let trees = trees(seed, &map);
    Plan { samples, length, cones, trees, map }
}

/// Returns a closed curve around the origin and its length in metres; `None` if it bends too
/// sharply or comes too close to itself. Its radius is a sum of a few waves of amplitudes scaled by
/// `bend`.
fn centre_line(seed: u64, bend: f64) -> Option<(Vec<Sample>, f64)> {
    let waves: Vec<(f64, f64, f64)> = [(2, 0.24), (3, 0.20), (4, 0.10), (5, 0.07), (6, 0.03)]
        .iter()
        .map(|&(k, size)| {
            let amplitude = size * (0.4 + 0.6 * noise::unit(seed, k)) * bend;
            (k as f64, amplitude, TAU * noise::unit(seed, 100 + k))
        })
        .collect();
    let radius = 86.0 + 16.0 * noise::unit(seed, 1);
    let fine: Vec<(f64, f64)> = (0..8192)
        .map(|i| {
            let theta = TAU * f64::from(i) / 8192.0;
            let wave: f64 =
                waves.iter().map(|(k, a, phase)| a * sin_cos(k * theta + phase).1).sum();
            let (sin, cos) = sin_cos(theta);
            (radius * (1.0 + wave) * cos, radius * (1.0 + wave) * sin)
        })
        .collect();
    let (points, length) = resample(&fine);
    let samples = derive(&points, length);
    let gentle = samples.iter().all(|s| s.curvature.abs() < CURVATURE_MAX);
    (gentle && keeps_clear(&samples, length)).then_some((samples, length))
}

/// Returns the closed polyline `fine`, resampled in equal steps and scaled so that its length is a
/// multiple of [`PATTERN`], and that length in metres.
fn resample(fine: &[(f64, f64)]) -> (Vec<(f64, f64)>, f64) {
    let step = |i: usize| {
        let (a, b) = (fine[i], fine[(i + 1) % fine.len()]);
        ((b.0 - a.0) * (b.0 - a.0) + (b.1 - a.1) * (b.1 - a.1)).sqrt()
    };
    let raw: f64 = (0..fine.len()).map(step).sum();
    let length = (raw / PATTERN).round() * PATTERN;
    let scale = length / raw;
    let count = (length * SAMPLES_PER_METRE) as usize;
    let mut points = Vec::with_capacity(count);
    let (mut index, mut before) = (0, 0.0);
    for i in 0..count {
        let target = raw * i as f64 / count as f64;
        while before + step(index) < target {
            before += step(index);
            index += 1;
        }
        let t = (target - before) / step(index);
        let (a, b) = (fine[index], fine[(index + 1) % fine.len()]);
        points.push((scale * (a.0 + (b.0 - a.0) * t), scale * (a.1 + (b.1 - a.1) * t)));
    }
    (points, length)
}

/// Returns a sample for each of `points`, which are at equal steps on a closed curve: with
/// direction and curvature, and for now a line in the middle of the right lane and no speed.
fn derive(points: &[(f64, f64)], length: f64) -> Vec<Sample> {
    let count = points.len();
    let step = length / count as f64;
    let at = |i: usize, offset: usize| points[(i + offset) % count];
    (0..count)
        .map(|i| {
            let (ax, ay) = at(i, count - 1);
            let (bx, by) = at(i, 1);
            let norm = ((bx - ax) * (bx - ax) + (by - ay) * (by - ay)).sqrt();
            let (tx, ty) = ((bx - ax) / norm, (by - ay) / norm);
            // Over four samples each way, so that the corners of the polyline do not count as
            // bends.
            let ((px, py), (x, y), (qx, qy)) = (at(i, count - 4), points[i], at(i, 4));
            let cross = (x - px) * (qy - y) - (y - py) * (qx - x);
            let curvature = cross / (4.0 * step).powi(3);
            Sample { x, y, tx, ty, curvature, line: LANE, speed: 0.0 }
        })
        .collect()
}

fn keeps_clear(samples: &[Sample], length: f64) -> bool {
    let stride = 8;
    let apart = (60.0 * samples.len() as f64 / length) as usize;
    (0..samples.len()).step_by(stride).all(|i| {
        (i + apart..samples.len()).step_by(stride).all(|j| {
            let around = samples.len() - (j - i);
            let (dx, dy) = (samples[i].x - samples[j].x, samples[i].y - samples[j].y);
            around < apart || dx * dx + dy * dy > CLEARANCE * CLEARANCE
        })
    })
}

/// Placement of the cones and of the knots of the driver's line, feature by feature, each as
/// (distance along the road, lateral offset) in metres.
struct Layout<'a> {
    seed: u64,
    samples: &'a [Sample],
    length: f64,
    cones: Vec<(f64, f64)>,
    line: Vec<(f64, f64)>,
}

impl<'a> Layout<'a> {
    fn new(seed: u64, samples: &'a [Sample], length: f64) -> Self {
        Self { seed, samples, length, cones: Vec::new(), line: vec![(0.0, LANE)] }
    }

    fn fill(&mut self) {
        let edge = ROAD_HALF_WIDTH - 0.75;
        for s in [6.0, 10.0, 14.0] {
            self.cones.extend([(s, -edge), (s, edge)]);
        }
        let first = noise::hash(self.seed, 77) % 3;
        let mut s = 32.0;
        for feature in 0.. {
            if s + 150.0 > self.length - 30.0 {
                break;
            }
            s = match (first + feature) % 3 {
                0 => self.slalom(s),
                1 => self.bend_markers(s),
                _ => self.gates(s),
            };
            self.line.push((s, LANE));
            s += 22.0;
        }
        self.line.push((self.length, LANE));
    }

    /// Places six cones on the centre line, and the driver's line past them, left and right in
    /// turn. `from` and the returned end are distances along the road in metres.
    fn slalom(&mut self, from: f64) -> f64 {
        let mut side = if noise::hash(self.seed, from as u64) & 1 == 0 { 1.0 } else { -1.0 };
        self.line.push((from, LANE));
        for cone in 0..6 {
            let s = from + 16.0 + 19.0 * f64::from(cone);
            self.cones.push((s, 0.0));
            self.line.push((s, side * 1.9));
            side = -side;
        }
        from + 16.0 * 2.0 + 19.0 * 5.0
    }

    /// Places four gates of four cones each, left and right of the centre in turn, and the driver's
    /// line through them. `from` and the returned end are distances along the road in metres.
    fn gates(&mut self, from: f64) -> f64 {
        let mut side = if noise::hash(self.seed, from as u64) & 1 == 0 { 1.3 } else { -1.3 };
        self.line.push((from, LANE));
        for gate in 0..4 {
            let s = from + 18.0 + 24.0 * f64::from(gate);
            for lateral in [side - 1.75, side + 1.75] {
                self.cones.extend([(s, lateral), (s + 1.6, lateral)]);
            }
            self.line.extend([(s - 2.0, side), (s + 3.0, side)]);
            side = -side;
        }
        from + 18.0 * 2.0 + 24.0 * 3.0
    }

    /// Places a row of twelve cones along the inside of the road, and a row of six in the middle
    /// that separates the lanes; the driver's line stays in its lane. `from` and the returned end
    /// are distances along the road in metres.
    fn bend_markers(&mut self, from: f64) -> f64 {
        self.line.push((from, LANE));
        for marker in 0..12 {
            let s = from + 6.0 * f64::from(marker);
            let index = (s * SAMPLES_PER_METRE) as usize % self.samples.len();
            let inside = self.samples[index].curvature.signum();
            self.cones.push((s, inside * (ROAD_HALF_WIDTH - 0.45)));
            if marker % 2 == 0 {
                self.cones.push((s, 0.25));
            }
        }
        from + 6.0 * 11.0
    }
}

/// Writes the lateral offset of the driver's line into the samples, eased between the knots of
/// `line` (distance, lateral offset).
fn draw_line(samples: &mut [Sample], length: f64, line: &[(f64, f64)]) {
    let count = samples.len();
    for (i, sample) in samples.iter_mut().enumerate() {
        let s = length * i as f64 / count as f64;
        let after = line.partition_point(|knot| knot.0 <= s).clamp(1, line.len() - 1);
        let ((from, a), (to, b)) = (line[after - 1], line[after]);
        let t = if to > from { ((s - from) / (to - from)).clamp(0.0, 1.0) } else { 1.0 };
        sample.line = a + (b - a) * t * t * (3.0 - 2.0 * t);
    }
}

/// Sets the speeds of a careful driver on the line: 4 m/s² lateral, 2.5 m/s² when braking, at most
/// 15 m/s.
fn limit_speeds(samples: &mut [Sample], length: f64) {
    let count = samples.len();
    let step = length / count as f64;
    let line: Vec<f64> = samples.iter().map(|s| s.line).collect();
    for (i, sample) in samples.iter_mut().enumerate() {
        let (before, after) = (line[(i + count - 4) % count], line[(i + 4) % count]);
        let weave = (before - 2.0 * line[i] + after) / (16.0 * step * step);
        let bend = (sample.curvature + weave).abs().max(1e-3);
        sample.speed = (4.0 / bend).sqrt().min(15.0);
    }
    // Two laps, so that the start line is no exception.
    for i in (0..2 * count).rev() {
        let next = samples[(i + 1) % count].speed;
        let sample = &mut samples[i % count];
        sample.speed = sample.speed.min((next * next + 2.0 * 2.5 * step).sqrt());
    }
}

fn place(samples: &[Sample], length: f64, distance: f64, lateral: f64) -> (f64, f64) {
    let position = distance.rem_euclid(length) / length * samples.len() as f64;
    let sample = &samples[position as usize % samples.len()];
    let rest = (position - position.floor()) * length / samples.len() as f64;
    (
        sample.x + sample.tx * rest - sample.ty * lateral,
        sample.y + sample.ty * rest + sample.tx * lateral,
    )
}

/// Returns up to 170 trees in loose groups, none within 14 m of the centre line.
fn trees(seed: u64, map: &GroundMap) -> Vec<Tree> {
    let mut trees = Vec::new();
    for i in 0..900_u64 {
        let draw = |what: u64| noise::unit(seed ^ 0x7EE5, i * 8 + what);
        let group = noise::hash(seed, 5000 + i / 7);
        let centre = |what: u64| (noise::unit(group, what) - 0.5) * 340.0;
        let (x, y) = (centre(0) + 34.0 * (draw(0) - 0.5), centre(1) + 34.0 * (draw(1) - 0.5));
        let lateral = map.lateral(x as f32, y as f32);
        if lateral.abs() > 14.0 && trees.len() < 170 {
            let height = 4.5 + 5.5 * draw(2);
            trees.push(Tree {
                x: x as f32,
                y: y as f32,
                height: height as f32,
                kind: (draw(3) * 3.0) as u8,
            });
        }
    }
    trees
}
