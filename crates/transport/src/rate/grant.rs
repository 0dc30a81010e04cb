use tautline_units::{Bitrate, ByteCount};

/// A controller's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The rate at which to pace.
    pub rate: Bitrate,
    /// The rate that the application's budget may count on.
    pub sustained: Bitrate,
    /// The most bytes that may be on their way unreported, if there is a bound: a link that falls
    /// silent is sent no more.
    pub window: Option<ByteCount>,
    /// Whether this is an experiment: the pacer fills the rate with padding, and no other link
    /// may begin one.
    pub probing: bool,
    /// Why the rate is what it is.
    pub cause: Cause,
}

/// A reason for which a granted rate changed last.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Cause {
    /// Nothing is known of the link yet.
    Beginning,
    /// It is set.
    Fixed,
    /// Nothing waits in the link: the rate grows, as far as it is used.
    Growth,
    /// What was sent stands in the link's queue: the rate is that at which it arrives, less what drains
    /// the queue.
    Queue,
    /// Much less arrives than was sent: the link fails or has become slower.
    Stall,
    /// Losses end where the rate is lower: a policer, or a queue too short to be seen.
    Policer,
    /// Losses are looked into at a lower rate.
    LossTrial,
    /// A queue stands that is another's: losses lead the rate.
    ForeignQueue,
    /// Delays wander without a queue.
    Jitter,
    /// The rate is raised and lowered as an experiment.
    Probation,
    /// Nothing came back for long.
    Silence,
    /// The network marks what is sent, for a queue begins there.
    Marks,
}
