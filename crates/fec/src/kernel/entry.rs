//! The loops of all SIMD kernels, compiled once for each set of CPU features.

/// Implements `multiply`, `solve` and `transform` for the type `$kernel` by the loops over
/// `$vector`, compiled with the CPU features `$features` that it needs. The methods are safe only
/// because a value of `$kernel` exists only where the CPU has these features.
macro_rules! simd_kernel {
    ($kernel:ty, $vector:ty, $features:literal) => {
        impl $kernel {
            /// Implements [`Kernel::multiply`](super::Kernel::multiply).
            ///
            /// # Panics
            /// As there.
            pub fn multiply(self, columns: &[Column], inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
                let length = checked::multiply(columns, inputs, outputs);
                // SAFETY: `self` proves the CPU features; all lengths have been checked.
                unsafe { multiply(columns, inputs, outputs, length) }
            }

            /// Implements `Kernel::solve`.
            pub(crate) fn solve(
                self,
                columns: &[Column],
                addends: &[&[u8]],
                packets: &mut [&mut [u8]],
            ) {
                let length = checked::solve(columns, addends, packets);
                // SAFETY: `self` proves the CPU features; all lengths have been checked.
                unsafe { solve(columns, addends, packets, length) }
            }

            /// Implements `Kernel::transform`.
            pub(crate) fn transform(
                self,
                layers: usize,
                sources: &[&[u8]],
                wanted: &[u8],
                outputs: &mut [&mut [u8]],
            ) {
                let length = checked::transform(layers, sources, wanted, outputs);
                // SAFETY: `self` proves the CPU features; all lengths have been checked.
                unsafe { transform(layers, sources, wanted, outputs, length) }
            }
        }

        /// Calls [`matrix::multiply`] with the CPU features enabled.
        ///
        /// # Safety
        /// As [`matrix::multiply`] says.
        #[target_feature(enable = $features)]
        unsafe fn multiply(
            columns: &[Column],
            inputs: &[&[u8]],
            outputs: &mut [&mut [u8]],
            length: usize,
        ) {
            // SAFETY: the caller's promise, and the features are enabled.
            unsafe { matrix::multiply::<$vector>(columns, inputs, outputs, length) }
        }

        /// Calls [`matrix::solve`] with the CPU features enabled.
        ///
        /// # Safety
        /// As [`matrix::solve`] says.
        #[target_feature(enable = $features)]
        unsafe fn solve(
            columns: &[Column],
            addends: &[&[u8]],
            packets: &mut [&mut [u8]],
            length: usize,
        ) {
            // SAFETY: the caller's promise, and the features are enabled.
            unsafe { matrix::solve::<$vector>(columns, addends, packets, length) }
        }

        /// Calls [`transform::transform`] with the CPU features enabled.
        ///
        /// # Safety
        /// As [`transform::transform`] says.
        #[target_feature(enable = $features)]
        unsafe fn transform(
            layers: usize,
            sources: &[&[u8]],
            wanted: &[u8],
            outputs: &mut [&mut [u8]],
            length: usize,
        ) {
            // SAFETY: the caller's promise, and the features are enabled.
            unsafe { transform::transform::<$vector>(layers, sources, wanted, outputs, length) }
        }
    };
}

pub(super) use simd_kernel;
