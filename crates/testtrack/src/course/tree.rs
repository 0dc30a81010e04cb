/// A tree near the road: position in metres east and north, height in metres, and index of its
/// picture among the painted kinds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Tree {
    pub(crate) x: f32,
    pub(crate) y: f32,
    pub(crate) height: f32,
    pub(crate) kind: u8,
}
