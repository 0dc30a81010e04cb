use flatbuffers::FlatBufferBuilder;
use tautline_units::Instant;

use crate::Error;
use crate::codec::codec;
use crate::generated::probe_answer::{self as wire_answer, ProbeAnswer as Root};
use crate::wire::{Kind, TEXT_BYTES_MAX, length, text};

/// The vehicle's response to the operator's [`ProbeQuestion`](crate::ProbeQuestion)s.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbeAnswer {
    /// Sequences of the newest questions and their arrival times on the vehicle's clock; at most
    /// 64.
    pub arrivals: Vec<(u64, Instant)>,
    /// Reason why the vehicle has returned to its configured size, at most 256 bytes; `None` while
    /// it does as the questions ask.
    pub refusal: Option<String>,
}

codec!(ProbeAnswer);

impl ProbeAnswer {
    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let arrivals: Vec<_> = self
            .arrivals
            .iter()
            .map(|(sequence, came_at)| wire_answer::Arrival::new(*sequence, came_at.as_nanos()))
            .collect();
        let arrivals = Some(builder.create_vector(&arrivals));
        let refusal = self.refusal.as_ref().map(|refusal| builder.create_string(refusal));
        let arguments = wire_answer::ProbeAnswerArgs { arrivals, refusal };
        let root = Root::create(builder, &arguments);
        wire_answer::finish_probe_answer_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        let arrivals = root.arrivals();
        length("arrivals", arrivals.len(), ARRIVAL_COUNT_MAX)?;
        let came = |arrival: &wire_answer::Arrival| {
            (arrival.sequence(), Instant::from_nanos(arrival.came_at_ns()))
        };
        Ok(Self {
            arrivals: arrivals.iter().map(came).collect(),
            refusal: root.refusal().map(|why| text("refusal", why, TEXT_BYTES_MAX)).transpose()?,
        })
    }
}

const ARRIVAL_COUNT_MAX: usize = 64;

const KIND: Kind = Kind {
    name: "probe answer",
    identifier: Some(wire_answer::PROBE_ANSWER_IDENTIFIER),
    bytes_max: 4 * 1024,
    tables_max: 1,
    depth_max: 1,
};
