//! The windscreen camera.

mod bonnet;
mod colour;
mod cones;
mod ground;
mod shadow;
mod sky;
mod trees;

use std::ops::Range;
use std::sync::Arc;

use tautline_video::{Error, Picture};

use crate::noise::Tile;
use crate::trig;
use crate::world::Viewpoint;

/// A camera behind the windscreen, 1.25 m above the road, 70° wide.
///
/// Draws rows of a picture in YUV 4:2:0 (BT.601, limited range) directly from a [`Viewpoint`].
/// Clones share the precomputed parts. The output depends only on the view and the rows: strips
/// drawn one by one from one view are the rows of the complete picture, byte for byte.
#[derive(Clone)]
pub struct Camera {
    width: usize,
    height: usize,
    focal: f32,
    parts: Arc<Parts>,
}

struct Parts {
    tile: Tile,
    sky: sky::Sky,
    trees: trees::Sprites,
    bonnet: bonnet::Bonnet,
}

/// Pose of the camera. The ground is flat, so a pitch of the car only shifts the horizon.
struct Pose {
    x: f32,
    y: f32,
    heading: f64,
    cos: f32,
    sin: f32,
    /// Height above the ground, m.
    height: f32,
    /// Row of the horizon, which may lie outside the picture.
    horizon: f32,
    /// Focal length in pixels: pixels per unit of slope.
    focal: f32,
    /// Column of the picture that looks straight ahead.
    centre: f32,
}

/// A point in the picture, and its distance ahead of the camera (m).
#[derive(Clone, Copy)]
struct Projected {
    x: f32,
    y: f32,
    depth: f32,
}

/// The rows being drawn.
struct Strip<'a> {
    width: usize,
    rows: Range<usize>,
    luma: &'a mut [u8],
    cb: &'a mut [u8],
    cr: &'a mut [u8],
}

/// Distance from the rear axle to the camera, m.
pub(crate) const MOUNT: f64 = 1.35;
/// Height of the camera above the ground, m.
pub(crate) const HEIGHT: f32 = 1.25;
/// Focal length in picture widths: 70° across.
pub(crate) const FOCAL: f32 = 0.714;
/// Row of the horizon for a level car, in picture heights.
pub(crate) const HORIZON: f32 = 0.41;
/// Azimuth of the sun, rad counter-clockwise from east.
const SUN_AZIMUTH: f64 = 0.8;

impl Camera {
    /// Creates a camera for pictures of `width` by `height` pixels. Takes about 100 ms, because the
    /// sky is painted in advance.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless both are multiples of 16 between 16 and 8192.
    pub fn new(width: usize, height: usize) -> Result<Self, Error> {
        let valid = |side: usize| side.is_multiple_of(16) && (16..=8192).contains(&side);
        if !valid(width) || !valid(height) {
            return Err(Error::Dimensions { width, height });
        }
        let focal = width as f32 * FOCAL;
        let tile = Tile::new(0x7A11);
        let parts = Parts {
            sky: sky::Sky::new(&tile, width, height, focal),
            trees: trees::Sprites::new(),
            bonnet: bonnet::Bonnet::new(width, height),
            tile,
        };
        Ok(Self { width, height, focal, parts: Arc::new(parts) })
    }

    /// Returns the pixels per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the rows of a complete picture.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Draws the rows `rows` of the picture of `view` into `strip`.
    ///
    /// # Panics
    /// Unless `rows` are even numbers within the picture and `strip` is exactly
    /// [`Camera::width`] by `rows.len()` pixels.
    pub fn render_rows(&self, view: &Viewpoint, rows: Range<usize>, strip: &mut Picture) {
        assert!(rows.start.is_multiple_of(2) && rows.end <= self.height, "rows {rows:?}");
        assert_eq!((strip.width(), strip.height()), (self.width, rows.len()), "strip of {rows:?}");
        let (luma, cb, cr) = strip.planes_mut();
        let strip = &mut Strip { width: self.width, rows, luma, cb, cr };
        let pose = self.pose(view);
        let parts = &*self.parts;
        let ground_from = pose.ground_from().min(strip.rows.end);
        parts.sky.draw(&pose, ground_from, strip);
        ground::draw(&pose, &view.course, &parts.tile, &parts.bonnet, strip);
        shadow::draw_all(&pose, view, strip);
        self.draw_things(&pose, view, strip);
        parts.bonnet.draw(strip);
    }

    /// Draws the complete picture of `view`.
    ///
    /// # Panics
    /// Unless `picture` is exactly [`Camera::width`] by [`Camera::height`] pixels.
    pub fn render(&self, view: &Viewpoint, picture: &mut Picture) {
        self.render_rows(view, 0..self.height, picture);
    }

