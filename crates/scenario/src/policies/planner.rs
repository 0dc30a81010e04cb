//! Planners by name: the transport's own, and those that it is compared with.

mod fixed_rate;
mod interval;
mod schedule;

use std::sync::Arc;

pub use fixed_rate::{Code, FixedRate, FixedRateFactory};
pub use schedule::{Block, Schedule};
use tautline_transport::planner::{Factory, QuantileFactory};

/// Planner that a run may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub enum Kind {
    /// The transport's own planner, [`Quantile`](tautline_transport::planner::Quantile).
    Quantile,
    /// [`FixedRate`], which assigns packets to links as [`Schedule::EarliestDelivery`] says.
    EarliestDelivery,
    /// [`FixedRate`], which assigns packets to links as [`Schedule::TransmissionEnd`] says.
    TransmissionEnd,
    /// [`FixedRate`], which assigns packets to links as [`Schedule::RoundRobin`] says.
    RoundRobin,
    /// [`FixedRate`], which sends every packet over every link: [`Schedule::Redundant`].
    Redundant,
    /// [`FixedRate`], which sends each unit over one link: [`Schedule::BestLink`].
    BestLink,
}

impl Kind {
    /// Returns the factory of the planner, which cuts and encodes units by `code`.
    /// [`Kind::Quantile`] plans its own code rate and ignores `code`.
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
