//! fec-rs: a Vandermonde code over GF(2^8) with GFNI on 256 bits.

use fec_rs::ReedSolomon;

use super::encoding::Encoding;
use super::{Case, Code, Family, Shape};
use crate::measure::Work;
use crate::memory::frozen;

pub(super) struct FecRs;

impl Code for FecRs {
    fn name(&self) -> String {
        "fec-rs 0.1.0".to_owned()
    }

    fn family(&self) -> Family {
        Family::Crate
    }

    fn encoder<'a>(&self, case: Case<'a>) -> Option<Box<dyn Work + 'a>> {
        let codec = codec(case.shape);
        Some(Encoding::of(case, move |sources, repairs| {
            codec.encode_sep(sources, repairs).expect("lengths agree");
        }))
    }

    fn decoder<'a>(&self, mut case: Case<'a>) -> Box<dyn Work + 'a> {
        let (codec, shape) = (codec(case.shape), case.shape);
        let mut blocks = Vec::new();
        for block in 0..case.block_count {
            let sources = case.sources(block);
            let mut repairs = case.repairs();
            codec.encode_sep(&sources, &mut repairs).expect("lengths agree");
            let packets = sources.iter().chain(&repairs).map(|packet| Some(packet.to_vec()));
            let packets = packets.collect();
            blocks.push(Recovery { originals: frozen(sources), packets });
        }
        Box::new(Decoder { codec, shape, blocks })
    }
}

fn codec(shape: Shape) -> ReedSolomon {
    ReedSolomon::new(shape.sources, shape.repairs).expect("the shapes measured are possible")
}

struct Decoder<'a> {
    codec: ReedSolomon,
    shape: Shape,
    blocks: Vec<Recovery<'a>>,
}

struct Recovery<'a> {
    originals: Vec<&'a [u8]>,
    /// Packets of a block, `None` for lost ones: the only form that the crate accepts. It allocates
    /// the packets that it restores.
    packets: Vec<Option<Vec<u8>>>,
}

impl Work for Decoder<'_> {
    fn prepare(&mut self, block: usize, pattern: u64) {
        let packets = &mut self.blocks[block].packets;
        self.shape.lost(pattern).into_iter().for_each(|lost| packets[lost] = None);
    }

    fn run(&mut self, block: usize) {
        let packets = &mut self.blocks[block].packets;
        self.codec.reconstruct_data(packets).expect("as many packets as needed are there");
    }

    fn is_right(&mut self, block: usize) -> bool {
        let Recovery { originals, packets } = &self.blocks[block];
        let restored = packets.iter().map(Option::as_deref);
        originals.iter().zip(restored).all(|(&original, packet)| packet == Some(original))
    }
}
