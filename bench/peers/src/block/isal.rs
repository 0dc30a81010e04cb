//! Intel's ISA-L, the C library of storage systems, as packaged by Debian.

use super::{Case, Code, Family, Shape};
use crate::isal::{Sources, Tables, Targets, cauchy_matrix, invert};
use crate::measure::Work;
use crate::memory::frozen;

/// ISA-L's Cauchy code, decoded in one of two ways.
pub(super) struct Isal {
    pub(super) decoding: Decoding,
}

/// Method of computing lost packets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoding {
    /// As in its own example: invert the k x k matrix of the received rows.
    AsItsExample,
    /// As a careful user would implement it: encode the received packets, invert m x m.
    Syndromes,
}

impl Code for Isal {
    fn name(&self) -> String {
        let version = env!("ISAL_VERSION");
        match self.decoding {
            Decoding::AsItsExample => format!("ISA-L {version}"),
            Decoding::Syndromes => format!("ISA-L {version} m x m"),
        }
    }

    fn family(&self) -> Family {
        Family::Isal
    }

    fn encoder<'a>(&self, mut case: Case<'a>) -> Option<Box<dyn Work + 'a>> {
        if self.decoding != Decoding::AsItsExample {
            return None;
        }
        let shape = case.shape;
        let matrix = cauchy_matrix(shape.sources, shape.repairs);
        let tables = Tables::new(shape.sources, &matrix[shape.sources * shape.sources..]);
        let blocks = (0..case.block_count).map(|block| {
            let sources = Sources::new(&frozen(case.sources(block)));
            let (mut expected, repairs) = (Targets::new(case.repairs()), case.repairs());
            tables.encode(&sources, &mut expected);
            Encoding { sources, repairs: Targets::new(repairs), expected }
        });
        let blocks = blocks.collect();
        Some(Box::new(Encoder { tables, blocks }))
    }

    fn decoder<'a>(&self, mut case: Case<'a>) -> Box<dyn Work + 'a> {
        let shape = case.shape;
        let matrix = cauchy_matrix(shape.sources, shape.repairs);
        let tables = Tables::new(shape.sources, &matrix[shape.sources * shape.sources..]);
        let zeros = frozen(case.packets.take(1))[0];
        let mut blocks = Vec::new();
        for block in 0..case.block_count {
            let sources = frozen(case.sources(block));
            let mut repairs = case.repairs();
            let mut outputs =
                Targets::new(repairs.iter_mut().map(|repair| &mut **repair).collect());
            tables.encode(&Sources::new(&sources), &mut outputs);
            blocks.push(Recovery {
                inputs: Sources::new(&sources),
                sources,
                repairs: frozen(repairs),
                restored: Targets::new(case.repairs()),
                syndromes: Targets::new(case.repairs()),
                lost: Vec::new(),
            });
        }
        let scratch = Scratch {
            matrix: vec![0; shape.sources * shape.sources],
            inverse: vec![0; shape.sources * shape.sources],
            tables: Tables::new(shape.sources, &matrix),
        };
        Box::new(Decoder { decoding: self.decoding, shape, matrix, tables, zeros, scratch, blocks })
    }
}

struct Encoder<'a> {
    tables: Tables,
    blocks: Vec<Encoding<'a>>,
}

struct Encoding<'a> {
    sources: Sources<'a>,
    repairs: Targets<'a>,
    expected: Targets<'a>,
}

impl Work for Encoder<'_> {
    fn prepare(&mut self, _: usize, _: u64) {}

    fn run(&mut self, block: usize) {
        let Encoding { sources, repairs, .. } = &mut self.blocks[block];
        self.tables.encode(sources, repairs);
    }

    fn is_right(&mut self, block: usize) -> bool {
        self.blocks[block].repairs.packets() == self.blocks[block].expected.packets()
    }
}

struct Decoder<'a> {
    decoding: Decoding,
    shape: Shape,
    /// Generator matrix: k rows of the identity, m of Cauchy.
    matrix: Vec<u8>,
    tables: Tables,
    zeros: &'a [u8],
    scratch: Scratch,
    blocks: Vec<Recovery<'a>>,
}

