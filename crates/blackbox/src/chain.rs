//! Hashes that bind a file of a black box, and the signatures over them.

use std::fmt;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::hex;

/// Hash covered by a signature: over all preceding bytes of the file; in the first format, over all
/// preceding records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Head([u8; 32]);

/// SHA-256 hash of the bytes of a file so far, extended part by part.
#[derive(Clone, Default)]
pub(crate) struct Growing(Sha256);

/// Signing key of the machine, which seals files and notes.
#[derive(Clone)]
pub struct Signer(SigningKey);

/// The content of one signature: the bytes before it, and whether the file ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seal {
    /// Time of the signature in nanoseconds of Unix time.
    pub(crate) at: u64,
    /// Number of preceding records in the file.
    pub(crate) records: u32,
    /// Number of preceding bytes in the file.
    pub(crate) bytes: u64,
    /// Hash of the bytes that precede the signature.
    pub(crate) head: Head,
    /// `true` if the file ends with this signature: its drive has ended, or continues in the next
    /// part.
    pub(crate) is_last: bool,
}

impl Growing {
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the hash of all bytes added so far.
    pub(crate) fn head(&self) -> Head {
        Head(self.0.clone().finalize().into())
    }
}

impl Head {
    /// Computes the hash of these bytes.
    #[cfg(test)]
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Computes the first format's head after one more record: SHA-256 over this head, the topic's
    /// length (one byte) and name, the sequence (u32), the time (u64) and the body; numbers are
    /// big-endian.
    pub(crate) fn after(self, topic: &str, sequence: u32, at: u64, body: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update([topic.len() as u8]);
        hash.update(topic);
        hash.update(sequence.to_be_bytes());
        hash.update(at.to_be_bytes());
        body.iter().for_each(|part| hash.update(part));
        Self(hash.finalize().into())
    }

    /// Parses a head of 64 hexadecimal digits; `None` if the text is anything else.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        hex::decode(text)?.try_into().ok().map(Self)
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Head({}..)", hex::encode(&self.0[..4]))
    }
}

impl Seal {
    /// Returns the signed bytes: a domain, then time, records, bytes and end, big-endian, and the
    /// hash.
    fn signed(&self) -> Vec<u8> {
        let Self { at, records, bytes, head, is_last } = self;
        let numbers = [&at.to_be_bytes()[..], &records.to_be_bytes(), &bytes.to_be_bytes()];
        [SEAL_DOMAIN, &numbers.concat(), &[u8::from(*is_last)], &head.0].concat()
    }

    /// Returns the JSON text of the seal's record, with the public key and the signature; the same
    /// seal, key and signature have exactly one text.
    pub(crate) fn text(&self, key: &str, signature: &str) -> String {
        let Self { at: _, records, bytes, head, is_last } = self;
        let (head, is_last) = (head.to_string(), *is_last);
        json!({
            "records": records,
            "bytes": bytes,
            "head": head,
            "is_last": is_last,
            "key": key,
            "signature": signature,
        })
        .to_string()
    }

    /// Parses the text of a seal's record made at `at`; also returns the key and the signature.
    /// `None` if it is not exactly such a text; the signature is not checked.
    pub(crate) fn read(text: &[u8], at: u64) -> Option<(Self, String, String)> {
        let body: Value = serde_json::from_slice(text).ok()?;
        let seal = Self {
            at,
            records: u32::try_from(body["records"].as_u64()?).ok()?,
            bytes: body["bytes"].as_u64()?,
            head: Head::from_hex(body["head"].as_str()?)?,
            is_last: body["is_last"].as_bool()?,
        };
        let member = |name: &str| body[name].as_str().map(str::to_owned);
        let (key, signature) = (member("key")?, member("signature")?);
        (seal.text(&key, &signature).as_bytes() == text).then_some((seal, key, signature))
    }

    /// Returns whether `signature` is the signature of this seal by the machine with public key
    /// `key`.
    pub(crate) fn is_signed(&self, key: &str, signature: &str) -> bool {
        is_signed(key, signature, &self.signed())
    }
}

impl Signer {
    /// Derives the Ed25519 key from this seed, which is part of a machine's identity.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Returns the public key as 64 hexadecimal digits.
    pub fn public(&self) -> String {
        hex::encode(&self.0.verifying_key().to_bytes())
    }

    pub(crate) fn seal(&self, seal: &Seal) -> String {
        seal.text(&self.public(), &self.sign(&seal.signed()))
    }

