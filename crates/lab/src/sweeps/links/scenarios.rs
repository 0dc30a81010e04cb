//! Named scenarios with the transport's requirements.

use super::scenario::{ROADS, Scenario, bad_day, l4s};

/// Returns all scenarios.
pub fn all() -> Vec<Scenario> {
    [ROADS, bad_day::ALL, l4s::ALL].concat()
}
