//! Any black box file is parsed or reported as broken. Without the key nobody can close one:
//! neither with invented bytes nor by splicing parts of a valid file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_blackbox::mcap::{MAGIC, Record, Records};
use tautline_blackbox::recording::End;
use tautline_blackbox::{Note, Recording};
use tautline_fuzz::Input;

/// A file of the first format that ends with the end of a drive.
const RIGHT: &[u8] = include_bytes!("../../crates/blackbox/src/recording/files/first-format.mcap");

fuzz_target!(|bytes: &[u8]| {
    let _ = Recording::parse(bytes.to_vec());
    assert!(Note::parse(bytes).is_none(), "nobody has the key");
    for (_, record) in Records::new(&[&MAGIC[..], bytes].concat()).into_iter().flatten() {
        if let Ok(Record::Chunk(chunk)) = record {
            let _ = chunk.messages().map(|messages| Records::within(&messages).count());
        }
    }
    // Splice a valid file: a prefix, fuzzed bytes, a suffix.
    let mut input = Input(bytes);
    let (cut, on) = (input.up_to(RIGHT.len()), input.up_to(RIGHT.len()));
    let spliced = [&RIGHT[..cut], input.0, &RIGHT[on..]].concat();
    let right = Recording::parse(RIGHT.to_vec());
    let recording = Recording::parse(spliced);
    if recording.verdict().end == End::Closed {
        assert_eq!(recording.records().len(), right.records().len());
        let same = recording.records().iter().zip(right.records());
        assert!(same.into_iter().all(|(one, other)| recording.body(one) == right.body(other)));
    }
});
