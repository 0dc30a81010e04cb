//! Planners by name: the transport's own, and those that it is compared with.

mod fixed_rate;
mod interval;
mod schedule;

use std::sync::Arc;

pub use fixed_rate::{Code, FixedRate, FixedRateFactory};
pub use schedule::{Block, Schedule};
use tautline_transport::planner::{Factory, QuantileFactory};

/// Name of a planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub enum Kind {
    /// [`Quantile`](tautline_transport::planner::Quantile).
    Quantile,
    /// [`FixedRate`] by [`Schedule::EarliestDelivery`].
    EarliestDelivery,
    /// [`FixedRate`] by [`Schedule::TransmissionEnd`].
    TransmissionEnd,
    /// [`FixedRate`] by [`Schedule::RoundRobin`].
    RoundRobin,
    /// [`FixedRate`] by [`Schedule::Redundant`].
    Redundant,
    /// [`FixedRate`] by [`Schedule::BestLink`].
    BestLink,
}

impl Kind {
    /// Returns the factory of these planners. [`Kind::Quantile`] plans its own code rate and
    /// ignores `code`.
    pub fn factory(self, code: Code) -> Arc<dyn Factory> {
        let fixed = |schedule| Arc::new(FixedRateFactory { code, schedule });
        match self {
            Self::Quantile => Arc::new(QuantileFactory),
            Self::EarliestDelivery => fixed(Schedule::EarliestDelivery),
            Self::TransmissionEnd => fixed(Schedule::TransmissionEnd),
            Self::RoundRobin => fixed(Schedule::RoundRobin { next: 0 }),
            Self::Redundant => fixed(Schedule::Redundant),
            Self::BestLink => fixed(Schedule::BestLink),
        }
    }
}
