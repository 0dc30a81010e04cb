use proptest::prelude::*;
use tautline_fec::gf256::multiply;
use tautline_fec::stream::{Decoder, coefficient};

use super::*;

const LATE: Instant = Instant::from_millis(900);

/// A sender, and access to its packets.
struct Bench {
    stream: Stream,
    units: u64,
}

impl Bench {
    fn new() -> Self {
        Self { stream: Stream::new(), units: 0 }
    }

    /// Adds a unit of `source_count` source packets with payloads of up to twenty bytes to the
    /// stream, and returns them.
    fn unit(&mut self, source_count: usize, deadline: Instant) -> Vec<Vec<u8>> {
        let unit = vec![self.units as u8; source_count * 20 - Prefix::BYTES - 3];
        let count = self.stream.push(self.units, &unit, 20, deadline, Instant::ZERO);
        assert_eq!(count, source_count);
        self.units += 1;
        (0..count).map(|index| self.source(index)).collect()
    }

    fn source(&self, index: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.stream.write_source(index, &mut bytes);
        bytes
    }

    fn repair(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.stream.write_repair(&mut bytes);
        bytes
    }

    fn asked(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.stream.write_asked(&mut bytes);
        bytes
    }

    fn settle(&mut self, packets: &[Vec<u8>], arrived: bool) {
        packets.iter().for_each(|packet| self.stream.on_settled(packet, arrived));
    }
}

