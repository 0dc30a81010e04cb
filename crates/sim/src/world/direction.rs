/// A direction of a link: up is from its first end to its second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first end (the vehicle) to the second (the operator).
    Up,
    /// From the second end to the first.
    Down,
}
