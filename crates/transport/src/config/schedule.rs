use serde::Deserialize;

/// The name of a planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// [`Quantile`](crate::sender::planner::Quantile).
    Quantile,
    /// [`FixedRate`](crate::sender::planner::FixedRate) by [`Schedule::EarliestDelivery`](crate::sender::planner::Schedule::EarliestDelivery).
    EarliestDelivery,
    /// [`FixedRate`](crate::sender::planner::FixedRate) by [`Schedule::TransmissionEnd`](crate::sender::planner::Schedule::TransmissionEnd).
    TransmissionEnd,
    /// [`FixedRate`](crate::sender::planner::FixedRate) by [`Schedule::RoundRobin`](crate::sender::planner::Schedule::RoundRobin).
    RoundRobin,
    /// [`FixedRate`](crate::sender::planner::FixedRate) by [`Schedule::Redundant`](crate::sender::planner::Schedule::Redundant).
    Redundant,
    /// [`FixedRate`](crate::sender::planner::FixedRate) by [`Schedule::BestLink`](crate::sender::planner::Schedule::BestLink).
    BestLink,
}
