//! Block codes: `k` source packets, `m` repair packets, `m` sources lost.

mod encoding;
mod fec_rs;
mod isal;
pub(crate) mod list;
mod raptorq;
mod reed_solomon_erasure;
mod reed_solomon_simd;
mod rlnc_simdx;
mod tautline;

use anyhow::Result;

use crate::limit;
use crate::measure::{self, Contender, Effort, Timing, Work};
use crate::memory::{Memory, Packets};
use crate::random::Random;

/// Dimensions of one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Source packets (k).
    pub(crate) sources: usize,
    /// Repair packets produced, and source packets lost (m).
    pub(crate) repairs: usize,
    /// Bytes in every packet.
    pub(crate) packet_bytes: usize,
    /// Bytes from the start of a cache line to a packet's first byte.
    pub(crate) shift: usize,
}

impl Shape {
    pub(crate) fn source_bytes(self) -> usize {
        self.sources * self.packet_bytes
    }

    /// Returns the number of blocks of this shape that a measurement cycles through.
    ///
    /// Together they are several times the L1 cache and a fraction of the L2 cache.
    fn block_count(self) -> usize {
        let block_bytes = (self.sources + self.repairs) * self.packet_bytes;
        WORKING_SET_BYTES.div_ceil(block_bytes).max(2)
    }

    /// Returns the random bytes of source packet `index` in a block, which are the same in every
    /// run.
    fn original(self, block: usize, index: usize) -> Vec<u8> {
        let mut bytes = vec![0; self.packet_bytes];
        Random::of(&[block as u64, index as u64]).fill(&mut bytes);
        bytes
    }

    /// Returns the source packets lost in a pattern: `m` different ones, ascending.
    fn lost(self, pattern: u64) -> Vec<usize> {
        Random::of(&[pattern]).choose(self.repairs.min(self.sources), self.sources)
    }
}

const WORKING_SET_BYTES: usize = 384 * 1024;

/// A code under comparison; encoding and decoding are measured separately.
pub(crate) trait Code {
    fn name(&self) -> String;
    /// Returns the code's origin.
    fn family(&self) -> Family;
    /// Returns whether the code supports the shape.
    fn takes(&self, _: Shape) -> bool {
        true
    }
    /// Returns the encoding work; `None` where another contender does exactly the same.
    fn encoder<'a>(&self, case: Case<'a>) -> Option<Box<dyn Work + 'a>>;
    /// Returns the decoding work: restoring `m` lost source packets of a block.
    fn decoder<'a>(&self, case: Case<'a>) -> Box<dyn Work + 'a>;
}

/// Origin of a code, for the ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Ours, on the kernel selected on this CPU.
    Tautline,
    /// Ours, on a kernel that would be selected on another CPU.
    TautlineElsewhere,
    /// The C library.
    Isal,
    /// A Rust crate.
    Crate,
}

/// The blocks of one contender, and the memory for their packets.
pub(crate) struct Case<'a> {
    shape: Shape,
    block_count: usize,
    packets: Packets<'a>,
}

impl<'a> Case<'a> {
    /// Allocates and fills the source packets of one block.
    fn sources(&mut self, block: usize) -> Vec<&'a mut [u8]> {
        let mut sources = self.packets.take(self.shape.sources);
        for (index, source) in sources.iter_mut().enumerate() {
            source.copy_from_slice(&self.shape.original(block, index));
        }
        sources
    }

    /// Allocates zeroed memory for all repair packets.
    fn repairs(&mut self) -> Vec<&'a mut [u8]> {
        self.packets.take(self.shape.repairs)
    }
}

/// Timings of all contenders on one shape, in their order.
pub(crate) struct Row {
    pub(crate) shape: Shape,
    pub(crate) encode: Vec<Option<Timing>>,
    /// Time of each loop of [`limit::ceilings`] for as many multiplications and additions as
    /// encoding needs, in their order.
    pub(crate) ceilings: Vec<Timing>,
    pub(crate) decode: Vec<Option<Timing>>,
}

/// Measures all codes on one shape.
///
/// # Errors
/// If a code produces wrong bytes.
pub(crate) fn measure(codes: &[Box<dyn Code>], shape: Shape, effort: Effort) -> Result<Row> {
    let (encode, ceilings) = measure_encode(codes, shape, effort)?;
    let (decode, _) =
        contend(codes, shape, effort, |code, case| Some(code.decoder(case)), Vec::new())?;
    Ok(Row { shape, encode, ceilings, decode })
}

/// Measures only encoding, in turns with the ceilings of [`limit::ceilings`], in that order.
///
/// # Errors
/// If a code produces wrong bytes.
pub(crate) fn measure_encode(
    codes: &[Box<dyn Code>],
    shape: Shape,
    effort: Effort,
) -> Result<(Vec<Option<Timing>>, Vec<Timing>)> {
    let ceilings = limit::ceilings(shape.source_bytes() * shape.repairs).into_iter();
    let ceilings = ceilings
        .map(|ceiling| -> Contender<'static> { (ceiling.name.to_owned(), Box::new(ceiling)) });
    contend(codes, shape, effort, |code, case| code.encoder(case), ceilings.collect())
}

fn contend(
    codes: &[Box<dyn Code>],
    shape: Shape,
    effort: Effort,
    make: impl for<'a> Fn(&dyn Code, Case<'a>) -> Option<Box<dyn Work + 'a>>,
    others: Vec<Contender<'static>>,
) -> Result<(Vec<Option<Timing>>, Vec<Timing>)> {
    let block_count = shape.block_count();
    let packet_count = block_count * (shape.sources + 3 * shape.repairs) + 1;
    let new_memory = |_: &_| Memory::new(packet_count, shape.packet_bytes, shape.shift);
    let mut memories: Vec<Memory> = codes.iter().map(new_memory).collect();
    let mut contenders: Vec<Contender<'_>> = Vec::new();
    let mut positions = vec![None; codes.len()];
    for ((code, memory), position) in codes.iter().zip(&mut memories).zip(&mut positions) {
        if !code.takes(shape) {
            continue;
        }
        let packets = memory.packets(shape.packet_bytes, shape.shift);
        if let Some(work) = make(code.as_ref(), Case { shape, block_count, packets }) {
            *position = Some(contenders.len());
            contenders.push((code.name(), work));
        }
    }
    let code_count = contenders.len();
    contenders.extend(others);
    let mut timings = measure::in_turns(&mut contenders, block_count, effort)?;
    let others = timings.split_off(code_count);
    let codes = positions.into_iter().map(|position| position.map(|at| timings[at].clone()));
    Ok((codes.collect(), others))
}
