use tautline_units::{Bitrate, ByteCount};

/// A controller's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Pacing rate.
    pub rate: Bitrate,
    /// Rate that the application's budget may count on.
    pub sustained: Bitrate,
    /// Maximum number of unreported bytes in flight; `None` without a limit. It ends transmission
    /// on a link that falls silent.
    pub window: Option<ByteCount>,
    /// True while probing: the pacer fills the rate with padding, and no other link may start to
    /// probe.
    pub probing: bool,
    /// Cause of the present rate.
    pub cause: Cause,
}

/// Cause of the last change of a granted rate.
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
    /// The rate is configured.
    Fixed,
    /// There is no queue in the link: the rate grows as far as it is used.
    Growth,
    /// The link has a queue of our own traffic: the rate is the arrival rate, minus what drains the
    /// queue.
    Queue,
    /// Much less arrives than was sent: the link fails or has slowed down.
    Stall,
    /// Losses end at a lower rate: a policer, or a queue too short to be measured.
    Policer,
    /// Losses are examined at a lower rate.
    LossTrial,
    /// Competing traffic has a standing queue: losses control the rate.
    ForeignQueue,
    /// Delays vary without a queue.
    Jitter,
    /// The rate is raised and lowered as a probe.
    Probation,
    /// No report or pong arrived for long.
    Silence,
    /// The network marks our datagrams because a queue begins to form.
    Marks,
}
