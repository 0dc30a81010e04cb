//! Note about the newest file, which reveals a missing or shortened newest file.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::film::Sealed;
use crate::{Config, Head, Signer, chain, drives};

/// Newest signature of the newest file, as noted by its writer in the folder of the drives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Number of the newest drive.
    pub drive: u32,
    /// Number of the newest file of that drive.
    pub part: u32,
    /// `true` if the file was complete: its drive had ended, or continued in the next file.
    pub is_closed: bool,
    /// Number of the oldest drive not deleted by the settings.
    pub kept_from: u32,
    /// Total size in MiB above which the oldest drives are deleted; 0 if there is no limit.
    pub keep_mib: u64,
    /// Days after which a drive is deleted; 0 if never.
    pub keep_days: u64,
    /// Public key by which the note and the file are signed, 64 hexadecimal digits.
    pub key: String,
    pub(crate) sealed: Sealed,
}

impl Note {
    /// Reads the note of a black box; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be read, is malformed, or is not signed by the key in it.
    pub fn read(root: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(root.join(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let wrong = || io::Error::other("it does not match its signature");
        Self::parse(&text).map(Some).ok_or_else(wrong)
    }

    /// Parses the text of a note; `None` if it is malformed, longer than [`BYTES_MAX`], or not
    /// signed by the key in it.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = text.get(..BYTES_MAX.min(text.len())).filter(|part| part.len() == text.len())?;
        let body: Value = serde_json::from_slice(text).ok()?;
        let note = &body["note"];
        let (key, signature) = (body["key"].as_str()?, body["signature"].as_str()?);
        let number = |member: &str| u32::try_from(note[member].as_u64()?).ok();
        let note = Self {
            drive: number("drive")?,
            part: number("part")?,
            is_closed: note["is_closed"].as_bool()?,
            kept_from: number("kept_from")?,
            keep_mib: note["keep_mib"].as_u64()?,
            keep_days: note["keep_days"].as_u64()?,
            key: key.to_owned(),
            sealed: Sealed {
                records: number("records")?,
                head: Head::from_hex(note["head"].as_str()?)?,
            },
        };
        chain::is_note_signed(key, signature, &note.body().to_string()).then_some(note)
    }

    /// Returns the text of the note's file: the note, the public key, and the signature over the
    /// note.
    pub(crate) fn text(&self, signer: &Signer) -> String {
        let note = self.body();
        let signature = signer.sign_note(&note.to_string());
        let text = json!({ "note": note, "key": signer.public(), "signature": signature });
        format!("{text}\n")
    }

    fn body(&self) -> Value {
        let Self { drive, part, is_closed, kept_from, keep_mib, keep_days, key: _, sealed } = self;
        json!({
            "drive": drive,
            "part": part,
            "records": sealed.records,
            "head": sealed.head.to_string(),
            "is_closed": is_closed,
            "kept_from": kept_from,
            "keep_mib": keep_mib,
            "keep_days": keep_days,
        })
    }

    pub(crate) fn new(
        (drive, part, sealed): (u32, u32, Sealed),
        is_closed: bool,
        kept_from: u32,
        config: &Config,
        signer: &Signer,
    ) -> Self {
        let Config { keep_mib, keep_days, .. } = *config;
        let key = signer.public();
        Self { drive, part, is_closed, kept_from, keep_mib, keep_days, key, sealed }
    }
}

/// Replaces the note atomically: after a power cut either the old or the new one exists.
pub(crate) fn write(root: &Path, text: &str) -> io::Result<()> {
    let (path, beside) = (root.join(NAME), root.join(BESIDE));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, &path)?;
    drives::sync_folder(root)
}

/// Name of the note's file, in the folder of the drives.
pub const NAME: &str = "newest.json";
const BESIDE: &str = "newest.json.new";
/// Size in bytes above which a note counts as malformed; a note has about 500.
const BYTES_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn note() -> Note {
        let sealed = Sealed { records: 9, head: Head::of(b"all") };
        let signer = Signer::from_seed(&[7; 32]);
        Note::new((3, 1, sealed), true, 2, &Config::default(), &signer)
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Note::read(root.path()).unwrap(), None);
        write(root.path(), "{}").unwrap();
        assert!(Note::read(root.path()).is_err());
        write(root.path(), &note().text(&Signer::from_seed(&[7; 32]))).unwrap();
        assert_eq!(Note::read(root.path()).unwrap(), Some(note()));
        // Signed by a key other than the one in it.
        write(root.path(), &note().text(&Signer::from_seed(&[8; 32]))).unwrap();
        assert_ne!(Note::read(root.path()).unwrap().map(|note| note.key), Some(note().key));
    }

    proptest! {
        #[test]
        fn a_flipped_bit_of_a_note_says_nothing_else(at in 0.0..1.0f64, bit in 0u8..8) {
            let mut text = note().text(&Signer::from_seed(&[7; 32])).into_bytes();
            let at = (at * text.len() as f64) as usize;
            text[at] ^= 1 << bit;
            prop_assert!(Note::parse(&text).is_none_or(|read| read == note()));
        }

        #[test]
        fn any_text_of_a_note_is_read_or_refused(text: Vec<u8>) {
            prop_assert_eq!(Note::parse(&text), None);
        }
    }
}
