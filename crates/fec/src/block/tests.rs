use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::gf256;

fn code(source_count: usize, packet_count: usize) -> Code {
    Code::new(source_count, packet_count).expect("a valid shape")
}

/// Returns the codes of both schemes on every kernel of this CPU, where they exist.
fn codes(source_count: usize, packet_count: usize) -> impl Iterator<Item = Code> {
    [Scheme::Cauchy, Scheme::Fft]
        .into_iter()
        .filter_map(move |scheme| Code::with_scheme(scheme, source_count, packet_count).ok())
        .flat_map(|code| Kernel::all().map(move |kernel| code.on(kernel)))
}

/// Returns `count` packets of `length` pseudo-random bytes.
fn packets(count: usize, length: usize, seed: u32) -> Vec<Vec<u8>> {
    let mut state = seed ^ 0x9E37_79B9;
    let mut byte = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..count).map(|_| (0..length).map(|_| byte()).collect()).collect()
}

fn views(packets: &[Vec<u8>]) -> Vec<&[u8]> {
    packets.iter().map(Vec::as_slice).collect()
}

/// Returns all n packets of a block.
fn encoded(code: Code, sources: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut all = sources.to_vec();
    all.resize(code.packet_count(), vec![0x5A; sources[0].len()]);
    let mut repairs: Vec<&mut [u8]> =
        all[code.source_count()..].iter_mut().map(Vec::as_mut_slice).collect();
    code.encode(&views(sources), &mut repairs).expect("valid packets");
    all
}

/// Recovers all lost sources from the packets in `kept` and compares them.
///
/// Every packet has a different alignment and ends at the end of its allocation.
fn assert_recovers(code: Code, all: &[Vec<u8>], kept: &[usize]) {
    let length = all[0].len();
    let shift = |index: usize| (index * 7 + length) % 65;
    let shifted: Vec<Vec<u8>> =
        kept.iter().map(|&index| [vec![0; shift(index)], all[index].clone()].concat()).collect();
    let received: Vec<(usize, &[u8])> =
        kept.iter().zip(&shifted).map(|(&index, bytes)| (index, &bytes[shift(index)..])).collect();

    let lost: Vec<usize> = (0..code.source_count()).filter(|index| !kept.contains(index)).collect();
    let mut outputs: Vec<Vec<u8>> =
        lost.iter().map(|&index| vec![0xC3; shift(index) + length]).collect();
    let mut missing: Vec<(usize, &mut [u8])> = lost
        .iter()
        .zip(&mut outputs)
        .map(|(&index, output)| (index, &mut output[shift(index)..]))
        .collect();
    code.recover(&received, &mut missing).expect("k packets are there");
    for (&index, output) in lost.iter().zip(&outputs) {
        let name = code.kernel().name();
        let recovered = &output[shift(index)..];
        assert_eq!(recovered, &all[index], "{name}: packet {index} of {code:?} from {kept:?}");
    }
}

