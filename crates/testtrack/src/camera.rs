//! The windscreen camera.

mod bonnet;
mod clamp;
mod colour;
mod cones;
mod ground;
mod pose;
mod projected;
mod shadow;
mod sky;
mod strip;
mod sun;
mod trees;

use std::ops::Range;
use std::sync::Arc;

use tautline_video::{Error, Picture};

use crate::noise::Tile;
use crate::trig;
use crate::world::Viewpoint;
use pose::Pose;
use strip::Strip;

/// A camera that looks ahead, 70° wide: behind a car's windscreen, 1.25 m above the road, or at a
/// robot's front.
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

/// Focal length in picture widths: 70° across.
pub(crate) const FOCAL: f32 = 0.714;
/// Row of the horizon for a level car, in picture heights from the top.
pub(crate) const HORIZON: f32 = 0.41;
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

    /// Returns the number of pixels per row of the picture.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of rows of the complete picture.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Draws the rows `rows` of the picture of `view` into `strip`.
    ///
    /// # Panics
    /// Unless `rows` begins at an even row and ends within the picture, and `strip` is exactly
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
        let bonnet = view.body.has_bonnet.then_some(&parts.bonnet);
        ground::draw(&pose, &view.course, &parts.tile, bonnet, strip);
        shadow::draw_all(&pose, view, strip);
        self.draw_things(&pose, view, strip);
        if let Some(bonnet) = bonnet {
            bonnet.draw(strip);
        }
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
            x: (view.x + view.body.camera_mount * cos) as f32,
            y: (view.y + view.body.camera_mount * sin) as f32,
            heading: view.heading,
            cos: cos as f32,
            sin: sin as f32,
            height: view.body.camera_height as f32 + view.heave as f32,
            horizon: self.height as f32 * HORIZON - self.focal * view.pitch as f32,
            focal: self.focal,
            centre: self.width as f32 * 0.5,
        }
    }

    /// Draws the trees and cones within view and drawing distance, the farthest first.
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
