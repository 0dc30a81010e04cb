/// A number outside what a formula is true for.
///
/// Apart from [`crate::Error`], because only the theory speaks of real numbers.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An interval holds a source packet and a repair packet at least.
    #[error("an interval of {interval} slots has no room for a source packet and a repair packet")]
    Interval {
        /// Slots of an interval, asked for.
        interval: u32,
    },
    /// The erasure rate is no probability below 1.
    #[error("an erasure rate of {erasure_rate} is not in 0 <= rate < 1")]
    ErasureRate {
        /// Share of packets erased, asked for.
        erasure_rate: f64,
    },
    /// Repair packets come too seldom to ever catch up with the losses.
    #[error(
        "one repair packet in {interval} slots cannot mend an erasure rate of {erasure_rate}: \
         their product must be below 1"
    )]
    Overload {
        /// Slots of an interval.
        interval: u32,
        /// Share of packets erased.
        erasure_rate: f64,
    },
    /// A number that has to be a probability strictly between 0 and 1 is none.
    #[error("{probability} is not a probability strictly between 0 and 1")]
    Probability {
        /// What was given.
        probability: f64,
    },
    /// A percentile of the delay lies far out.
    #[error("a share {share} of the source packets may wait longer than {slots} slots")]
    Beyond {
        /// Share of source packets.
        share: f64,
        /// How far was looked.
        slots: u64,
    },
    /// A delay or a spread is negative, infinite or no number.
    #[error("{quantity} is not a finite number that is not negative")]
    Quantity {
        /// What was given.
        quantity: f64,
    },
    /// The stream asked for carries more than the code does.
    #[error("a share of {asked} of the slots cannot be had from a code rate of {code_rate}")]
    Goodput {
        /// Share of slots asked for.
        asked: f64,
        /// Code rate of the stream.
        code_rate: f64,
    },
    /// No interval meets the target, not even two slots.
    #[error(
        "at an erasure rate of {erasure_rate} no interval meets the target: \
         two slots give {at_two_slots}, {allowed} is allowed"
    )]
    Unreachable {
        /// Share of packets erased.
        erasure_rate: f64,
        /// What an interval of two slots gives, as the target measures it; infinite if two slots
        /// are too few to catch up with the losses.
        at_two_slots: f64,
        /// What the target allows.
        allowed: f64,
    },
    /// There is no such place in the order.
    #[error("{count} values have no {place}th smallest: 1 <= place <= count must hold")]
    Place {
        /// Place in ascending order, from 1.
        place: u32,
        /// How many values there are.
        count: u32,
    },
}
