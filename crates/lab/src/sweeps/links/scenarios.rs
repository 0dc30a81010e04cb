//! Named scenarios with a bar each: what the transport must do.

use super::scenario::{ROADS, Scenario, bad_day, l4s};

/// Returns every scenario.
pub fn all() -> Vec<Scenario> {
    [ROADS, bad_day::ALL, l4s::ALL].concat()
}
