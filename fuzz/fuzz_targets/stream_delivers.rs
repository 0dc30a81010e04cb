//! Every packet that the streaming decoder returns is the one sent, however the network drops,
//! delays and duplicates packets. Once enough repair packets have arrived, nothing is missing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_fec::stream::{Config, Decoder, Encoder, Repair};
use tautline_fuzz::Input;

fuzz_target!(|bytes: &[u8]| delivers(&mut Input(bytes)));

#[derive(Clone)]
enum Packet {
    Source(u64),
    Repair(Repair, Vec<u8>),
}

struct Ends {
    symbol_bytes: usize,
    encoder: Encoder,
    decoder: Decoder,
    next_in_order: u64,
    seed: u16,
}

fn delivers(input: &mut Input<'_>) {
    let symbol_bytes = input.up_to(40);
    let sender = Config::new(symbol_bytes, 1 + input.up_to(63));
    let window_max = sender.window_max + input.up_to(64);
    let receiver = Config { window_max, repairs_max: 1 + input.up_to(window_max - 1), ..sender };
    let mut ends = Ends {
        symbol_bytes,
        encoder: Encoder::new(sender).expect("a possible shape"),
        decoder: Decoder::new(receiver).expect("a possible shape"),
        next_in_order: 0,
        seed: input.word() as u16,
    };
    let mut under_way: Vec<Packet> = Vec::new();
    let mut edges = vec![0];
    while !input.is_empty() {
        match input.byte() % 16 {
            0..=4 => under_way.push(ends.push()),
            5..=6 => under_way.extend(ends.repair()),
            7 => {
                // A seed other than the next: a repair packet begun in advance is useless.
                ends.seed = input.word() as u16;
                under_way.extend(ends.repair());
            }
            8..=11 if !under_way.is_empty() => {
                let packet = under_way.remove(input.up_to(under_way.len() - 1));
                ends.handle(&packet);
            }
            12 if !under_way.is_empty() => {
                ends.handle(&under_way[input.up_to(under_way.len() - 1)]);
            }
            13 if !under_way.is_empty() => {
                under_way.swap_remove(input.up_to(under_way.len() - 1));
            }
            14 => {
                // Acknowledgements also arrive late and in any order.
                edges.push(ends.decoder.report().edge);
                let edge = edges[edges.len() - 1 - input.up_to((edges.len() - 1).min(255))];
                ends.encoder.acknowledge(edge).expect("it was sent");
            }
            15 => {
                let id = ends.encoder.window().start + input.up_to(16) as u64;
                ends.decoder.forget_before(id.min(ends.encoder.window().end));
                ends.encoder.forget_before(id);
            }
            _ => {}
        }
        ends.take_all();
    }
    ends.catch_up();
}

impl Ends {
    fn push(&mut self) -> Packet {
        let id = self.encoder.window().end;
        let pushed = self.encoder.push(&symbol(id, self.symbol_bytes));
        assert_eq!(pushed, Ok(id));
        Packet::Source(id)
    }

    fn repair(&mut self) -> Option<Packet> {
        let mut payload = vec![0xA5; self.symbol_bytes];
        let repair = self.encoder.repair(self.seed, &mut payload).ok()?;
        self.seed = self.seed.wrapping_add(1);
        Some(Packet::Repair(repair, payload))
    }

    fn handle(&mut self, packet: &Packet) {
        // It may be late, duplicate or redundant; that is reported and changes nothing.
        let _ = match packet {
            Packet::Source(id) => self.decoder.handle_source(*id, &symbol(*id, self.symbol_bytes)),
            Packet::Repair(repair, payload) => self.decoder.handle_repair(repair, payload),
        };
    }

    fn take_all(&mut self) {
        while let Some((id, bytes)) = self.decoder.poll() {
            assert_eq!(bytes, symbol(id, self.symbol_bytes), "packet {id}");
        }
        while let Some((id, bytes)) = self.decoder.poll_in_order() {
            assert!(id >= self.next_in_order, "packet {id} is given twice");
            assert_eq!(bytes, symbol(id, self.symbol_bytes), "packet {id}");
            self.next_in_order = id + 1;
        }
    }

    /// Hands the decoder as many repair packets as the whole coding window can need, and asserts
    /// that nothing in it is missing then, unless equations were discarded for lack of room.
    fn catch_up(&mut self) {
        let window = self.encoder.window();
        self.decoder.forget_before(window.start);
        // One in 255 adds nothing; the decoder holds at least as many as are needed.
        let enough = 40 + 2 * window.count();
        for _ in 0..enough {
            let Some(packet) = self.repair() else { break };
            self.handle(&packet);
        }
        self.take_all();
        let report = self.decoder.report();
        // Equations held for less than the full window may leave no room for better ones.
        assert!(report.missing == 0 || self.decoder.discards().full > 0, "{report:?}");
        if report.missing == 0 {
            assert_eq!(self.decoder.report().edge, self.encoder.window().end.max(report.edge));
        }
    }
}

/// Returns the bytes of source packet `id`, which differ from packet to packet.
fn symbol(id: u64, length: usize) -> Vec<u8> {
    (0..length as u64)
        .map(|at| (id.wrapping_mul(0x9E37_79B9) >> (at % 24)) as u8 ^ at as u8)
        .collect()
}
