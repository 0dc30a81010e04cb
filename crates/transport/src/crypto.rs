//! Keys and sealing.

mod handshake;
mod identity;
mod seal;
mod seed;

pub(crate) use handshake::{Accepted, Doorman, INIT_MESSAGE_BYTES, Initiator, Refusal, answer};
pub use identity::{Identity, KeyError, PublicKey};
pub(crate) use seal::Keys;
pub use seed::Seed;
