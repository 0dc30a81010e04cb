//! Map of the ground: the road's coordinates for every square metre.

use std::fmt;

use super::sample::Sample;

/// Distance from the centre line beyond which the map has only the side, left or right, m.
pub(crate) const FAR: f32 = 20.0;

/// Distance by which the map extends beyond the centre line on every side, m.
const MARGIN: f64 = 24.0;

/// The road's coordinates on a grid of one metre, read with interpolation.
///
/// A lookup costs a few nanoseconds and touches two cache lines; the map is smaller than 1 MB. In
/// the sharpest bend of 15 m the interpolated lateral distance is within 1 cm.
#[derive(Clone)]
pub(crate) struct GroundMap {
    origin: (f32, f32),
    width: usize,
    height: usize,
    cells: Vec<Cell>,
    /// Metres per unit of [`Cell::turn`].
    scale: f32,
    /// Width of the kerb along the road, as a share of [`KERB_WIDTH`](super::KERB_WIDTH), 0 to 1; a
    /// lap has 4096 entries.
    kerbs: Vec<f32>,
}

#[derive(Clone, Copy)]
struct Cell {
    /// Lateral offset in metres, positive to the left of the centre line, at most [`FAR`] in either
    /// direction.
    lateral: f32,
    /// Distance along the road; 2^32 is one lap.
    turn: u32,
}

/// Road coordinates of one point, as [`GroundMap::lookup`] returns them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RoadPoint {
    /// Lateral offset in metres, positive to the left of the centre line.
    pub(crate) lateral: f32,
    /// Distance along the road; 2^32 is one lap.
    pub(crate) turn: u32,
    /// Gradient of `lateral`: the unit vector to the road's left, or zero far away.
    pub(crate) left: (f32, f32),
}

impl GroundMap {
    pub(super) fn new(samples: &[Sample], length: f64) -> Self {
        let bound = |pick: fn(&Sample) -> f64| {
            let least = samples.iter().map(pick).fold(f64::INFINITY, f64::min);
            let most = samples.iter().map(pick).fold(f64::NEG_INFINITY, f64::max);
            ((least - MARGIN).floor(), (most + MARGIN).ceil())
        };
        let ((west, east), (south, north)) = (bound(|s| s.x), bound(|s| s.y));
        let (width, height) = ((east - west) as usize + 1, (north - south) as usize + 1);
        let mut map = Self {
            origin: (west as f32, south as f32),
            width,
            height,
            cells: vec![Cell { lateral: f32::NAN, turn: 0 }; width * height],
            scale: (length / f64::from(u32::MAX)) as f32,
            kerbs: kerbs(samples),
        };
        map.project(samples);
        map.fill_far();
        map
    }

    /// Returns the road's coordinates at (`x`, `y`) in metres; outside the map, every point is
    /// [`FAR`] to the right.
    #[inline(always)]
    pub(crate) fn lookup(&self, x: f32, y: f32) -> RoadPoint {
        let (fx, fy) = (x - self.origin.0, y - self.origin.1);
        let inside =
            fx >= 0.0 && fy >= 0.0 && fx < (self.width - 1) as f32 && fy < (self.height - 1) as f32;
        if !inside {
            return RoadPoint { lateral: -FAR, turn: 0, left: (0.0, 0.0) };
        }
        let (ix, iy) = (fx as u32 as usize, fy as u32 as usize);
        let (fx, fy) = (fx - ix as f32, fy - iy as f32);
        let start = iy * self.width + ix;
        let [a, b] = [self.cells[start], self.cells[start + 1]];
        let [c, d] = [self.cells[start + self.width], self.cells[start + self.width + 1]];
        let (south, north) = (b.lateral - a.lateral, d.lateral - c.lateral);
        let (west, east) = (c.lateral - a.lateral, d.lateral - b.lateral);
        let left = (south + (north - south) * fy, west + (east - west) * fx);
        let lateral = a.lateral + south * fx + (west + (east - west) * fx) * fy;
        // Differences wrap at the start line.
        let step = |to: Cell| to.turn.wrapping_sub(a.turn) as i32 as f32;
        let turn = step(b) * fx * (1.0 - fy) + step(c) * fy * (1.0 - fx) + step(d) * fx * fy;
        RoadPoint { lateral, turn: a.turn.wrapping_add(turn as i32 as u32), left }
    }

