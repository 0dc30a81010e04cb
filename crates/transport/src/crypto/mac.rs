use std::fmt;

use snow::params::HashChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use zeroize::Zeroizing;

/// A key for the authentication of short messages: HMAC-BLAKE2s, truncated to 16 bytes.
#[derive(Clone)]
pub struct MacKey(Zeroizing<[u8; MacKey::BYTES]>);

impl MacKey {
    /// Bytes of a key.
    pub const BYTES: usize = 32;
    /// Bytes of a tag.
    pub const TAG_BYTES: usize = 16;

    /// Creates the key from random bytes.
    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Returns the tag of `message`.
    pub fn tag(&self, message: &[u8]) -> [u8; Self::TAG_BYTES] {
        tag(&self.0[..], message)
    }

    /// Returns whether `tag` is the tag of `message`, in constant time.
    pub fn has_tagged(&self, message: &[u8], tag: &[u8; Self::TAG_BYTES]) -> bool {
        same(&self.tag(message), tag)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey")
    }
}

/// Returns the first 16 bytes of the HMAC-BLAKE2s of `message`; `key` has at most 64 bytes.
pub(super) fn tag(key: &[u8], message: &[u8]) -> [u8; MacKey::TAG_BYTES] {
    let mut hash =
        DefaultResolver.resolve_hash(&HashChoice::Blake2s).expect("every pattern in use has it");
    let mut out = [0; 32];
    hash.hmac(key, message, &mut out);
    *out.first_chunk().expect("16 of 32 bytes")
}

/// Returns whether two tags are equal, in constant time.
pub(super) fn same(a: &[u8; MacKey::TAG_BYTES], b: &[u8; MacKey::TAG_BYTES]) -> bool {
    a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_fits_its_key_and_its_message_alone() {
        let key = MacKey::new([1; 32]);
        let tag = key.tag(b"message");
        assert!(key.has_tagged(b"message", &tag));
        assert!(!key.has_tagged(b"massage", &tag));
        assert!(!MacKey::new([2; 32]).has_tagged(b"message", &tag));
        assert_eq!(format!("{key:?}"), "MacKey");
    }
}
