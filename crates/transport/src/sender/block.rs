use std::ops::Range;

use tautline_fec::block::Code;
use tautline_units::Instant;

use crate::protect::Plan;
use crate::wire::Prefix;

/// An encoder of units into the symbols of a block's packets; it reuses its buffer.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    block: Vec<u8>,
    symbol_bytes: usize,
}

impl Encoder {
    /// Encodes `unit`, handed over at `sent_at`, as planned. [`Encoder::symbols`] then returns its
    /// packets.
    pub(crate) fn encode(&mut self, plan: &Plan, unit: &[u8], sent_at: Instant) {
        split(plan, unit, sent_at, &mut self.block);
        self.symbol_bytes = plan.symbol_bytes;
        if plan.packet_count == plan.source_count {
            return;
        }
        let code =
            Code::new(plan.source_count, plan.packet_count).expect("a plan has 1 <= k <= n <= 256");
        let (sources, repairs) = self.block.split_at_mut(plan.source_count * plan.symbol_bytes);
        let sources: Vec<&[u8]> = sources.chunks_exact(plan.symbol_bytes).collect();
        let mut repairs: Vec<&mut [u8]> = repairs.chunks_exact_mut(plan.symbol_bytes).collect();
        code.encode(&sources, &mut repairs).expect("counts and lengths are those of the plan");
    }

    /// Returns the source packets of the last unit, concatenated.
    pub(crate) fn sources(&self, plan: &Plan) -> &[u8] {
        &self.block[..plan.source_count * plan.symbol_bytes]
    }

    /// Encodes additional repair packets of a unit, with the indices `fresh`. [`Encoder::symbols`]
    /// then returns them.
    pub(crate) fn extend(&mut self, plan: &Plan, sources: &[u8], fresh: &Range<usize>) {
        let code = Code::new(plan.source_count, fresh.end).expect("a plan has 1 <= k <= n <= 256");
        self.symbol_bytes = plan.symbol_bytes;
        self.block.clear();
        self.block.resize((fresh.end - plan.source_count) * plan.symbol_bytes, 0);
        let sources: Vec<&[u8]> = sources.chunks_exact(plan.symbol_bytes).collect();
        let mut repairs: Vec<&mut [u8]> = self.block.chunks_exact_mut(plan.symbol_bytes).collect();
        code.encode(&sources, &mut repairs).expect("counts and lengths are those of the plan");
        self.block.drain(..(fresh.start - plan.source_count) * plan.symbol_bytes);
    }

    /// Returns the symbol of packet `index` of the unit encoded last, by [`Encoder::encode`].
    pub(crate) fn symbol(&self, index: usize) -> &[u8] {
        &self.block[index * self.symbol_bytes..][..self.symbol_bytes]
    }

    /// Returns the symbols of the packets encoded last, in order of index.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &[u8]> {
        self.block.chunks_exact(self.symbol_bytes)
    }
}

/// Writes a unit's block into `block`, replacing its content: prefix, unit, zero padding up to the
/// end of the last source packet, and room for the repair packets.
fn split(plan: &Plan, unit: &[u8], sent_at: Instant, block: &mut Vec<u8>) {
    block.clear();
    block.extend_from_slice(&Prefix::new(unit.len(), sent_at).to_bytes());
    block.extend_from_slice(unit);
    assert!(block.len() <= plan.source_count * plan.symbol_bytes, "the plan fits the unit");
    block.resize(plan.packet_count * plan.symbol_bytes, 0);
}
