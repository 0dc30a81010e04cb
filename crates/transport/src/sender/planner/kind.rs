use serde::Deserialize;

/// The name of a planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// [`Quantile`](super::Quantile).
    Quantile,
    /// [`FixedRate`](super::FixedRate) by [`Schedule::EarliestDelivery`](super::Schedule::EarliestDelivery).
    EarliestDelivery,
    /// [`FixedRate`](super::FixedRate) by [`Schedule::TransmissionEnd`](super::Schedule::TransmissionEnd).
    TransmissionEnd,
    /// [`FixedRate`](super::FixedRate) by [`Schedule::RoundRobin`](super::Schedule::RoundRobin).
    RoundRobin,
    /// [`FixedRate`](super::FixedRate) by [`Schedule::Redundant`](super::Schedule::Redundant).
    Redundant,
    /// [`FixedRate`](super::FixedRate) by [`Schedule::BestLink`](super::Schedule::BestLink).
    BestLink,
}
