mod units;

use std::collections::BTreeMap;

use strum::VariantArray;
pub use units::Units;

use crate::channel::ChannelNumber;

/// A reason for which a datagram, a packet, a unit or an event was discarded.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Discard {
    /// A datagram too short or of no known type.
    DatagramMalformed,
    /// A sealed datagram for a session id that is not ours.
    DatagramUnknownSession,
    /// A sealed datagram that does not open: forged or damaged.
    DatagramForged,
    /// A sealed datagram that arrived before.
    DatagramReplayed,
    /// A sealed datagram older than the replay window.
    DatagramStale,
    /// A sealed datagram to an initiator with a link number that it has no route for.
    DatagramUnknownLink,
    /// A handshake message that fails: forged, damaged or of another lease.
    HandshakeForged,
    /// A handshake from another machine than the expected one.
    HandshakeWrongPeer,
    /// A handshake from a machine without a common version, or a refusal for the same reason.
    HandshakeVersion,
    /// A handshake message that this end does not await: it has the other role, or no handshake
    /// with that session id is in progress.
    HandshakeUnexpected,
    /// A first handshake message that goes unanswered, because the rate limit of answers is used
    /// up.
    HandshakeLimited,
    /// A half-open handshake evicted from the responder's bounded list by a newer one.
    HandshakeEvicted,
    /// A half-open handshake that was not confirmed in time.
    HandshakeExpired,
    /// A packet of a channel that was neither opened here nor announced by the peer.
    ChannelUnknown,
    /// A packet of a kind that this version does not know.
    PacketUnknown,
    /// Fields of a packet that this version does not know.
    FieldsUnknown,
    /// An announcement that changes a channel's order, priority or descriptor length, or whose
    /// order and priority do not match its channel number.
    AnnouncementInconsistent,
    /// A complete descriptor that cannot be parsed.
    AnnouncementMalformed,
    /// An announcement of more channels, or longer descriptors, than a session has room for.
    AnnouncementOverflow,
    /// An authentic datagram with a malformed packet.
    PacketMalformed,
    /// A pong that answers no ping of ours, one that was answered before, or one too old to be
    /// kept.
    PongUnknown,
    /// A pong that the peer sent before the ping arrived, or held longer than the whole round trip.
    PongImpossible,
    /// A time in a ping, a report or a unit that is ahead of ours by more than the clock error.
    TimeAhead,
    /// A report on more datagrams or units than were sent, of an unknown link, or with decreasing
    /// counts; or an announced report interval of an unknown link.
    ReportImpossible,
    /// A pong or a handshake answer dropped because the queue for it was full, or a hole punch from
    /// a further address for which there is no link left.
    AnswerOverflow,
    /// A datagram not sent because its route is not validated and has received too little.
    AmplificationHeld,
    /// A source or repair packet of a finished unit, or a redundant repair packet.
    PacketSurplus,
    /// A source or repair packet that arrived twice.
    PacketDuplicate,
    /// A source or repair packet after its unit's deadline.
    PacketLate,
    /// A source or repair packet that contradicts its unit's others.
    PacketInconsistent,
    /// A source or repair packet of a unit outside the receiver's window.
    PacketOutOfRange,
    /// A repair packet of the streaming code replaced by a newer one: its source packets have
    /// expired.
    RepairExpired,
    /// A repair packet of the streaming code beyond the number that may be kept for later recovery.
    RepairOverflow,
    /// A unit of which no packet arrived by its deadline, or which the peer skipped together with
    /// more units than are tracked.
    UnitMissing,
    /// A unit of which too few packets arrived by its deadline.
    UnitIncomplete,
    /// A unit whose first packet arrived after its deadline.
    UnitLate,
    /// A unit given up to bound memory, or because a new session began.
    UnitEvicted,
    /// A unit whose content cannot be recovered or parsed.
    UnitMalformed,
    /// A unit older than the last delivered one, on a newest-wins channel.
    UnitSuperseded,
    /// A unit displaced by a newer one before it was sent, on a newest-wins channel.
    UnitDisplaced,
    /// A unit dropped while it waited for the rate limit of commands, its channel's cap or headroom
    /// of the links, because its deadline passed or a new session began.
    UnitExpired,
    /// An unpaced packet displaced from a link's full queue by a newer one.
    UrgentOverflow,
    /// An unpaced packet whose deadline passed in a link's queue.
    UrgentExpired,
    /// A media packet whose deadline passed in a link's queue.
    MediaExpired,
    /// A media packet that no link could deliver in time, or a repair packet that would have waited
    /// too long.
    MediaUnschedulable,
    /// A media packet queued on a link that may no longer carry media, and not moved to another
    /// one; or one queued when a new session began.
    MediaSilenced,
    /// A unit refused because there is no session, or no link that its channel may use.
    SendNoLink,
    /// A unit refused because of its deadline, or because its channel was not opened.
    SendInvalid,
    /// A unit refused because it is larger than the present links allow on its channel.
    SendTooLarge,
    /// A unit refused because its channel's cap alone delays it beyond its deadline.
    SendOverCap,
    /// A unit refused because the queues are full, or too long for its deadline.
    SendCongested,
    /// An event dropped because the application left too many unfetched.
    EventOverflow,
    /// A clock sample that contradicts earlier ones or itself: a clock was set.
    ClockStep,
}

