//! What one end's transport counts.

use flatbuffers::{FlatBufferBuilder, WIPOffset};
use tautline_units::{Bitrate, ByteCount};

use crate::Error;
use crate::generated::survey::{self as wire_survey, Survey as Root};
use crate::link_status::LinkState;
use crate::wire::{Kind, LINK_COUNT_MAX, choice, codec, list, millis, millis_on_wire, number};

/// What one end's transport counts, by link and by class; once a second.
#[derive(Clone, PartialEq, Debug)]
pub struct Survey {
    /// Whose it is.
    pub end: End,
    /// Every link of the session; at most 16.
    pub links: Vec<LinkSurvey>,
    /// Every class of units; at most 2.
    pub classes: Vec<ClassSurvey>,
}

/// One link: `out` is what this end sends, `in` what it receives.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkSurvey {
    /// 0 to 15, chosen by the vehicle.
    pub link: u8,
    /// Whether it carries anything.
    pub state: LinkState,
    /// Largest datagram that is sent: UDP payload, at most 65535 bytes.
    pub datagram_bytes: ByteCount,
    /// What the media counts on here.
    pub budget: Bitrate,
    /// What rate control grants for sending.
    pub granted: Bitrate,
    /// What was sent lately.
    pub sent: Bitrate,
    /// What arrives here.
    pub incoming: Bitrate,
    /// Smoothed round-trip time in milliseconds, if known.
    pub rtt_ms: Option<f32>,
    /// One-way delays to the other end, if known.
    pub owd_out: Option<Delays>,
    /// One-way delays to this end, if known.
    pub owd_in: Option<Delays>,
    /// Share lost of what was sent in the last second, 0 to 1.
    pub loss_out: f32,
    /// Share lost of what the other end has sent, 0 to 1.
    pub loss_in: f32,
    /// Media that waits here; below 4 GiB.
    pub queued: ByteCount,
    /// Sent, and nothing known of it yet; below 4 GiB.
    pub in_flight: ByteCount,
    /// Datagrams since the session began.
    pub datagrams_sent: u64,
    /// Datagrams that arrived here.
    pub datagrams_received: u64,
    /// Media packets on their way out.
    pub packets: PacketCounts,
}

/// Media packets that one link was given, and what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PacketCounts {
    /// Given to the link.
    pub given: u64,
    /// Of these, in another's place, or fresh for a unit that lacked some.
    pub again: u64,
    /// Dropped here: too late, or the route was not proved.
    pub dropped: u64,
    /// Taken off the link when it might carry no more.
    pub withdrawn: u64,
    /// Left.
    pub sent: u64,
    /// Arrived by their deadline.
    pub in_time: u64,
    /// Arrived after it.
    pub late: u64,
    /// Lost, as far as is known.
    pub lost: u64,
}

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

/// Units of one class, both ways, since the session's object was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassSurvey {
    /// Which class.
    pub class: UnitClass,
    /// Handed over for sending.
    pub offered: u64,
    /// Accepted for sending.
    pub accepted: u64,
    /// Refused: no session, or no link up.
    pub refused_no_link: u64,
    /// Refused: too large, or without a sensible deadline.
    pub refused_invalid: u64,
    /// Refused: queues full, or no link in time.
    pub refused_congested: u64,
    /// Of ours delivered, as the other end tells; of media only.
    pub told_delivered: u64,
    /// Of ours lost, likewise.
    pub told_lost: u64,
    /// Units of the other end that were heard of.
    pub heard: u64,
    /// Delivered here.
    pub delivered: u64,
    /// Of these, units that needed a repair packet.
    pub repaired: u64,
    /// Lost: nothing came.
    pub missing: u64,
    /// Lost: too few packets at the deadline.
    pub incomplete: u64,
    /// Lost: the first packet came after the deadline.
    pub late: u64,
    /// Lost: given up to bound memory, or for a new session.
    pub evicted: u64,
    /// Lost: packets that make no unit.
    pub malformed: u64,
    /// Overtaken by a newer one; of control only.
    pub superseded: u64,
}

/// Whose survey it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum End {
    /// The operator's.
    #[default]
    Operator,
    /// The vehicle's.
    Vehicle,
}

choice!(End, wire_survey::End, "end", [Operator, Vehicle]);

/// A class of units.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum UnitClass {
    /// Commands and telemetry.
    #[default]
    Control,
    /// Slices.
    Media,
}

choice!(UnitClass, wire_survey::UnitClass, "classes.unit_class", [Control, Media]);

codec!(Survey);

impl Survey {
    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let links: Vec<_> = self.links.iter().map(|link| link.write(builder)).collect();
        let links = Some(builder.create_vector(&links));
        let classes: Vec<_> = self.classes.iter().map(|class| class.write(builder)).collect();
        let classes = Some(builder.create_vector(&classes));
        let arguments = wire_survey::SurveyArgs { end: self.end.to_wire(), links, classes };
        let root = Root::create(builder, &arguments);
        wire_survey::finish_survey_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        Ok(Self {
            end: End::from_wire(root.end())?,
            links: list("links", root.links(), LINK_COUNT_MAX, LinkSurvey::read)?,
            classes: list("classes", root.classes(), CLASS_COUNT_MAX, ClassSurvey::read)?,
        })
    }
}

