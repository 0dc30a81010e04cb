//! Rate controllers and planners for comparison: a session that drives uses neither.

pub mod planner;
pub mod rate;
