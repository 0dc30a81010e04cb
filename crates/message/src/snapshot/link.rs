use flatbuffers::{FlatBufferBuilder, WIPOffset};
use tautline_units::{Bitrate, ByteCount};

use super::counts::counts;
use crate::Error;
use crate::fields::{BytesU16, BytesU32, Choice, Known, Plain, Rate, Text, choice, fields};
use crate::generated::snapshot as wire_snapshot;
use crate::wire::{MILLIS_MAX, NAME_BYTES_MAX, number};

fields! {
    /// One link: `out` is what this end sends, `in` what it receives.
    #[derive(Clone, PartialEq, Default, Debug)]
    LinkStats of wire_snapshot::LinkStats<'_>, wire_snapshot::LinkStatsArgs, "links." {
        /// 0 to 15, chosen by the vehicle.
        link: u8 = link as Plain,
        /// For people, at most 64 bytes.
        name: String = name as Text(NAME_BYTES_MAX),
        /// Whether it carries anything.
        state: LinkState = state as Choice,
        /// Largest datagram that is sent: UDP payload, at most 65535 bytes.
        datagram_bytes: ByteCount = datagram_bytes as BytesU16,
        /// What the media counts on here.
        budget: Bitrate = budget_bps as Rate,
        /// What rate control grants for sending.
        granted: Bitrate = granted_bps as Rate,
        /// What was sent in the last second.
        sent: Bitrate = sent_bps as Rate,
        /// What came here in the last second.
        received: Bitrate = received_bps as Rate,
        /// Smoothed round-trip time in milliseconds, if known.
        rtt_ms: Option<f32> = rtt_ms as Known::MILLIS,
        /// One-way delay towards this end, smoothed, in milliseconds, if known.
        owd_ms: Option<f32> = owd_ms as Known::MILLIS,
        /// How much that delay varies, in milliseconds, if known.
        jitter_ms: Option<f32> = jitter_ms as Known::MILLIS,
        /// Share lost of what was sent and reported in the last second, 0 to 1, if anything was.
        loss_out: Option<f32> = loss_out as Known::SHARE,
        /// Share lost of what the other end sent in the last second, 0 to 1, if anything came.
        loss_in: Option<f32> = loss_in as Known::SHARE,
        /// One-way delays to the other end, if known.
        owd_out: Option<Delays>,
        /// One-way delays to this end, if known.
        owd_in: Option<Delays>,
        /// Media that waits here; below 4 GiB.
        queued: ByteCount = queued_bytes as BytesU32,
        /// Sent, and nothing known of it yet; below 4 GiB.
        in_flight: ByteCount = in_flight_bytes as BytesU32,
        /// Whether a relay carries it.
        relayed: bool = relayed as Plain,
        /// What the relay adds to the round trip, by that of a direct link of the same socket, in
        /// milliseconds, if both are known.
        detour_ms: Option<f32> = detour_ms as Known::MILLIS,
        /// What rate control goes by, if it is told.
        rate_control: Option<RateControl>,
        /// Bytes and datagrams of any kind.
        traffic: TrafficCounts,
        /// Media packets on their way out.
        packets: PacketCounts,
    }
}

/// The state of a link: whether it carries anything.
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

/// What rate control goes by on one link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateControl {
    /// What arrived at the other end, by its last report; below 655 Mbit/s, to 10 kbit/s.
    pub delivered: Bitrate,
    /// How much longer than the least of ten seconds every datagram of late was on its way out, in
    /// milliseconds; below 6.5 s, to 0.1 ms.
    pub queueing_ms: f32,
    /// Why what is granted changed last.
    pub cause: RateCause,
}

impl RateControl {
    pub(super) fn to_wire(self) -> wire_snapshot::RateControl {
        let delivered = (self.delivered.bps() / DELIVERED_STEP_BPS).min(u64::from(u16::MAX));
        let queueing = (self.queueing_ms / QUEUEING_STEP_MS).round();
        wire_snapshot::RateControl::new(delivered as u16, queueing as u16, self.cause.to_wire())
    }