impl LinkSurvey {
    fn write(
        &self,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<wire_survey::LinkSurvey<'static>> {
        let delays = |delays: Delays| wire_survey::Delays::new(delays.p50, delays.p95, delays.p99);
        let bytes = |bytes: ByteCount| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        let (owd_out, owd_in) = (self.owd_out.map(delays), self.owd_in.map(delays));
        let arguments = wire_survey::LinkSurveyArgs {
            link: self.link,
            state: self.state.to_wire(),
            datagram_bytes: u16::try_from(self.datagram_bytes.get()).unwrap_or(u16::MAX),
            budget_bps: self.budget.bps(),
            granted_bps: self.granted.bps(),
            sent_bps: self.sent.bps(),
            incoming_bps: self.incoming.bps(),
            rtt_ms: millis_on_wire(self.rtt_ms),
            owd_out: owd_out.as_ref(),
            owd_in: owd_in.as_ref(),
            loss_out: self.loss_out,
            loss_in: self.loss_in,
            queued_bytes: bytes(self.queued),
            in_flight_bytes: bytes(self.in_flight),
            datagrams_sent: self.datagrams_sent,
            datagrams_received: self.datagrams_received,
            packets_given: self.packets.given,
            packets_again: self.packets.again,
            packets_dropped: self.packets.dropped,
            packets_withdrawn: self.packets.withdrawn,
            packets_sent: self.packets.sent,
            packets_in_time: self.packets.in_time,
            packets_late: self.packets.late,
            packets_lost: self.packets.lost,
        };
        wire_survey::LinkSurvey::create(builder, &arguments)
    }

    fn read(link: wire_survey::LinkSurvey<'_>) -> Result<Self, Error> {
        Ok(Self {
            link: link.link(),
            state: LinkState::from_wire(link.state())?,
            datagram_bytes: ByteCount::new(link.datagram_bytes().into()),
            budget: Bitrate::from_bps(link.budget_bps()),
            granted: Bitrate::from_bps(link.granted_bps()),
            sent: Bitrate::from_bps(link.sent_bps()),
            incoming: Bitrate::from_bps(link.incoming_bps()),
            rtt_ms: millis("links.rtt_ms", link.rtt_ms())?,
            owd_out: link.owd_out().map(Delays::read).transpose()?,
            owd_in: link.owd_in().map(Delays::read).transpose()?,
            loss_out: number("links.loss_out", link.loss_out(), 0.0, 1.0)?,
            loss_in: number("links.loss_in", link.loss_in(), 0.0, 1.0)?,
            queued: ByteCount::new(link.queued_bytes().into()),
            in_flight: ByteCount::new(link.in_flight_bytes().into()),
            datagrams_sent: link.datagrams_sent(),
            datagrams_received: link.datagrams_received(),
            packets: PacketCounts {
                given: link.packets_given(),
                again: link.packets_again(),
                dropped: link.packets_dropped(),
                withdrawn: link.packets_withdrawn(),
                sent: link.packets_sent(),
                in_time: link.packets_in_time(),
                late: link.packets_late(),
                lost: link.packets_lost(),
            },
        })
    }
}

impl Delays {
    fn read(delays: &wire_survey::Delays) -> Result<Self, Error> {
        let millis = |value| number("links.owd", value, 0.0, DELAY_MS_MAX);
        Ok(Self {
            p50: millis(delays.p50())?,
            p95: millis(delays.p95())?,
            p99: millis(delays.p99())?,
        })
    }
}

impl ClassSurvey {
    fn write(
        &self,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<wire_survey::ClassSurvey<'static>> {
        let arguments = wire_survey::ClassSurveyArgs {
            unit_class: self.class.to_wire(),
            offered: self.offered,
            accepted: self.accepted,
            refused_no_link: self.refused_no_link,
            refused_invalid: self.refused_invalid,
            refused_congested: self.refused_congested,
            told_delivered: self.told_delivered,
            told_lost: self.told_lost,
            heard: self.heard,
            delivered: self.delivered,
            repaired: self.repaired,
            missing: self.missing,
            incomplete: self.incomplete,
            late: self.late,
            evicted: self.evicted,
            malformed: self.malformed,
            superseded: self.superseded,
        };
        wire_survey::ClassSurvey::create(builder, &arguments)
    }

    fn read(class: wire_survey::ClassSurvey<'_>) -> Result<Self, Error> {
        Ok(Self {
            class: UnitClass::from_wire(class.unit_class())?,
            offered: class.offered(),
            accepted: class.accepted(),
            refused_no_link: class.refused_no_link(),
            refused_invalid: class.refused_invalid(),
            refused_congested: class.refused_congested(),
            told_delivered: class.told_delivered(),
            told_lost: class.told_lost(),
            heard: class.heard(),
            delivered: class.delivered(),
            repaired: class.repaired(),
            missing: class.missing(),
            incomplete: class.incomplete(),
            late: class.late(),
            evicted: class.evicted(),
            malformed: class.malformed(),
            superseded: class.superseded(),
        })
    }
}

const CLASS_COUNT_MAX: usize = 2;
/// Three hours, as of any delay.
const DELAY_MS_MAX: f32 = 1e7;

const KIND: Kind = Kind {
    name: "survey",
    identifier: Some(wire_survey::SURVEY_IDENTIFIER),
    bytes_max: 8 * 1024,
    tables_max: 32,
    depth_max: 2,
};
