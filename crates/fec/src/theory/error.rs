/// A number outside the domain of a formula.
///
/// Separate from [`crate::Error`], because only the theory uses real numbers.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An interval needs at least one source packet and one repair packet.
    #[error("an interval of {interval} slots has no room for a source packet and a repair packet")]
    Interval {
        /// Requested length of an interval in slots, below 2.
        interval: u32,
    },
    /// The erasure rate is not a probability below 1.
    #[error("an erasure rate of {erasure_rate} is not in 0 <= rate < 1")]
    ErasureRate {
        /// Number passed as the erasure rate.
        erasure_rate: f64,
    },
    /// Repair packets are too rare to catch up with the losses.
    #[error(
        "one repair packet in {interval} slots cannot mend an erasure rate of {erasure_rate}: \
         their product must be below 1"
    )]
    Overload {
        /// Length of an interval in slots.
        interval: u32,
        /// Share of packets that the link erases.
        erasure_rate: f64,
    },
    /// A number is not a probability strictly between 0 and 1, or a share to be reached exceeds
    /// 1 - 1e-9.
    #[error("{probability} is not a probability strictly between 0 and 1")]
    Probability {
        /// Number passed as the probability or share.
        probability: f64,
    },
    /// A percentile of the delay is beyond the search range.
    #[error("a share {share} of the source packets may wait longer than {slots} slots")]
    Beyond {
        /// Share of source packets whose longest delay was requested.
        share: f64,
        /// Longest delay searched, in slots.
        slots: u64,
    },
    /// A mean is infinite or NaN, a standard deviation is infinite, NaN or not above zero, or a
    /// limit on a mean delay is negative or NaN.
    #[error("{quantity} is out of range for a mean, a deviation or a limit")]
    Quantity {
        /// Number passed as the mean, deviation or limit.
        quantity: f64,
    },
    /// The requested goodput is negative, or not below the code rate.
    #[error("a share of {asked} of the slots cannot be had from a code rate of {code_rate}")]
    Goodput {
        /// Requested share of slots in which a source packet is delivered.
        asked: f64,
        /// Code rate of the stream, which the share must be below.
        code_rate: f64,
    },
    /// No interval meets the target, not even one of two slots.
    #[error(
        "at an erasure rate of {erasure_rate} no interval meets the target: \
         two slots give {at_two_slots}, {allowed} is allowed"
    )]
    Unreachable {
        /// Share of packets that the link erases.
        erasure_rate: f64,
        /// Result for an interval of two slots, in the target's measure; infinite if two slots are
        /// too few to catch up with the losses.
        at_two_slots: f64,
        /// Maximum that the target allows, in the same measure.
        allowed: f64,
    },
    /// The order statistic does not exist: `1 <= place <= count` does not hold.
    #[error("{count} values have no {place}th smallest: 1 <= place <= count must hold")]
    Place {
        /// Requested place in ascending order, counted from 1.
        place: u32,
        /// Number of values of which one was asked for.
        count: u32,
    },
}
