use std::fmt;

use tautline_units::Duration;

use crate::crypto::{Identity, PublicKey, SIGNATURE_BYTES};

/// The right of one end to reach another through one relay for a limited time, signed by the
/// switchboard.
///
/// It is not secret: its holder must prove possession of the key named in it.
///
/// ```text
///  0               1               2                               34
/// +-------+-------+---------------+-------------------------------+
/// | version, 1    | side          | holder's key, 32 bytes        |
/// +---------------+---------------+-------------------------------+
/// | peer's key, 32 bytes          | relay's key, 32 bytes         |
/// +-------------------------------+-------------------------------+
/// | until, s of Unix time, 8 bytes| signature, 64 bytes           |
/// +-------------------------------+-------------------------------+
/// ```
///
/// Keys are Ed25519. Side: 0 the initiator (the vehicle), 1 the responder. The signature covers the
/// words `tautline relay token` and all bytes before it.
// protocol 11
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token([u8; Token::BYTES]);

/// The content of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// Side of the lease that the holder is on.
    pub side: Side,
    /// Key of the end that may use the token.
    pub holder: PublicKey,
    /// Peer that the holder may reach.
    pub peer: PublicKey,
    /// Key of the relay at which the token is valid.
    pub relay: PublicKey,
    /// End of validity, as a time since the Unix epoch in whole seconds.
    pub until: Duration,
}

/// One of the two ends of a lease.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// The end that initiates sessions: the vehicle.
    Initiator,
    /// The end that waits for sessions: the operator.
    Responder,
}

/// A reason why a token is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The bytes are no token of this version.
    #[error("not a token of this version")]
    Malformed,
    /// The token is not signed by the switchboard.
    #[error("not a token of this switchboard")]
    Forged,
    /// The end of validity has passed.
    #[error("the token has expired, or the clocks differ")]
    Expired,
}

impl Token {
    /// Length of a token in bytes.
    pub const BYTES: usize = SIGNED_BYTES + SIGNATURE_BYTES;

    /// Creates the token for `grant`, signed with the switchboard's key.
    pub fn issue(grant: &Grant, switchboard: &Identity) -> Self {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend_from_slice(&[VERSION, grant.side.to_wire()]);
        for key in [grant.holder, grant.peer, grant.relay] {
            bytes.extend_from_slice(key.as_bytes());
        }
        bytes.extend_from_slice(&grant.until.as_secs().to_be_bytes());
        let signature = switchboard.sign(&signed(&bytes));
        bytes.extend_from_slice(&signature);
        Self(bytes.try_into().expect("the parts have this length"))
    }

    /// Creates a token from bytes without checking their content; `None` if the length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns the bytes of the token, in the layout that [`Token`] shows.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Returns the grant at `now`, the time since the Unix epoch, if `switchboard` signed the
    /// token.
    ///
    /// # Errors
    /// [`TokenError::Malformed`], [`TokenError::Forged`] or [`TokenError::Expired`].
    pub fn read(&self, switchboard: &PublicKey, now: Duration) -> Result<Grant, TokenError> {
        let (told, signature) =
            self.0.split_last_chunk::<SIGNATURE_BYTES>().expect("a token is longer");
        if told.first() != Some(&VERSION) {
            return Err(TokenError::Malformed);
        }
        if !switchboard.has_signed(&signed(told), signature) {
            return Err(TokenError::Forged);
        }
        let grant = Grant::parse(told).ok_or(TokenError::Malformed)?;
        if grant.until <= now {
            return Err(TokenError::Expired);
        }
        Ok(grant)
    }
}

impl From<&[u8; Token::BYTES]> for Token {
    fn from(bytes: &[u8; Token::BYTES]) -> Self {
        Self(*bytes)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Grant {
    fn parse(told: &[u8]) -> Option<Self> {
        let (&[_version, side], rest) = told.split_first_chunk::<2>()?;
        let (holder, rest) = rest.split_first_chunk::<32>()?;
        let (peer, rest) = rest.split_first_chunk::<32>()?;
        let (relay, rest) = rest.split_first_chunk::<32>()?;
        let until = Duration::from_secs(u64::from_be_bytes(*rest.first_chunk::<8>()?));
        let key = |bytes: &[u8; 32]| PublicKey::from_bytes(*bytes).ok();
        let (holder, peer, relay) = (key(holder)?, key(peer)?, key(relay)?);
        Some(Self { side: Side::from_wire(side)?, holder, peer, relay, until })
    }
}

impl Side {
    /// Returns the opposite side: the responder for the initiator, and the reverse.
    pub fn other(self) -> Self {
        match self {
            Self::Initiator => Self::Responder,
            Self::Responder => Self::Initiator,
        }
    }

    fn to_wire(self) -> u8 {
        match self {
            Self::Initiator => 0,
            Self::Responder => 1,
        }
    }

    fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Initiator),
            1 => Some(Self::Responder),
            _other => None,
        }
    }
}

/// Returns the bytes that the signature covers: [`WORDS`], then `told`. No other signature of a
/// switchboard begins with these words (domain separation).
fn signed(told: &[u8]) -> Vec<u8> {
    [WORDS, told].concat()
}

const WORDS: &[u8] = b"tautline relay token";
const VERSION: u8 = 1;
const SIGNED_BYTES: usize = 2 + 3 * 32 + 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn identity(seed: u8) -> Identity {
        Identity::from_seed(&[seed; 32])
    }

    fn grant() -> Grant {
        Grant {
            side: Side::Responder,
            holder: identity(1).public(),
            peer: identity(2).public(),
            relay: identity(3).public(),
            until: Duration::from_secs(1_000),
        }
    }

    #[test]
    fn a_token_is_valid_as_signed_until_it_expires() {
        let token = Token::issue(&grant(), &identity(9));
        let switchboard = identity(9).public();
        let read = |seconds| token.read(&switchboard, Duration::from_secs(seconds));
        assert_eq!(read(999), Ok(grant()));
        assert_eq!(read(1_000), Err(TokenError::Expired));
        let stranger = identity(8).public();
        assert_eq!(token.read(&stranger, Duration::ZERO), Err(TokenError::Forged));
        assert_eq!(Token::from_bytes(token.as_bytes()), Some(token));
        assert_eq!(Token::from_bytes(&token.as_bytes()[1..]), None);
    }

    #[test]
    fn every_bit_of_a_token_is_signed() {
        let token = Token::issue(&grant(), &identity(9));
        for bit in 0..Token::BYTES * 8 {
            let mut bytes = *token.as_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let read = Token(bytes).read(&identity(9).public(), Duration::ZERO);
            assert!(read.is_err(), "bit {bit}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn any_bytes_grant_nothing(
            bytes: Vec<u8>,
            whole in prop::collection::vec(any::<u8>(), Token::BYTES),
            at in 0..Token::BYTES,
            bit in 0u8..8,
        ) {
            let mut flipped = Token::issue(&grant(), &identity(9)).as_bytes().to_vec();
            flipped[at] ^= 1 << bit;
            for bytes in [bytes, whole, flipped] {
                let read = |token: Token| token.read(&identity(9).public(), Duration::ZERO);
                prop_assert!(Token::from_bytes(&bytes).is_none_or(|token| read(token).is_err()));
            }
        }
    }
}
