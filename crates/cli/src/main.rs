//! The `tautline` binary.
fn main() {}