    /// Returns the lateral offset at (`x`, `y`) in metres, positive to the left, at most [`FAR`] in
    /// either direction.
    pub(crate) fn lateral(&self, x: f32, y: f32) -> f32 {
        self.lookup(x, y).lateral
    }

    /// Returns the metres per unit of [`RoadPoint::turn`].
    pub(crate) fn scale(&self) -> f32 {
        self.scale
    }

    /// Returns the width of the kerb at `turn`, as a share of [`KERB_WIDTH`](super::KERB_WIDTH), 0
    /// to 1.
    #[inline(always)]
    pub(crate) fn kerb(&self, turn: u32) -> f32 {
        self.kerbs[(turn >> KERB_SHIFT) as usize]
    }

    /// Sets every cell within [`FAR`] of the centre line to its exact projection on the line.
    fn project(&mut self, samples: &[Sample]) {
        let count = samples.len();
        let mut nearest = vec![(u32::MAX, f32::INFINITY); self.cells.len()];
        let reach = FAR as i64 + 1;
        for (index, sample) in samples.iter().enumerate().step_by(2) {
            let (sx, sy) = (sample.x as f32 - self.origin.0, sample.y as f32 - self.origin.1);
            for iy in sy as i64 - reach..=sy as i64 + reach {
                for ix in sx as i64 - reach..=sx as i64 + reach {
                    let (dx, dy) = (ix as f32 - sx, iy as f32 - sy);
                    let square = dx * dx + dy * dy;
                    let cell = &mut nearest[iy as usize * self.width + ix as usize];
                    if square < cell.1 {
                        *cell = (index as u32, square);
                    }
                }
            }
        }
        for (position, &(index, square)) in nearest.iter().enumerate() {
            if square > FAR * FAR {
                continue;
            }
            let x = f64::from(self.origin.0) + (position % self.width) as f64;
            let y = f64::from(self.origin.1) + (position / self.width) as f64;
            let (at, lateral) = project_near(samples, index as usize, x, y);
            let turn = (at / count as f64).rem_euclid(1.0) * (f64::from(u32::MAX) + 1.0);
            self.cells[position] = Cell {
                lateral: lateral.clamp(-f64::from(FAR), f64::from(FAR)) as f32,
                turn: turn as u32,
            };
        }
    }

    /// Sets the side of cells far from the road. The road runs counter-clockwise, so the outside is
    /// to the right. Along a row the side changes only across the road.
    fn fill_far(&mut self) {
        for row in self.cells.chunks_exact_mut(self.width) {
            let mut side = -FAR;
            for cell in row {
                if cell.lateral.is_nan() {
                    cell.lateral = side;
                } else {
                    side = FAR.copysign(cell.lateral);
                }
            }
        }
    }
}

impl fmt::Debug for GroundMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroundMap({} x {} m)", self.width, self.height)
    }
}

const KERB_SHIFT: u32 = 20;

/// Returns [`GroundMap::kerbs`]: kerbs in the bends of the road, tapered over a few metres.
fn kerbs(samples: &[Sample]) -> Vec<f32> {
    let bins = 1 << (32 - KERB_SHIFT);
    (0..bins)
        .map(|bin| {
            let centre = bin * samples.len() / bins;
            let mean = (0..32)
                .map(|i| samples[(centre + samples.len() + i - 16) % samples.len()].curvature.abs())
                .sum::<f64>()
                / 32.0;
            ((mean - 1.0 / 70.0) * 400.0).clamp(0.0, 1.0) as f32
        })
        .collect()
}

/// Returns the projection of (`x`, `y`) on the centre line near sample `index`: its position in
/// samples, and the lateral offset in metres, positive to the left.
fn project_near(samples: &[Sample], index: usize, x: f64, y: f64) -> (f64, f64) {
    let count = samples.len();
    let mut best = (0.0, f64::INFINITY);
    for offset in 0..6 {
        let i = (index + count + offset - 3) % count;
        let (a, b) = (&samples[i], &samples[(i + 1) % count]);
        let (ex, ey) = (b.x - a.x, b.y - a.y);
        let t = (((x - a.x) * ex + (y - a.y) * ey) / (ex * ex + ey * ey)).clamp(0.0, 1.0);
        let (dx, dy) = (x - a.x - ex * t, y - a.y - ey * t);
        let distance = (dx * dx + dy * dy).sqrt();
        if distance < best.1.abs() {
            let side = ex * (y - a.y) - ey * (x - a.x);
            best = (i as f64 + t, distance.copysign(side));
        }
    }
    best
}