    fn pose(&self, view: &Viewpoint) -> Pose {
        let (sin, cos) = trig::sin_cos(view.heading);
        Pose {
            x: (view.x + MOUNT * cos) as f32,
            y: (view.y + MOUNT * sin) as f32,
            heading: view.heading,
            cos: cos as f32,
            sin: sin as f32,
            height: HEIGHT + view.heave as f32,
            horizon: self.height as f32 * HORIZON - self.focal * view.pitch as f32,
            focal: self.focal,
            centre: self.width as f32 * 0.5,
        }
    }

    /// Draws trees and cones, the farthest first.
    fn draw_things(&self, pose: &Pose, view: &Viewpoint, strip: &mut Strip<'_>) {
        enum Thing<'v> {
            Tree(&'v crate::course::Tree),
            Cone(&'v crate::cone::Pose),
        }
        let mut things = Vec::with_capacity(64);
        for tree in view.course.trees() {
            if let Some(depth) = pose.sees(tree.x, tree.y, trees::DEPTHS) {
                things.push((depth, Thing::Tree(tree)));
            }
        }
        for cone in &view.cones {
            if let Some(depth) = pose.sees(cone.base[0], cone.base[1], cones::DEPTHS) {
                things.push((depth, Thing::Cone(cone)));
            }
        }
        things.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, thing) in things {
            match thing {
                Thing::Tree(tree) => self.parts.trees.draw(pose, tree, strip),
                Thing::Cone(cone) => cones::draw(pose, cone, strip),
            }
        }
    }
}

impl Pose {
    /// Returns the first row that shows ground.
    fn ground_from(&self) -> usize {
        (self.horizon + 0.5).max(0.0) as usize
    }

    /// Returns the distance in metres of the point (`x`, `y`) ahead of the camera; `None` if it is
    /// not within `depths`, or far to the side of the picture.
    fn sees(&self, x: f32, y: f32, depths: (f32, f32)) -> Option<f32> {
        let (dx, dy) = (x - self.x, y - self.y);
        let depth = dx * self.cos + dy * self.sin;
        let side = (dx * self.sin - dy * self.cos).abs();
        let slope = self.centre / self.focal;
        (depth > depths.0 && depth < depths.1 && side < depth * slope + 6.0).then_some(depth)
    }

    /// Projects the point (`x`, `y`, `z`) into the picture; depths are at least 0.3 m.
    fn project(&self, [x, y, z]: [f32; 3]) -> Projected {
        let (dx, dy) = (x - self.x, y - self.y);
        let depth = (dx * self.cos + dy * self.sin).max(0.3);
        let right = dx * self.sin - dy * self.cos;
        let scale = self.focal / depth;
        Projected {
            x: self.centre + right * scale,
            y: self.horizon + (self.height - z) * scale,
            depth,
        }
    }
}

impl Strip<'_> {
    fn luma_row(&mut self, row: usize) -> &mut [u8] {
        let start = (row - self.rows.start) * self.width;
        &mut self.luma[start..start + self.width]
    }

    /// Returns the chroma rows of the luma rows `row` and `row + 1`; `row` is even.
    fn chroma_rows(&mut self, row: usize) -> (&mut [u8], &mut [u8]) {
        let half = self.width / 2;
        let start = (row - self.rows.start) / 2 * half;
        (&mut self.cb[start..start + half], &mut self.cr[start..start + half])
    }

    /// Returns the rows and columns of the strip within a box of the picture, in pixels, as (rows,
    /// columns). They are empty if the box lies outside the strip.
    fn within(&self, left: f32, right: f32, top: f32, bottom: f32) -> (Range<usize>, Range<usize>) {
        // Casts saturate: values outside the range, and NaN, become the nearest end.
        let first_row = (top.max(0.0) as usize).clamp(self.rows.start, self.rows.end);
        let last_row = ((bottom + 1.0).max(0.0) as usize).min(self.rows.end);
        let first = (left.max(0.0) as usize).min(self.width);
        let last = ((right + 1.0).max(0.0) as usize).min(self.width);
        (first_row..last_row.max(first_row), first..last.max(first))
    }
}

/// Rounds `value` and clamps it to a byte. Vectorises: no branch and no conversion.
#[inline(always)]
fn to_u8(value: f32) -> u8 {
    let value = if value > 0.0 { value } else { 0.0 };
    let value = if value < 255.0 { value } else { 255.0 };
    // 2^23 as f32 has a unit in the last place of exactly one.
    (value + 8_388_608.0).to_bits() as u8
}

/// Clamps `value` to 0 and 1; NaN gives 0.
#[inline(always)]
fn unit(value: f32) -> f32 {
    let value = if value > 0.0 { value } else { 0.0 };
    if value < 1.0 { value } else { 1.0 }
}
