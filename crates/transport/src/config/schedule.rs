use serde::Deserialize;

/// The name of a planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// [`Quantile`](crate::sender::planner::Quantile).
    Quantile,
    /// Fixed rate, scheduled by earliest delivery.
    EarliestDelivery,
    /// Fixed rate, scheduled by end of transmission.
    TransmissionEnd,
    /// Fixed rate, scheduled by round robin.
    RoundRobin,
    /// Fixed rate, scheduled by copies on every link.
    Redundant,
    /// Fixed rate, scheduled by the best link alone.
    BestLink,
}
