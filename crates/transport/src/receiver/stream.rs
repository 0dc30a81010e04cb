//! Receiver side of a stream: source packets recovered by repair packets.

use tautline_fec::stream::{self, Decoder, Discard as Refusal};

use crate::counters::{Counters, Discard};
use crate::sequence::expand;
use crate::wire::Malformed;
use crate::wire::stream::{Part, Repair, SOURCE_NUMBER_BITS, SYMBOL_BYTES, Source, WINDOW_MOST};

/// The streaming decoder of the received packets.
///
/// Its 2.3 MB are allocated with the first packet of a stream and do not grow.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    decoder: Option<Box<Decoder>>,
    /// One past the highest source packet number received, or covered by a repair packet.
    next: u64,
    symbol: Vec<u8>,
}

impl Stream {
    /// Handles a source packet and returns its number; `None` if it lies too far ahead to belong to
    /// this stream.
    ///
    /// The caller passes it to its unit whenever a number is returned, even if the decoder knew or
    /// had forgotten it.
    pub(crate) fn handle_source(
        &mut self,
        source: &Source<'_>,
        counters: &mut Counters,
    ) -> Option<u64> {
        let number = expand(self.next, u64::from(source.number_low), SOURCE_NUMBER_BITS);
        source.part.write_symbol(&mut self.symbol);
        let decoder = self.decoder.get_or_insert_with(new_decoder);
        let expired = decoder.discards().expired;
        match decoder.handle_source(number, &self.symbol) {
            Ok(()) => self.next = self.next.max(number + 1),
            Err(Refusal::Ahead) => {
                counters.discard(Discard::PacketOutOfRange);
                return None;
            }
            Err(_) => {}
        }
        counters.discard_many(Discard::RepairExpired, decoder.discards().expired - expired);
        Some(number)
    }

    /// Handles a repair packet. If the decoder holds too many, drops one that serves only expired
    /// packets, or else this one. Every repair packet dropped or refused is counted as discarded.
    pub(crate) fn handle_repair(&mut self, repair: &Repair<'_>, counters: &mut Counters) {
        let first = expand(self.next, u64::from(repair.first_low), SOURCE_NUMBER_BITS);
        let header = stream::Repair { first, count: repair.count, seed: repair.seed };
        self.symbol.clear();
        self.symbol.extend_from_slice(repair.sum);
        self.symbol.resize(SYMBOL_BYTES, 0);
        let decoder = self.decoder.get_or_insert_with(new_decoder);
        let expired = decoder.discards().expired;
        let mut result = decoder.handle_repair(&header, &self.symbol);
        if result == Err(Refusal::Full) && decoder.drop_unwanted() {
            result = decoder.handle_repair(&header, &self.symbol);
        }
        counters.discard_many(Discard::RepairExpired, decoder.discards().expired - expired);
        match result {
            Ok(()) => {}
            Err(Refusal::Redundant) => counters.discard(Discard::PacketSurplus),
            Err(Refusal::Full) => counters.discard(Discard::RepairOverflow),
            Err(_) => return counters.discard(Discard::PacketOutOfRange),
        }
        self.next = self.next.max(header.covers().end);
    }

    /// Passes every source packet that has become known, except `arrived`, to `each` with its
    /// number. These were recovered by repair packets, some of which may be forged.
    pub(crate) fn recover(
        &mut self,
        arrived: Option<u64>,
        mut each: impl FnMut(u64, Result<Part<'_>, Malformed>),
    ) {
        let Some(decoder) = &mut self.decoder else { return };
        while let Some((number, symbol)) = decoder.poll() {
            if Some(number) != arrived {
                each(number, Part::parse_symbol(symbol));
            }
        }
    }
}

fn new_decoder() -> Box<Decoder> {
    let config = stream::Config::new(SYMBOL_BYTES, REMEMBERED);
    Box::new(Decoder::new(config).expect("a window of 1024 packets is valid"))
}

/// Number of source packets that the decoder remembers: twice a coding window, to allow for
/// reordered repair packets.
const REMEMBERED: usize = 2 * WINDOW_MOST;

#[cfg(test)]
mod tests;
