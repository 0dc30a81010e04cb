//! cu-fec: a sliding-window random linear code (RFC 8681), its arithmetic left to the compiler.
//!
//! Its decoder moves all its contents when the oldest packets are discarded. They are therefore
//! discarded in groups, once no repair packet can cover them any more.

use anyhow::{Result, anyhow};
use cu_fec::{
    DensityThreshold, EncodingSymbolId, Field, RepairParameters, RepairPayloadId, RlcConfig,
    RlcDecoder, RlcEncoder,
};
use tautline_fec::stream::Repair;

use super::{Decode, Encode, Entry, Receiver, SYMBOL_BYTES, Sender, Setting, WINDOW};
use crate::block::Family;

pub(super) fn entry(setting: Setting) -> Result<Entry> {
    let stream = super::run(setting, &mut sender(), &mut receiver())
        .map_err(|error| anyhow!("cu-fec: {error}"))?;
    Ok(Entry {
        name: "cu-fec 1.3.0".to_owned(),
        family: Family::Crate,
        encode: Encode::boxed(stream.clone(), sender),
        decode: Some(Decode::boxed(stream, receiver)),
    })
}

const EQUATIONS: usize = 128;
/// Minimum number of packets discarded at once.
const DISCARDED: u32 = 64;

struct Encoder {
    encoder: Box<RlcEncoder<SYMBOL_BYTES, WINDOW>>,
    edge: u64,
}

struct Decoder {
    decoder: Box<RlcDecoder<SYMBOL_BYTES, WINDOW, EQUATIONS>>,
    edge: u64,
}

fn config() -> RlcConfig {
    RlcConfig::new(SYMBOL_BYTES, WINDOW, Field::Gf256).expect("a possible shape")
}

fn sender() -> Encoder {
    let encoder = RlcEncoder::new(config(), EncodingSymbolId::new(0)).expect("a possible shape");
    Encoder { encoder: Box::new(encoder), edge: 0 }
}

fn receiver() -> Decoder {
    let mut decoder = Box::new(RlcDecoder::new(config(), EQUATIONS).expect("a possible shape"));
    decoder.discard_before(EncodingSymbolId::new(0)).expect("it is the first");
    Decoder { decoder, edge: 0 }
}

impl Sender for Encoder {
    fn push(&mut self, symbol: &[u8]) {
        self.encoder.push_source(symbol).expect("of the right length");
    }

    fn acknowledge(&mut self, edge: u64) {
        self.encoder.discard_oldest((edge - self.edge) as usize);
        self.edge = edge;
    }

    fn repair(&mut self, seed: u16, output: &mut [u8]) -> Repair {
        let parameters = RepairParameters::new(seed, DensityThreshold::FULL);
        let id = self.encoder.encode_repair(parameters, output).expect("packets are in the window");
        let first = u64::from(id.first_source_esi().get());
        Repair { first, count: id.source_symbols(), seed }
    }
}

impl Receiver for Decoder {
    fn source(&mut self, id: u64, symbol: &[u8]) {
        let id = EncodingSymbolId::new(id as u32);
        let _ = self.decoder.receive_source(id, symbol).expect("within the window");
    }

    fn repair(&mut self, repair: &Repair, payload: &[u8]) {
        let first = EncodingSymbolId::new(repair.first as u32);
        let (base, _) = self.decoder.window().expect("packets have come");
        if first.get() >= base.get() + DISCARDED && first.get() <= self.edge as u32 {
            self.decoder.discard_before(first).expect("it lies ahead");
        }
        let id = RepairPayloadId::new(repair.seed, DensityThreshold::FULL, repair.count, first)
            .expect("as the sender made it");
        let _ = self.decoder.receive_repair(id, payload).expect("within the window");
    }

    fn deliver(&mut self, mut packet: impl FnMut(u64, &[u8])) {
        while let Some(bytes) = self.decoder.symbol(EncodingSymbolId::new(self.edge as u32)) {
            packet(self.edge, bytes);
            self.edge += 1;
        }
    }

    fn edge(&self) -> u64 {
        self.edge
    }
}
