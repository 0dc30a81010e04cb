use std::fmt;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use zeroize::Zeroizing;

/// The source of a session's randomness: ephemeral keys, session ids, jitter.
///
/// A real session takes 32 bytes from the operating system, fresh for every session. Two sessions
/// of the same two machines with the same seed would share their keys. A test uses a number.
#[derive(Clone)]
pub struct Seed(Zeroizing<[u8; 32]>);

impl Seed {
    pub(crate) fn into_rng(self) -> ChaCha20Rng {
        ChaCha20Rng::from_seed(*self.0)
    }
}

impl From<[u8; 32]> for Seed {
    fn from(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

impl From<u64> for Seed {
    /// Creates a seed for sessions in virtual time: it is reproducible and not secret.
    fn from(number: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        Self(Zeroizing::new(bytes))
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed")
    }
}
