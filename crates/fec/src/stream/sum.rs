//! Sums of many packets without a list of them on the heap.

use super::packets::Packets;
use crate::kernel::{Column, Kernel, ROWS_MAX};

/// Is how many packets one multiplication takes: the lists of them stay below 4 KiB of stack.
const BATCH: usize = 128;

/// Adds up combinations of packets, a batch of packets at a time.
pub(super) struct Sum<'a> {
    kernel: Kernel,
    columns: [Column; BATCH],
    inputs: [&'a [u8]; BATCH],
    count: usize,
    /// The outputs hold the sum of earlier batches.
    begun: bool,
}

impl<'a> Sum<'a> {
    pub(super) fn new(kernel: Kernel) -> Sum<'a> {
        Sum {
            kernel,
            columns: [[0; ROWS_MAX]; BATCH],
            inputs: [&[]; BATCH],
            count: 0,
            begun: false,
        }
    }

    /// Returns the column for one more packet, to be written by the caller.
    ///
    /// `outputs` and `scratch` as for [`Sum::finish`]; all calls must be given the same.
    #[inline]
    pub(super) fn add(
        &mut self,
        input: &'a [u8],
        outputs: &mut [&mut [u8]],
        scratch: &mut Packets,
    ) -> &mut Column {
        if self.count == BATCH {
            self.flush(outputs, scratch);
        }
        let position = self.count;
        self.inputs[position] = input;
        self.count += 1;
        &mut self.columns[position]
    }

    /// Completes the outputs: one for each row of the columns that is in use.
    ///
    /// `scratch` has room for as many packets. What outputs and scratch held does not matter.
    pub(super) fn finish(mut self, outputs: &mut [&mut [u8]], scratch: &mut Packets) {
        if self.count > 0 || !self.begun {
            self.flush(outputs, scratch);
        }
    }

    fn flush(&mut self, outputs: &mut [&mut [u8]], scratch: &mut Packets) {
        let (columns, inputs) = (&self.columns[..self.count], &self.inputs[..self.count]);
        if self.begun {
            let mut partial: [&mut [u8]; ROWS_MAX] = Default::default();
            let partial = &mut partial[..outputs.len()];
            partial.iter_mut().zip(scratch.iter_mut()).for_each(|(row, packet)| *row = packet);
            self.kernel.multiply(columns, inputs, partial);
            for (output, partial) in outputs.iter_mut().zip(partial) {
                output.iter_mut().zip(&**partial).for_each(|(output, byte)| *output ^= byte);
            }
        } else {
            self.kernel.multiply(columns, inputs, outputs);
        }
        self.begun = true;
        self.count = 0;
    }
}
