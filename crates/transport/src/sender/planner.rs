//! Planning of media units: how a unit is cut, protected and shared among the links, and how large
//! the application may make it.
//!
//! A planner reads the links ([`Link`]) and decides; it changes none of them. [`Quantile`] plans
//! size, repair and shares together. [`FixedRate`] uses one code rate and a [`Schedule`].
//! docs/transport.md describes the experience with each.

mod fixed_rate;
mod link;
mod policy;
mod price;
mod quantile;
mod rhythm;
mod schedule;
mod shares;

pub use fixed_rate::FixedRate;
pub use link::Link;
pub use policy::{Planner, Unit, UnitPlan};
pub use quantile::Quantile;
pub use schedule::{Block, Schedule};

use crate::config::Config;
pub use crate::config::Kind;
pub use crate::link::OnTimeCurve;

impl Kind {
    /// Creates the planner of this kind.
    pub(crate) fn planner(self, config: &Config) -> Box<dyn Planner> {
        let fixed = |schedule| Box::new(FixedRate::new(config, schedule));
        match self {
            Self::Quantile => Box::new(Quantile::new(config)),
            Self::EarliestDelivery => fixed(Schedule::EarliestDelivery),
            Self::TransmissionEnd => fixed(Schedule::TransmissionEnd),
            Self::RoundRobin => fixed(Schedule::RoundRobin { next: 0 }),
            Self::Redundant => fixed(Schedule::Redundant),
            Self::BestLink => fixed(Schedule::BestLink),
        }
    }
}
