//! rlnc-simdx: random linear network coding; it encodes a window, but decodes only generations.

use std::collections::VecDeque;

use anyhow::Result;
use rlnc_simdx::{CodedPacket, Encoder, SimpleRng};
use tautline_fec::kernel::Kernel;
use tautline_fec::stream::{Config, Decoder, Repair};

use super::{Encode, Entry, SYMBOL_BYTES, Sender, Setting, WINDOW};
use crate::block::Family;

pub(super) fn entry(setting: Setting) -> Result<Entry> {
    // The sender's acknowledgements come from our own receiver on our own stream.
    let mut encoder = tautline_fec::stream::Encoder::with_kernel(
        Config::new(SYMBOL_BYTES, WINDOW),
        Kernel::best(),
    )?;
    let mut stream = super::run(
        setting,
        &mut encoder,
        &mut Decoder::new(Config::new(SYMBOL_BYTES, 2 * WINDOW))?,
    )?;
    let mut window = sender();
    for sent in &mut stream.sent {
        match sent {
            super::Sent::Source(id) => window.push(super::symbol(*id)),
            super::Sent::Repair(seed, payload) => {
                window.expected(*seed, payload);
            }
            super::Sent::Acknowledgement(edge) => window.acknowledge(*edge),
        }
    }
    Ok(Entry {
        name: "rlnc-simdx 1.3.1".to_owned(),
        family: Family::Crate,
        encode: Encode::boxed(stream, sender),
        decode: None,
    })
}

/// Coding window with reusable packet buffers.
struct Window {
    packets: VecDeque<Box<[u8]>>,
    spare: Vec<Box<[u8]>>,
    first: u64,
}

fn sender() -> Window {
    let spare = (0..WINDOW).map(|_| vec![0; SYMBOL_BYTES].into_boxed_slice()).collect();
    Window { packets: VecDeque::with_capacity(WINDOW), spare, first: 0 }
}

impl Window {
    fn coded(&self, seed: u16) -> CodedPacket {
        let sources: Vec<&[u8]> = self.packets.iter().map(|packet| &**packet).collect();
        let encoder = Encoder::new(sources.len(), SYMBOL_BYTES).expect("packets are in the window");
        let mut random = SimpleRng::new(u64::from(seed) + 1);
        encoder.encode_random(&sources, &mut random).expect("of the right length")
    }

    fn header(&self, seed: u16) -> Repair {
        Repair { first: self.first, count: self.packets.len() as u16, seed }
    }
}

impl Sender for Window {
    fn push(&mut self, symbol: &[u8]) {
        let mut packet = self.spare.pop().expect("no stream needs a larger window");
        packet.copy_from_slice(symbol);
        self.packets.push_back(packet);
    }

    fn acknowledge(&mut self, edge: u64) {
        while self.first < edge {
            self.spare.extend(self.packets.pop_front());
            self.first += 1;
        }
    }

    fn repair(&mut self, seed: u16, output: &mut [u8]) -> Repair {
        output.copy_from_slice(self.coded(seed).payload_slice());
        self.header(seed)
    }

    fn expected(&mut self, seed: u16, output: &mut [u8]) -> Repair {
        output.fill(0);
        let coded = self.coded(seed);
        for (&coefficient, packet) in coded.coefficients_slice().iter().zip(&self.packets) {
            rlnc_simdx::kernel::axpy(coefficient, packet, output);
        }
        self.header(seed)
    }
}
