use flatbuffers::FlatBufferBuilder;
use tautline_units::{ByteCount, Duration};

use crate::Error;
use crate::codec::codec;
use crate::generated::probe_question::{self as wire_question, ProbeQuestion as Root};
use crate::wire::{Kind, within};

/// A request that the vehicle use another packet size for a while and report when the question
/// arrived.
///
/// A single fixed-size struct on the wire (schemas/probe_question.fbs).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeQuestion {
    /// Sequence number, increased by one with each question of a probe.
    pub sequence: u64,
    /// Largest datagram from the vehicle, 150 to 1500 bytes; `None` ends the probe and restores the
    /// configured size.
    pub datagram_bytes: Option<ByteCount>,
    /// Time for which the size holds without another question, 100 ms to 5 s.
    pub hold: Duration,
}

codec!(ProbeQuestion);

impl ProbeQuestion {
    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let datagram_bytes = self.datagram_bytes.map_or(0, ByteCount::get);
        let question = wire_question::Question::new(
            self.sequence,
            u16::try_from(datagram_bytes).unwrap_or(u16::MAX),
            u16::try_from(self.hold.as_millis()).unwrap_or(u16::MAX),
        );
        let arguments = wire_question::ProbeQuestionArgs { question: Some(&question) };
        let root = Root::create(builder, &arguments);
        wire_question::finish_probe_question_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        let question = root.question();
        let datagram_bytes = match question.datagram_bytes() {
            0 => None,
            bytes => Some(within("datagram_bytes", bytes, 150, 1_500)?),
        };
        let hold = within("hold_ms", question.hold_ms(), 100, 5_000)?;
        Ok(Self {
            sequence: question.sequence(),
            datagram_bytes: datagram_bytes.map(|bytes| ByteCount::new(bytes.into())),
            hold: Duration::from_millis(hold.into()),
        })
    }
}

const KIND: Kind = Kind {
    name: "probe question",
    identifier: Some(wire_question::PROBE_QUESTION_IDENTIFIER),
    bytes_max: 256,
    tables_max: 1,
    depth_max: 1,
};
