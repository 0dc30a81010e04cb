use flatbuffers::{FlatBufferBuilder, WIPOffset};
use tautline_units::{Bitrate, ByteCount};

use super::counts::counts;
use crate::Error;
use crate::generated::snapshot as wire_snapshot;
use crate::wire::{
    NAME_BYTES_MAX, choice, millis, millis_on_wire, number, share, share_on_wire, text,
};

/// One link: `out` is what this end sends, `in` what it receives.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkStats {
    /// 0 to 15, chosen by the vehicle.
    pub link: u8,
    /// For people, at most 64 bytes.
    pub name: String,
    /// Whether it carries anything.
    pub state: LinkState,
    /// Largest datagram that is sent: UDP payload, at most 65535 bytes.
    pub datagram_bytes: ByteCount,
    /// What the media counts on here.
    pub budget: Bitrate,
    /// What rate control grants for sending.
    pub granted: Bitrate,
    /// What was sent in the last second.
    pub sent: Bitrate,
    /// What came here in the last second.
    pub received: Bitrate,
    /// Smoothed round-trip time in milliseconds, if known.
    pub rtt_ms: Option<f32>,
    /// One-way delay towards this end, smoothed, in milliseconds, if known.
    pub owd_ms: Option<f32>,
    /// How much that delay varies, in milliseconds, if known.
    pub jitter_ms: Option<f32>,
    /// Share lost of what was sent and reported in the last second, 0 to 1, if anything was.
    pub loss_out: Option<f32>,
    /// Share lost of what the other end sent in the last second, 0 to 1, if anything came.
    pub loss_in: Option<f32>,
    /// One-way delays to the other end, if known.
    pub owd_out: Option<Delays>,
    /// One-way delays to this end, if known.
    pub owd_in: Option<Delays>,
    /// Media that waits here; below 4 GiB.
    pub queued: ByteCount,
    /// Sent, and nothing known of it yet; below 4 GiB.
    pub in_flight: ByteCount,
    /// Bytes and datagrams of any kind.
    pub traffic: TrafficCounts,
    /// Media packets on their way out.
    pub packets: PacketCounts,
}

/// Whether a link carries anything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum LinkState {
    /// Its address has not yet proved that it answers.
    #[default]
    Validating,
    /// It carries packets.
    Up,
    /// Its pongs have stopped.
    Silent,
}

choice!(LinkState, wire_snapshot::LinkState, "links.state", [Validating, Up, Silent]);

/// What half, 95 and 99 of a hundred delays of the last ten seconds do not exceed, milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delays {
    /// The median.
    pub p50: f32,
    /// Of 95 in a hundred.
    pub p95: f32,
    /// Of 99 in a hundred.
    pub p99: f32,
}

counts! {
    /// What went over one link since the session began, headers included.
    TrafficCounts of wire_snapshot::LinkStatsArgs<'_>, wire_snapshot::LinkStats<'_> {
        /// Bytes sent.
        bytes_sent: bytes_sent,
        /// Bytes that came here.
        bytes_received: bytes_received,
        /// Datagrams sent.
        datagrams_sent: datagrams_sent,
        /// Of these, those that the other end reports.
        datagrams_reported: datagrams_reported,
        /// Datagrams that came here, each once.
        datagrams_received: datagrams_received,
    }
}

counts! {
    /// Media packets that one link was given, and what became of them.
    PacketCounts of wire_snapshot::LinkStatsArgs<'_>, wire_snapshot::LinkStats<'_> {
        /// Given to the link.
        given: packets_given,
        /// Of these, in another's place, or fresh for a unit that lacked some.
        again: packets_again,
        /// Dropped here: too late, or the route was not proved.
        dropped: packets_dropped,
        /// Taken off the link when it might carry no more.
        withdrawn: packets_withdrawn,
        /// Left.
        sent: packets_sent,
        /// Arrived by their deadline.
        in_time: packets_in_time,
        /// Arrived after it.
        late: packets_late,
        /// Lost, as far as is known.
        lost: packets_lost,
    }
}

impl LinkStats {
    pub(super) fn write(
        &self,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<wire_snapshot::LinkStats<'static>> {
        let delays =
            |delays: Delays| wire_snapshot::Delays::new(delays.p50, delays.p95, delays.p99);
        let bytes = |bytes: ByteCount| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        let (owd_out, owd_in) = (self.owd_out.map(delays), self.owd_in.map(delays));
        let mut arguments = wire_snapshot::LinkStatsArgs {
            link: self.link,
            name: Some(builder.create_string(&self.name)),
            state: self.state.to_wire(),
            datagram_bytes: u16::try_from(self.datagram_bytes.get()).unwrap_or(u16::MAX),
            budget_bps: self.budget.bps(),
            granted_bps: self.granted.bps(),
            sent_bps: self.sent.bps(),
            received_bps: self.received.bps(),
            rtt_ms: millis_on_wire(self.rtt_ms),
            owd_ms: millis_on_wire(self.owd_ms),
            jitter_ms: millis_on_wire(self.jitter_ms),
            loss_out: share_on_wire(self.loss_out),
            loss_in: share_on_wire(self.loss_in),
            owd_out: owd_out.as_ref(),
            owd_in: owd_in.as_ref(),
            queued_bytes: bytes(self.queued),
            in_flight_bytes: bytes(self.in_flight),
            ..Default::default()
        };
        self.traffic.write(&mut arguments);
        self.packets.write(&mut arguments);
        wire_snapshot::LinkStats::create(builder, &arguments)
    }

    pub(super) fn read(link: wire_snapshot::LinkStats<'_>) -> Result<Self, Error> {
        Ok(Self {
            link: link.link(),
            name: text("links.name", link.name(), NAME_BYTES_MAX)?,
            state: LinkState::from_wire(link.state())?,
            datagram_bytes: ByteCount::new(link.datagram_bytes().into()),
            budget: Bitrate::from_bps(link.budget_bps()),
            granted: Bitrate::from_bps(link.granted_bps()),
            sent: Bitrate::from_bps(link.sent_bps()),
            received: Bitrate::from_bps(link.received_bps()),
            rtt_ms: millis("links.rtt_ms", link.rtt_ms())?,
            owd_ms: millis("links.owd_ms", link.owd_ms())?,
            jitter_ms: millis("links.jitter_ms", link.jitter_ms())?,
            loss_out: share("links.loss_out", link.loss_out())?,
            loss_in: share("links.loss_in", link.loss_in())?,
            owd_out: link.owd_out().map(Delays::read).transpose()?,
            owd_in: link.owd_in().map(Delays::read).transpose()?,
            queued: ByteCount::new(link.queued_bytes().into()),
            in_flight: ByteCount::new(link.in_flight_bytes().into()),
            traffic: TrafficCounts::read(link),
            packets: PacketCounts::read(link),
        })
    }
}

impl Delays {
    fn read(delays: &wire_snapshot::Delays) -> Result<Self, Error> {
        let millis = |value| number("links.owd", value, 0.0, DELAY_MS_MAX);
        Ok(Self {
            p50: millis(delays.p50())?,
            p95: millis(delays.p95())?,
            p99: millis(delays.p99())?,
        })
    }
}

/// Three hours, as of any delay.
const DELAY_MS_MAX: f32 = 1e7;
