mod model;
#[cfg(not(miri))]
mod outage;

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::Error;
use core::ops::Range;

use super::*;
use crate::gf256;
use crate::kernel::Kernel;
use model::{Generator, Model};

/// Returns a packet's bytes, different for each id.
fn symbol(id: u64, length: usize) -> Vec<u8> {
    let mut generator = Generator::new(id);
    (0..length).map(|_| generator.next() as u8).collect()
}

fn encoder(config: Config) -> Encoder {
    Encoder::new(config).expect("a valid shape")
}

fn decoder(config: Config) -> Decoder {
    Decoder::new(config).expect("a valid shape")
}

/// Returns an encoder with packets `0..count` pushed.
fn filled(config: Config, count: u64) -> Encoder {
    let mut encoder = encoder(config);
    for id in 0..count {
        assert_eq!(encoder.push(&symbol(id, config.symbol_bytes)), Ok(id));
    }
    encoder
}

/// Makes a repair packet over the complete coding window.
fn repair(encoder: &mut Encoder, length: usize, seed: u16) -> (Repair, Vec<u8>) {
    let mut payload = vec![0xA5; length];
    let repair = encoder.repair(seed, &mut payload).expect("packets are there");
    (repair, payload)
}

/// Returns the expected payload of a repair packet.
fn sum(repair: Repair, length: usize) -> Vec<u8> {
    let mut sum = vec![0; length];
    for id in repair.covers() {
        let coefficient = coefficient(repair.seed, id);
        for (sum, byte) in sum.iter_mut().zip(symbol(id, length)) {
            *sum ^= gf256::multiply(coefficient, byte);
        }
    }
    sum
}

/// Takes all packets that have become known and compares them with what was sent.
fn poll_all(decoder: &mut Decoder, length: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    while let Some((id, bytes)) = decoder.poll() {
        assert_eq!(bytes, symbol(id, length), "packet {id}");
        ids.push(id);
    }
    ids
}

fn poll_all_in_order(decoder: &mut Decoder, length: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    while let Some((id, bytes)) = decoder.poll_in_order() {
        assert_eq!(bytes, symbol(id, length), "packet {id}");
        ids.push(id);
    }
    ids
}

/// Sizes of coding windows around the size of one pass; fewer under an interpreter.
const COUNTS: &[u64] = match cfg!(miri) {
    true => &[1, 9],
    false => &[1, 2, 7, 8, 9, 64, 127, 128, 129, 255, 300],
};

#[test]
fn repair_packets_follow_the_documented_combination() {
    for kernel in Kernel::all() {
        for &count in COUNTS {
            let config = Config::new(33, 512);
            let mut encoder = Encoder::with_kernel(config, kernel).expect("valid");
            for id in 0..count + 5 {
                encoder.push(&symbol(id, 33)).expect("valid");
            }
            encoder.acknowledge(5).expect("sent");
            let (repair, payload) = repair(&mut encoder, 33, 0xBEEF);
            assert_eq!(repair, Repair { first: 5, count: count as u16, seed: 0xBEEF });
            assert_eq!(payload, sum(repair, 33), "{}: {count} packets", kernel.name());
        }
    }
}

#[test]
fn a_repair_packet_may_cover_the_older_part_of_the_window_only() {
    let mut encoder = filled(Config::new(20, 64), 30);
    encoder.acknowledge(3).expect("sent");
    let mut payload = [0xA5; 20];
    for (seed, end, count) in [(7, 17, 14), (8, 4, 1), (9, 99, 27)] {
        // In between, a repair packet over all packets, computed in advance.
        let (whole, bytes) = repair(&mut encoder, 20, seed);
        assert_eq!(bytes, sum(whole, 20));
        let part = encoder.repair_before(end, 100 + seed, &mut payload).expect("packets are there");
        assert_eq!(part, Repair { first: 3, count, seed: 100 + seed });
        assert_eq!(&payload[..], sum(part, 20));
    }
    assert_eq!(encoder.repair_before(3, 0, &mut payload), Err(Error::EmptyWindow));
    let error = Error::Symbol { expected: 20, given: 19 };
    assert_eq!(encoder.repair_before(9, 0, &mut payload[..19]), Err(error));
}

