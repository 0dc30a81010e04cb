//! Keys and sealing.

mod identity;

pub use identity::{Identity, KeyError, PublicKey};
