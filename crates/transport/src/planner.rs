//! Planning of media units: how a unit is cut, protected and shared among the links, and how large
//! the application may make it.
//!
//! A planner reads the links ([`Link`]) and decides; it changes none of them. [`Quantile`], the
//! default, plans size, repair and shares together. Another crate supplies a planner of its own by
//! implementing [`Planner`] and [`Factory`], and setting
//! [`Config::planner`](crate::Config::planner).

mod config;
mod link;
mod on_time_curve;
mod policy;
mod price;
mod quantile;
mod shares;
mod unit_interval;

pub use config::Config;
pub use link::Link;
pub use on_time_curve::OnTimeCurve;
pub use policy::{Factory, Planner, Unit, UnitPlan};
pub use quantile::{Quantile, QuantileFactory};
