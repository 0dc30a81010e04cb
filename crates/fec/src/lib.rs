//! Packet erasure codes over GF(2^8): they recover lost packets, not corrupted ones.
//!
//! [`block::Code`] makes `n - k` repair packets from `k` source packets of one length; any `k` of
//! the `n` packets recover the sources. The crate has no notion of time, sockets or policy. The
//! caller decides which packets form a block and how many repair packets it gets.
//!
//! [`stream`] is a sliding-window code for packets that cannot wait for a block: its repair packets
//! combine all source packets not yet acknowledged. [`theory`] computes its overhead and delay.
//!
//! # The block codes, exactly
//! Bytes are elements of GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1 ([`gf256::POLYNOMIAL`], 0x11D);
//! bit `i` of a byte is the coefficient of `x^i`. The packets of a block are numbered from 0.
//! Source packets are `0..k` and are sent unchanged (the codes are systematic); repair packets are
//! `k..n`, where `1 <= k <= n <= 256`. Byte `b` of repair packet `i` is
//!
//! ```text
//!     repair[i][b] = sum over j in 0..k of  C(i, j) * source[j][b]
//!
//!     Cauchy (0):  C(i, j) = 1 / (i XOR j)
//!     FFT (1):     C(i, j) = product over v in 0..m, v != i - k, of  (m + j XOR v) / (i - k XOR v)
//! ```
//! in that field, with the indices read as elements. m is the smallest power of two not below
//! `n - k`, and an FFT code needs `k + m <= 256`. Every square submatrix of both matrices is
//! invertible, so any `k` packets recover the block (the codes are MDS).
//!
//! The Cauchy code's coefficients do not depend on `n`: more repair packets can be made for a block
//! at any time, up to index 255. The FFT code's coefficients depend on `n` through m; in return, an
//! additive FFT computes the repair packets with O(log m) operations per source byte instead of
//! O(n - k). Use [`Scheme::Fft`](block::Scheme) when `n` is fixed before the block is encoded, and
//! [`Scheme::Cauchy`](block::Scheme) when it is not or when no FFT code of that shape exists
//! ([`Scheme::fastest`](block::Scheme::fastest)).
//! ```
//! use tautline_fec::block::Code;
//!
//! let sources = [b"Three source pac", b"kets of sixteen ", b"bytes make forty"];
//! let code = Code::new(3, 5)?;
//! let (mut fourth, mut fifth) = ([0; 16], [0; 16]);
//! code.encode(&sources.map(|source| &source[..]), &mut [&mut fourth, &mut fifth])?;
//!
//! // Packets 0 and 2 are lost; 4, 1 and 3 come, in that order.
//! let received = [(4, &fifth[..]), (1, &sources[1][..]), (3, &fourth[..])];
//! let (mut first, mut third) = ([0; 16], [0; 16]);
//! code.recover(&received, &mut [(0, &mut first), (2, &mut third)])?;
//! assert_eq!((&first, &third), (sources[0], sources[2]));
//! # Ok::<(), tautline_fec::Error>(())
//! ```
//!
//! # Features
//! - `std` (default, implies `alloc`): selects the [`kernel`] by CPU at run time and adds
//!   [`theory`]. Without it, the target's compile-time features select the kernel.
//! - `alloc`: adds [`stream`], whose windows live on the heap. Without it the crate needs neither
//!   `std` nor `alloc`.
#![cfg_attr(not(any(test, feature = "std")), no_std)]

#[cfg(feature = "alloc")]
extern crate alloc;

pub mod block;
mod error;
pub mod gf256;
pub mod kernel;
#[cfg(feature = "alloc")]
pub mod stream;
mod subspace;
#[cfg(feature = "std")]
pub mod theory;

pub use error::Error;
