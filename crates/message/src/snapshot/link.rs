use flatbuffers::{FlatBufferBuilder, WIPOffset};
use tautline_units::{Bitrate, ByteCount};

use super::counts::counts;
use crate::Error;
use crate::fields::{BytesU16, BytesU32, Choice, Known, Plain, Rate, Text, choice, fields};
use crate::generated::rate_cause::RateCause;
use crate::generated::snapshot as wire_snapshot;
use crate::wire::{MILLIS_MAX, NAME_BYTES_MAX, number};

fields! {
    /// Statistics of one link: `out` is the direction that this end sends, `in` the one it
    /// receives.
    #[derive(Clone, PartialEq, Default, Debug)]
    LinkStats of wire_snapshot::LinkStats<'_>, wire_snapshot::LinkStatsArgs, "links." {
        /// Number of the link, 0 to 15, chosen by the vehicle.
        link: u8 = link as Plain,
        /// Display name of the link, at most 64 bytes.
        name: String = name as Text(NAME_BYTES_MAX),
        /// State of the link.
        state: LinkState = state as Choice,
        /// Largest datagram that this end sends on the link: UDP payload, at most 65535 bytes.
        datagram_bytes: ByteCount = datagram_bytes as BytesU16,
        /// Rate available to the media that this end sends on the link.
        budget: Bitrate = budget_bps as Rate,
        /// Rate that rate control grants this end for sending on the link.
        granted: Bitrate = granted_bps as Rate,
        /// Rate that this end sent on the link in the last second.
        sent: Bitrate = sent_bps as Rate,
        /// Rate that this end received on the link in the last second.
        received: Bitrate = received_bps as Rate,
        /// Smoothed round-trip time in milliseconds, if known.
        rtt_ms: Option<f32> = rtt_ms as Known::MILLIS,
        /// Smoothed one-way delay towards this end in milliseconds, if known.
        owd_ms: Option<f32> = owd_ms as Known::MILLIS,
        /// Variation of the one-way delay towards this end in milliseconds, if known.
        jitter_ms: Option<f32> = jitter_ms as Known::MILLIS,
        /// Share lost of the packets sent and reported in the last second, 0 to 1, if there were
        /// any.
        loss_out: Option<f32> = loss_out as Known::SHARE,
        /// Share lost of the other end's packets in the last second, 0 to 1, if any arrived.
        loss_in: Option<f32> = loss_in as Known::SHARE,
        /// Percentiles of the one-way delay to the other end in the last ten seconds, if known.
        owd_out: Option<Delays>,
        /// Percentiles of the one-way delay to this end in the last ten seconds, if known.
        owd_in: Option<Delays>,
        /// Bytes of media that wait at this end to be sent on the link; below 4 GiB.
        queued: ByteCount = queued_bytes as BytesU32,
        /// Bytes that this end sent on the link and the other end has not reported yet; below 4
        /// GiB.
        in_flight: ByteCount = in_flight_bytes as BytesU32,
        /// True if a relay carries the link.
        relayed: bool = relayed as Plain,
        /// Added round-trip time of the relay, compared with a direct link of the same socket, in
        /// milliseconds, if both are known.
        detour_ms: Option<f32> = detour_ms as Known::MILLIS,
        /// State of rate control, if reported; written only if every link of the session has one.
        rate_control: Option<RateControl>,
        /// Bytes and datagrams of any kind, in both directions since the session began.
        traffic: TrafficCounts,
        /// Counts of the media packets that this end assigned to the link.
        packets: PacketCounts,
    }
}

choice! {
    /// State of a link.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub enum LinkState of wire_snapshot::LinkState, "links.state" {
        /// The peer's address is not validated yet.
        #[default]
        Validating,
        /// The link carries packets.
        Up,
        /// Pongs have stopped.
        Silent,
    }
}

/// State of rate control on one link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateControl {
    /// Rate that arrived at the other end, by its last report; below 655 Mbit/s, resolution 10
    /// kbit/s.
    pub delivered: Bitrate,
    /// Excess of the outgoing delay over the minimum of the last ten seconds, common to all recent
    /// datagrams, in milliseconds; below 6.5 s, resolution 0.1 ms.
    pub queueing_ms: f32,
    /// Number of the cause of the last change of the granted rate: schemas/rate_cause.fbs. A later
    /// build may have more causes than this one.
    pub cause: u8,
}

impl RateControl {
    pub(super) fn to_wire(self) -> wire_snapshot::RateControl {
        let delivered = (self.delivered.bps() / DELIVERED_STEP_BPS).min(u64::from(u16::MAX));
        let queueing = (self.queueing_ms / QUEUEING_STEP_MS).round();
        wire_snapshot::RateControl::new(delivered as u16, queueing as u16, RateCause(self.cause))
    }

    pub(super) fn read(wire: &wire_snapshot::RateControl) -> Result<Self, Error> {
        Ok(Self {
            delivered: Bitrate::from_bps(u64::from(wire.delivered()) * DELIVERED_STEP_BPS),
            queueing_ms: f32::from(wire.queueing()) * QUEUEING_STEP_MS,
            cause: wire.cause().0,
        })
    }
}

/// Percentiles of the delays of the last ten seconds, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delays {
    /// Median delay in milliseconds.
    pub p50: f32,
    /// 95th percentile of the delays in milliseconds.
    pub p95: f32,
    /// 99th percentile of the delays in milliseconds.
    pub p99: f32,
}

counts! {
    /// Traffic on one link since the session began, in datagrams as UDP carries them: with their
    /// own headers, without those of IP and UDP.
    TrafficCounts of wire_snapshot::LinkStatsArgs<'_>, wire_snapshot::LinkStats<'_> {
        /// Bytes sent on the link by this end.
        bytes_sent: bytes_sent,
        /// Bytes received on the link by this end.
        bytes_received: bytes_received,
        /// Datagrams sent on the link by this end.
        datagrams_sent: datagrams_sent,
        /// Datagrams sent on the link by this end that the other end has reported as received.
        datagrams_reported: datagrams_reported,
        /// Datagrams received on the link by this end, without duplicates.
        datagrams_received: datagrams_received,
    }
}

counts! {
    /// Media packets that this end assigned to one link since the session began, by outcome.
    PacketCounts of wire_snapshot::LinkStatsArgs<'_>, wire_snapshot::LinkStats<'_> {
        /// Media packets assigned to the link.
        given: packets_given,
        /// Packets assigned to the link that replace another packet, or are new for an incomplete
        /// unit.
        again: packets_again,
        /// Packets dropped before they were sent: too late, or the address was not validated.
        dropped: packets_dropped,
        /// Packets taken back before they were sent, because the link might not work any more.
        withdrawn: packets_withdrawn,
        /// Media packets sent on the link.
        sent: packets_sent,
        /// Media packets that arrived at the other end by their deadline.
        in_time: packets_in_time,
        /// Media packets that arrived at the other end after their deadline.
        late: packets_late,
        /// Media packets known to be lost on the way.
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
