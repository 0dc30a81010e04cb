//! Safe wrappers around the measured functions of ISA-L's erasure coding.
//!
//! The library takes arrays of pointers. They are created once, as its users do, not in every call.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uchar};
use std::marker::PhantomData;

unsafe extern "C" {
    fn gf_gen_cauchy1_matrix(matrix: *mut c_uchar, rows: c_int, columns: c_int);
    fn gf_invert_matrix(input: *mut c_uchar, output: *mut c_uchar, size: c_int) -> c_int;
    fn ec_init_tables(columns: c_int, rows: c_int, matrix: *mut c_uchar, tables: *mut c_uchar);
    fn ec_encode_data(
        length: c_int,
        columns: c_int,
        rows: c_int,
        tables: *mut c_uchar,
        sources: *mut *mut c_uchar,
        targets: *mut *mut c_uchar,
    );
}

/// Returns the generator matrix of a systematic code, row by row: the identity, then Cauchy.
pub(crate) fn cauchy_matrix(sources: usize, repairs: usize) -> Vec<u8> {
    let rows = sources + repairs;
    assert!(sources > 0 && rows <= 256, "no such code over GF(2^8)");
    let mut matrix = vec![0; rows * sources];
    // SAFETY: the matrix has `rows * sources` bytes, all of which are written.
    unsafe { gf_gen_cauchy1_matrix(matrix.as_mut_ptr(), rows as c_int, sources as c_int) };
    matrix
}

/// Sets `inverse` to the inverse of the square `matrix`, which is overwritten.
pub(crate) fn invert(matrix: &mut [u8], inverse: &mut [u8], size: usize) {
    assert_eq!((matrix.len(), inverse.len()), (size * size, size * size));
    // SAFETY: both matrices have `size * size` bytes.
    let failed =
        unsafe { gf_invert_matrix(matrix.as_mut_ptr(), inverse.as_mut_ptr(), size as c_int) != 0 };
    assert!(!failed, "a submatrix of a Cauchy matrix has an inverse");
}

/// A matrix in the library's multiplication format: 32 bytes per coefficient.
pub(crate) struct Tables {
    columns: usize,
    rows: usize,
    bytes: Vec<u8>,
}

impl Tables {
    pub(crate) fn new(columns: usize, matrix: &[u8]) -> Tables {
        let mut tables = Tables { columns: 0, rows: 0, bytes: Vec::new() };
        tables.set(columns, matrix);
        tables
    }

    /// Replaces the matrix; each row is `columns` bytes of `matrix`.
    pub(crate) fn set(&mut self, columns: usize, matrix: &[u8]) {
        assert!(columns > 0 && matrix.len().is_multiple_of(columns), "whole rows");
        (self.columns, self.rows) = (columns, matrix.len() / columns);
        self.bytes.resize(32 * matrix.len(), 0);
        let (columns, rows) = (self.columns as c_int, self.rows as c_int);
        // SAFETY: the tables have 32 bytes for each coefficient; the matrix, which the library
        // takes without `const`, is only read.
        unsafe {
            ec_init_tables(columns, rows, matrix.as_ptr().cast_mut(), self.bytes.as_mut_ptr());
        }
    }

    /// Sets each target to the product of its matrix row and the sources.
    pub(crate) fn encode(&self, sources: &Sources<'_>, targets: &mut Targets<'_>) {
        assert_eq!((sources.pointers.len(), targets.pointers.len()), (self.columns, self.rows));
        assert_eq!(sources.length, targets.length);
        // SAFETY: as many sources and targets as the matrix has columns and rows, each `length`
        // bytes long; tables and sources, which the library takes without `const`, are only read.
        unsafe {
            ec_encode_data(
                sources.length as c_int,
                self.columns as c_int,
                self.rows as c_int,
                self.bytes.as_ptr().cast_mut(),
                sources.pointers.as_ptr().cast_mut(),
                targets.pointers.as_mut_ptr(),
            );
        }
    }
}

/// A list of input packets of one length.
pub(crate) struct Sources<'a> {
    pointers: Vec<*mut u8>,
    length: usize,
    packets: PhantomData<&'a [u8]>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(packets: &[&'a [u8]]) -> Sources<'a> {
        let length = packets[0].len();
        let mut sources = Sources { pointers: Vec::new(), length, packets: PhantomData };
        sources.set(packets.iter().copied());
        sources
    }

    /// Replaces the packets.
    pub(crate) fn set(&mut self, packets: impl IntoIterator<Item = &'a [u8]>) {
        self.pointers.clear();
        self.pointers.extend(packets.into_iter().map(|packet| {
            assert_eq!(packet.len(), self.length, "packets of one length");
            packet.as_ptr().cast_mut()
        }));
    }
}

/// A list of output packets of one length.
pub(crate) struct Targets<'a> {
    pointers: Vec<*mut u8>,
    length: usize,
    packets: PhantomData<&'a mut [u8]>,
}

impl<'a> Targets<'a> {
    pub(crate) fn new(packets: Vec<&'a mut [u8]>) -> Targets<'a> {
        let length = packets[0].len();
        assert!(packets.iter().all(|packet| packet.len() == length), "packets of one length");
        let pointers = packets.into_iter().map(<[u8]>::as_mut_ptr).collect();
        Targets { pointers, length, packets: PhantomData }
    }

    pub(crate) fn packets(&self) -> Vec<&[u8]> {
        let packet = |&pointer: &*mut u8| {
            // SAFETY: each pointer was made of a packet of this length, borrowed for `'a`; while
            // `self` is borrowed nobody writes to it.
            unsafe { std::slice::from_raw_parts(pointer.cast_const(), self.length) }
        };
        self.pointers.iter().map(packet).collect()
    }

    pub(crate) fn packets_mut(&mut self) -> Vec<&mut [u8]> {
        let packet = |&pointer: &*mut u8| {
            // SAFETY: as above, and the packets do not overlap: each was borrowed alone.
            unsafe { std::slice::from_raw_parts_mut(pointer, self.length) }
        };
        self.pointers.iter().map(packet).collect()
    }

    /// Returns the same packets as inputs.
    pub(crate) fn as_sources(&self) -> Sources<'_> {
        let Targets { pointers, length, .. } = self;
        Sources { pointers: pointers.clone(), length: *length, packets: PhantomData }
    }
}
