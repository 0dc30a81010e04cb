/// A point in the picture in pixels from the left and the top, and its distance ahead of the camera
/// (m).
#[derive(Clone, Copy)]
pub(super) struct Projected {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) depth: f32,
}