#[test]
fn repair_packets_follow_the_documented_matrix() {
    let code = code(5, 256);
    let sources = packets(5, 3, 1);
    let all = encoded(code, &sources);
    for (i, repair) in all.iter().enumerate().skip(5) {
        for (at, &byte) in repair.iter().enumerate() {
            let sum = sources.iter().enumerate().fold(0, |sum, (j, source)| {
                let coefficient = gf256::invert((i ^ j) as u8).expect("i differs from j");
                sum ^ gf256::multiply(coefficient, source[at])
            });
            assert_eq!(byte, sum, "byte {at} of packet {i}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many cases for an interpreter")]
fn fft_repair_packets_follow_the_documented_matrix() {
    for (source_count, repair_count, m) in [
        (1, 1, 1),
        (7, 1, 1),
        (9, 2, 2),
        (5, 3, 4),
        (30, 4, 4),
        (40, 7, 8),
        (9, 9, 16),
        (100, 13, 16),
        (70, 17, 32),
        (64, 32, 32),
        (33, 33, 64),
        (100, 50, 64),
        (128, 65, 128),
        (128, 128, 128),
    ] {
        let sources = packets(source_count, 2, 8);
        for kernel in Kernel::all() {
            let code = Code::with_scheme(Scheme::Fft, source_count, source_count + repair_count);
            let all = encoded(code.expect("valid").on(kernel), &sources);
            for (r, repair) in all[source_count..].iter().enumerate() {
                for (at, &byte) in repair.iter().enumerate() {
                    let sum = sources.iter().zip(m..).fold(0, |sum, (source, x)| {
                        sum ^ gf256::multiply(lagrange(r, m, x), source[at])
                    });
                    assert_eq!(byte, sum, "byte {at} of {r}, {}", kernel.name());
                }
            }
        }
    }
}

/// Returns the value at `x` of the polynomial of degree < m that is 1 at r and 0 at the other
/// points of 0..m.
fn lagrange(r: usize, m: usize, x: usize) -> u8 {
    (0..m).filter(|&i| i != r).fold(1, |product, i| {
        let inverse = gf256::invert((r ^ i) as u8).expect("i differs from r");
        gf256::multiply(product, gf256::multiply((x ^ i) as u8, inverse))
    })
}

#[test]
fn the_single_repair_packet_of_an_fft_block_is_the_source_xor() {
    let sources = packets(20, 9, 3);
    let code = Code::with_scheme(Scheme::Fft, 20, 21).expect("valid");
    let repair = &encoded(code, &sources)[20];
    for (at, &byte) in repair.iter().enumerate() {
        assert_eq!(byte, sources.iter().fold(0, |sum, source| sum ^ source[at]));
    }
}

#[test]
fn the_fft_code_is_taken_where_it_exists() {
    assert_eq!(Scheme::fastest(100, 150), Scheme::Fft);
    assert_eq!(Scheme::fastest(192, 256), Scheme::Fft);
    assert_eq!(Scheme::fastest(193, 256), Scheme::Cauchy);
    assert_eq!(Scheme::fastest(127, 256), Scheme::Cauchy);
    assert_eq!(
        Code::with_scheme(Scheme::Fft, 127, 256),
        Err(Error::FftShape { source_count: 127, packet_count: 256 })
    );
    assert_eq!(Scheme::Cauchy.identifier(), 0);
    assert_eq!(Scheme::Fft.identifier(), 1);
}

#[test]
fn a_known_block_encodes_to_these_bytes() {
    // A test vector for other implementations: k = 3, n = 6.
    let sources = [[0x01, 0x00, 0x00, 0xFF], [0x00, 0x01, 0x00, 0x80], [0x00, 0x00, 0x01, 0x2A]];
    let mut repairs = [[0; 4]; 3];
    let mut outputs: Vec<&mut [u8]> = repairs.iter_mut().map(|repair| &mut repair[..]).collect();
    code(3, 6).encode(&sources.each_ref().map(|source| &source[..]), &mut outputs).expect("valid");
    // Rows 1/3, 1/2, 1/1; 1/4, 1/5, 1/6; 1/5, 1/4, 1/7; computed independently of this code.
    assert_eq!(
        repairs,
        [[0xF4, 0x8E, 0x01, 0x3F], [0x47, 0xA7, 0x7A, 0x77], [0xA7, 0x47, 0xBA, 0x1D]]
    );
    let code = Code::with_scheme(Scheme::Fft, 3, 6).expect("valid");
    let mut outputs: Vec<&mut [u8]> = repairs.iter_mut().map(|repair| &mut repair[..]).collect();
    code.encode(&sources.each_ref().map(|source| &source[..]), &mut outputs).expect("valid");
    // Lagrange's polynomials on 0..4, at 4, 5 and 6; computed independently of this code.
    assert_eq!(
        repairs,
        [[0x1B, 0x1C, 0x12, 0x94], [0x1C, 0x1B, 0x14, 0x08], [0x12, 0x14, 0x1B, 0xD3]]
    );
}

#[test]
#[cfg_attr(miri, ignore = "too many cases for an interpreter")]
fn repair_packets_do_not_depend_on_how_many_there_are() {
    let sources = packets(9, 33, 2);
    let long = encoded(code(9, 256), &sources);
    for packet_count in 9..=40 {
        assert_eq!(encoded(code(9, packet_count), &sources), long[..packet_count]);
    }
}

#[test]
fn fewer_repair_packets_than_the_code_has_may_be_written() {
    let sources = packets(4, 20, 3);
    let all = encoded(code(4, 10), &sources);
    let mut fourth = vec![0; 20];
    code(4, 10).encode(&views(&sources), &mut [&mut fourth]).expect("valid");
    assert_eq!(fourth, all[4]);
    code(4, 10).encode(&views(&sources), &mut []).expect("none is fine");
}

#[test]
#[cfg_attr(miri, ignore = "too many cases for an interpreter")]
fn every_choice_of_k_packets_recovers_a_small_block() {
    for code in codes(5, 11) {
        let all = encoded(code, &packets(5, 19, 4));
        for choice in 0..1_u32 << 11 {
            if choice.count_ones() == 5 {
                let kept: Vec<usize> = (0..11).filter(|index| choice >> index & 1 == 1).collect();
                assert_recovers(code, &all, &kept);
            }
        }
    }
}

#[test]
fn every_kernel_recovers_every_length() {
    for code in codes(6, 10) {
        for length in (0..=300).step_by(if cfg!(miri) { 67 } else { 1 }) {
            let all = encoded(code, &packets(6, length, length as u32));
            assert_recovers(code, &all, &[7, 1, 9, 3, 6, 4]);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many cases for an interpreter")]
fn the_largest_blocks_recover_from_the_last_packets() {
    for source_count in [1, 60, 128, 192, 200, 224, 255, 256] {
        for code in codes(source_count, 256) {
            let all = encoded(code, &packets(source_count, 70, 5));
            let kept: Vec<usize> = (256 - source_count..256).collect();
            assert_recovers(code, &all, &kept);
        }
    }
}

#[test]
fn part_of_the_lost_packets_can_be_asked_for_in_any_order() {
    for code in codes(30, 60) {
        let all = encoded(code, &packets(30, 50, 6));
        let received: Vec<(usize, &[u8])> =
            (20..60).map(|index| (index, all[index].as_slice())).collect();
        let (mut seventeenth, mut third) = (vec![0; 50], vec![0; 50]);
        code.recover(&received, &mut [(17, &mut seventeenth), (3, &mut third)]).expect("enough");
        assert_eq!((&seventeenth, &third), (&all[17], &all[3]));
    }
}

#[test]
fn nothing_asked_for_does_nothing() {
    for (source_count, packet_count) in [(1, 1), (1, 2), (2, 2), (5, 5), (5, 9), (100, 150)] {
        let sources = packets(source_count, 8, 3);
        for code in codes(source_count, packet_count) {
            assert_eq!(code.encode(&views(&sources), &mut []), Ok(()), "{code:?}");
        }
    }
}

#[test]
fn nothing_lost_does_nothing() {
    assert_eq!(code(3, 5).recover(&[], &mut []), Ok(()));
}

#[test]
fn impossible_shapes_are_refused() {
    for (source_count, packet_count) in [(0, 0), (0, 5), (6, 5), (3, 257), (usize::MAX, 1)] {
        let error = Error::Shape { source_count, packet_count };
        assert_eq!(Code::new(source_count, packet_count), Err(error));
    }
    for (source_count, packet_count) in [(1, 1), (1, 256), (256, 256), (255, 256)] {
        let code = code(source_count, packet_count);
        assert_eq!(code.source_count(), source_count);
        assert_eq!(code.packet_count(), packet_count);
        assert_eq!(code.repair_count(), packet_count - source_count);
    }
}

#[test]
fn encode_reports_invalid_arguments_and_writes_nothing() {
    let code = code(2, 4);
    let sources = packets(2, 8, 7);
    let mut outputs = vec![vec![0xEE; 8]; 3];
    let mut encode = |sources: &[&[u8]], lengths: &[usize]| {
        let mut repairs: Vec<&mut [u8]> = outputs
            .iter_mut()
            .zip(lengths)
            .map(|(output, &length)| &mut output[..length])
            .collect();
        let result = code.encode(sources, &mut repairs);
        assert!(outputs.iter().flatten().all(|&byte| byte == 0xEE));
        result
    };
    let (first, second) = (&sources[0][..], &sources[1][..]);
    let few = encode(&[first], &[8]);
    assert_eq!(few, Err(Error::SourceCount { expected: 2, given: 1 }));
    let many = encode(&[first, second], &[8, 8, 8]);
    assert_eq!(many, Err(Error::RepairCount { available: 2, asked: 3 }));
    let short_source = encode(&[first, &second[..7]], &[8]);
    assert_eq!(short_source, Err(Error::Length { index: 1, expected: 8, given: 7 }));
    let short_repair = encode(&[first, second], &[8, 5]);
    assert_eq!(short_repair, Err(Error::Length { index: 3, expected: 8, given: 5 }));
    let text = few.expect_err("too few").to_string();
    assert_eq!(text, "1 source packets were given to a block of 2");
}

#[test]
fn recover_reports_invalid_arguments_and_writes_nothing() {
    let code = code(3, 6);
    let packet = [0; 8];
    let mut outputs = [[0xEE; 8]; 2];
    let mut recover = |received: &[usize], asked: &[(usize, usize)]| {
        let received: Vec<(usize, &[u8])> =
            received.iter().map(|&index| (index, &packet[..])).collect();
        let mut missing: Vec<(usize, &mut [u8])> = asked
            .iter()
            .zip(&mut outputs)
            .map(|(&(index, length), output)| (index, &mut output[..length]))
            .collect();
        let result = code.recover(&received, &mut missing);
        assert!(outputs.iter().flatten().all(|&byte| byte == 0xEE));
        result.expect_err("wrong input")
    };
    let outside = recover(&[0, 6, 1], &[(2, 8)]);
    assert_eq!(outside, Error::PacketIndex { index: 6, packet_count: 6 });
    let far_outside = recover(&[usize::MAX], &[(2, 8)]);
    assert_eq!(far_outside, Error::PacketIndex { index: usize::MAX, packet_count: 6 });
    assert_eq!(recover(&[0, 4, 4, 5], &[(1, 8)]), Error::Duplicate { index: 4 });
    assert_eq!(recover(&[0, 4], &[(1, 8)]), Error::TooFew { needed: 3, received: 2 });
    assert_eq!(recover(&[], &[(1, 8)]), Error::TooFew { needed: 3, received: 0 });
    let repair = recover(&[0, 4, 5], &[(3, 8)]);
    assert_eq!(repair, Error::NotASource { index: 3, source_count: 3 });
    assert_eq!(recover(&[0, 4, 5], &[(1, 8), (0, 8)]), Error::NotMissing { index: 0 });
    assert_eq!(recover(&[0, 4, 5], &[(1, 8), (1, 8)]), Error::Duplicate { index: 1 });
    let short = recover(&[0, 4, 5], &[(1, 8), (2, 7)]);
    assert_eq!(short, Error::Length { index: 2, expected: 8, given: 7 });

    let received: [(usize, &[u8]); 3] = [(0, &packet), (4, &packet[..7]), (5, &packet)];
    let short = code.recover(&received, &mut [(1, &mut [0; 8])]);
    assert_eq!(short, Err(Error::Length { index: 4, expected: 8, given: 7 }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn any_k_of_n_packets_recover_the_block(
        source_count in 1..=256_usize,
        repair_share in any::<Index>(),
        length in 0..200_usize,
        order in any::<[u64; 32]>(),
        seed in any::<u32>(),
    ) {
        let packet_count = source_count + repair_share.index(257 - source_count);
        // A pseudo-random order of all indices; its first k are received.
        let mut kept: Vec<usize> = (0..packet_count).collect();
        kept.sort_by_key(|&index| {
            (order[index % 32] ^ index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        });
        kept.truncate(source_count);
        for code in codes(source_count, packet_count) {
            let all = encoded(code, &packets(source_count, length, seed));
            assert_recovers(code, &all, &kept);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn any_call_of_recover_returns(
        shape in (1..20_usize, 0..20_usize),
        received in prop::collection::vec((0..45_usize, 0..4_usize), 0..40),
        asked in prop::collection::vec((0..45_usize, 0..4_usize), 0..20),
    ) {
        let code = code(shape.0, shape.0 + shape.1);
        let packet = [7; 4];
        let received: Vec<(usize, &[u8])> = received
            .iter()
            .map(|&(index, length)| (index, &packet[..length.max(3)]))
            .collect();
        let mut outputs = vec![[0; 4]; asked.len()];
        let mut missing: Vec<(usize, &mut [u8])> = asked
            .iter()
            .zip(&mut outputs)
            .map(|(&(index, length), output)| (index, &mut output[..length.max(3)]))
            .collect();
        let _ = code.recover(&received, &mut missing);
    }
}
