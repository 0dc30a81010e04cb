//! Bytes of what is kept, in the store and in a backup on its way.
//!
//! ```text
//! record:  epoch (8 bytes), then, with a lease: its operator's key (32), since when in Unix seconds (8), and,
//!          once the two were introduced, its name (16)
//! backup:  for each vehicle: its key (32), length of its record (a byte), its record
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use tautline_transport::crypto::PublicKey;

use super::{Kept, KeptLease, Record};

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

impl Kept {
    /// Returns this as bytes for [`decode`](Self::decode).
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, record) in &self.vehicles {
            let record = record.encode();
            bytes.extend(key.as_bytes());
            bytes.push(u8::try_from(record.len()).expect("a record has 64 bytes at most"));
            bytes.extend(record);
        }
        bytes
    }

    /// Returns what [`encode`](Self::encode) has written, if that is what `bytes` are.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut vehicles = BTreeMap::new();
        while !bytes.is_empty() {
            let key = PublicKey::from_bytes(take(&mut bytes)?).ok()?;
            let [length] = take(&mut bytes)?;
            let (record, rest) = bytes.split_at_checked(usize::from(length))?;
            vehicles.insert(key, Record::decode(record)?);
            bytes = rest;
        }
        Some(Self { vehicles })
    }
}

/// Takes the first bytes off.
fn take<const LENGTH: usize>(bytes: &mut &[u8]) -> Option<[u8; LENGTH]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}