#[test]
fn coefficients_and_repair_packets_match_the_test_vectors() {
    // The vectors were computed independently of this code.
    let specification = include_str!("../../../../docs/protocol.md");
    let check = |name: &str, bytes: &[u8]| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let line = format!("\n{name}: {hex}\n");
        assert!(specification.contains(&line), "docs/protocol.md lacks: {line}");
    };
    let row = |seed, ids: Range<u64>| ids.map(|id| coefficient(seed, id)).collect::<Vec<u8>>();
    check("coefficients of seed 0", &row(0, 0..16));
    check("coefficients of seed 196", &row(196, 0..8));
    let first = (1 << 32) - 5;
    check("coefficients of seed beef", &row(0xBEEF, first..first + 16));

    // A decoder that lacks one of the packets accepts the repair packet for it.
    let symbol = |id: u64| [0, 1, 2, 3, 4, 5, 6, 7].map(|b| (id * (2 * b + 1) + b) as u8);
    let line = "streaming repair packet: ";
    let at = specification.find(line).expect("the vector is there") + line.len();
    let payload: Vec<u8> = (at..at + 16)
        .step_by(2)
        .map(|at| u8::from_str_radix(&specification[at..at + 2], 16).expect("hexadecimal"))
        .collect();
    let mut decoder = decoder(Config::new(8, 16));
    decoder.forget_before(first);
    for id in (first..first + 9).filter(|&id| id != 1 << 32) {
        decoder.handle_source(id, &symbol(id)).expect("new");
    }
    let repair = Repair { first, count: 9, seed: 0x1234 };
    decoder.handle_repair(&repair, &payload).expect("one is missing");
    let known: Vec<(u64, Vec<u8>)> =
        core::iter::from_fn(|| decoder.poll().map(|(id, bytes)| (id, bytes.to_vec()))).collect();
    assert_eq!(known.last(), Some(&(1 << 32, symbol(1 << 32).to_vec())));
}

#[test]
#[cfg_attr(miri, ignore = "too many cases for an interpreter")]
fn coefficients_are_near_uniform_and_never_zero() {
    let mut counts = [0_u32; 256];
    for seed in 0..2048 {
        for id in 0..512 {
            counts[usize::from(coefficient(seed, id))] += 1;
        }
    }
    // One in 256 each, with the zeros counted as ones; 4096 with a standard deviation of 64.
    let share = |count: u32, expected: f64| (f64::from(count) - expected).abs() < 5.0 * 64.0;
    assert_eq!(counts[0], 0);
    assert!(share(counts[1], 8192.0), "{}", counts[1]);
    assert!(counts[2..].iter().all(|&count| share(count, 4096.0)), "{counts:?}");
}

