use super::in_flight::Fate;

/// Media packets of one link on their way out, and what became of each.
///
/// They add up: `given = waiting + dropped + withdrawn + sent` and
/// `sent = open + in_time + late + lost`. What became of a packet is what reports told first: one
/// that was held lost and came after all stays counted as lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Media {
    /// Packets that were given to the link.
    pub given: u64,
    /// Of these, packets that another link lost or lacked the time for, and fresh ones for a unit
    /// that lacked some.
    pub again: u64,
    /// Packets that wait for their turn.
    pub waiting: u64,
    /// Packets dropped here: their deadline passed, or the route is not proved.
    pub dropped: u64,
    /// Packets taken off the link when it might carry media no more.
    pub withdrawn: u64,
    /// Packets that left.
    pub sent: u64,
    /// Packets that left and of which nothing is known yet.
    pub open: u64,
    /// Packets that arrived by their deadline, to half a report interval.
    pub in_time: u64,
    /// Packets that arrived after their deadline.
    pub late: u64,
    /// Packets that are lost, as far as reports tell, or that no report has told of for long.
    pub lost: u64,
}

impl Media {
    /// Returns every count that only rises, by a name stable for metrics, always in the same order.
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

    /// Notes what a report tells of a packet.
    pub(super) fn settle(&mut self, fate: Fate) {
        let count = match fate {
            Fate::InTime => &mut self.in_time,
            Fate::Late => &mut self.late,
            Fate::Lost => &mut self.lost,
        };
        *count += 1;
    }
}
