/// A tree: position, height, and the index of its picture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Tree {
    pub(crate) x: f32,
    pub(crate) y: f32,
    pub(crate) height: f32,
    pub(crate) kind: u8,
}
