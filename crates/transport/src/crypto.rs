//! Keys and sealing.

mod handshake;
mod identity;
mod mac;
mod seal;
mod seed;

pub(crate) use handshake::{
    Accepted, Doorman, INIT_MESSAGE_BYTES, Initiator, Refusal, answer, builder,
};
pub(crate) use identity::SIGNATURE_BYTES;
pub use identity::{Identity, KeyError, PublicKey};
pub use mac::MacKey;
pub(crate) use seal::Keys;
pub use seed::Seed;
