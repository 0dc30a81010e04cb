use proptest::prelude::*;
use tautline_fec::stream::{Config, Encoder};
use tautline_units::Instant;

use super::*;
use crate::channel::{ChannelNumber, Order};
use crate::receiver::inbox::{Inbox, Outcome};
use crate::wire::{Packet, Packets, Prefix};

/// A receiver of units whose content identifies them, and their encoder.
struct Bench {
    encoder: Encoder,
    stream: Stream,
    inbox: Inbox,
    counters: Counters,
    outcomes: Vec<Outcome>,
    now: u64,
    units: u64,
    seed: u16,
    span: u64,
}

impl Bench {
    fn new() -> Self {
        Self {
            encoder: Encoder::new(Config::new(SYMBOL_BYTES, WINDOW_MOST)).unwrap(),
            stream: Stream::default(),
            inbox: Inbox::new(ChannelNumber::MEDIA, Order::ByDeadline),
            counters: Counters::new(),
            outcomes: Vec::new(),
            now: 0,
            units: 0,
            seed: 0,
            span: 100,
        }
    }

    /// Returns the packets of the next unit: `source_count` of up to `payload_bytes` bytes.
    fn unit(&mut self, source_count: usize, payload_bytes: usize) -> Vec<Vec<u8>> {
        let number = self.units;
        self.units += 1;
        let content = content(number, source_count * payload_bytes - payload_bytes / 3);
        let deadline_low = (self.now + self.span) as u16;
        let mut packets = Vec::new();
        for (index, payload) in content.chunks(payload_bytes).enumerate() {
            let last = (index + 1) * payload_bytes >= content.len();
            let part =
                Part { last, unit_low: number as u16, index: index as u8, deadline_low, payload };
            part.write_symbol(&mut self.stream.symbol);
            let id = self.encoder.push(&self.stream.symbol).unwrap();
            let mut bytes = Vec::new();
            Source { number_low: id as u32 & 0xff_ffff, part }.write(&mut bytes);
            packets.push(bytes);
        }
        packets
    }

    fn repair(&mut self) -> Vec<u8> {
        let mut sum = vec![0; SYMBOL_BYTES];
        let repair = self.encoder.repair(self.seed, &mut sum).unwrap();
        self.seed += 1;
        let zeros = sum.iter().rev().take_while(|byte| **byte == 0).count();
        let sum = &sum[..(SYMBOL_BYTES - zeros).max(8)];
        let first_low = repair.first as u32 & 0xff_ffff;
        let mut bytes = Vec::new();
        Repair { first_low, count: repair.count, seed: repair.seed, sum }.write(&mut bytes);
        bytes
    }

    fn handle(&mut self, bytes: &[u8]) {
        let arrived = match Packets::of(bytes).next() {
            Some(Ok(Packet::Source(source))) => {
                let Some(number) = self.stream.handle_source(&source, &mut self.counters) else {
                    return;
                };
                self.take(number, &source.part, false);
                Some(number)
            }
            Some(Ok(Packet::Repair(repair))) => {
                self.stream.handle_repair(&repair, &mut self.counters);
                None
            }
            _ => return,
        };
        let mut recovered = Vec::new();
        let own = |number, part: Result<Part<'_>, Malformed>| {
            recovered.push((number, part.map(|part| (part, part.payload.to_vec())).map(own_part)));
        };
        self.stream.recover(arrived, own);
        for (number, part) in recovered {
            match part {
                Ok((part, payload)) => {
                    self.take(number, &Part { payload: &payload, ..part }, true);
                }
                Err(_) => self.counters.discard(Discard::PacketInconsistent),
            }
        }
    }

    fn take(&mut self, number: u64, part: &Part<'_>, recovered: bool) {
        let deadline = Instant::from_millis(expand(self.now, u64::from(part.deadline_low), 16));
        let now = Instant::from_millis(self.now);
        let (counters, outcomes) = (&mut self.counters, &mut self.outcomes);
        self.inbox.handle_part(number, part, recovered, deadline, counters, outcomes, now);
    }

    fn expire(&mut self) {
        let now = Instant::from_millis(self.now);
        self.inbox.expire(&mut self.counters, &mut self.outcomes, now);
    }

    /// Drains the outcomes and returns them as text: `+3` for unit 3 delivered, `*3` with repair,
    /// `-3` lost.
    fn log(&mut self) -> Vec<String> {
        self.outcomes
            .drain(..)
            .map(|outcome| match outcome {
                Outcome::Unit { number, bytes, repaired, .. } => {
                    assert_eq!(bytes, pattern(number, bytes.len()), "unit {number}");
                    format!("{}{number}", if repaired { '*' } else { '+' })
                }
                Outcome::Lost { number, .. } => format!("-{number}"),
            })
            .collect()
    }
}

