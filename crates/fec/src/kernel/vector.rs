//! One SIMD register of bytes: the operations that the kernels' loops need from a CPU.
#![allow(unsafe_code)]

/// A vector of GF(2^8) elements in one register.
///
/// The methods are `inline(always)`, so they become instructions of the `target_feature` function
/// that calls them.
///
/// # Safety
/// Every method needs the CPU features of the implementing type; `load` and `store` need `BYTES`
/// bytes behind the pointer (`load_first` and `store_first` need `count`), of any alignment.
pub(super) trait Vector: Copy {
    /// Width of the register in bytes.
    const BYTES: usize;
    /// Maximum number of output rows whose sums, two vectors each, stay in registers while the
    /// inputs are read one after another.
    const TILE_ROWS: usize;
    /// True if one instruction adds three vectors, so that inputs are processed in pairs.
    const PAIRS: bool;
    /// True if there are 32 registers rather than 16.
    const MANY: bool;
    /// A vector prepared for multiplication by several coefficients.
    type Split: Copy;

    unsafe fn zero() -> Self;
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut u8);
    /// Adds (and subtracts) element by element.
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn split(self) -> Self::Split;
    /// Multiplies every element by one coefficient.
    unsafe fn product(split: Self::Split, coefficient: u8) -> Self;

    /// Loads the first `count < BYTES` bytes, then zeros.
    #[inline(always)]
    unsafe fn load_first(from: *const u8, count: usize) -> Self {
        let mut padded = [0; 64];
        // SAFETY: the caller's promise on `from`; no vector is wider than `padded`.
        unsafe {
            core::ptr::copy_nonoverlapping(from, padded.as_mut_ptr(), count);
            Self::load(padded.as_ptr())
        }
    }

    /// Stores the first `count < BYTES` bytes and leaves the memory behind them unchanged.
    #[inline(always)]
    unsafe fn store_first(self, to: *mut u8, count: usize) {
        let mut padded = [0; 64];
        // SAFETY: the caller's promise on `to`; no vector is wider than `padded`.
        unsafe {
            self.store(padded.as_mut_ptr());
            core::ptr::copy_nonoverlapping(padded.as_ptr(), to, count);
        }
    }
}

/// A position in packets: `count` bytes starting at `at`; a complete vector has `BYTES`.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) at: usize,
    pub(super) count: usize,
}

impl Span {
    /// Loads a vector from the span of `packet`; with `FIRST`, only its first `count` bytes, then
    /// zeros.
    #[inline(always)]
    pub(super) unsafe fn load<V: Vector, const FIRST: bool>(self, packet: *const u8) -> V {
        // SAFETY: the caller's promise that the span lies within the packet.
        unsafe {
            let from = packet.add(self.at);
            if FIRST { V::load_first(from, self.count) } else { V::load(from) }
        }
    }

    /// Stores `vector` to the span of `packet`; with `FIRST`, only its first `count` bytes.
    #[inline(always)]
    pub(super) unsafe fn store<V: Vector, const FIRST: bool>(self, vector: V, packet: *mut u8) {
        // SAFETY: the caller's promise that the span lies within the packet.
        unsafe {
            let to = packet.add(self.at);
            if FIRST { vector.store_first(to, self.count) } else { vector.store(to) }
        }
    }

    /// Loads `VECTORS` consecutive vectors of `packet`, the first at the span; `FIRST` as in
    /// [`load`](Self::load).
    #[inline(always)]
    pub(super) unsafe fn load_all<V: Vector, const VECTORS: usize, const FIRST: bool>(
        self,
        packet: *const u8,
    ) -> [V; VECTORS] {
        // SAFETY: the caller's promise that they all lie within the packet.
        unsafe {
            let mut vectors = [V::zero(); VECTORS];
            for (vector, value) in vectors.iter_mut().enumerate() {
                let span = Span { at: self.at + vector * V::BYTES, ..self };
                *value = span.load::<V, FIRST>(packet);
            }
            vectors
        }
    }

    /// Stores `VECTORS` consecutive vectors to `packet`, the first at the span; `FIRST` as in
    /// [`store`](Self::store).
    #[inline(always)]
    pub(super) unsafe fn store_all<V: Vector, const VECTORS: usize, const FIRST: bool>(
        self,
        vectors: &[V; VECTORS],
        packet: *mut u8,
    ) {
        for (vector, &value) in vectors.iter().enumerate() {
            let span = Span { at: self.at + vector * V::BYTES, ..self };
            // SAFETY: the caller's promise that they all lie within the packet.
            unsafe { span.store::<V, FIRST>(value, packet) };
        }
    }
}
