use crate::error::SendError;
use crate::event::LossReason;

/// Units of one channel since the session object was created, by outcome.
///
/// They add up. Outbound: `offered = accepted + refused()`. Of the accepted media units, the peer
/// has reported `told_delivered + told_lost` so far. Inbound:
/// `heard = open + delivered + lost() + superseded`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Units {
    /// Units that the application passed in to be sent.
    pub offered: u64,
    /// Units accepted for sending.
    pub accepted: u64,
    /// Units refused because there is no session, or no link that the channel may use.
    pub refused_no_link: u64,
    /// Units refused because of their size, their deadline, or a channel that was not opened.
    pub refused_invalid: u64,
    /// Units refused because the queues are full, or because the links or the channel's cap cannot
    /// deliver them in time.
    pub refused_congested: u64,
    /// Accepted units displaced by a newer one before any part was sent.
    pub displaced: u64,
    /// Accepted units whose deadline passed before they were sent completely.
    pub expired: u64,
    /// Accepted units that the peer reports as delivered. It reports media only.
    pub told_delivered: u64,
    /// Accepted units that the peer reports as lost. It reports media only.
    pub told_lost: u64,
    /// Units of the peer that this end knows of: by one of their packets or, on a channel that
    /// keeps every unit, by a packet of a later one.
    pub heard: u64,
    /// Units of the peer that may still be delivered at present.
    pub open: u64,
    /// Units of the peer delivered to the application.
    pub delivered: u64,
    /// Delivered units that needed a repair packet.
    pub repaired: u64,
    /// Units of the peer lost because none of their packets arrived by the deadline, or because the
    /// peer skipped more units than are tracked.
    pub missing: u64,
    /// Units of the peer lost because some of their packets arrived by the deadline, but too few.
    pub incomplete: u64,
    /// Units of the peer lost because their first packet arrived after the deadline.
    pub late: u64,
    /// Units of the peer given up to bound memory, or because a new session began.
    pub evicted: u64,
    /// Units of the peer lost because their content cannot be recovered or parsed.
    pub malformed: u64,
    /// Units of the peer overtaken by a newer one, on a newest-wins channel.
    pub superseded: u64,
}

impl Units {
    /// Returns the number of our units refused, for any reason.
    pub fn refused(&self) -> u64 {
        self.refused_no_link + self.refused_invalid + self.refused_congested
    }

    /// Returns the number of the peer's units lost, for any reason; superseded ones do not count.
    pub fn lost(&self) -> u64 {
        self.missing + self.incomplete + self.late + self.evicted + self.malformed
    }

    /// Returns the name and the value of every counter that never falls, so all but `open`, always
    /// in the same order. The names are stable for metrics.
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

    /// Adds the counts of `other`, which are units of another channel.
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

    /// Counts `count` units of the peer as lost for `reason`.
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