fn repair_of(bytes: &[u8]) -> Repair<'_> {
    match Packets::of(bytes).next() {
        Some(Ok(Packet::Repair(repair))) => repair,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_unit_becomes_payloads_of_one_length_and_a_rest() {
    let mut bench = Bench::new();
    bench.unit(1, LATE);
    let unit: Vec<u8> = (0..17).collect();
    let at = Instant::from_micros(5);
    assert_eq!(bench.stream.push(0x2_0007, &unit, 10, Instant::from_nanos(70_001_000_001), at), 3);
    let content = [&Prefix::new(17, at).to_bytes()[..], &unit].concat();
    for (index, payload) in content.chunks(10).enumerate() {
        let bytes = bench.source(index);
        let part = Part {
            last: index == 2,
            unit_low: 7,
            index: index as u8,
            deadline_low: (70_002 % 65_536) as u16,
            payload,
        };
        let source = Source { number_low: 1 + index as u32, part };
        assert_eq!(Packets::of(&bytes).next(), Some(Ok(Packet::Source(source))));
    }
}

#[test]
fn a_repair_packet_covers_unacknowledged_packets_of_any_length() {
    let mut bench = Bench::new();
    assert!(bench.repair().is_empty() && bench.asked().is_empty());
    let first = bench.unit(2, LATE);
    bench.unit(3, LATE);
    let unit = [7; 100];
    bench.stream.push(2, &unit, 1_000, LATE, Instant::ZERO);
    let bytes = bench.repair();
    let repair = repair_of(&bytes);
    assert_eq!((repair.first_low, repair.count, repair.seed), (0, 6, 0));
    assert_eq!(repair.sum.len(), SYMBOL_HEADER_BYTES + 1_000);
    bench.settle(&first, true);
    assert!(!bench.stream.lacks());
    let bytes = bench.repair();
    assert_eq!((repair_of(&bytes).first_low, repair_of(&bytes).count), (2, 4));
    assert_eq!(repair_of(&bytes).seed, 1);
}

#[test]
fn an_uncovered_loss_requests_one_more_repair_packet() {
    let mut bench = Bench::new();
    let sources = bench.unit(4, LATE);
    assert!(!bench.stream.lacks());
    bench.settle(&sources[..1], true);
    bench.settle(&sources[1..3], false);
    // Two are missing; each repair packet in flight counts for the share that arrives.
    let mut sent = Vec::new();
    while bench.stream.lacks() {
        sent.push(bench.asked());
    }
    assert_eq!(sent.len(), 2);
    assert_eq!((repair_of(&sent[0]).first_low, repair_of(&sent[0]).count), (1, 2));
    bench.settle(&sent[..1], false);
    assert!(bench.stream.lacks());
    sent.push(bench.asked());
    assert!(!bench.stream.lacks());
    bench.settle(&sent[1..], true);
    assert!(!bench.stream.lacks());
    // The last source packet is still in flight, and in no requested sum.
    assert_eq!(bench.stream.first, 3);
    bench.settle(&sources[3..], true);
    assert!(!bench.stream.lacks());
    assert!(bench.stream.encoder.window().is_empty());
    assert_eq!((bench.stream.deadline(), bench.stream.repairs.len()), (None, 0));
}

#[test]
fn a_repair_packet_stands_in_only_for_what_it_covers() {
    let mut bench = Bench::new();
    let early = bench.unit(1, LATE);
    let over_early = bench.repair();
    let late = bench.unit(1, LATE);
    bench.settle(&[over_early], true);
    bench.settle(&early, true);
    bench.settle(&late, false);
    assert!(bench.stream.lacks());
    // Also for a single lost packet, however it was settled first.
    let over_late = bench.repair();
    bench.settle(&[over_late], true);
    assert!(!bench.stream.lacks());
    let pair = bench.unit(2, LATE);
    let over_pair = bench.repair();
    bench.settle(&[over_pair], true);
    bench.settle(&pair, false);
    assert!(bench.stream.lacks());
}

#[test]
fn expired_packets_leave_the_window_with_their_repair_packets() {
    let mut bench = Bench::new();
    let deadline = Instant::from_millis(100);
    let stale = bench.unit(2, deadline);
    let over_stale = bench.repair();
    let fresh = bench.unit(2, LATE);
    let over_both = bench.repair();
    bench.settle(&stale, false);
    bench.settle(&[over_stale, over_both], true);
    bench.stream.expire(deadline);
    assert!(!bench.stream.lacks());
    assert_eq!(bench.stream.encoder.window(), 0..4);
    bench.settle(&fresh[..1], false);
    bench.settle(&fresh[1..], true);
    assert!(bench.stream.lacks());
    bench.stream.expire(Instant::from_millis(101));
    let bytes = bench.repair();
    assert_eq!((repair_of(&bytes).first_low, repair_of(&bytes).count), (2, 2));
    bench.settle(&[bytes], true);
    assert!(!bench.stream.lacks());
    assert!(bench.stream.encoder.window().is_empty());
    // An unrecovered packet that expires invalidates the sums over it.
    let stale = bench.unit(1, Instant::from_millis(200));
    let fresh = bench.unit(1, LATE);
    let sums = [bench.repair()];
    bench.settle(&sums, true);
    bench.stream.expire(Instant::from_millis(201));
    bench.settle(&fresh, false);
    assert!(bench.stream.lacks());
    bench.settle(&stale, true);
    assert_eq!(bench.stream.encoder.window(), 5..6);
}

#[test]
fn a_window_from_which_lost_packets_expire_for_long_begins_anew() {
    // Units of two packets live for 100 units; one in ten is lost, and no repair arrives.
    let mut bench = Bench::new();
    let mut begun = Vec::new();
    for unit in 0..1_000 {
        bench.stream.expire(Instant::from_millis(unit));
        let window = bench.stream.encoder.window();
        if unit > 0 && window.is_empty() {
            begun.push(unit);
        }
        let sources = bench.unit(2, Instant::from_millis(unit + 100));
        bench.settle(&sources, unit % 10 > 0);
    }
    // At the first expiry 256 units after the first one, and again.
    assert_eq!(begun, [361, 731]);
}

#[test]
fn the_window_and_what_is_remembered_are_bounded() {
    let mut bench = Bench::new();
    for _ in 0..200 {
        bench.unit(8, LATE);
        for _ in 0..16 {
            bench.repair();
        }
    }
    assert_eq!(bench.stream.encoder.window(), 1_600 - 512..1_600);
    assert_eq!((bench.stream.fates.len(), bench.stream.units.len()), (512, 64));
    assert!(bench.stream.repairs.len() <= REPAIRS_MOST);
    let bytes = bench.repair();
    assert_eq!(usize::from(repair_of(&bytes).count), WINDOW_MOST);
}

#[test]
fn foreign_packets_settle_nothing() {
    let mut bench = Bench::new();
    let sources = bench.unit(1, LATE);
    bench
        .settle(&[vec![0x11; 40], vec![], vec![0xff], vec![0x61, 0, 9, 9, 0, 0, 0, 0, 0, 1]], true);
    assert_eq!(bench.stream.fates, [Fate::Flying]);
    bench.settle(&sources, true);
    assert!(!bench.stream.lacks() && bench.stream.fates.is_empty());
}

proptest! {
    #[test]
    fn once_nothing_is_lacking_a_decoder_has_every_packet(
        steps in prop::collection::vec((1_usize..6, 0_usize..4, any::<u64>()), 1..40),
        loss in 0.0..0.5_f64,
    ) {
        let config = tautline_fec::stream::Config::new(SYMBOL_BYTES, 2 * WINDOW_MOST);
        let mut decoder = Decoder::new(config).unwrap();
        let (mut bench, mut flying) = (Bench::new(), VecDeque::<Vec<u8>>::new());
        let mut symbol = Vec::new();
        for (source_count, repair_count, mut random) in steps {
            let mut chance = |share: f64| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((random >> 33) as f64) < share * (1_u64 << 31) as f64
            };
            flying.extend(bench.unit(source_count, LATE));
            (0..repair_count).for_each(|_| flying.push_back(bench.repair()));
            while flying.len() > 20 {
                // Some are overtaken by their successor.
                let at = usize::from(chance(0.3));
                let packet = flying.remove(at).unwrap();
                let arrived = !chance(loss);
                if arrived {
                    arrive(&mut decoder, &packet, &mut symbol);
                }
                bench.stream.on_settled(&packet, arrived);
                while bench.stream.lacks() {
                    flying.push_back(bench.asked());
                }
            }
        }
        // Packets in flight arrive.
        for packet in flying {
            arrive(&mut decoder, &packet, &mut symbol);
            bench.stream.on_settled(&packet, true);
        }
        if !bench.stream.lacks() {
            let report = decoder.report();
            // One of 255 repair packets is linearly dependent and is counted all the same.
            prop_assert!(report.missing - report.rank <= 1, "{report:?}");
            prop_assert!(bench.stream.encoder.window().is_empty());
        }
    }
}