/// Separates a part from its payload.
fn own_part((part, payload): (Part<'_>, Vec<u8>)) -> (Part<'static>, Vec<u8>) {
    let Part { last, unit_low, index, deadline_low, .. } = part;
    (Part { last, unit_low, index, deadline_low, payload: &[] }, payload)
}

fn pattern(number: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (number * 31 + at * (number | 1)) as u8).collect()
}

fn content(number: u64, length: usize) -> Vec<u8> {
    let unit = pattern(number, length - Prefix::BYTES);
    [&Prefix::new(unit.len(), Instant::ZERO).to_bytes()[..], &unit].concat()
}

#[test]
fn a_lost_source_packet_of_any_length_is_recovered() {
    let mut bench = Bench::new();
    let (a, b) = (bench.unit(2, 30), bench.unit(3, 500));
    let repairs = [bench.repair(), bench.repair(), bench.repair()];
    bench.handle(&a[0]);
    bench.handle(&b[1]);
    bench.handle(&repairs[0]);
    bench.handle(&repairs[1]);
    assert_eq!(bench.log(), [""; 0]);
    bench.handle(&repairs[2]);
    assert_eq!(bench.log(), ["*0", "*1"]);
    assert_eq!(bench.counters.sources_recovered, 3);
    let units = bench.counters.units(ChannelNumber::MEDIA);
    assert_eq!((units.repaired, units.delivered), (2, 2));
    // Late source packets are surplus, and so is a repair packet over known ones.
    bench.handle(&a[1]);
    let more = bench.repair();
    bench.handle(&more);
    assert_eq!(bench.counters.discarded(Discard::PacketSurplus), 2);
    assert_eq!(bench.log(), [""; 0]);
}

#[test]
fn a_unit_does_not_wait_for_the_one_before_it() {
    let mut bench = Bench::new();
    let (a, b, c) = (bench.unit(2, 30), bench.unit(2, 30), bench.unit(1, 30));
    [&a[1], &c[0], &b[1], &b[0]].into_iter().for_each(|packet| bench.handle(packet));
    assert_eq!(bench.log(), ["+2", "+1"]);
    bench.now = 101;
    bench.expire();
    assert_eq!(bench.log(), ["-0"]);
    bench.handle(&a[0]);
    assert_eq!(bench.log(), [""; 0]);
    assert_eq!(bench.counters.discarded(Discard::PacketSurplus), 1);
}

#[test]
fn packets_outside_the_window_are_not_awaited_but_still_help() {
    let mut bench = Bench::new();
    let stale = bench.unit(3, 20);
    let over_stale = bench.repair();
    bench.handle(&stale[0]);
    bench.handle(&over_stale);
    bench.now = 101;
    bench.expire();
    assert_eq!(bench.log(), ["-0"]);
    let fresh = bench.unit(2, 20);
    let over_both = bench.repair();
    bench.encoder.forget_before(3);
    let over_fresh = bench.repair();
    bench.handle(&fresh[1]);
    bench.handle(&over_both);
    assert_eq!(bench.log(), [""; 0]);
    bench.handle(&over_fresh);
    assert_eq!(bench.log(), ["*1"]);
    // A stale packet that arrives is distinguished from a fresh one.
    let before = bench.counters.discarded(Discard::PacketSurplus);
    bench.handle(&stale[1]);
    assert_eq!(bench.counters.discarded(Discard::PacketSurplus), before + 1);
    assert_eq!(bench.log(), [""; 0]);
}

#[test]
fn a_full_decoder_still_takes_what_is_wanted() {
    let mut bench = Bench::new();
    // Of 300 packets nothing arrives except 256 sums, which do not suffice to recover any.
    for _ in 0..3 {
        bench.unit(100, 10);
    }
    for _ in 0..257 {
        let repair = bench.repair();
        bench.handle(&repair);
    }
    assert_eq!(bench.counters.discarded(Discard::RepairOverflow), 1);
    bench.encoder.forget_before(300);
    let fresh = bench.unit(2, 10);
    for _ in 0..3 {
        let repair = bench.repair();
        bench.handle(&repair);
    }
    bench.handle(&fresh[0]);
    assert_eq!(bench.log(), ["*3"]);
    assert!(bench.counters.discarded(Discard::RepairExpired) > 0);
}

