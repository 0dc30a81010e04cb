//! raptorq: a fountain code (RFC 6330).
//!
//! It is not MDS: with two packets more than k, decoding fails once in a million, so the decoder
//! gets these. The plan for encoding k packets is built once.

use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, SourceBlockDecoder, SourceBlockEncoder,
    SourceBlockEncodingPlan,
};

use super::{Case, Code, Family, Shape};
use crate::measure::Work;

pub(super) struct RaptorQ;

const SURPLUS: usize = 2;

impl Code for RaptorQ {
    fn name(&self) -> String {
        "raptorq 2.0.1".to_owned()
    }

    fn family(&self) -> Family {
        Family::Crate
    }

    fn encoder<'a>(&self, case: Case<'a>) -> Option<Box<dyn Work + 'a>> {
        let codec = Codec::new(case.shape);
        let blocks = (0..case.block_count).map(|block| {
            let data = codec.data(block);
            let expected = codec.repairs(&data, codec.shape.repairs);
            Encoding { data, repairs: Vec::new(), expected }
        });
        let blocks = blocks.collect();
        Some(Box::new(Encoder { codec, blocks }))
    }

    fn decoder<'a>(&self, case: Case<'a>) -> Box<dyn Work + 'a> {
        let codec = Codec::new(case.shape);
        let blocks = (0..case.block_count).map(|block| {
            let data = codec.data(block);
            let mut packets = codec.encoder(&data).source_packets();
            packets.extend(codec.repairs(&data, codec.shape.repairs + SURPLUS));
            Recovery { data, packets, received: Vec::new(), restored: None }
        });
        let blocks = blocks.collect();
        Box::new(Decoder { codec, blocks })
    }
}

struct Codec {
    shape: Shape,
    config: ObjectTransmissionInformation,
    plan: SourceBlockEncodingPlan,
}

impl Codec {
    fn new(shape: Shape) -> Codec {
        let bytes = u16::try_from(shape.packet_bytes).expect("a datagram's length");
        let count = u16::try_from(shape.sources).expect("at most 256");
        let config =
            ObjectTransmissionInformation::new(shape.source_bytes() as u64, bytes, 1, 1, 1);
        Codec { shape, config, plan: SourceBlockEncodingPlan::generate(count) }
    }

    fn data(&self, block: usize) -> Vec<u8> {
        (0..self.shape.sources).flat_map(|index| self.shape.original(block, index)).collect()
    }

    fn encoder(&self, data: &[u8]) -> SourceBlockEncoder {
        SourceBlockEncoder::with_encoding_plan(0, &self.config, data, &self.plan)
    }

    fn repairs(&self, data: &[u8], count: usize) -> Vec<EncodingPacket> {
        self.encoder(data).repair_packets(0, count as u32)
    }
}

struct Encoder {
    codec: Codec,
    blocks: Vec<Encoding>,
}

struct Encoding {
    data: Vec<u8>,
    repairs: Vec<EncodingPacket>,
    expected: Vec<EncodingPacket>,
}

impl Work for Encoder {
    fn prepare(&mut self, _: usize, _: u64) {}

    fn run(&mut self, block: usize) {
        let Encoding { data, repairs, .. } = &mut self.blocks[block];
        *repairs = self.codec.repairs(data, self.codec.shape.repairs);
    }

    fn is_right(&mut self, block: usize) -> bool {
        self.blocks[block].repairs == self.blocks[block].expected
    }
}

struct Decoder {
    codec: Codec,
    blocks: Vec<Recovery>,
}

struct Recovery {
    data: Vec<u8>,
    packets: Vec<EncodingPacket>,
    /// Packets of the present block that reach the decoder.
    received: Vec<EncodingPacket>,
    restored: Option<Vec<u8>>,
}

impl Work for Decoder {
    fn prepare(&mut self, block: usize, pattern: u64) {
        let lost = self.codec.shape.lost(pattern);
        let Recovery { packets, received, restored, .. } = &mut self.blocks[block];
        let packets = packets.iter().enumerate();
        let came = packets.filter(|(index, _)| lost.binary_search(index).is_err());
        *received = came.map(|(_, packet)| packet.clone()).collect();
        *restored = None;
    }

    fn run(&mut self, block: usize) {
        let Recovery { received, restored, .. } = &mut self.blocks[block];
        let length = self.codec.shape.source_bytes() as u64;
        let mut decoder = SourceBlockDecoder::new(0, &self.codec.config, length);
        *restored = decoder.decode(std::mem::take(received));
    }

    fn is_right(&mut self, block: usize) -> bool {
        self.blocks[block].restored.as_ref() == Some(&self.blocks[block].data)
    }
}
