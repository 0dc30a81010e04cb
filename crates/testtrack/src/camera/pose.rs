use super::projected::Projected;

/// Pose of the camera. The ground is flat, so a pitch of the car only shifts the horizon.
pub(super) struct Pose {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) heading: f64,
    pub(super) cos: f32,
    pub(super) sin: f32,
    /// Height of the camera above the ground, m.
    pub(super) height: f32,
    /// Row of the horizon, which may be fractional or lie outside the picture.
    pub(super) horizon: f32,
    /// Focal length in pixels: pixels per unit of slope.
    pub(super) focal: f32,
    /// Column of the picture that looks straight ahead.
    pub(super) centre: f32,
}

impl Pose {
    /// Returns the first row that shows ground, which may lie below the picture.
    pub(super) fn ground_from(&self) -> usize {
        (self.horizon + 0.5).max(0.0) as usize
    }

    /// Returns the distance in metres of the point (`x`, `y`) ahead of the camera; `None` if it is
    /// not within `depths`, or far to the side of the picture.
    pub(super) fn sees(&self, x: f32, y: f32, depths: (f32, f32)) -> Option<f32> {
        let (dx, dy) = (x - self.x, y - self.y);
        let depth = dx * self.cos + dy * self.sin;
        let side = (dx * self.sin - dy * self.cos).abs();
        let slope = self.centre / self.focal;
        (depth > depths.0 && depth < depths.1 && side < depth * slope + 6.0).then_some(depth)
    }

    /// Projects the point (`x`, `y`, `z`) into the picture; a point less than 0.3 m ahead of the
    /// camera, or behind it, counts as 0.3 m ahead.
    pub(super) fn project(&self, [x, y, z]: [f32; 3]) -> Projected {
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