fn arrive(decoder: &mut Decoder, packet: &[u8], symbol: &mut Vec<u8>) {
    match Packets::of(packet).next() {
        Some(Ok(Packet::Source(source))) => {
            source.part.write_symbol(symbol);
            decoder.handle_source(u64::from(source.number_low), symbol).unwrap_or_default();
        }
        Some(Ok(Packet::Repair(repair))) => {
            symbol.clear();
            symbol.extend_from_slice(repair.sum);
            symbol.resize(SYMBOL_BYTES, 0);
            let first = u64::from(repair.first_low);
            let header = stream::Repair { first, count: repair.count, seed: repair.seed };
            decoder.handle_repair(&header, symbol).unwrap_or_default();
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn as_many_are_asked_for_as_will_hardly_fail() {
    assert_eq!((at_least(1, 0, 0.9), at_least(3, 2, 0.9)), (0.0, 0.0));
    assert!((at_least(4, 6, 0.8) - 0.90112).abs() < 1e-9);
    assert!((at_least(1, 100, 0.01) - (1.0 - 0.99_f64.powi(100))).abs() < 1e-9);
    assert_eq!((at_least(99, 110, 0.9), at_least(100, 110, 0.9)), (1.0, 0.0));
    // On a link that recently lost everything nothing is certain to suffice.
    assert!(at_least(1, 5, 1e-300) < SURE && at_least(1, 5, 0.0) < SURE);
    let mut bench = Bench::new();
    let sources = bench.unit(100, LATE);
    // One of five is lost.
    for round in 0..20 {
        for (place, source) in sources.iter().enumerate().take(4).chain([(4, &sources[99])]) {
            bench.stream.on_settled(source, (round + place) % 5 != 0);
        }
    }
    bench.settle(&sources[4..5], false);
    assert!((bench.stream.erasure_rate - 0.2).abs() < 0.2);
    let asked = std::iter::from_fn(|| bench.stream.lacks().then(|| bench.asked())).count();
    assert_eq!(asked, 2);
}

#[test]
fn repair_packets_that_say_the_same_stand_in_for_one() {
    let mut bench = Bench::new();
    let sources = bench.unit(2, LATE);
    let repairs: Vec<Vec<u8>> = (0..100).map(|_| bench.repair()).collect();
    bench.settle(&sources, false);
    let same = (0..100_u16).flat_map(|a| (0..a).map(move |b| (a, b))).find(|(a, b)| {
        let both = [(*a, 0), (*b, 1)].map(|(seed, id)| coefficient(seed, id));
        let swapped = [(*b, 0), (*a, 1)].map(|(seed, id)| coefficient(seed, id));
        multiply(both[0], both[1]) == multiply(swapped[0], swapped[1])
    });
    let (a, b) = same.expect("one pair of 255");
    bench.settle(&[repairs[usize::from(a)].clone(), repairs[usize::from(b)].clone()], true);
    assert_eq!(bench.stream.missing(), 1);
    assert_eq!(bench.stream.deadline(), Some(LATE));
    let other = (0..100).find(|number| ![a, b].contains(number)).expect("there are 98");
    bench.settle(&repairs[usize::from(other)..][..1], true);
    assert_eq!((bench.stream.missing(), bench.stream.deadline()), (0, None));
}
