/// Maximum number of output packets that one multiplication computes.
///
/// With 12 rows of two 64-byte columns, 24 of the 32 AVX-512 registers are accumulators, 4 hold
/// input, and the rest the matrices.
pub const ROWS_MAX: usize = 12;

/// Maximum number of packets that one call solves for: the most repair packets of an FFT code.
pub(crate) const SOLVED_MAX: usize = 128;

/// One input packet's column of the matrix: its coefficient in each output packet.
pub type Column = [u8; ROWS_MAX];