struct Scratch {
    matrix: Vec<u8>,
    inverse: Vec<u8>,
    tables: Tables,
}

struct Recovery<'a> {
    sources: Vec<&'a [u8]>,
    repairs: Vec<&'a [u8]>,
    /// Received packets, in the order in which the decoder reads them.
    inputs: Sources<'a>,
    syndromes: Targets<'a>,
    restored: Targets<'a>,
    lost: Vec<usize>,
}

impl Work for Decoder<'_> {
    fn prepare(&mut self, block: usize, pattern: u64) {
        let Recovery { sources, repairs, inputs, restored, lost, .. } = &mut self.blocks[block];
        *lost = self.shape.lost(pattern);
        let is_lost = |index: usize| lost.binary_search(&index).is_ok();
        match self.decoding {
            Decoding::AsItsExample => {
                let all = sources.iter().chain(&*repairs).copied().enumerate();
                inputs.set(all.filter(|&(index, _)| !is_lost(index)).map(|(_, packet)| packet));
            }
            Decoding::Syndromes => {
                let sources = sources.iter().enumerate();
                inputs.set(sources.map(
                    |(index, &packet)| {
                        if is_lost(index) { self.zeros } else { packet }
                    },
                ));
            }
        }
        restored.packets_mut().into_iter().for_each(|packet| packet.fill(0));
    }

    fn run(&mut self, block: usize) {
        match self.decoding {
            Decoding::AsItsExample => self.invert_all(block),
            Decoding::Syndromes => self.invert_lost(block),
        }
    }

    fn is_right(&mut self, block: usize) -> bool {
        let Recovery { sources, restored, lost, .. } = &self.blocks[block];
        lost.iter().zip(restored.packets()).all(|(&index, packet)| *packet == *sources[index])
    }
}

impl Decoder<'_> {
    /// Inverts the k received rows of the generator and multiplies by the rows of the lost packets.
    fn invert_all(&mut self, block: usize) {
        let Recovery { inputs, restored, lost, .. } = &mut self.blocks[block];
        let size = self.shape.sources;
        let Scratch { matrix, inverse, tables } = &mut self.scratch;
        let rows = self.matrix.chunks_exact(size).enumerate();
        let came = rows.filter(|(index, _)| lost.binary_search(index).is_err());
        for (target, (_, row)) in matrix.chunks_exact_mut(size).zip(came) {
            target.copy_from_slice(row);
        }
        invert(matrix, inverse, size);
        for (row, &lost) in lost.iter().enumerate() {
            matrix[row * size..][..size].copy_from_slice(&inverse[lost * size..][..size]);
        }
        tables.set(size, &matrix[..lost.len() * size]);
        tables.encode(inputs, restored);
    }

    /// Subtracts the received packets from the repair packets and multiplies by the small inverse.
    fn invert_lost(&mut self, block: usize) {
        let Recovery { repairs, inputs, syndromes, restored, lost, .. } = &mut self.blocks[block];
        let (sources, size) = (self.shape.sources, lost.len());
        self.tables.encode(inputs, syndromes);
        for (syndrome, repair) in syndromes.packets_mut().into_iter().zip(repairs) {
            syndrome.iter_mut().zip(*repair).for_each(|(sum, byte)| *sum ^= byte);
        }
        let Scratch { matrix, inverse, tables } = &mut self.scratch;
        let rows = self.matrix.chunks_exact(sources).skip(sources);
        for (target, row) in matrix.chunks_exact_mut(size).zip(rows) {
            target.iter_mut().zip(&*lost).for_each(|(target, &lost)| *target = row[lost]);
        }
        let (matrix, inverse) = (&mut matrix[..size * size], &mut inverse[..size * size]);
        invert(matrix, inverse, size);
        tables.set(size, inverse);
        tables.encode(&syndromes.as_sources(), restored);
    }
}
