//! Streaming codes: a repair packet after a fixed number of source packets, over all not yet
//! acknowledged.

mod cu_fec;
pub(crate) mod outcome;
mod rlnc_simdx;
mod tautline;

use std::collections::VecDeque;

use anyhow::{Context, Result, ensure};
use tautline_fec::stream::Repair;

use crate::block::Family;
use crate::measure::Work;
use crate::random::Random;

/// Random loss rate in percent, and the number of source packets between repair packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) loss_percent: usize,
    pub(crate) sources_per_repair: u64,
}

pub(crate) const SETTINGS: [Setting; 3] = [
    Setting { loss_percent: 5, sources_per_repair: 9 },
    Setting { loss_percent: 10, sources_per_repair: 5 },
    Setting { loss_percent: 20, sources_per_repair: 3 },
];

pub(crate) const SYMBOL_BYTES: usize = 1200;
/// Feedback delay: number of packets sent before the sender learns a receiver's state.
pub(crate) const FEEDBACK_SLOTS: usize = 64;
/// Length of a stream in source packets.
const SOURCES: u64 = 2000;
/// Number of distinct source packets, few enough for the L2 cache.
const SYMBOLS: u64 = 128;
/// Maximum size of a sender's coding window; no stream here needs more.
const WINDOW: usize = 256;

/// A producer of repair packets.
trait Sender {
    /// Adds the next source packet to the coding window.
    fn push(&mut self, symbol: &[u8]);
    /// Removes all packets below `edge` from the coding window.
    fn acknowledge(&mut self, edge: u64);
    /// Writes the payload of a repair packet over the coding window, and returns its header.
    fn repair(&mut self, seed: u16, output: &mut [u8]) -> Repair;
    /// Writes the expected output of [`Sender::repair`], for codes without a receiver to verify it.
    fn expected(&mut self, seed: u16, output: &mut [u8]) -> Repair {
        self.repair(seed, output)
    }
}

/// A decoder that recovers lost packets.
trait Receiver {
    fn source(&mut self, id: u64, symbol: &[u8]);
    fn repair(&mut self, repair: &Repair, payload: &[u8]);
    /// Passes each known packet to `packet` once, in order, up to the first that is missing.
    fn deliver(&mut self, packet: impl FnMut(u64, &[u8]));
    /// Returns the number below which all packets are known.
    fn edge(&self) -> u64;
}

/// One code with its work at a setting.
struct Entry {
    name: String,
    family: Family,
    encode: Box<dyn Work>,
    /// `None` if the code has no decoder for a stream.
    decode: Option<Box<dyn Work>>,
}

/// Actions of a sender in order of time, and the packets that arrive.
#[derive(Clone)]
struct Stream {
    sent: Vec<Sent>,
    received: Vec<Received>,
}

#[derive(Clone)]
enum Sent {
    Source(u64),
    /// Seed of a repair packet, and its expected bytes.
    Repair(u16, Vec<u8>),
    Acknowledgement(u64),
}

#[derive(Clone)]
enum Received {
    Source(u64),
    Repair(Repair, Vec<u8>),
}

/// Runs both ends once and records what is sent and what arrives. The lost slots are the same for
/// all codes.
///
/// # Errors
/// If a wrong packet is delivered, or too few are.
fn run(setting: Setting, sender: &mut impl Sender, receiver: &mut impl Receiver) -> Result<Stream> {
    let mut stream = Stream { sent: Vec::new(), received: Vec::new() };
    let mut feedback = VecDeque::from(vec![0; FEEDBACK_SLOTS]);
    let mut random = Random::of(&[setting.sources_per_repair]);
    let (mut sources, mut repairs) = (0, 0);
    let mut delivered = 0;
    while sources < SOURCES {
        let lost = random.below(100) < setting.loss_percent;
        if sources > u64::from(repairs) * setting.sources_per_repair
            && sources.is_multiple_of(setting.sources_per_repair)
        {
            let mut payload = vec![0; SYMBOL_BYTES];
            let repair = sender.expected(repairs, &mut payload);
            stream.sent.push(Sent::Repair(repairs, payload.clone()));
            repairs += 1;
            if !lost {
                receiver.repair(&repair, &payload);
                stream.received.push(Received::Repair(repair, payload));
            }
        } else {
            sender.push(symbol(sources));
            stream.sent.push(Sent::Source(sources));
            if !lost {
                receiver.source(sources, symbol(sources));
                stream.received.push(Received::Source(sources));
            }
            sources += 1;
        }
        let mut right = true;
        receiver.deliver(|id, bytes| {
            right &= id == delivered && bytes == symbol(id);
            delivered += 1;
        });
        ensure!(right, "a wrong packet was delivered");
        feedback.push_back(receiver.edge());
        let edge = feedback.pop_front().context("it was just filled")?;
        sender.acknowledge(edge);
        stream.sent.push(Sent::Acknowledgement(edge));
    }
    // Only packets lost in the last slots may still be missing.
    ensure!(delivered + FEEDBACK_SLOTS as u64 >= SOURCES, "only {delivered} packets came through");
    Ok(stream)
}

