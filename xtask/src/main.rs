//! The house rules, checked.
fn main() {}