    pub(super) fn read(wire: &wire_snapshot::RateControl) -> Result<Self, Error> {
        Ok(Self {
            delivered: Bitrate::from_bps(u64::from(wire.delivered()) * DELIVERED_STEP_BPS),
            queueing_ms: f32::from(wire.queueing()) * QUEUEING_STEP_MS,
            cause: RateCause::from_wire(wire.cause())?,
        })
    }
}

/// Why what rate control grants changed last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum RateCause {
    /// Nothing is known of the link yet.
    #[default]
    Beginning,
    /// It is set.
    Fixed,
    /// Nothing waits in the link: the rate grows, as far as it is used.
    Growth,
    /// What was sent stands in the link's queue.
    Queue,
    /// Much less arrives than was sent: the link fails or has become slower.
    Stall,
    /// Losses end where the rate is lower.
    Policer,
    /// Losses are looked into at a lower rate.
    LossTrial,
    /// A queue stands that is another's.
    ForeignQueue,
    /// Delays wander without a queue.
    Jitter,
    /// The rate is raised and lowered as an experiment.
    Probation,
    /// Nothing came back for long.
    Silence,
    /// The network marks what is sent.
    Marks,
}

impl RateCause {
    /// Every cause.
    pub const ALL: [Self; 12] = [
        Self::Beginning,
        Self::Fixed,
        Self::Growth,
        Self::Queue,
        Self::Stall,
        Self::Policer,
        Self::LossTrial,
        Self::ForeignQueue,
        Self::Jitter,
        Self::Probation,
        Self::Silence,
        Self::Marks,
    ];

    /// Returns the name in tables and metrics, which is the transport's.
    pub fn name(self) -> &'static str {
        match self {
            Self::Beginning => "beginning",
            Self::Fixed => "fixed",
            Self::Growth => "growth",
            Self::Queue => "queue",
            Self::Stall => "stall",
            Self::Policer => "policer",
            Self::LossTrial => "loss-trial",
            Self::ForeignQueue => "foreign-queue",
            Self::Jitter => "jitter",
            Self::Probation => "probation",
            Self::Silence => "silence",
            Self::Marks => "marks",
        }
    }
}

choice!(
    RateCause,
    wire_snapshot::RateCause,
    "links.rate_cause",
    [
        Beginning,
        Fixed,
        Growth,
        Queue,
        Stall,
        Policer,
        LossTrial,
        ForeignQueue,
        Jitter,
        Probation,
        Silence,
        Marks
    ]
);

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
        let (owd_out, owd_in) = (self.owd_out.map(delays), self.owd_in.map(delays));
        let mut arguments = wire_snapshot::LinkStatsArgs {
            owd_out: owd_out.as_ref(),
            owd_in: owd_in.as_ref(),
            ..Default::default()
        };
        self.write_listed(&mut arguments, builder);
        self.traffic.write(&mut arguments);
        self.packets.write(&mut arguments);
        wire_snapshot::LinkStats::create(builder, &arguments)
    }

    pub(super) fn read(link: wire_snapshot::LinkStats<'_>) -> Result<Self, Error> {
        Ok(Self {
            owd_out: link.owd_out().map(Delays::read).transpose()?,
            owd_in: link.owd_in().map(Delays::read).transpose()?,
            traffic: TrafficCounts::read(link),
            packets: PacketCounts::read(link),
            ..Self::read_listed(link)?
        })
    }
}

impl Delays {
    fn read(delays: &wire_snapshot::Delays) -> Result<Self, Error> {
        let millis = |value| number("links.owd", value, 0.0, MILLIS_MAX);
        Ok(Self {
            p50: millis(delays.p50())?,
            p95: millis(delays.p95())?,
            p99: millis(delays.p99())?,
        })
    }
}

const DELIVERED_STEP_BPS: u64 = 10_000;
const QUEUEING_STEP_MS: f32 = 0.1;