#[test]
fn inventions_are_counted_and_change_nothing() {
    let mut bench = Bench::new();
    let a = bench.unit(1, 20);
    bench.handle(&a[0]);
    assert_eq!(bench.log(), ["+0"]);
    let mut far = a[0].clone();
    far[1] = 0x40;
    bench.handle(&far);
    let mut wide = bench.repair();
    wide[4..6].copy_from_slice(&[0xff, 0xff]);
    bench.handle(&wide);
    assert_eq!(bench.counters.discarded(Discard::PacketOutOfRange), 2);
    // A forged sum over one packet determines the content of that packet.
    let mut bytes = Vec::new();
    Repair { first_low: 1, count: 1, seed: 3, sum: &[0xee; 40] }.write(&mut bytes);
    bench.handle(&bytes);
    assert_eq!(bench.counters.discarded(Discard::PacketInconsistent), 1);
    assert_eq!(bench.log(), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_unit_ends_once_and_unharmed(
        units in prop::collection::vec((1_usize..6, 12_usize..60, 0_usize..4), 1..60),
        loss in 0.0..0.5_f64,
        mut random in any::<u64>(),
    ) {
        let mut bench = Bench::new();
        let mut chance = |share: f64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((random >> 33) as f64) < share * (1_u64 << 31) as f64
        };
        let mut under_way: Vec<(u64, Vec<u8>)> = Vec::new();
        let sent = units.len() as u64;
        for (source_count, payload_bytes, repair_count) in units {
            bench.now += 3;
            let mut packets = bench.unit(source_count, payload_bytes);
            (0..repair_count).for_each(|_| packets.push(bench.repair()));
            if chance(0.1) {
                let window = bench.encoder.window();
                bench.encoder.forget_before((window.start + window.end) / 2);
            }
            for packet in packets {
                if chance(loss) {
                    continue;
                }
                for _ in 0..if chance(0.1) { 2 } else { 1 } {
                    let late = if chance(0.3) { 40 } else { 0 };
                    under_way.push((bench.now + late, packet.clone()));
                }
            }
            let now = bench.now;
            let (due, later) = under_way.into_iter().partition(|(at, _)| *at <= now);
            under_way = later;
            for (_, packet) in due {
                bench.handle(&packet);
            }
            bench.expire();
        }
        bench.now += 200;
        bench.expire();
        let mut ended: Vec<u64> =
            bench.log().iter().map(|line| line[1..].parse().unwrap()).collect();
        ended.sort_unstable();
        prop_assert!(ended.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", ended);
        // All up to the last one received.
        let heard = ended.last().map_or(0, |last| last + 1);
        prop_assert!(ended.len() as u64 == heard && heard <= sent);
        let counters = &bench.counters;
        let lost = [Discard::UnitMissing, Discard::UnitIncomplete, Discard::UnitLate]
            .map(|what| counters.discarded(what));
        let units = counters.units(ChannelNumber::MEDIA);
        prop_assert_eq!(units.delivered + lost.iter().sum::<u64>(), heard);
        prop_assert_eq!((units.heard, units.lost()), (heard, lost.iter().sum()));
        prop_assert_eq!(counters.discarded(Discard::PacketInconsistent), 0);
    }

    #[test]
    fn any_packets_of_a_stream_are_survived(
        packets in prop::collection::vec(
            (any::<bool>(), 0_u32..2_000, prop::collection::vec(any::<u8>(), 16..60), 0_u64..30),
            1..200,
        ),
    ) {
        let mut bench = Bench::new();
        for (repair, number, mut bytes, millis) in packets {
            bench.now += millis;
            bytes[0] = if repair { 0x71 } else { 0x61 | bytes[0] & 0x08 };
            bytes[1..4].copy_from_slice(&number.to_be_bytes()[1..]);
            if repair {
                bytes[4] &= 1;
            } else {
                bytes[6] &= 7;
            }
            bench.handle(&bytes);
            bench.outcomes.clear();
        }
        bench.now += 100_000;
        bench.expire();
        bench.outcomes.clear();
    }
}
