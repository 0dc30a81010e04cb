use tautline_units::{Bitrate, ByteCount};

/// A rate that a controller grants to a link, with further limits and the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Rate at which the link's media is paced.
    pub rate: Bitrate,
    /// Media rate of the link that the application's budget may count on, while `rate` may be
    /// higher for a short time.
    pub sustained: Bitrate,
    /// Maximum number of unreported bytes in flight; `None` without a limit. It ends transmission
    /// on a link that falls silent.
    pub window: Option<ByteCount>,
    /// True while the controller tries a higher rate: what media does not use of the rate is filled
    /// with padding.
    pub probing: bool,
    /// Cause of the present rate.
    pub cause: Cause,
}

/// Cause of the last change of a granted rate.
///
/// This is the only list of causes: a cause has a number in snapshots, a name in tables and
/// metrics, and words on the page. The schema of snapshots and the page's list are generated from
/// it, with these docs (`console/page.rs` of the operator).
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
    strum::EnumMessage,
    strum::FromRepr,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[repr(u8)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Cause {
    /// Nothing is known of the link yet.
    #[strum(message = "starting")]
    Beginning = 0,
    /// The rate is constant.
    #[strum(message = "fixed")]
    Fixed = 1,
    /// There is no queue in the link: the rate grows as far as it is used.
    #[strum(message = "growing")]
    Growth = 2,
    /// The link has a queue of our own traffic: the rate is the arrival rate, minus what drains the
    /// queue.
    #[strum(message = "own queue")]
    Queue = 3,
    /// Much less arrives than was sent: the link fails or has slowed down.
    #[strum(message = "stalled")]
    Stall = 4,
    /// Losses end at a lower rate: a policer, or a queue too short to be measured.
    #[strum(message = "policer")]
    Policer = 5,
    /// Losses are examined at a lower rate.
    #[strum(message = "testing losses")]
    LossTrial = 6,
    /// Competing traffic has a standing queue: losses control the rate.
    #[strum(message = "competing traffic")]
    ForeignQueue = 7,
    /// Delays vary without a queue.
    #[strum(message = "jitter")]
    Jitter = 8,
    /// The rate is raised and lowered as a probe.
    #[strum(message = "probing")]
    Probation = 9,
    /// No report or pong arrived for long.
    #[strum(message = "silent")]
    Silence = 10,
    /// The network marks our datagrams because a queue begins to form.
    #[strum(message = "ECN marks")]
    Marks = 11,
}

impl Cause {
    /// All causes, in the order of their numbers.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Returns the number of the cause in snapshots.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the cause with this number, if there is one.
    pub const fn from_number(number: u8) -> Option<Self> {
        Self::from_repr(number)
    }

    /// Returns the name of the cause in tables and metrics, in kebab case.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the words that the page shows for the cause.
    pub fn words(self) -> &'static str {
        strum::EnumMessage::get_message(&self).unwrap_or_default()
    }

    /// Returns the documentation of this cause, as it stands above its variant.
    pub fn docs(self) -> &'static str {
        strum::EnumMessage::get_documentation(&self).unwrap_or_default()
    }
}
