use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Vector, WIPOffset};
use tautline_units::Bitrate;

use crate::Error;
use crate::generated::link_status as wire_status;
use crate::wire::{
    LINK_COUNT_MAX, NAME_BYTES_MAX, choice, list, millis, millis_on_wire, number, text,
};

/// One end's view of one link.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkStatus {
    /// 0 to 15, chosen by the vehicle.
    pub link: u8,
    /// For people, at most 64 bytes.
    pub name: String,
    /// Whether it carries anything.
    pub state: LinkState,
    /// What rate control grants for sending.
    pub send_rate: Bitrate,
    /// What arrived lately.
    pub received_rate: Bitrate,
    /// Smoothed round-trip time in milliseconds, if known.
    pub rtt_ms: Option<f32>,
    /// One-way delay towards this end in milliseconds, if known.
    pub owd_ms: Option<f32>,
    /// Jitter in milliseconds, if known.
    pub jitter_ms: Option<f32>,
    /// Share of packets lost lately, 0 to 1.
    pub loss: f32,
    /// Packets sent since the session began.
    pub packets_sent: u64,
    /// Packets received since the session began.
    pub packets_received: u64,
    /// Packets known lost since the session began.
    pub packets_lost: u64,
}

impl LinkStatus {
    pub(crate) fn write_all(
        all: &[Self],
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<Vector<'static, ForwardsUOffset<wire_status::LinkStatus<'static>>>> {
        let offsets: Vec<_> = all.iter().map(|status| status.write(builder)).collect();
        builder.create_vector(&offsets)
    }

    pub(crate) fn read_all(
        vector: Vector<'_, ForwardsUOffset<wire_status::LinkStatus<'_>>>,
    ) -> Result<Vec<Self>, Error> {
        list("links", vector, LINK_COUNT_MAX, Self::read)
    }

    fn write(
        &self,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<wire_status::LinkStatus<'static>> {
        let name = builder.create_string(&self.name);
        let arguments = wire_status::LinkStatusArgs {
            link: self.link,
            name: Some(name),
            state: self.state.to_wire(),
            send_rate_bps: self.send_rate.bps(),
            received_rate_bps: self.received_rate.bps(),
            rtt_ms: millis_on_wire(self.rtt_ms),
            owd_ms: millis_on_wire(self.owd_ms),
            jitter_ms: millis_on_wire(self.jitter_ms),
            loss: self.loss,
            packets_sent: self.packets_sent,
            packets_received: self.packets_received,
            packets_lost: self.packets_lost,
        };
        wire_status::LinkStatus::create(builder, &arguments)
    }

    fn read(status: wire_status::LinkStatus<'_>) -> Result<Self, Error> {
        Ok(Self {
            link: status.link(),
            name: text("links.name", status.name(), NAME_BYTES_MAX)?,
            state: LinkState::from_wire(status.state())?,
            send_rate: Bitrate::from_bps(status.send_rate_bps()),
            received_rate: Bitrate::from_bps(status.received_rate_bps()),
            rtt_ms: millis("links.rtt_ms", status.rtt_ms())?,
            owd_ms: millis("links.owd_ms", status.owd_ms())?,
            jitter_ms: millis("links.jitter_ms", status.jitter_ms())?,
            loss: number("links.loss", status.loss(), 0.0, 1.0)?,
            packets_sent: status.packets_sent(),
            packets_received: status.packets_received(),
            packets_lost: status.packets_lost(),
        })
    }
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

choice!(LinkState, wire_status::LinkState, "links.state", [Validating, Up, Silent]);
