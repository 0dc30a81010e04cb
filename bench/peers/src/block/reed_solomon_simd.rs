//! reed-solomon-simd: an additive FFT over GF(2^16), as in leopard.
//!
//! It copies packets into its own memory: a timed call adds the packets and computes, as a user
//! would.

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

use super::{Case, Code, Family, Shape};
use crate::measure::Work;
use crate::memory::frozen;

pub(super) struct ReedSolomonSimd;

impl Code for ReedSolomonSimd {
    fn name(&self) -> String {
        "reed-solomon-simd 3.1.0".to_owned()
    }

    fn family(&self) -> Family {
        Family::Crate
    }

    fn takes(&self, shape: Shape) -> bool {
        shape.packet_bytes.is_multiple_of(2)
    }

    fn encoder<'a>(&self, mut case: Case<'a>) -> Option<Box<dyn Work + 'a>> {
        let codec = encoder(case.shape);
        let blocks = (0..case.block_count).map(|block| frozen(case.sources(block))).collect();
        let mut encoder = Encoder { codec, blocks, expected: Vec::new() };
        encoder.expected = (0..case.block_count)
            .map(|block| repairs(&mut encoder.codec, &encoder.blocks[block]))
            .collect();
        Some(Box::new(encoder))
    }

    fn decoder<'a>(&self, mut case: Case<'a>) -> Box<dyn Work + 'a> {
        let shape = case.shape;
        let mut encoder = encoder(shape);
        let blocks = (0..case.block_count).map(|block| {
            let sources = frozen(case.sources(block));
            let repairs = repairs(&mut encoder, &sources);
            Recovery { sources, repairs, lost: Vec::new() }
        });
        let codec = ReedSolomonDecoder::new(shape.sources, shape.repairs, shape.packet_bytes)
            .expect("packets of even length");
        Box::new(Decoder { codec, shape, blocks: blocks.collect() })
    }
}

fn encoder(shape: Shape) -> ReedSolomonEncoder {
    ReedSolomonEncoder::new(shape.sources, shape.repairs, shape.packet_bytes)
        .expect("packets of even length")
}

/// Returns a block's repair packets; the codec returns only references.
fn repairs(codec: &mut ReedSolomonEncoder, sources: &[&[u8]]) -> Vec<Vec<u8>> {
    for source in sources {
        codec.add_original_shard(source).expect("as many as the code has, of one length");
    }
    let result = codec.encode().expect("all sources were added");
    result.recovery_iter().map(<[u8]>::to_vec).collect()
}

struct Encoder<'a> {
    codec: ReedSolomonEncoder,
    blocks: Vec<Vec<&'a [u8]>>,
    expected: Vec<Vec<Vec<u8>>>,
}

impl Work for Encoder<'_> {
    fn prepare(&mut self, _: usize, _: u64) {}

    fn run(&mut self, block: usize) {
        for source in &self.blocks[block] {
            self.codec.add_original_shard(source).expect("as many as the code has, of one length");
        }
        let result = self.codec.encode().expect("all sources were added");
        std::hint::black_box(&result);
    }

    fn is_right(&mut self, block: usize) -> bool {
        repairs(&mut self.codec, &self.blocks[block]) == self.expected[block]
    }
}

struct Decoder<'a> {
    codec: ReedSolomonDecoder,
    shape: Shape,
    blocks: Vec<Recovery<'a>>,
}

struct Recovery<'a> {
    sources: Vec<&'a [u8]>,
    repairs: Vec<Vec<u8>>,
    lost: Vec<usize>,
}

impl Decoder<'_> {
    /// Decodes a block and passes each restored packet to `restored`; the codec returns only
    /// references.
    fn decode(&mut self, block: usize, mut restored: impl FnMut(usize, &[u8])) {
        let Recovery { sources, repairs, lost } = &self.blocks[block];
        for (index, source) in sources.iter().enumerate() {
            if lost.binary_search(&index).is_err() {
                self.codec.add_original_shard(index, source).expect("each once, of one length");
            }
        }
        for (index, repair) in repairs.iter().enumerate() {
            self.codec.add_recovery_shard(index, repair).expect("each once, of one length");
        }
        let result = self.codec.decode().expect("as many packets as needed are there");
        result.restored_original_iter().for_each(|(index, packet)| restored(index, packet));
    }
}

impl Work for Decoder<'_> {
    fn prepare(&mut self, block: usize, pattern: u64) {
        self.blocks[block].lost = self.shape.lost(pattern);
    }

    fn run(&mut self, block: usize) {
        self.decode(block, |index, packet| {
            std::hint::black_box((index, packet));
        });
    }

    fn is_right(&mut self, block: usize) -> bool {
        let sources = self.blocks[block].sources.clone();
        let mut right_count = 0;
        self.decode(block, |index, packet| right_count += usize::from(packet == sources[index]));
        right_count == self.shape.repairs
    }
}
