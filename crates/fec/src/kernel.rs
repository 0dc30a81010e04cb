//! Matrix times packets over GF(2^8): the one operation in which codes spend their time.
//!
//! [`Kernel::multiply`] computes up to [`ROWS_MAX`] output packets from any number of input
//! packets. [`Scalar`] is the readable truth; every other kernel gives the same bytes. A value of
//! a SIMD kernel's type is the proof that this CPU has the instructions: it can only be had from
//! `detect()`.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod gfni;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use gfni::Gfni;
#[cfg(target_arch = "aarch64")]
pub use neon::Neon;
pub use scalar::Scalar;

/// Is the most output packets that one multiplication computes.
///
/// With 12 rows of two 64-byte columns, 24 of the 32 AVX-512 registers are accumulators, 4 hold
/// input, and the rest the matrices.
pub const ROWS_MAX: usize = 12;

/// Is one input packet's column of the matrix: its coefficient in each output packet.
pub type Column = [u8; ROWS_MAX];

/// Is one way to multiply; each variant's payload proves that this CPU can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// Table look-ups, a byte at a time, on any CPU.
    Scalar(Scalar),
    /// x86-64: shuffles as 32-fold table look-ups.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// x86-64: 8 x 8 bit matrices on 64 bytes at a time.
    #[cfg(target_arch = "x86_64")]
    Gfni(Gfni),
    /// 64-bit ARM: 16-fold table look-ups.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl Kernel {
    /// Returns the fastest kernel that this CPU runs.
    pub fn best() -> Kernel {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(gfni) = Gfni::detect() {
                return Kernel::Gfni(gfni);
            }
            if let Some(avx2) = Avx2::detect() {
                return Kernel::Avx2(avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(neon) = Neon::detect() {
            return Kernel::Neon(neon);
        }
        Kernel::Scalar(Scalar)
    }

    /// Returns every kernel that this CPU runs, the scalar one first.
    pub fn all() -> impl Iterator<Item = Kernel> {
        let all = [
            Some(Kernel::Scalar(Scalar)),
            #[cfg(target_arch = "x86_64")]
            Avx2::detect().map(Kernel::Avx2),
            #[cfg(target_arch = "x86_64")]
            Gfni::detect().map(Kernel::Gfni),
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
            Kernel::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kernel::Gfni(_) => "gfni",
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon(_) => "neon",
        }
    }

    /// Sets each `outputs[row]` to the sum over all columns of `columns[c][row] * inputs[c]`.
    ///
    /// All packets have one length, any alignment; what the outputs held does not matter. No
    /// inputs give zeros. O(rows x columns x length).
    ///
    /// # Panics
    /// When there are more than [`ROWS_MAX`] outputs, not as many columns as inputs, or packets
    /// of different lengths.
    pub fn multiply(self, columns: &[Column], inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        match self {
            Kernel::Scalar(scalar) => scalar.multiply(columns, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2(avx2) => avx2.multiply(columns, inputs, outputs),
            #[cfg(target_arch = "x86_64")]
            Kernel::Gfni(gfni) => gfni.multiply(columns, inputs, outputs),
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon(neon) => neon.multiply(columns, inputs, outputs),
        }
    }
}

impl Default for Kernel {
    fn default() -> Kernel {
        Kernel::best()
    }
}

/// Returns the packets' common length after checking what every kernel's memory accesses rely on.
fn checked_length(columns: &[Column], inputs: &[&[u8]], outputs: &[&mut [u8]]) -> usize {
    assert!(outputs.len() <= ROWS_MAX, "{} outputs, at most {ROWS_MAX}", outputs.len());
    assert_eq!(columns.len(), inputs.len(), "as many columns as inputs");
    let length = outputs.first().map_or(0, |output| output.len());
    assert!(outputs.iter().all(|output| output.len() == length), "outputs differ in length");
    if !outputs.is_empty() {
        assert!(inputs.iter().all(|input| input.len() == length), "inputs differ in length");
    }
    length
}

#[cfg(test)]
mod tests;
