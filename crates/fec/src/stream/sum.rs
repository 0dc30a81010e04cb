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
    /// Returns buffers for sums of up to `count` packets; longer sums would allocate.
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

/// Several linear combinations of the same packets: first the packets are listed, then
/// [`Sum::finish`] computes all combinations in one pass.
pub(super) struct Sum<'a, 's> {
    inputs: Vec<&'a [u8]>,
    scratch: &'s mut Scratch,
}

impl<'a, 's> Sum<'a, 's> {
    pub(super) fn new(scratch: &'s mut Scratch) -> Sum<'a, 's> {
        scratch.columns.clear();
        Sum { inputs: mem::take(&mut scratch.inputs), scratch }
    }

    /// Lists one more packet; `column[i]` is its coefficient in the i-th sum.
    #[inline]
    pub(super) fn add(&mut self, input: &'a [u8], column: Column) {
        self.inputs.push(input);
        self.scratch.columns.push(column);
    }

    /// Lists several more packets; `columns` yields one column of coefficients for each of them, in
    /// the same order.
    #[inline]
    pub(super) fn extend(
        &mut self,
        inputs: impl Iterator<Item = &'a [u8]>,
        columns: impl Iterator<Item = Column>,
    ) {
        self.inputs.extend(inputs);
        self.scratch.columns.extend(columns);
    }

    /// Writes the i-th sum of all listed packets to `outputs[i]`, whose previous contents are
    /// ignored.
    pub(super) fn finish(mut self, kernel: Kernel, outputs: &mut [&mut [u8]]) {
        let symbol_bytes = outputs.first().map_or(0, |output| output.len());
        operations::count(self.inputs.len() * outputs.len() * symbol_bytes);
        kernel.multiply(&self.scratch.columns, &self.inputs, outputs);
        self.inputs.clear();
        // Collecting from a list of the same layout reuses its memory, so the buffer is returned.
        self.scratch.inputs = self.inputs.into_iter().map(|_| -> &[u8] { &[] }).collect();
    }
}
