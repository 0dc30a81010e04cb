//! Matrix times packets over GF(2^8): the operation in which the codes spend their time.
//!
//! [`Kernel::multiply`] computes up to [`ROWS_MAX`] output packets from any number of input
//! packets. [`Scalar`] is the reference: every other kernel computes the same bytes. A value of a
//! SIMD kernel's type proves that this CPU has the instructions: only `detect()` returns one. The
//! loops are written once, over the vectors of each CPU.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod checked;
mod column;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod entry;
#[cfg(target_arch = "x86_64")]
mod gfni256;
#[cfg(target_arch = "x86_64")]
mod gfni512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod matrix;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod ssse3;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod transform;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
pub(crate) use column::SOLVED_MAX;
pub use column::{Column, ROWS_MAX};
#[cfg(target_arch = "x86_64")]
pub use gfni256::Gfni256;
#[cfg(target_arch = "x86_64")]
pub use gfni512::Gfni512;
#[cfg(target_arch = "aarch64")]
pub use neon::Neon;
pub use scalar::Scalar;
#[cfg(target_arch = "x86_64")]
pub use ssse3::Ssse3;

/// An implementation of [`Kernel::multiply`] and its relatives for one set of CPU instructions.
/// Each variant's payload proves that this CPU has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// Table look-ups, one byte at a time, on any CPU.
    Scalar(Scalar),
    /// x86-64: a shuffle instruction does 16 table look-ups.
    #[cfg(target_arch = "x86_64")]
    Ssse3(Ssse3),
    /// x86-64: a shuffle instruction does 32 table look-ups.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// x86-64: 8 x 8 bit matrices on 32 bytes at a time.
    #[cfg(target_arch = "x86_64")]
    Gfni256(Gfni256),
    /// x86-64: 8 x 8 bit matrices on 64 bytes at a time.
    #[cfg(target_arch = "x86_64")]
    Gfni512(Gfni512),
    /// 64-bit ARM: an instruction does 16 table look-ups.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

/// Evaluates `$call` with `$name` bound to the payload of the kernel's variant.
macro_rules! on {
    ($kernel:expr, $name:ident => $call:expr) => {
        match $kernel {
            Kernel::Scalar($name) => $call,
            #[cfg(target_arch = "x86_64")]
            Kernel::Ssse3($name) => $call,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2($name) => $call,
            #[cfg(target_arch = "x86_64")]
            Kernel::Gfni256($name) => $call,
            #[cfg(target_arch = "x86_64")]
            Kernel::Gfni512($name) => $call,
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon($name) => $call,
        }
    };
}

impl Kernel {
    /// Returns the fastest kernel that this CPU supports.
    pub fn best() -> Kernel {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(gfni) = Gfni512::detect() {
                return Kernel::Gfni512(gfni);
            }
            if let Some(gfni) = Gfni256::detect() {
                return Kernel::Gfni256(gfni);
            }
            if let Some(avx2) = Avx2::detect() {
                return Kernel::Avx2(avx2);
            }
            if let Some(ssse3) = Ssse3::detect() {
                return Kernel::Ssse3(ssse3);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(neon) = Neon::detect() {
            return Kernel::Neon(neon);
        }
        Kernel::Scalar(Scalar)
    }

    /// Returns every kernel that this CPU supports, the scalar one first and the fastest last.
    pub fn all() -> impl Iterator<Item = Kernel> {
        let all = [
            Some(Kernel::Scalar(Scalar)),
            #[cfg(target_arch = "x86_64")]
            Ssse3::detect().map(Kernel::Ssse3),
            #[cfg(target_arch = "x86_64")]
            Avx2::detect().map(Kernel::Avx2),
            #[cfg(target_arch = "x86_64")]
            Gfni256::detect().map(Kernel::Gfni256),
            #[cfg(target_arch = "x86_64")]
            Gfni512::detect().map(Kernel::Gfni512),
            #[cfg(target_arch = "aarch64")]
            Neon::detect().map(Kernel::Neon),
        ];
        all.into_iter().flatten()
    }

    /// Returns the kernel's name, for logs and benches.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Scalar(_) => "scalar",
            #[cfg(target_arch = "x86_64")]
            Kernel::Ssse3(_) => "ssse3",
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kernel::Gfni256(_) => "gfni-256",
            #[cfg(target_arch = "x86_64")]
            Kernel::Gfni512(_) => "gfni-512",
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon(_) => "neon",
        }
    }

    /// Sets each `outputs[row]` to the sum over all columns of `columns[c][row] * inputs[c]`.
    ///
    /// All packets have one length and any alignment; previous contents of the outputs are ignored.
    /// Without inputs the outputs are zero. O(rows x columns x length).
    ///
    /// # Panics
    /// If there are more than [`ROWS_MAX`] outputs, if the numbers of columns and inputs differ, or
    /// if packets differ in length.
    pub fn multiply(self, columns: &[Column], inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        on!(self, kernel => kernel.multiply(columns, inputs, outputs));
    }

    /// Replaces `packets` by the matrix times (`packets` + `addends`).
    ///
    /// The matrix is square. `columns` holds, for the first [`ROWS_MAX`] outputs, the column of
    /// each packet, then the same for the next outputs, and so on. At most [`SOLVED_MAX`] packets,
    /// all of one length and any alignment. O(packets^2 x length).
    pub(crate) fn solve(self, columns: &[Column], addends: &[&[u8]], packets: &mut [&mut [u8]]) {
        on!(self, kernel => kernel.solve(columns, addends, packets));
    }

    /// Writes repair packets of the FFT code, which the [crate's page](crate) states, with
    /// `m = 2^layers`: `outputs[i]` becomes repair packet `wanted[i]`.
    ///
    /// An empty source counts as zeros. The other packets have one length and any alignment;
    /// previous contents of the outputs are ignored. O((sources + 2^layers) x layers x length).
    pub(crate) fn transform(
        self,
        layers: usize,
        sources: &[&[u8]],
        wanted: &[u8],
        outputs: &mut [&mut [u8]],
    ) {
        on!(self, kernel => kernel.transform(layers, sources, wanted, outputs));
    }
}

impl Default for Kernel {
    fn default() -> Kernel {
        Kernel::best()
    }
}

#[cfg(test)]
mod tests;
