//! Tautline's streaming code, on every kernel of this CPU.

use anyhow::Result;
use tautline_fec::kernel::Kernel;
use tautline_fec::stream::{Config, Decoder, Encoder, Repair};

use super::{Decode, Encode, Entry, Receiver, SYMBOL_BYTES, Sender, Setting, WINDOW};
use crate::block::Family;

/// Returns one entry per kernel, starting with the one that it would select.
pub(super) fn entries(setting: Setting) -> Result<Vec<Entry>> {
    let mut kernels: Vec<Kernel> = Kernel::all().collect();
    kernels.reverse();
    kernels.into_iter().map(|kernel| entry(setting, kernel)).collect()
}

fn entry(setting: Setting, kernel: Kernel) -> Result<Entry> {
    let encoder = Encoder::with_kernel(Config::new(SYMBOL_BYTES, WINDOW), kernel)?;
    let decoder = Decoder::with_kernel(Config::new(SYMBOL_BYTES, 2 * WINDOW), kernel)?;
    let stream = super::run(setting, &mut encoder.clone(), &mut decoder.clone())?;
    Ok(Entry {
        name: format!("tautline {}", kernel.name()),
        family: match kernel == Kernel::best() {
            true => Family::Tautline,
            false => Family::TautlineElsewhere,
        },
        // A clone has its memory allocated, so the first use is not slower.
        encode: Encode::boxed(stream.clone(), move || encoder.clone()),
        decode: Some(Decode::boxed(stream, move || decoder.clone())),
    })
}

impl Sender for Encoder {
    fn push(&mut self, symbol: &[u8]) {
        self.push(symbol).expect("of the right length");
    }

    fn acknowledge(&mut self, edge: u64) {
        self.acknowledge(edge).expect("packets that were sent");
    }

    fn repair(&mut self, seed: u16, output: &mut [u8]) -> Repair {
        self.repair(seed, output).expect("packets are in the window")
    }
}

impl Receiver for Decoder {
    fn source(&mut self, id: u64, symbol: &[u8]) {
        self.handle_source(id, symbol).expect("each comes once");
    }

    fn repair(&mut self, repair: &Repair, payload: &[u8]) {
        // If nothing is missing, a repair packet is redundant.
        let _ = self.handle_repair(repair, payload);
    }

    fn deliver(&mut self, mut packet: impl FnMut(u64, &[u8])) {
        while let Some((id, bytes)) = self.poll_in_order() {
            packet(id, bytes);
        }
    }

    fn edge(&self) -> u64 {
        self.report().edge
    }
}
