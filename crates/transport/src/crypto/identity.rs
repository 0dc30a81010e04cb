use std::fmt;
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Serialize, Serializer};
use zeroize::Zeroizing;

/// A machine's secret: one Ed25519 key that signs for it (TLS) and, in Montgomery form, agrees on
/// session keys (Noise).
///
/// Text form, one line: `tautline-secret:` and 64 hexadecimal digits.
#[derive(Clone)]
pub struct Identity {
    signing: SigningKey,
}

/// A machine's public name: the Ed25519 public key of its [`Identity`].
///
/// Text form: 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

/// A reason why a text is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A secret's text lacks its prefix.
    #[error(
        "not a Tautline key: the text must begin with \"tautline-secret:\"; make one with `tautline keys new`"
    )]
    Mark,
    /// The text, without a secret's prefix, has more or fewer than 64 characters.
    #[error("not a key: expected 64 hexadecimal digits, found {found} characters")]
    Digits {
        /// Number of characters found.
        found: usize,
    },
    /// The text has 64 characters, but one of them is not a hexadecimal digit.
    #[error(
        "not a key: {letter:?}, character {place} of 64, is not a hexadecimal digit: use 0 to 9 \
         and a to f"
    )]
    Letter {
        /// First character that is not a hexadecimal digit.
        letter: char,
        /// Position of `letter` in the text without a secret's prefix, counted from 1.
        place: usize,
    },
    /// 32 bytes that are not a point on the curve, or one of small order.
    #[error(
        "not a public key: the digits are not a point of the curve; copy it again from `tautline \
         keys show`"
    )]
    Point,
}

impl Identity {
    /// Creates the identity from 32 random bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self { signing: SigningKey::from_bytes(seed) }
    }

    /// Returns the public key that belongs to the secret.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.signing.verifying_key().to_bytes())
    }

    /// Returns the secret's text form.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{MARK}{}", hex(&self.signing.to_bytes())))
    }

    /// Returns the X25519 secret for Noise: the clamped first half of SHA-512 of the seed.
    pub fn noise_secret(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.signing.to_scalar_bytes())
    }

    /// Returns the Ed25519 seed, for signing in TLS.
    pub fn signing_seed(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.signing.to_bytes())
    }

    /// Signs `message`, which must begin with a domain separation prefix of its own kind.
    pub(crate) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.signing.sign(message).to_bytes()
    }
}

impl PublicKey {
    /// Creates the key from 32 bytes.
    ///
    /// # Errors
    /// [`KeyError::Point`] if they are not a point on the curve, or one of small order.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<Self, KeyError> {
        match VerifyingKey::from_bytes(&bytes) {
            Ok(key) if !key.is_weak() => Ok(Self(bytes)),
            Ok(_) | Err(_) => Err(KeyError::Point),
        }
    }

    /// Returns the 32 bytes of the Ed25519 key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the X25519 public key for Noise: the same point in Montgomery form.
    pub fn noise_public(&self) -> [u8; 32] {
        VerifyingKey::from_bytes(&self.0)
            .expect("every constructor checked that this is a point")
            .to_montgomery()
            .to_bytes()
    }

    /// Returns whether the holder of this key signed `message`.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        let key = VerifyingKey::from_bytes(&self.0);
        key.is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
    }
}

impl FromStr for Identity {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let digits = text.trim().strip_prefix(MARK).ok_or(KeyError::Mark)?;
        let seed = Zeroizing::new(unhex(digits)?);
        Ok(Self::from_seed(&seed))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::from_bytes(unhex(text.trim())?)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({}..)", hex(&self.0[..4]))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity of {:?}", self.public())
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String does not fail");
        text
    })
}

fn unhex(text: &str) -> Result<[u8; 32], KeyError> {
    let found = text.chars().count();
    if found != 64 {
        return Err(KeyError::Digits { found });
    }
    if let Some((index, letter)) = text.char_indices().find(|(_, it)| !it.is_ascii_hexdigit()) {
        return Err(KeyError::Letter { letter, place: index + 1 });
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |c: u8| (c as char).to_digit(16).expect("checked above") as u8;
        *byte = digit(pair[0]) << 4 | digit(pair[1]);
    }
    Ok(bytes)
}

const MARK: &str = "tautline-secret:";
/// Bytes of an Ed25519 signature.
pub(crate) const SIGNATURE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_is_no_digit_is_named_with_its_place() {
        let good = Identity::from_seed(&[7; 32]).public().to_string();
        for (place, letter) in [(1, 'O'), (33, 'l'), (64, '\u{e9}')] {
            let mut letters: Vec<char> = good.chars().collect();
            letters[place - 1] = letter;
            let text: String = letters.into_iter().collect();
            assert_eq!(text.parse::<PublicKey>(), Err(KeyError::Letter { letter, place }));
        }
        let words = KeyError::Letter { letter: 'O', place: 17 }.to_string();
        assert!(words.contains("'O', character 17 of 64"), "{words}");
        assert_eq!(good[1..].parse::<PublicKey>(), Err(KeyError::Digits { found: 63 }));
    }

    #[test]
    fn a_key_survives_its_text() {
        let identity = Identity::from_seed(&[7; 32]);
        let again: Identity = identity.to_text().parse().unwrap();
        assert_eq!(again.public(), identity.public());
        assert_eq!(identity.public().to_string().parse(), Ok(identity.public()));
    }

    #[test]
    fn a_malformed_key_says_what_is_wrong() {
        assert_eq!("hello".parse::<Identity>().unwrap_err(), KeyError::Mark);
        assert_eq!(
            "tautline-secret:12".parse::<Identity>().unwrap_err(),
            KeyError::Digits { found: 2 }
        );
        let letter = Err(KeyError::Letter { letter: 'z', place: 1 });
        assert_eq!("zz".repeat(32).parse::<PublicKey>(), letter);
        assert_eq!("00".repeat(32).parse::<PublicKey>(), Err(KeyError::Point));
    }

    #[test]
    fn debug_never_shows_the_secret() {
        let identity = Identity::from_seed(&[7; 32]);
        assert!(!format!("{identity:?}").contains("0707"));
    }
}