/// Returns the bytes of a source packet; there are [`SYMBOLS`] distinct ones.
fn symbol(id: u64) -> &'static [u8] {
    static BYTES: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
        let mut bytes = vec![0; SYMBOLS as usize * SYMBOL_BYTES];
        Random::of(&[SYMBOLS]).fill(&mut bytes);
        bytes
    });
    &BYTES[(id % SYMBOLS) as usize * SYMBOL_BYTES..][..SYMBOL_BYTES]
}

/// Sending of a stream, each time with a new sender.
struct Encode<S, M> {
    stream: Stream,
    make: M,
    sender: S,
    output: Vec<u8>,
}

impl<S: Sender + 'static, M: Fn() -> S + 'static> Encode<S, M> {
    fn boxed(stream: Stream, make: M) -> Box<dyn Work> {
        let sender = make();
        Box::new(Encode { stream, sender, make, output: vec![0; SYMBOL_BYTES] })
    }
}

impl<S: Sender, M: Fn() -> S> Work for Encode<S, M> {
    fn prepare(&mut self, _: usize, _: u64) {
        self.sender = (self.make)();
    }

    fn run(&mut self, _: usize) {
        for sent in &self.stream.sent {
            match *sent {
                Sent::Source(id) => self.sender.push(symbol(id)),
                Sent::Repair(seed, _) => {
                    self.sender.repair(seed, &mut self.output);
                }
                Sent::Acknowledgement(edge) => self.sender.acknowledge(edge),
            }
        }
    }

    fn is_right(&mut self, _: usize) -> bool {
        let mut sender = (self.make)();
        self.stream.sent.iter().all(|sent| {
            match sent {
                Sent::Source(id) => sender.push(symbol(*id)),
                Sent::Repair(seed, expected) => {
                    sender.repair(*seed, &mut self.output);
                    return self.output == *expected;
                }
                Sent::Acknowledgement(edge) => sender.acknowledge(*edge),
            }
            true
        })
    }
}

/// Reception of a stream, each time with a new receiver.
struct Decode<R, M> {
    stream: Stream,
    make: M,
    receiver: R,
    delivered: u64,
}

impl<R: Receiver + 'static, M: Fn() -> R + 'static> Decode<R, M> {
    fn boxed(stream: Stream, make: M) -> Box<dyn Work> {
        let receiver = make();
        Box::new(Decode { stream, receiver, make, delivered: 0 })
    }
}

impl<R: Receiver, M: Fn() -> R> Work for Decode<R, M> {
    fn prepare(&mut self, _: usize, _: u64) {
        self.receiver = (self.make)();
        self.delivered = 0;
    }

    fn run(&mut self, _: usize) {
        for received in &self.stream.received {
            match received {
                Received::Source(id) => self.receiver.source(*id, symbol(*id)),
                Received::Repair(repair, payload) => self.receiver.repair(repair, payload),
            }
            self.receiver.deliver(|_, bytes| {
                std::hint::black_box(bytes);
                self.delivered += 1;
            });
        }
    }

    fn is_right(&mut self, _: usize) -> bool {
        let mut receiver = (self.make)();
        let (mut delivered, mut right) = (0, true);
        for received in &self.stream.received {
            match received {
                Received::Source(id) => receiver.source(*id, symbol(*id)),
                Received::Repair(repair, payload) => receiver.repair(repair, payload),
            }
            receiver.deliver(|id, bytes| {
                right &= id == delivered && bytes == symbol(id);
                delivered += 1;
            });
        }
        right && delivered == self.delivered && delivered + FEEDBACK_SLOTS as u64 >= SOURCES
    }
}