impl Discard {
    /// Every reason for a discard, in the order of this list.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Returns the reason's name in snake case, stable for metrics.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Counters of a session's activity and discards since the session object was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams sent, including handshakes.
    pub datagrams_sent: u64,
    /// Datagrams passed in, regardless of outcome.
    pub datagrams_received: u64,
    /// Media packets moved or resent to another link, and new packets for a unit that lacked some.
    /// Within one session this, plus `repairs_asked`, is the sum of its links'
    /// [`crate::link::Media::again`].
    pub media_moved: u64,
    /// Source packets recovered in time by repair packets of the streaming code.
    pub sources_recovered: u64,
    /// Repair packets of the streaming code sent because reports show a loss.
    pub repairs_asked: u64,
    /// Handshakes completed.
    pub handshakes: u64,
    /// Number of times that a link moved to another address.
    pub routes_moved: u64,
    units: BTreeMap<ChannelNumber, Units>,
    discards: [u64; Discard::ALL.len()],
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            datagrams_sent: 0,
            datagrams_received: 0,
            media_moved: 0,
            sources_recovered: 0,
            repairs_asked: 0,
            handshakes: 0,
            routes_moved: 0,
            units: BTreeMap::new(),
            discards: [0; Discard::ALL.len()],
        }
    }

    pub(crate) fn discard(&mut self, what: Discard) {
        self.discard_many(what, 1);
    }

    pub(crate) fn discard_many(&mut self, what: Discard, count: u64) {
        if count > 0 {
            tracing::trace!(what = what.name(), count, "discard");
            self.discards[what as usize] += count;
        }
    }

    /// Returns the unit counts of `channel`, with [`Units::open`] zero; see
    /// [`crate::Session::units`].
    pub(crate) fn units(&self, channel: ChannelNumber) -> Units {
        self.units.get(&channel).cloned().unwrap_or_default()
    }

    /// Returns the number of every channel with counted units, ascending.
    pub(crate) fn channels(&self) -> impl Iterator<Item = ChannelNumber> + '_ {
        self.units.keys().copied()
    }

    pub(crate) fn units_mut(&mut self, channel: ChannelNumber) -> &mut Units {
        self.units.entry(channel).or_default()
    }

    /// Returns the number of discards for the reason `what`.
    pub fn discarded(&self, what: Discard) -> u64 {
        self.discards[what as usize]
    }

    /// Returns the name and the count of every discard, including zeros, always in the same order.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Discard::ALL.iter().copied().map(|what| (what.name(), self.discarded(what)))
    }

    /// Returns the name and the value of every counter except those of units, discards last, always
    /// in the same order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let done = [
            ("datagrams_sent", self.datagrams_sent),
            ("datagrams_received", self.datagrams_received),
            ("media_moved", self.media_moved),
            ("sources_recovered", self.sources_recovered),
            ("repairs_asked", self.repairs_asked),
            ("handshakes", self.handshakes),
            ("routes_moved", self.routes_moved),
        ];
        done.into_iter().chain(self.drops())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_discard_has_its_own_place_and_name() {
        for (index, what) in Discard::ALL.iter().copied().enumerate() {
            assert_eq!(what as usize, index);
        }
        let names: std::collections::BTreeSet<_> =
            Discard::ALL.iter().copied().map(Discard::name).collect();
        assert_eq!(names.len(), Discard::ALL.len());
    }
}
