//! Reproducible pseudo-random numbers: every contender sees the same losses.

/// A SplitMix64 generator: any seed is good, and every run is the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Seeds a generator with the given numbers in order; different seeds yield unrelated
    /// sequences.
    pub(crate) fn of(seeds: &[u64]) -> Random {
        let mut random = Random(0x7AE7_113E);
        for &seed in seeds {
            random.0 = random.next() ^ seed;
        }
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `0..bound`; `bound` is small.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }

    /// Returns `count` different numbers of `0..bound`, ascending.
    pub(crate) fn choose(&mut self, count: usize, bound: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..bound).collect();
        for position in 0..count {
            let other = position + self.below(bound - position);
            all.swap(position, other);
        }
        all.truncate(count);
        all.sort_unstable();
        all
    }
}
