//! Measurements of the whole system, from what it recorded.
#![forbid(unsafe_code)]

pub mod clip;
