//! The inner loops: differences, transforms, interpolation and deblocking.
//!
//! [`Scalar`] is the readable reference; every other kernel computes the same numbers. A value of a
//! SIMD kernel's type proves that this CPU has the instructions: only `detect()` returns one.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod edge;
mod operations;
mod row;
mod scalar;

use super::plane::{Block, Plane};

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;
pub(super) use edge::Edge;
pub(super) use operations::Kernel;
pub(super) use row::{Coefficients, Row};
pub(super) use scalar::{Scalar, ZIGZAG};

impl Plane {
    /// Writes a block of `size` (width 4, 8 or 16, height) at a position of the plane.
    #[inline]
    pub(super) fn place(
        &mut self,
        kernel: impl Kernel,
        [x, y]: [i32; 2],
        size: [usize; 2],
        block: Block<'_>,
    ) {
        let (stride, start) = (self.stride(), self.at(x, y));
        kernel.copy(size, block, &mut self.samples_mut()[start..], stride);
    }
}

/// The fastest kernel that this CPU supports, or the scalar one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

impl Choice {
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::detect() {
            return Self::Avx2(avx2);
        }
        Self::Scalar(Scalar)
    }
}

#[cfg(test)]
mod tests;
