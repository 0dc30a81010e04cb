//! Sends streams through the streaming code over erasures, with every kernel of this CPU.
//!
//! Items and bytes count source packets: a time divided by [`SOURCES`] is the cost of one of them,
//! repair packets included. Feedback takes effect 64 slots after the receiver's state.

use std::collections::VecDeque;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use tautline_fec::kernel::Kernel;
use tautline_fec::stream::{Config, Decoder, Encoder, Repair};

fn main() {
    divan::main();
}

/// A share of packets lost at random, and the number of source packets between repair packets.
#[derive(Clone, Copy)]
struct Setting {
    loss_percent: u64,
    sources_per_repair: u64,
}

const SETTINGS: [Setting; 3] = [
    Setting { loss_percent: 5, sources_per_repair: 9 },
    Setting { loss_percent: 10, sources_per_repair: 5 },
    Setting { loss_percent: 20, sources_per_repair: 3 },
];

const SYMBOL_BYTES: usize = 1200;
const FEEDBACK_SLOTS: usize = 64;
/// Length of a stream: its received packets stay in the second-level cache.
const SOURCES: u64 = 2000;
/// Number of distinct source packets.
const SYMBOLS: u64 = 64;
const CONFIG: Config = Config::new(SYMBOL_BYTES, 256);

#[derive(Clone, Copy)]
struct Case {
    kernel: Kernel,
    setting: Setting,
}

impl std::fmt::Display for Case {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Setting { loss_percent, sources_per_repair } = self.setting;
        write!(formatter, "{} {loss_percent}% 1:{sources_per_repair}", self.kernel.name())
    }
}

fn cases() -> impl Iterator<Item = Case> {
    Kernel::all().flat_map(|kernel| SETTINGS.map(|setting| Case { kernel, setting }))
}

/// Actions of the sender and arrivals, in the order of time.
struct Stream {
    sent: Vec<Sent>,
    received: Vec<Received>,
}

enum Sent {
    Source(u64),
    Repair(u16),
    Acknowledgement(u64),
}

enum Received {
    Source(u64),
    Repair(Repair, Vec<u8>),
}

impl Case {
    fn encoder(self) -> Encoder {
        let mut encoder = Encoder::with_kernel(CONFIG, self.kernel).expect("a valid shape");
        // Touches all memory.
        for id in 0..512 {
            encoder.push(symbol(id)).expect("of the right length");
            encoder.forget_before(id + 1);
        }
        encoder
    }

    fn decoder(self) -> Decoder {
        let config = Config { window_max: 512, ..CONFIG };
        let mut decoder = Decoder::with_kernel(config, self.kernel).expect("a valid shape");
        for id in 0..512 {
            decoder.handle_source(id, symbol(id)).expect("new");
        }
        decoder.forget_before(512);
        decoder
    }

    /// Runs both ends once, with losses from a fixed seed.
    fn stream(self) -> Stream {
        let (mut encoder, mut decoder) = (self.encoder(), self.decoder());
        let mut stream = Stream { sent: Vec::new(), received: Vec::new() };
        let mut feedback = VecDeque::from(vec![512; FEEDBACK_SLOTS]);
        let mut random = 1_u64;
        let mut lost = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % 100 < self.setting.loss_percent
        };
        let (mut sources, mut repairs) = (0, 0);
        while sources < SOURCES {
            if sources == (u64::from(repairs) + 1) * self.setting.sources_per_repair {
                let mut payload = vec![0; SYMBOL_BYTES];
                let repair = encoder.repair(repairs, &mut payload).expect("packets are there");
                stream.sent.push(Sent::Repair(repairs));
                repairs += 1;
                if !lost() {
                    let _ = decoder.handle_repair(&repair, &payload);
                    stream.received.push(Received::Repair(repair, payload));
                }
            } else {
                let id = encoder.window().end;
                encoder.push(symbol(id)).expect("of the right length");
                stream.sent.push(Sent::Source(id));
                sources += 1;
                if !lost() {
                    decoder.handle_source(id, symbol(id)).expect("new");
                    stream.received.push(Received::Source(id));
                }
            }
            feedback.push_back(decoder.report().edge);
            let edge = feedback.pop_front().expect("it was just filled");
            encoder.acknowledge(edge).expect("packets that were sent");
            stream.sent.push(Sent::Acknowledgement(edge));
        }
        assert_eq!(encoder.overrun(), 0);
        stream
    }
}

fn source_items() -> ItemsCount {
    ItemsCount::new(SOURCES)
}

fn source_bytes() -> BytesCount {
    BytesCount::new(SOURCES * SYMBOL_BYTES as u64)
}

/// Returns the bytes of a source packet; there are [`SYMBOLS`] distinct ones.
fn symbol(id: u64) -> &'static [u8] {
    static BYTES: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
        (0..SYMBOLS as usize * SYMBOL_BYTES).map(|at| (at * 31 + at / 251) as u8).collect()
    });
    &BYTES[(id % SYMBOLS) as usize * SYMBOL_BYTES..][..SYMBOL_BYTES]
}

#[divan::bench(args = cases())]
fn encode(bencher: Bencher<'_, '_>, case: Case) {
    let stream = case.stream();
    let begun = case.encoder();
    let mut output = [0; SYMBOL_BYTES];
    bencher
        .with_inputs(|| begun.clone())
        .counter(source_items())
        .counter(source_bytes())
        .bench_local_refs(|encoder| {
            for sent in &stream.sent {
                match *sent {
                    Sent::Source(id) => {
                        encoder.push(black_box(symbol(id))).expect("of the right length");
                    }
                    Sent::Repair(seed) => {
                        encoder.repair(seed, black_box(&mut output)).expect("packets are there");
                    }
                    Sent::Acknowledgement(edge) => {
                        encoder.acknowledge(edge).expect("packets that were sent");
                    }
                }
            }
        });
}

#[divan::bench(args = cases())]
fn decode(bencher: Bencher<'_, '_>, case: Case) {
    let stream = case.stream();
    let begun = case.decoder();
    let decode = |decoder: &mut Decoder| {
        for received in &stream.received {
            let _ = match received {
                Received::Source(id) => decoder.handle_source(*id, black_box(symbol(*id))),
                Received::Repair(repair, payload) => {
                    decoder.handle_repair(repair, black_box(payload))
                }
            };
            while let Some((_, bytes)) = decoder.poll_in_order() {
                black_box(bytes);
            }
        }
    };
    bencher
        .with_inputs(|| begun.clone())
        .counter(source_items())
        .counter(source_bytes())
        .bench_local_refs(decode);

    let mut decoder = begun.clone();
    while decoder.poll_in_order().is_some() {}
    decode(&mut decoder);
    assert_eq!(decoder.report().lost, 0);
    while let Some((id, bytes)) = decoder.poll() {
        assert!(id < 512 || bytes == symbol(id), "packet {id}");
    }
}
