//! The course: a closed road, its cones, its trees, and the line of a good driver.

mod generate;
mod map;
mod road;
mod sample;
mod tree;

pub(crate) use map::RoadPoint;
pub use road::{KERB_WIDTH, ROAD_HALF_WIDTH};
pub(crate) use tree::Tree;

use crate::trig;
use generate::Plan;
use sample::Sample;

/// A closed course: all static parts of the place.
///
/// Created by [`Course::generate`]; the same seed gives the same bytes everywhere.
#[derive(Clone, Debug)]
pub struct Course {
    samples: Vec<Sample>,
    length: f64,
    cones: Vec<(f64, f64)>,
    trees: Vec<Tree>,
    map: map::GroundMap,
}

/// A place on the course in the road's coordinates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Place {
    /// Distance along the centre line from the start line in metres, in [0, [`Course::length`]).
    pub distance: f64,
    /// Lateral offset in metres, positive to the left of the centre line.
    pub lateral: f64,
}

/// A point of the world with the direction of the road there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Waypoint {
    /// Metres east of the origin.
    pub x: f64,
    /// Metres north of the origin.
    pub y: f64,
    /// Direction of the road, rad counter-clockwise from east.
    pub heading: f64,
    /// Highest speed of a careful driver here, m/s.
    pub speed: f64,
}

impl Course {
    /// Generates the course of `seed`: 500 to 900 m of closed road, driven counter-clockwise.
    pub fn generate(seed: u64) -> Self {
        let Plan { samples, length, cones, trees, map } = generate::plan(seed);
        Self { samples, length, cones, trees, map }
    }

    /// Returns the length of one lap in metres.
    pub fn length(&self) -> f64 {
        self.length
    }

    /// Returns the positions of the cones before any is hit: metres east and north.
    pub fn cones(&self) -> &[(f64, f64)] {
        &self.cones
    }

    /// Returns the point `distance` metres past the start line and `lateral` metres left of the
    /// centre line. Distances wrap around the course; one that is not finite counts as 0.
    pub fn point(&self, distance: f64, lateral: f64) -> Waypoint {
        let (a, b, t) = self.between(distance);
        let mix = |from: f64, to: f64| from + (to - from) * t;
        let (tx, ty) = (mix(a.tx, b.tx), mix(a.ty, b.ty));
        let norm = (tx * tx + ty * ty).sqrt();
        Waypoint {
            x: mix(a.x, b.x) - ty / norm * lateral,
            y: mix(a.y, b.y) + tx / norm * lateral,
            heading: trig::atan2(ty, tx),
            speed: mix(a.speed, b.speed),
        }
    }

    /// Returns the point on a good driver's line `distance` metres past the start line: in the
    /// right lane, around the slalom's cones and through the gates.
    pub fn line(&self, distance: f64) -> Waypoint {
        let (a, b, t) = self.between(distance);
        self.point(distance, a.line + (b.line - a.line) * t)
    }

    /// Returns the place on the course of the point (`x`, `y`): the distance at which the centre
    /// line is nearest to it, and its lateral offset there. Searches the complete centre line: a
    /// few microseconds.
    pub fn nearest(&self, x: f64, y: f64) -> Place {
        let square = |s: &Sample| (s.x - x) * (s.x - x) + (s.y - y) * (s.y - y);
        let mut best = (0, f64::INFINITY);
        for (index, sample) in self.samples.iter().enumerate() {
            let distance = square(sample);
            if distance < best.1 {
                best = (index, distance);
            }
        }
        let sample = &self.samples[best.0];
        let (dx, dy) = (x - sample.x, y - sample.y);
        let along = dx * sample.tx + dy * sample.ty;
        let distance = best.0 as f64 * self.spacing() + along;
        Place {
            distance: distance.rem_euclid(self.length),
            lateral: dy * sample.tx - dx * sample.ty,
        }
    }

    /// Returns whether the point (`x`, `y`) is on the asphalt or within the width of a kerb next to
    /// it, even where there is no kerb.
    pub fn is_road(&self, x: f64, y: f64) -> bool {
        let lateral = f64::from(self.map.lateral(x as f32, y as f32));
        lateral.abs() <= ROAD_HALF_WIDTH + KERB_WIDTH
    }

    pub(crate) fn trees(&self) -> &[Tree] {
        &self.trees
    }

    pub(crate) fn map(&self) -> &map::GroundMap {
        &self.map
    }

    fn spacing(&self) -> f64 {
        self.length / self.samples.len() as f64
    }

    fn between(&self, distance: f64) -> (&Sample, &Sample, f64) {
        let distance = if distance.is_finite() { distance } else { 0.0 };
        let position = distance.rem_euclid(self.length) / self.spacing();
        let index = position as usize % self.samples.len();
        let next = (index + 1) % self.samples.len();
        (&self.samples[index], &self.samples[next], position - position.floor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_of_its_seed() {
        let (a, b) = (Course::generate(1), Course::generate(1));
        assert_eq!(a.samples, b.samples);
        assert_eq!((a.cones(), a.trees()), (b.cones(), b.trees()));
        assert_ne!(a.samples, Course::generate(2).samples);
    }

    #[test]
    fn every_seed_gives_a_closed_drivable_road() {
        for seed in 0..40 {
            let course = Course::generate(seed);
            assert!((400.0..1000.0).contains(&course.length()), "{seed}: {}", course.length());
            assert!(course.samples.iter().all(|s| s.curvature.abs() < 1.0 / 15.0), "{seed}");
            let gap = course.point(course.length() - 0.01, 0.0);
            let start = course.point(0.0, 0.0);
            assert!((gap.x - start.x).abs() < 0.1 && (gap.y - start.y).abs() < 0.1);
            assert!(course.cones().len() >= 20, "{seed}: {}", course.cones().len());
        }
    }

    #[test]
    fn a_point_and_its_nearest_place_agree() {
        let course = Course::generate(3);
        for step in 0..200 {
            let (distance, lateral) = (f64::from(step) * 2.3, f64::from(step % 9) - 4.0);
            let point = course.point(distance, lateral);
            let place = course.nearest(point.x, point.y);
            assert!((place.lateral - lateral).abs() < 0.02, "{place:?} {lateral}");
            assert!((place.distance - distance % course.length()).abs() < 0.05, "{place:?}");
            assert!(course.is_road(point.x, point.y));
            let map = f64::from(course.map().lateral(point.x as f32, point.y as f32));
            assert!((map - lateral).abs() < 0.02, "{map} {lateral}");
        }
        let grass = course.point(30.0, 9.0);
        assert!(!course.is_road(grass.x, grass.y));
        assert!(!course.is_road(f64::NAN, 1e30));
    }
}
