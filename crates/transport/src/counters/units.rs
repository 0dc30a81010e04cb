use crate::error::SendError;
use crate::event::LossReason;

/// Units of one channel since the session's object was made, and what became of each.
///
/// They add up. Out: `offered = accepted + refused()`, and of the accepted
/// `told_delivered + told_lost` at most are told by the peer; the rest it has not told yet. In:
/// `heard = open + delivered + lost() + superseded`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Units {
    /// Units that the application handed over.
    pub offered: u64,
    /// Units accepted for sending.
    pub accepted: u64,
    /// Units refused because there is no session or no link is up.
    pub refused_no_link: u64,
    /// Units refused for their size, their deadline, or a channel that was not opened.
    pub refused_invalid: u64,
    /// Units refused because the queues are full or no link can bring them in time.
    pub refused_congested: u64,
    /// Accepted units that a newer one displaced before any of them left.
    pub displaced: u64,
    /// Accepted units whose deadline passed before all of them had left.
    pub expired: u64,
    /// Accepted units of which the peer tells that they were delivered. It tells of media only.
    pub told_delivered: u64,
    /// Accepted units of which the peer tells that they were lost.
    pub told_lost: u64,
    /// Units of the peer that were heard of: by a packet of it, or, where every unit counts, of a
    /// later one.
    pub heard: u64,
    /// Units heard of that may still be delivered.
    pub open: u64,
    /// Units delivered.
    pub delivered: u64,
    /// Of these, units that needed a repair packet.
    pub repaired: u64,
    /// Units of which nothing came.
    pub missing: u64,
    /// Units with too few packets at their deadline.
    pub incomplete: u64,
    /// Units whose first packet came after the deadline.
    pub late: u64,
    /// Units given up to bound memory, or because a new session began.
    pub evicted: u64,
    /// Units whose packets contradict each other or cannot be parsed.
    pub malformed: u64,
    /// Units that a newer one overtook, where the newest wins.
    pub superseded: u64,
}

impl Units {
    /// Returns the units refused, for any reason.
    pub fn refused(&self) -> u64 {
        self.refused_no_link + self.refused_invalid + self.refused_congested
    }

    /// Returns the peer's units that were given up, for any reason.
    pub fn lost(&self) -> u64 {
        self.missing + self.incomplete + self.late + self.evicted + self.malformed
    }

    /// Returns every counter by name, always in the same order; names stable for metrics.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("offered", self.offered),
            ("accepted", self.accepted),
            ("refused_no_link", self.refused_no_link),
            ("refused_invalid", self.refused_invalid),
            ("refused_congested", self.refused_congested),
            ("displaced", self.displaced),
            ("expired", self.expired),
            ("reported_delivered", self.told_delivered),
            ("reported_lost", self.told_lost),
            ("heard", self.heard),
            ("delivered", self.delivered),
            ("repaired", self.repaired),
            ("missing", self.missing),
            ("incomplete", self.incomplete),
            ("late", self.late),
            ("evicted", self.evicted),
            ("malformed", self.malformed),
            ("superseded", self.superseded),
        ]
        .into_iter()
    }

    /// Adds what `other` counts: units of another channel.
    pub fn add(&mut self, other: &Self) {
        let Self {
            offered,
            accepted,
            refused_no_link,
            refused_invalid,
            refused_congested,
            displaced,
            expired,
            told_delivered,
            told_lost,
            heard,
            open,
            delivered,
            repaired,
            missing,
            incomplete,
            late,
            evicted,
            malformed,
            superseded,
        } = other;
        self.offered += offered;
        self.accepted += accepted;
        self.refused_no_link += refused_no_link;
        self.refused_invalid += refused_invalid;
        self.refused_congested += refused_congested;
        self.displaced += displaced;
        self.expired += expired;
        self.told_delivered += told_delivered;
        self.told_lost += told_lost;
        self.heard += heard;
        self.open += open;
        self.delivered += delivered;
        self.repaired += repaired;
        self.missing += missing;
        self.incomplete += incomplete;
        self.late += late;
        self.evicted += evicted;
        self.malformed += malformed;
        self.superseded += superseded;
    }

    pub(crate) fn refuse(&mut self, error: &SendError) {
        let count = match error {
            SendError::NotEstablished | SendError::NoLink => &mut self.refused_no_link,
            SendError::TooLarge { .. }
            | SendError::Deadline { .. }
            | SendError::NotOpened { .. } => &mut self.refused_invalid,
            SendError::OverCap { .. } | SendError::Congested => &mut self.refused_congested,
        };
        *count += 1;
    }

    /// Notes that `count` units will not be delivered.
    pub(crate) fn lose(&mut self, reason: LossReason, count: u64) {
        let lost = match reason {
            LossReason::Missing => &mut self.missing,
            LossReason::Incomplete => &mut self.incomplete,
            LossReason::Late => &mut self.late,
            LossReason::Evicted => &mut self.evicted,
            LossReason::Malformed => &mut self.malformed,
        };
        *lost += count;
    }
}