    /// Signs the text of a note about the newest file.
    pub(crate) fn sign_note(&self, note: &str) -> String {
        self.sign(&[NOTE_DOMAIN, note.as_bytes()].concat())
    }

    fn sign(&self, bytes: &[u8]) -> String {
        hex::encode(&self.0.sign(bytes).to_bytes())
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer of {}", self.public())
    }
}

/// Returns whether the machine with this public key signed this text of a note about the newest
/// file.
pub(crate) fn is_note_signed(key: &str, signature: &str, note: &str) -> bool {
    is_signed(key, signature, &[NOTE_DOMAIN, note.as_bytes()].concat())
}

/// Returns whether the machine with this key signed, in the first format, that `head` is the hash
/// after `records` records.
pub(crate) fn is_signed_first(key: &str, signature: &str, head: Head, records: u32) -> bool {
    is_signed(key, signature, &[FIRST_DOMAIN, &records.to_be_bytes(), &head.0].concat())
}

fn is_signed(key: &str, signature: &str, bytes: &[u8]) -> bool {
    let key = hex::decode(key).and_then(|key| key.try_into().ok());
    let key = key.and_then(|key: [u8; 32]| VerifyingKey::from_bytes(&key).ok());
    let signature = hex::decode(signature).and_then(|bytes| Signature::from_slice(&bytes).ok());
    key.zip(signature).is_some_and(|(key, signature)| key.verify_strict(bytes, &signature).is_ok())
}

/// Splits a body of the first format into the part before its last member, and the hash in that
/// member; `None` if it has no such member.
pub(crate) fn split(data: &[u8]) -> Option<(&[u8], Head)> {
    let (body, last) = data.split_at_checked(data.len().checked_sub(MEMBER.len() + 66)?)?;
    let digits = last.strip_prefix(MEMBER)?.strip_suffix(b"\"}")?;
    Some((body, Head::from_hex(std::str::from_utf8(digits).ok()?)?))
}

const MEMBER: &[u8] = b",\"chain\":\"";
// The machine's key also signs in TLS, and several statements here: domains keep them distinct.
const FIRST_DOMAIN: &[u8] = b"tautline black box, head 1\0";
const SEAL_DOMAIN: &[u8] = b"tautline black box, seal 2\0";
const NOTE_DOMAIN: &[u8] = b"tautline black box, newest 1\0";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seal() -> Seal {
        Seal { at: 4, records: 9, bytes: 1_000, head: Head::of(b"all"), is_last: false }
    }

    #[test]
    fn a_seal_counts_only_if_signed_by_the_machine_and_unchanged() {
        let (signer, other) = (Signer::from_seed(&[7; 32]), Signer::from_seed(&[8; 32]));
        let text = signer.seal(&seal());
        let (read, key, signature) = Seal::read(text.as_bytes(), 4).unwrap();
        assert_eq!((read, &key), (seal(), &signer.public()));
        assert!(read.is_signed(&key, &signature));
        assert!(!read.is_signed(&other.public(), &signature));
        assert!(!read.is_signed("", ""));
        for changed in [
            Seal { at: 5, ..seal() },
            Seal { records: 8, ..seal() },
            Seal { bytes: 999, ..seal() },
            Seal { head: Head::of(b"other"), ..seal() },
            Seal { is_last: true, ..seal() },
        ] {
            assert!(!changed.is_signed(&key, &signature), "{changed:?}");
        }
    }

    #[test]
    fn a_note_is_no_seal_and_a_seal_is_no_note() {
        let signer = Signer::from_seed(&[7; 32]);
        let signature = signer.sign_note("{}");
        assert!(is_note_signed(&signer.public(), &signature, "{}"));
        assert!(!is_note_signed(&signer.public(), &signature, "{ }"));
        assert!(!is_signed(&signer.public(), &signature, b"{}"));
    }

    #[test]
    fn another_text_of_the_same_seal_is_none() {
        let text = Signer::from_seed(&[7; 32]).seal(&seal());
        for other in [text.replace(':', ": "), text.replace("9", "9.0"), text.to_uppercase()] {
            assert_eq!(Seal::read(other.as_bytes(), 4), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_text_of_a_seal_is_read_or_refused(text: Vec<u8>, at: u64) {
            prop_assert_eq!(Seal::read(&text, at), None);
            let _ = split(&text);
        }
    }
}
