//! reed-solomon-erasure: a Vandermonde code over GF(2^8), its SIMD part in C.

use reed_solomon_erasure::galois_8::ReedSolomon;

use super::encoding::Encoding;
use super::{Case, Code, Family, Shape};
use crate::measure::Work;

pub(super) struct ReedSolomonErasure;

impl Code for ReedSolomonErasure {
    fn name(&self) -> String {
        "reed-solomon-erasure 6.0.0".to_owned()
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
            let originals = sources.iter().map(|source| source.to_vec()).collect();
            let mut repairs = case.repairs();
            codec.encode_sep(&sources, &mut repairs).expect("lengths agree");
            let packets = sources.into_iter().chain(repairs);
            let packets = packets.map(|packet| (packet, true)).collect();
            blocks.push(Recovery { originals, packets });
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
    originals: Vec<Vec<u8>>,
    /// Packets with a presence flag each; lost ones are restored in place.
    packets: Vec<(&'a mut [u8], bool)>,
}

impl Work for Decoder<'_> {
    fn prepare(&mut self, block: usize, pattern: u64) {
        let packets = &mut self.blocks[block].packets;
        packets.iter_mut().for_each(|packet| packet.1 = true);
        for lost in self.shape.lost(pattern) {
            packets[lost].0.fill(0);
            packets[lost].1 = false;
        }
    }

    fn run(&mut self, block: usize) {
        let packets = &mut self.blocks[block].packets;
        self.codec.reconstruct_data(packets).expect("as many packets as needed are there");
    }

    fn is_right(&mut self, block: usize) -> bool {
        let Recovery { originals, packets } = &self.blocks[block];
        originals.iter().zip(packets).all(|(original, packet)| *original == *packet.0)
    }
}
