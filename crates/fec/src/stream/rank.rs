//! Rank of the equations from received repair packets, as the sender computes it.

use core::ops::Range;

use super::coefficient;
use crate::gf256::{invert, multiply};

/// Returns the number of independent equations that the repair packets give about the `missing`
/// source packets. Each repair packet is a seed and the range of source packets that it covers.
///
/// If the rank is `missing.len()`, a receiver that lacks no other source packet in these ranges can
/// compute all of them. If each repair packet covers all of `missing`, the rank is the smaller of
/// the two numbers, in about one of 255 cases one less. For more than [`RANK_MAX`] missing packets
/// nothing is computed, and the smaller number is returned. O(m^2 r), for m missing packets and r
/// repair packets.
pub fn rank(missing: &[u64], repairs: impl Iterator<Item = (u16, Range<u64>)>) -> usize {
    if missing.len() > RANK_MAX {
        return repairs.take(missing.len()).count();
    }
    // Each row with the position of its first 1.
    let (mut rows, mut count) = ([(0, [0; RANK_MAX]); RANK_MAX], 0);
    for (seed, covers) in repairs {
        if count == missing.len() {
            break;
        }
        let mut row = [0; RANK_MAX];
        for (cell, id) in row.iter_mut().zip(missing).filter(|(_, id)| covers.contains(*id)) {
            *cell = coefficient(seed, *id);
        }
        for (pivot, known) in &rows[..count] {
            let multiplier = row[*pivot];
            add(&mut row, known, multiplier);
        }
        let Some(pivot) = row.iter().position(|cell| *cell != 0) else { continue };
        let inverse = invert(row[pivot]).expect("it is not 0");
        row.iter_mut().for_each(|cell| *cell = multiply(*cell, inverse));
        rows[count] = (pivot, row);
        count += 1;
    }
    count
}

fn add(row: &mut Row, known: &Row, multiplier: u8) {
    if multiplier != 0 {
        row.iter_mut().zip(known).for_each(|(a, b)| *a ^= multiply(*b, multiplier));
    }
}

type Row = [u8; RANK_MAX];

/// Maximum number of missing packets for which [`rank`] computes the exact value: it bounds the
/// work.
pub const RANK_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stream::{Config, Decoder, Discard, Encoder};

    proptest! {
        /// A decoder that receives the same packets finds the same number of them useful.
        #[test]
        fn it_is_what_a_decoder_finds_useful(
            lost in proptest::collection::btree_set(0_u64..40, 1..12),
            kept in proptest::collection::vec(any::<bool>(), 1..20),
            seed in any::<u16>(),
        ) {
            let config = Config::new(2, 64);
            let mut encoder = Encoder::new(config).unwrap();
            let mut decoder = Decoder::new(config).unwrap();
            for id in 0..40_u64 {
                encoder.push(&[id as u8, 1]).unwrap();
                if !lost.contains(&id) {
                    decoder.handle_source(id, &[id as u8, 1]).unwrap();
                }
            }
            let mut payload = [0; 2];
            let (mut repairs, mut useful) = (Vec::new(), 0);
            for (number, _) in kept.iter().enumerate().filter(|(_, kept)| **kept) {
                let repair = encoder.repair(seed.wrapping_add(number as u16), &mut payload).unwrap();
                repairs.push((repair.seed, repair.covers()));
                match decoder.handle_repair(&repair, &payload) {
                    Ok(()) => useful += 1,
                    Err(discard) => prop_assert_eq!(discard, Discard::Redundant),
                }
            }
            let missing: Vec<u64> = lost.into_iter().collect();
            prop_assert_eq!(rank(&missing, repairs.into_iter()), useful);
        }
    }

    #[test]
    fn two_that_say_the_same_of_two_packets_are_one() {
        let covers = 0..2;
        let same = (1..2000_u16).find(|seed| {
            let product = |a, b| multiply(coefficient(a, 0), coefficient(b, 1));
            product(0, *seed) == product(*seed, 0)
        });
        let seeds = |count| [0, same.expect("one in 255"), 5000].into_iter().take(count);
        let of = |count| rank(&[0, 1], seeds(count).map(|seed| (seed, covers.clone())));
        assert_eq!([of(1), of(2), of(3)], [1, 1, 2]);
    }
}
