//! Encoding work, for codes that operate on their caller's packets.

use super::Case;
use crate::measure::Work;
use crate::memory::frozen;

/// Repeated encoding of each block of a case; every encoding of a block must have the same output.
pub(super) struct Encoding<'a, E> {
    /// Writes the repair packets of the source packets.
    encode: E,
    blocks: Vec<Block<'a>>,
}

struct Block<'a> {
    sources: Vec<&'a [u8]>,
    repairs: Vec<&'a mut [u8]>,
    expected: Vec<&'a mut [u8]>,
}

impl<'a, E: Fn(&[&[u8]], &mut [&'a mut [u8]]) + 'a> Encoding<'a, E> {
    pub(super) fn of(mut case: Case<'a>, encode: E) -> Box<dyn Work + 'a> {
        let mut blocks = Vec::new();
        for block in 0..case.block_count {
            let sources = frozen(case.sources(block));
            let mut expected = case.repairs();
            encode(&sources, &mut expected);
            blocks.push(Block { sources, repairs: case.repairs(), expected });
        }
        Box::new(Self { encode, blocks })
    }
}

impl<'a, E: Fn(&[&[u8]], &mut [&'a mut [u8]])> Work for Encoding<'a, E> {
    fn prepare(&mut self, _: usize, _: u64) {}

    fn run(&mut self, block: usize) {
        let Block { sources, repairs, .. } = &mut self.blocks[block];
        (self.encode)(sources, repairs);
    }

    fn is_right(&mut self, block: usize) -> bool {
        self.blocks[block].repairs == self.blocks[block].expected
    }
}
