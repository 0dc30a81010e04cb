//! rlnc-simdx: random linear network coding over GF(2^8), here systematic.
//!
//! It is not MDS: one random combination in 256 is redundant, so two extra ones are available, and
//! the decoder takes those that it needs. Its coefficient generator is linear with 64 bits of
//! state: at most 64 of its combinations are independent.

use rlnc_simdx::{CodedPacket, Decoder, Encoder, SimpleRng};

use super::{Case, Code, Family, Shape};
use crate::measure::Work;
use crate::memory::frozen;

pub(super) struct Rlnc;

const SURPLUS: usize = 2;
const INDEPENDENT_MAX: usize = 64;

impl Code for Rlnc {
    fn name(&self) -> String {
        "rlnc-simdx 1.3.1".to_owned()
    }

    fn family(&self) -> Family {
        Family::Crate
    }

    fn takes(&self, shape: Shape) -> bool {
        shape.repairs + SURPLUS <= INDEPENDENT_MAX
    }

    fn encoder<'a>(&self, mut case: Case<'a>) -> Option<Box<dyn Work + 'a>> {
        let shape = case.shape;
        let blocks = (0..case.block_count).map(|block| Encoding {
            sources: frozen(case.sources(block)),
            repairs: Vec::with_capacity(shape.repairs),
        });
        let blocks = blocks.collect();
        Some(Box::new(Encodings { codec: codec(shape), shape, blocks }))
    }

    fn decoder<'a>(&self, mut case: Case<'a>) -> Box<dyn Work + 'a> {
        let (codec, shape) = (codec(case.shape), case.shape);
        let blocks = (0..case.block_count).map(|block| {
            let sources = frozen(case.sources(block));
            let systematic = |index| codec.encode_systematic(&sources, index);
            let mut packets: Vec<CodedPacket> =
                (0..shape.sources).map(|index| systematic(index).expect("lengths agree")).collect();
            packets.extend(repairs(&codec, &sources, shape.repairs + SURPLUS, block));
            Recovery { sources, packets, received: Vec::new(), restored: None }
        });
        let blocks = blocks.collect();
        Box::new(Decodings { shape, blocks })
    }
}

fn codec(shape: Shape) -> Encoder {
    Encoder::new(shape.sources, shape.packet_bytes).expect("the shapes measured are possible")
}

fn repairs<'a>(
    codec: &'a Encoder,
    sources: &'a [&[u8]],
    count: usize,
    seed: usize,
) -> impl Iterator<Item = CodedPacket> + 'a {
    let mut random = SimpleRng::new(seed as u64 + 1);
    (0..count).map(move |_| codec.encode_random(sources, &mut random).expect("lengths agree"))
}

struct Encodings<'a> {
    codec: Encoder,
    shape: Shape,
    blocks: Vec<Encoding<'a>>,
}

struct Encoding<'a> {
    sources: Vec<&'a [u8]>,
    repairs: Vec<CodedPacket>,
}

impl Work for Encodings<'_> {
    fn prepare(&mut self, block: usize, _: u64) {
        self.blocks[block].repairs.clear();
    }

    fn run(&mut self, block: usize) {
        let made = {
            let Encoding { sources, .. } = &self.blocks[block];
            repairs(&self.codec, sources, self.shape.repairs, block).collect()
        };
        self.blocks[block].repairs = made;
    }

    fn is_right(&mut self, block: usize) -> bool {
        let Encoding { sources, repairs } = &self.blocks[block];
        repairs.len() == self.shape.repairs
            && repairs.iter().all(|repair| {
                let mut sum = vec![0; self.shape.packet_bytes];
                for (&coefficient, source) in repair.coefficients_slice().iter().zip(sources) {
                    rlnc_simdx::kernel::axpy(coefficient, source, &mut sum);
                }
                sum == repair.payload_slice()
            })
    }
}

struct Decodings<'a> {
    shape: Shape,
    blocks: Vec<Recovery<'a>>,
}

struct Recovery<'a> {
    sources: Vec<&'a [u8]>,
    packets: Vec<CodedPacket>,
    /// Packets of the present block that reach the decoder.
    received: Vec<CodedPacket>,
    restored: Option<Vec<Vec<u8>>>,
}

impl Work for Decodings<'_> {
    fn prepare(&mut self, block: usize, pattern: u64) {
        let lost = self.shape.lost(pattern);
        let Recovery { packets, received, restored, .. } = &mut self.blocks[block];
        let packets = packets.iter().enumerate();
        let came = packets.filter(|(index, _)| lost.binary_search(index).is_err());
        *received = came.map(|(_, packet)| packet.clone()).collect();
        *restored = None;
    }

    fn run(&mut self, block: usize) {
        let Recovery { received, restored, .. } = &mut self.blocks[block];
        let mut decoder = Decoder::new(self.shape.sources, self.shape.packet_bytes)
            .expect("the shapes measured are possible");
        for packet in received.drain(..) {
            if decoder.is_complete() {
                break;
            }
            decoder.receive(packet).expect("packets of the generation's length");
        }
        *restored = decoder.decode().expect("the decoder's own equations");
    }

    fn is_right(&mut self, block: usize) -> bool {
        let Recovery { sources, restored, .. } = &self.blocks[block];
        restored.as_ref().is_some_and(|restored| restored == sources)
    }
}