#[test]
fn as_many_repair_packets_as_losses_recover_them() {
    let config = Config::new(40, 16);
    let mut encoder = filled(config, 10);
    let mut decoder = decoder(config);
    for id in (0..10).filter(|id| ![2, 5, 6].contains(id)) {
        assert_eq!(decoder.handle_source(id, &symbol(id, 40)), Ok(()));
    }
    assert_eq!(poll_all(&mut decoder, 40), [0, 1, 3, 4, 7, 8, 9]);
    assert_eq!(poll_all_in_order(&mut decoder, 40), [0, 1]);
    for seed in 0..3 {
        let expected = Report { edge: 2, next: 10, missing: 3, rank: usize::from(seed), lost: 0 };
        assert_eq!(decoder.report(), expected);
        let (repair, payload) = repair(&mut encoder, 40, seed);
        assert_eq!(decoder.handle_repair(&repair, &payload), Ok(()));
    }
    assert_eq!(decoder.report(), Report { edge: 10, next: 10, missing: 0, rank: 0, lost: 0 });
    assert_eq!(poll_all(&mut decoder, 40), [2, 5, 6]);
    assert_eq!(poll_all_in_order(&mut decoder, 40), [2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn every_kernel_recovers_every_length() {
    for kernel in Kernel::all() {
        for length in 0..if cfg!(miri) { 3 } else { 150 } {
            let config = Config::new(length, 64);
            let mut encoder = Encoder::with_kernel(config, kernel).expect("valid");
            let mut decoder = Decoder::with_kernel(config, kernel).expect("valid");
            // More lost packets than one multiplication has rows.
            for id in 0..40 {
                encoder.push(&symbol(id, length)).expect("valid");
                if id % 3 > 0 {
                    decoder.handle_source(id, &symbol(id, length)).expect("new");
                }
            }
            for seed in 0..20 {
                let (repair, payload) = repair(&mut encoder, length, seed);
                let _ = decoder.handle_repair(&repair, &payload);
            }
            let name = kernel.name();
            assert_eq!(poll_all_in_order(&mut decoder, length).len(), 40, "{name}, {length} bytes");
        }
    }
}

#[test]
fn packets_determined_by_a_narrower_window_are_known_first() {
    let config = Config::new(8, 64);
    let mut encoder = encoder(config);
    let mut decoder = decoder(config);
    let mut repairs = Vec::new();
    for id in 0..12 {
        encoder.push(&symbol(id, 8)).expect("valid");
        if [6, 12].contains(&(id + 1)) {
            repairs.push(repair(&mut encoder, 8, id as u16));
            repairs.push(repair(&mut encoder, 8, 100 + id as u16));
        }
        if ![1, 4, 7, 8, 9].contains(&id) {
            decoder.handle_source(id, &symbol(id, 8)).expect("new");
        }
    }
    poll_all(&mut decoder, 8);
    // The wider two first: they determine nothing alone. With both narrower ones, 1 and 4 are
    // known, and one equation is missing for 7, 8 and 9.
    for (index, known) in [(2, &[][..]), (3, &[]), (0, &[]), (1, &[1, 4])] {
        let (repair, payload) = &repairs[index];
        assert_eq!(decoder.handle_repair(repair, payload), Ok(()));
        assert_eq!(poll_all(&mut decoder, 8), known);
    }
    let expected = Report { edge: 7, next: 12, missing: 3, rank: 2, lost: 0 };
    assert_eq!(decoder.report(), expected);
    // A late source packet is the last that was missing.
    assert_eq!(decoder.handle_source(8, &symbol(8, 8)), Ok(()));
    assert_eq!(poll_all(&mut decoder, 8), [8, 7, 9]);
}

#[test]
fn a_window_equal_to_a_block_gives_a_random_linear_block_code() {
    // Push the block's sources, make n - k repair packets over them, then restart the window.
    let (k, n, blocks) = (32_u64, 40_u16, if cfg!(miri) { 1 } else { 50 });
    let config = Config::new(16, k as usize);
    let mut encoder = encoder(config);
    let mut decoder = decoder(Config { window_max: 2 * k as usize, ..config });
    let mut generator = Generator::new(5);
    for block in 0..blocks {
        let ids = block * k..(block + 1) * k;
        let lost: Vec<u64> = ids.clone().filter(|_| generator.chance(0.15)).take(6).collect();
        for id in ids.clone() {
            encoder.push(&symbol(id, 16)).expect("valid");
            if !lost.contains(&id) {
                decoder.handle_source(id, &symbol(id, 16)).expect("new");
            }
        }
        let mut innovative = 0;
        for index in 0..n - k as u16 {
            let (repair, payload) = repair(&mut encoder, 16, index);
            assert_eq!((repair.first, u64::from(repair.count)), (ids.start, k));
            innovative += usize::from(decoder.handle_repair(&repair, &payload).is_ok());
        }
        assert_eq!(innovative, lost.len());
        encoder.forget_before(ids.end);
        assert!(encoder.window().is_empty());
        assert_eq!(decoder.report().edge, ids.end);
        assert_eq!(poll_all_in_order(&mut decoder, 16), ids.collect::<Vec<_>>());
    }
}

#[test]
fn a_full_window_lets_its_oldest_packet_go() {
    let mut encoder = filled(Config::new(1, 4), 4);
    assert_eq!((encoder.window(), encoder.overrun()), (0..4, 0));
    encoder.push(&[7]).expect("valid");
    assert_eq!((encoder.window(), encoder.overrun()), (1..5, 1));
    encoder.acknowledge(3).expect("sent");
    encoder.acknowledge(2).expect("an older edge is no error");
    assert_eq!(encoder.window(), 3..5);
    assert_eq!(encoder.acknowledge(6), Err(Error::Acknowledgement { edge: 6, next: 5 }));
    encoder.forget_before(u64::MAX);
    assert_eq!(encoder.window(), 5..5);
    assert_eq!(encoder.repair(0, &mut [0]), Err(Error::EmptyWindow));
}

#[test]
fn a_window_full_of_unacknowledged_packets_restarts_and_counts() {
    let mut encoder = filled(Config::new(1, 4), 3);
    encoder.acknowledge(1).expect("sent");
    let push = |encoder: &mut Encoder| encoder.push(&[7]).map(|_| encoder.window());
    assert_eq!(push(&mut encoder), Ok(1..4));
    assert_eq!(push(&mut encoder), Ok(1..5));
    assert_eq!((push(&mut encoder), encoder.overrun()), (Ok(5..6), 4));
    // An old report soon after the restart has no effect; a later one shows that the feedback delay
    // exceeds a window.
    encoder.acknowledge(2).expect("sent");
    (6..9).for_each(|next| assert_eq!(push(&mut encoder), Ok(5..next + 1)));
    encoder.acknowledge(2).expect("sent");
    assert_eq!(push(&mut encoder), Ok(9..10));
    (10..13).for_each(|next| assert_eq!(push(&mut encoder), Ok(9..next + 1)));
    encoder.acknowledge(8).expect("sent");
    assert_eq!(push(&mut encoder), Ok(10..14));
    // Then it slides for a few windows.
    let slid =
        (0..).find(|_| push(&mut encoder).is_ok_and(|window| window.end - window.start == 1));
    assert_eq!(slid, Some(4 * SLIDES_MAX - 1));
    // The receiver gives up the same packets as the sender.
    let mut decoder = decoder(Config::new(1, 8));
    decoder.handle_source(encoder.window().start - 5, &[7]).expect("new");
    let (repair, payload) = repair(&mut encoder, 1, 3);
    assert_eq!(decoder.handle_repair(&repair, &payload), Ok(()));
    assert_eq!(decoder.report().edge, encoder.window().end);
}

#[test]
fn impossible_shapes_and_lengths_are_refused() {
    let shape = Config::new(10, 8);
    for window_max in [0, 65_536, usize::MAX] {
        let error = Error::Window { window_max };
        assert_eq!(Encoder::new(Config { window_max, ..shape }).err(), Some(error));
        assert_eq!(Decoder::new(Config { window_max, ..shape }).err(), Some(error));
    }
    for repairs_max in [0, 9] {
        let error = Error::Repairs { repairs_max, window_max: 8 };
        assert_eq!(Decoder::new(Config { repairs_max, ..shape }).err(), Some(error));
    }
    let mut encoder = filled(shape, 1);
    let error = Error::Symbol { expected: 10, given: 9 };
    assert_eq!(encoder.push(&[0; 9]), Err(error));
    let mut output = [0xEE; 9];
    assert_eq!(encoder.repair(1, &mut output), Err(error));
    assert_eq!(output, [0xEE; 9]);
    assert_eq!(encoder.window(), 0..1);
}

#[test]
fn packets_of_no_bytes_and_windows_of_one_packet_work() {
    let config = Config::new(0, 1);
    let mut encoder = filled(config, 3);
    let mut decoder = decoder(config);
    let (repair, payload) = repair(&mut encoder, 0, 9);
    assert_eq!(repair.covers(), 2..3);
    assert_eq!(decoder.handle_repair(&repair, &payload), Ok(()));
    assert_eq!(poll_all(&mut decoder, 0), [2]);
    assert_eq!(decoder.report(), Report { edge: 3, next: 3, missing: 0, rank: 0, lost: 2 });
}

#[test]
fn every_discard_reason_is_returned_and_counted() {
    let config = Config { symbol_bytes: 4, window_max: 16, repairs_max: 2 };
    let mut decoder = decoder(config);
    let source = |decoder: &mut Decoder, id, length| decoder.handle_source(id, &vec![1; length]);
    let repair = |decoder: &mut Decoder, first, count, length| {
        let seed = first as u16 ^ count;
        decoder.handle_repair(&Repair { first, count, seed }, &vec![1; length])
    };
    assert_eq!(source(&mut decoder, 0, 5), Err(Discard::Length));
    assert_eq!(repair(&mut decoder, 0, 4, 3), Err(Discard::Length));
    assert_eq!(repair(&mut decoder, 0, 0, 4), Err(Discard::Header));
    assert_eq!(repair(&mut decoder, 0, 17, 4), Err(Discard::Header));
    assert_eq!(repair(&mut decoder, u64::MAX - 3, 4, 4), Err(Discard::Header));
    assert_eq!(source(&mut decoder, u64::MAX, 4), Err(Discard::Ahead));
    assert_eq!(source(&mut decoder, AHEAD_MAX, 4), Err(Discard::Ahead));
    assert_eq!(repair(&mut decoder, AHEAD_MAX - 3, 4, 4), Err(Discard::Ahead));
    assert_eq!(decoder.report(), Report { edge: 0, next: 0, missing: 0, rank: 0, lost: 0 });

    assert_eq!(source(&mut decoder, 4, 4), Ok(()));
    assert_eq!(source(&mut decoder, 4, 4), Err(Discard::Duplicate));
    assert_eq!(repair(&mut decoder, 4, 1, 4), Err(Discard::Redundant));
    assert_eq!(repair(&mut decoder, 0, 4, 4), Ok(()));
    assert_eq!(repair(&mut decoder, 0, 4, 4), Err(Discard::Redundant));
    assert_eq!(repair(&mut decoder, 0, 5, 4), Ok(()));
    assert_eq!(repair(&mut decoder, 0, 3, 4), Err(Discard::Full));
    // Packet 17 evicts 0 and 1, which both held repair packets cover.
    assert_eq!(source(&mut decoder, 17, 4), Ok(()));
    assert_eq!(source(&mut decoder, 1, 4), Err(Discard::Forgotten));
    assert_eq!(repair(&mut decoder, 1, 4, 4), Err(Discard::Forgotten));
    let expected = Discards {
        length: 2,
        header: 3,
        ahead: 3,
        forgotten: 2,
        duplicate: 1,
        redundant: 2,
        full: 1,
        expired: 2,
    };
    assert_eq!(decoder.discards(), expected);
    // The window that began with 4 gave up the packets before it.
    assert_eq!(decoder.report(), Report { edge: 5, next: 18, missing: 12, rank: 0, lost: 4 });
}

#[test]
fn packets_given_up_are_not_given_and_still_help() {
    let config = Config::new(6, 32);
    let mut encoder = filled(config, 8);
    let mut decoder = decoder(config);
    for id in [0, 1, 3, 4, 7] {
        decoder.handle_source(id, &symbol(id, 6)).expect("new");
    }
    let repairs: Vec<_> = (0..3).map(|seed| repair(&mut encoder, 6, seed)).collect();
    decoder.handle_repair(&repairs[0].0, &repairs[0].1).expect("new");
    decoder.forget_before(4);
    // One equation about 2, 5 and 6 determines neither 5 nor 6 without 2.
    let expected = Report { edge: 5, next: 8, missing: 2, rank: 0, lost: 1 };
    assert_eq!(decoder.report(), expected);
    assert_eq!(poll_all(&mut decoder, 6), [4, 7]);
    assert_eq!(poll_all_in_order(&mut decoder, 6), [4]);
    decoder.handle_repair(&repairs[1].0, &repairs[1].1).expect("new");
    assert_eq!(decoder.report(), Report { rank: 1, ..expected });
    // The late packet 2 makes the rest known, but is itself no longer wanted.
    assert_eq!(decoder.handle_source(2, &symbol(2, 6)), Ok(()));
    assert_eq!(poll_all(&mut decoder, 6), [5, 6]);
    assert_eq!(poll_all_in_order(&mut decoder, 6), [5, 6, 7]);
    assert_eq!(decoder.handle_repair(&repairs[2].0, &repairs[2].1), Err(Discard::Redundant));

    decoder.forget_before(1000);
    let expected = Report { edge: 1000, next: 1000, missing: 0, rank: 0, lost: 1 + 992 };
    assert_eq!(decoder.report(), expected);
    decoder.handle_source(1000, &symbol(1000, 6)).expect("new");
    assert_eq!(poll_all_in_order(&mut decoder, 6), [1000]);
    decoder.forget_before(u64::MAX);
    assert_eq!(decoder.handle_source(u64::MAX, &[0; 6]), Err(Discard::Ahead));
    assert_eq!(decoder.handle_source(u64::MAX - 1, &[0; 6]), Ok(()));
    assert_eq!(decoder.poll_in_order(), None);
}

#[test]
fn a_full_decoder_makes_room_by_what_is_not_wanted_any_more() {
    let config = Config { symbol_bytes: 6, window_max: 32, repairs_max: 3 };
    let mut encoder = filled(config, 12);
    let mut decoder = decoder(config);
    for id in [0, 5, 6, 7, 9, 10, 11] {
        decoder.handle_source(id, &symbol(id, 6)).expect("new");
    }
    poll_all(&mut decoder, 6);
    for seed in 0..3 {
        let (repair, payload) = repair(&mut encoder, 6, seed);
        decoder.handle_repair(&repair, &payload).expect("new");
    }
    // Three equations about 1 to 4 and 8, all wanted; then one about 8 alone, which signals that
    // the others are not wanted.
    let (whole, bytes) = repair(&mut encoder, 6, 8);
    assert_eq!(decoder.handle_repair(&whole, &bytes), Err(Discard::Full));
    assert!(!decoder.drop_unwanted());
    encoder.forget_before(5);
    let (repair, payload) = repair(&mut encoder, 6, 9);
    assert_eq!(decoder.handle_repair(&repair, &payload), Err(Discard::Full));
    assert!(decoder.drop_unwanted());
    assert_eq!(decoder.discards().expired, 1);
    assert_eq!(decoder.handle_repair(&repair, &payload), Ok(()));
    assert_eq!(poll_all(&mut decoder, 6), [8]);
    assert_eq!(decoder.report(), Report { edge: 12, next: 12, missing: 0, rank: 0, lost: 4 });
}

#[test]
fn a_repair_packet_over_the_last_numbers_is_decoded() {
    let mut decoder = decoder(Config::new(1, 64));
    let (first, count, seed) = (u64::MAX - 40, 40, 9);
    decoder.forget_before(first);
    for id in first + 1..u64::MAX {
        decoder.handle_source(id, &symbol(id, 1)).expect("new");
    }
    let sum = (first..u64::MAX)
        .fold(0, |sum, id| sum ^ crate::gf256::multiply(coefficient(seed, id), symbol(id, 1)[0]));
    decoder.handle_repair(&Repair { first, count, seed }, &[sum]).expect("new");
    assert_eq!(poll_all_in_order(&mut decoder, 1), (first..u64::MAX).collect::<Vec<_>>());
}

#[test]
#[cfg_attr(miri, ignore = "too many cases for an interpreter")]
fn repair_packets_are_innovative_in_254_of_255_cases() {
    // With D unknowns and only nonzero coefficients, a repair packet adds nothing to the D - 1
    // equations held in about one of 255 cases.
    let config = Config::new(1, 64);
    for unknowns in [2_usize, 3, 6] {
        let (mut failures, trials) = (0_u32, 20_000_u32);
        for trial in 0..trials {
            let mut decoder = decoder(config);
            // Ids in the same octet and far apart, and windows that begin anywhere.
            let ids: Vec<u64> = (0..unknowns as u64).map(|index| index * (1 + index % 3)).collect();
            let end = ids[unknowns - 1] + 1;
            for id in (0..end).filter(|id| !ids.contains(id)) {
                decoder.handle_source(id, &[0]).expect("new");
            }
            let repairs = (0..unknowns).map(|index| Repair {
                first: 0,
                count: end as u16,
                seed: (trial as u16).wrapping_mul(7).wrapping_add(index as u16),
            });
            failures += u32::from(
                repairs
                    .map(|repair| decoder.handle_repair(&repair, &[0]))
                    .any(|held| held.is_err()),
            );
        }
        let expected = f64::from(trials) / 255.0;
        let deviation = (f64::from(failures) - expected).abs();
        assert!(deviation < 4.0 * expected.sqrt(), "{unknowns}: {failures}, not {expected}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many cases for an interpreter")]
fn a_million_packets_pass_in_order_in_constant_memory() {
    let config = Config { symbol_bytes: 4, window_max: 1024, repairs_max: 256 };
    let mut encoder = encoder(config);
    let mut decoder = decoder(Config { window_max: 2048, ..config });
    let memory = decoder.memory_bytes();
    let mut generator = Generator::new(20);
    let mut acknowledgements = std::collections::VecDeque::from(vec![0; 64]);
    let mut delivered = 0;
    for id in 0..1_000_000_u64 {
        encoder.push(&(id as u32).to_be_bytes()).expect("valid");
        if !generator.chance(0.1) {
            decoder.handle_source(id, &(id as u32).to_be_bytes()).expect("new");
        }
        if id % 5 == 4 {
            let mut payload = [0; 4];
            let repair = encoder.repair((id / 5) as u16, &mut payload).expect("one is there");
            if !generator.chance(0.1) {
                let result = decoder.handle_repair(&repair, &payload);
                assert!(matches!(result, Ok(()) | Err(Discard::Redundant)), "{result:?} at {id}");
            }
        }
        while let Some((id, bytes)) = decoder.poll_in_order() {
            assert_eq!((id, bytes), (delivered, &(id as u32).to_be_bytes()[..]));
            delivered += 1;
        }
        let report = decoder.report();
        assert!(report.rank <= report.missing);
        assert_eq!(report.edge, delivered);
        acknowledgements.push_back(report.edge);
        let acknowledged = acknowledgements.pop_front().expect("64 are under way");
        encoder.acknowledge(acknowledged).expect("sent");
    }
    assert_eq!(encoder.overrun(), 0);
    assert!(delivered > 999_000, "{delivered}");
    assert_eq!(decoder.memory_bytes(), memory);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 256 }))]

    #[test]
    fn the_decoder_knows_at_once_what_can_be_known(
        seed in any::<u64>(),
        loss in 0.0..0.6_f64,
        disorder in 0.0..0.5_f64,
        window_max in 1..48_usize,
        memory in 0..60_usize,
        repairs_max in 1..60_usize,
        length in 0..40_usize,
    ) {
        let mut generator = Generator::new(seed);
        let config = Config { symbol_bytes: length, window_max, repairs_max: 1 };
        let mut encoder = encoder(config);
        let window_max = window_max + memory;
        let config = Config { window_max, repairs_max: repairs_max.min(window_max), ..config };
        let mut decoder = decoder(config);
        let mut model = Model::new(config);
        // Packets in flight, by the slot in which they arrive.
        let mut under_way: BTreeMap<(u64, u64), Packet> = BTreeMap::new();
        let mut interval = 1 + generator.below(6);
        for slot in 0..if cfg!(miri) { 20 } else { 150_u64 } {
            let packet = if slot % interval == interval - 1 && !encoder.window().is_empty() {
                // The interval may change at any packet.
                interval = 1 + generator.below(6);
                let (repair, payload) = repair(&mut encoder, length, generator.next() as u16);
                Packet::Repair(repair, payload)
            } else {
                let id = encoder.window().end;
                encoder.push(&symbol(id, length)).expect("valid");
                Packet::Source(id)
            };
            let copies = if generator.chance(0.05) { 2 } else { 1 };
            for copy in 0..copies {
                if !generator.chance(loss) {
                    let late = generator.chance(disorder);
                    let delay = if late { generator.below(20) } else { 0 };
                    under_way.insert((slot + delay, 2 * slot + copy), packet.clone());
                }
            }
            while let Some(arrival) = under_way.first_entry().filter(|entry| entry.key().0 <= slot) {
                match arrival.remove() {
                    Packet::Source(id) => {
                        let result = decoder.handle_source(id, &symbol(id, length));
                        while decoder.catch_up() {}
                        prop_assert_eq!(result, model.handle_source(id));
                    }
                    Packet::Repair(repair, payload) => {
                        let result = decoder.handle_repair(&repair, &payload);
                        while decoder.catch_up() {}
                        prop_assert_eq!(result, model.handle_repair(repair));
                    }
                }
                prop_assert_eq!(decoder.report(), model.report());
            }
            if generator.chance(0.3) {
                encoder.acknowledge(decoder.report().edge).expect("sent");
            }
            if generator.chance(0.03) {
                let id = decoder.report().edge + generator.below(10);
                let id = id.min(encoder.window().end);
                decoder.forget_before(id);
                model.forget_before(id);
                prop_assert_eq!(decoder.report(), model.report());
                encoder.forget_before(id);
            }
            let known = poll_all(&mut decoder, length);
            prop_assert_eq!(known, model.poll());
            let in_order = poll_all_in_order(&mut decoder, length);
            prop_assert_eq!(in_order, model.poll_in_order());
        }
    }

    #[test]
    fn repair_packets_begun_in_advance_are_those_of_their_window(
        seed in any::<u64>(),
        window_max in 1..70_usize,
        length in 0..70_usize,
    ) {
        let mut generator = Generator::new(seed);
        let mut encoder = encoder(Config::new(length, window_max));
        // Counts up, also past 65535; jumps now and then.
        let mut repair_seed = 65_500_u16;
        let interval = 1 + generator.below(12);
        for step in 0..400 {
            let window = encoder.window();
            if step % interval != 0 || window.is_empty() {
                encoder.push(&symbol(window.end, length)).expect("valid");
            } else {
                let (repair, payload) = repair(&mut encoder, length, repair_seed);
                prop_assert_eq!(repair.covers(), window.clone());
                prop_assert_eq!(payload, sum(repair, length));
                let leap = if generator.chance(0.1) { generator.next() as u16 } else { 0 };
                repair_seed = repair_seed.wrapping_add(1).wrapping_add(leap);
            }
            if generator.chance(0.1) {
                let acknowledged = window.start + generator.below(1 + window.end - window.start);
                encoder.acknowledge(acknowledged).expect("sent");
            }
        }
    }

    #[test]
    fn any_headers_and_bytes_are_handled_in_constant_memory(
        seed in any::<u64>(),
        window_max in 1..200_usize,
        repairs_max in 1..40_usize,
        length in 0..9_usize,
        steps in 0..if cfg!(miri) { 60 } else { 400_usize },
        spread in 1..64_u32,
    ) {
        let mut generator = Generator::new(seed);
        let repairs_max = repairs_max.min(window_max);
        let mut decoder = decoder(Config { symbol_bytes: length, window_max, repairs_max });
        let memory = decoder.memory_bytes();
        for _ in 0..steps {
            let given = if generator.chance(0.05) { length + 1 } else { length };
            let bytes = symbol(generator.next(), given);
            let near = decoder.report().next.saturating_sub(generator.below(window_max as u64 + 9));
            let far = generator.next() >> (generator.below(u64::from(spread)));
            let id = if generator.chance(0.9) { near } else { far };
            let _ = match generator.below(20) {
                0..8 => decoder.handle_source(id, &bytes),
                8..19 => {
                    let count = generator.next() as u16 >> generator.below(16);
                    let repair = Repair { first: id, count, seed: generator.next() as u16 };
                    decoder.handle_repair(&repair, &bytes)
                }
                _ => {
                    decoder.forget_before(id);
                    Ok(())
                }
            };
            if generator.chance(0.02) {
                decoder.drop_unwanted();
            }
            let report = decoder.report();
            prop_assert!(report.rank <= report.missing.min(repairs_max));
            prop_assert!(report.missing <= window_max);
            prop_assert!(report.edge <= report.next);
            if generator.chance(0.5) {
                while decoder.poll().is_some() {}
            }
            let mut expected = 0;
            while let Some((id, _)) = decoder.poll_in_order() {
                prop_assert!(id >= expected);
                expected = id + 1;
            }
            prop_assert_eq!(decoder.memory_bytes(), memory);
        }
    }
}

#[derive(Clone, Debug)]
enum Packet {
    Source(u64),
    Repair(Repair, Vec<u8>),
}
