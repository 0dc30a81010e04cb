//! Sums of many packets, without allocating a list for each.

use alloc::vec::Vec;
use core::mem;

use super::operations;
use crate::kernel::{Column, Kernel};

/// Reusable buffers for the lists of packets and of their coefficients, empty between sums.
#[derive(Debug)]
pub(super) struct Scratch {
    columns: Vec<Column>,
    inputs: Vec<&'static [u8]>,
}

impl Scratch {
    /// Returns buffers for sums of `count` packets.
    pub(super) fn new(count: usize) -> Scratch {
        Scratch { columns: Vec::with_capacity(count), inputs: Vec::with_capacity(count) }
    }

    /// Returns the allocated size, counting each element as one.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.columns.capacity() + self.inputs.capacity()
    }
}

impl Clone for Scratch {
    fn clone(&self) -> Scratch {
        Scratch::new(self.columns.capacity())
    }
}

/// Several linear combinations of packets, accumulated at once.
pub(super) struct Sum<'a, 's> {
    inputs: Vec<&'a [u8]>,
    scratch: &'s mut Scratch,
}

impl<'a, 's> Sum<'a, 's> {
    pub(super) fn new(scratch: &'s mut Scratch) -> Sum<'a, 's> {
        scratch.columns.clear();
        Sum { inputs: mem::take(&mut scratch.inputs), scratch }
    }

    /// Adds one packet with its coefficient in each sum.
    #[inline]
    pub(super) fn add(&mut self, input: &'a [u8], column: Column) {
        self.inputs.push(input);
        self.scratch.columns.push(column);
    }

    /// Adds several packets, one per column.
    #[inline]
    pub(super) fn extend(
        &mut self,
        inputs: impl Iterator<Item = &'a [u8]>,
        columns: impl Iterator<Item = Column>,
    ) {
        self.inputs.extend(inputs);
        self.scratch.columns.extend(columns);
    }

    /// Computes the sums. Previous contents of `outputs` are ignored.
    pub(super) fn finish(mut self, kernel: Kernel, outputs: &mut [&mut [u8]]) {
        let symbol_bytes = outputs.first().map_or(0, |output| output.len());
        operations::count(self.inputs.len() * outputs.len() * symbol_bytes);
        kernel.multiply(&self.scratch.columns, &self.inputs, outputs);
        self.inputs.clear();
        // Collecting from a list of the same layout reuses its memory, so the buffer is returned.
        self.scratch.inputs = self.inputs.into_iter().map(|_| -> &[u8] { &[] }).collect();
    }
}
