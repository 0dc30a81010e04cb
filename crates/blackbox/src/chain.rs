//! The chain of hashes, and the signatures over its head.

use std::fmt;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};

use crate::{Topic, hex};

/// The hash over all records of a file up to one.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Head([u8; 32]);

/// What signs the heads: the machine's key.
#[derive(Clone)]
pub struct Signer(SigningKey);

impl Head {
    /// Returns the head after one more record: SHA-256 over this head, the topic's length (one
    /// byte) and name, the sequence (u32), the time (u64) and the body; numbers are big-endian.
    pub(crate) fn after(self, topic: Topic, sequence: u32, at: u64, body: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update([topic.name().len() as u8]);
        hash.update(topic.name());
        hash.update(sequence.to_be_bytes());
        hash.update(at.to_be_bytes());
        body.iter().for_each(|part| hash.update(part));
        Self(hash.finalize().into())
    }

    /// Returns the head of 64 hexadecimal digits.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        hex::decode(text)?.try_into().ok().map(Self)
    }

    /// Returns what is signed to say that `records` records lead to this head.
    fn signed(self, records: u32) -> Vec<u8> {
        [DOMAIN, &records.to_be_bytes(), &self.0].concat()
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

impl Signer {
    /// Returns the signer whose Ed25519 key grows from this seed: a machine's identity has one.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Returns the 64 hexadecimal digits of the public half.
    pub fn public(&self) -> String {
        hex::encode(&self.0.verifying_key().to_bytes())
    }

    pub(crate) fn sign(&self, head: Head, records: u32) -> String {
        hex::encode(&self.0.sign(&head.signed(records)).to_bytes())
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer of {}", self.public())
    }
}

/// Returns whether the machine of this public key signed that `records` records lead to `head`.
pub(crate) fn is_signed(key: &str, signature: &str, head: Head, records: u32) -> bool {
    let key = hex::decode(key).and_then(|key| key.try_into().ok());
    let key = key.and_then(|key: [u8; 32]| VerifyingKey::from_bytes(&key).ok());
    let signature = hex::decode(signature).and_then(|bytes| Signature::from_slice(&bytes).ok());
    key.zip(signature).is_some_and(|(key, signature)| {
        key.verify_strict(&head.signed(records), &signature).is_ok()
    })
}

/// Puts the chain's hash into a body, as its last member.
pub(crate) fn join(mut body: Vec<u8>, head: Head) -> Vec<u8> {
    debug_assert!(body.ends_with(b"}") && body.len() > 2, "an object with a member");
    body.pop();
    body.extend(MEMBER);
    body.extend(head.to_string().as_bytes());
    body.extend(b"\"}");
    body
}

/// Returns a body without its last brace, and the hash behind it.
pub(crate) fn split(data: &[u8]) -> Option<(&[u8], Head)> {
    let (body, last) = data.split_at_checked(data.len().checked_sub(MEMBER.len() + 66)?)?;
    let digits = last.strip_prefix(MEMBER)?.strip_suffix(b"\"}")?;
    Some((body, Head::from_hex(std::str::from_utf8(digits).ok()?)?))
}

const MEMBER: &[u8] = b",\"chain\":\"";
/// The machine's key signs in TLS too: what is signed here is nothing that is signed there.
const DOMAIN: &[u8] = b"tautline black box, head 1\0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_keeps_its_hash_as_its_last_member() {
        let head = Head::default().after(Topic::Step, 3, 4, &[b"{\"a\":1}"]);
        let data = join(b"{\"a\":1}".to_vec(), head);
        assert_eq!(split(&data), Some((b"{\"a\":1".as_slice(), head)));
        assert!(serde_json::from_slice::<serde_json::Value>(&data).is_ok());
        assert_eq!(split(b"{}"), None);
    }

    #[test]
    fn whatever_a_record_says_changes_the_head() {
        let start = Head::default();
        let head = start.after(Topic::Step, 3, 4, &[b"{\"a\":1}"]);
        assert_eq!(head, start.after(Topic::Step, 3, 4, &[b"{\"a\":", b"1}"]));
        for other in [
            head.after(Topic::Step, 3, 4, &[b"{\"a\":1}"]),
            start.after(Topic::Sample, 3, 4, &[b"{\"a\":1}"]),
            start.after(Topic::Step, 4, 4, &[b"{\"a\":1}"]),
            start.after(Topic::Step, 3, 5, &[b"{\"a\":1}"]),
            start.after(Topic::Step, 3, 4, &[b"{\"a\":2}"]),
        ] {
            assert_ne!(other, head);
        }
    }

    #[test]
    fn only_the_machines_own_signature_counts() {
        let (signer, other) = (Signer::from_seed(&[7; 32]), Signer::from_seed(&[8; 32]));
        let head = Head::default().after(Topic::Step, 3, 4, &[b"{}"]);
        let signature = signer.sign(head, 9);
        assert!(is_signed(&signer.public(), &signature, head, 9));
        assert!(!is_signed(&signer.public(), &signature, head, 8));
        assert!(!is_signed(&signer.public(), &signature, Head::default(), 9));
        assert!(!is_signed(&other.public(), &signature, head, 9));
        assert!(!is_signed("", "", head, 9));
    }
}
