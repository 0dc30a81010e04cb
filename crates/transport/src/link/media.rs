use super::in_flight::Fate;

/// Media packets of one link, by outcome.
///
/// They add up: `given = waiting + dropped + withdrawn + sent` and
/// `sent = open + in_time + late + lost`. The first reported outcome counts: a packet that was
/// declared lost and arrives later stays counted as lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Media {
    /// Number of media packets assigned to the link.
    pub given: u64,
    /// Assigned packets that another link had lost or could not deliver in time, and assigned new
    /// packets for a unit that lacked some.
    pub again: u64,
    /// Number of media packets in the link's queue at present.
    pub waiting: u64,
    /// Packets dropped from the link's queue: their deadline had passed, or the route was not
    /// validated.
    pub dropped: u64,
    /// Packets removed from the link's queue, unsent, when the link could no longer carry media.
    pub withdrawn: u64,
    /// Number of media packets sent on the link.
    pub sent: u64,
    /// Number of sent media packets whose outcome is unknown at present.
    pub open: u64,
    /// Number of media packets that arrived by their deadline, accurate to half a report interval.
    pub in_time: u64,
    /// Number of media packets that arrived after their deadline.
    pub late: u64,
    /// Number of media packets lost according to reports, unreported for two seconds, or evicted
    /// from the records of a link with too many datagrams in flight.
    pub lost: u64,
}

impl Media {
    /// Returns every counter that never falls, so all but `waiting` and `open`, under a stable name
    /// for metrics, always in the same order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("given", self.given),
            ("again", self.again),
            ("dropped", self.dropped),
            ("withdrawn", self.withdrawn),
            ("sent", self.sent),
            ("in_time", self.in_time),
            ("late", self.late),
            ("lost", self.lost),
        ]
        .into_iter()
    }

    /// Counts the reported fate of a packet.
    pub(super) fn settle(&mut self, fate: Fate) {
        let count = match fate {
            Fate::InTime => &mut self.in_time,
            Fate::Late => &mut self.late,
            Fate::Lost => &mut self.lost,
        };
        *count += 1;
    }
}
