//! Encoding of the stored content, in the store and in a backup.
//!
//! ```text
//! record:  epoch (8 bytes), then, with a lease: its operator's key (32), its begin in Unix seconds (8), and,
//!          after the first introduction, its name (16)
//! machine: role (a byte; 0 vehicle, 1 operator), name
//! backup:  for each entry: its kind (a byte; 0 record, 1 machine), key (32), length (a byte), content
//! ```

use std::time::Duration;

use tautline_message::Role;
use tautline_transport::crypto::PublicKey;

use super::{Kept, KeptLease, Machine, Record};

impl Record {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.epoch.to_be_bytes().to_vec();
        if let Some(KeptLease { operator, name, since }) = &self.lease {
            bytes.extend(operator.as_bytes());
            bytes.extend(since.as_secs().to_be_bytes());
            bytes.extend(name.iter().flatten());
        }
        bytes
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let epoch = u64::from_be_bytes(take(&mut bytes)?);
        if bytes.is_empty() {
            return Some(Self { epoch, lease: None });
        }
        let operator = PublicKey::from_bytes(take(&mut bytes)?).ok()?;
        let since = Duration::from_secs(u64::from_be_bytes(take(&mut bytes)?));
        let name = if bytes.is_empty() { None } else { Some(take(&mut bytes)?) };
        let lease = Some(KeptLease { operator, name, since });
        bytes.is_empty().then_some(Self { epoch, lease })
    }
}

impl Machine {
    pub(super) fn encode(&self) -> Vec<u8> {
        let role = match self.role {
            Role::Vehicle => 0,
            Role::Operator => 1,
        };
        [&[role], self.name.as_bytes()].concat()
    }

    pub(super) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let role = match take(&mut bytes)? {
            [0] => Role::Vehicle,
            [1] => Role::Operator,
            [_] => return None,
        };
        let name = std::str::from_utf8(bytes).ok().filter(|name| (1..=64).contains(&name.len()))?;
        Some(Self { role, name: name.to_owned() })
    }
}

impl Kept {
    /// Encodes the content for [`decode`](Self::decode).
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut write = |which, key: &PublicKey, entry: Vec<u8>| {
            bytes.push(which);
            bytes.extend(key.as_bytes());
            bytes.push(u8::try_from(entry.len()).expect("an entry has at most 65 bytes"));
            bytes.extend(entry);
        };
        for (key, record) in &self.vehicles {
            write(0, key, record.encode());
        }
        for (key, machine) in &self.machines {
            write(1, key, machine.encode());
        }
        bytes
    }

    /// Decodes the output of [`encode`](Self::encode); `None` if `bytes` are invalid.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut kept = Self::default();
        while !bytes.is_empty() {
            let [which] = take(&mut bytes)?;
            let key = PublicKey::from_bytes(take(&mut bytes)?).ok()?;
            let [length] = take(&mut bytes)?;
            let (entry, rest) = bytes.split_at_checked(usize::from(length))?;
            match which {
                0 => drop(kept.vehicles.insert(key, Record::decode(entry)?)),
                1 => drop(kept.machines.insert(key, Machine::decode(entry)?)),
                _ => return None,
            }
            bytes = rest;
        }
        Some(kept)
    }
}

/// Removes and returns the first `LENGTH` bytes; `None` if there are fewer.
fn take<const LENGTH: usize>(bytes: &mut &[u8]) -> Option<[u8; LENGTH]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}
