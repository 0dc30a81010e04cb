use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::film::{Film, Sink};
use crate::{Signer, Topic};

impl Sink for &mut Vec<u8> {
    fn sync(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn signer() -> Signer {
    Signer::from_seed(&[7; 32])
}

/// Returns a file with eight records of a drive and four signatures.
fn file_of(drive: u32, signer: &Signer) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut film = Film::begin(&mut bytes, signer.clone());
    let preamble = film.preamble().to_string();
    let begin = json!({"event": "begin", "drive": drive, "part": 1, "preamble": preamble});
    film.put(Topic::Drive, &begin, 1_000).unwrap();
    for number in 0..6 {
        film.put(Topic::Sample, &json!({"number": number}), 1_000 + number).unwrap();
        if number % 2 == 1 {
            film.seal(false, 2_000).unwrap();
        }
    }
    film.put(Topic::Drive, &json!({"event": "end", "drive": drive}), 3_000).unwrap();
    film.seal(true, 3_000).unwrap();
    bytes
}

fn file() -> Vec<u8> {
    file_of(1, &signer())
}

/// A file in the first format, with a drive's end.
const FIRST: &[u8] = include_bytes!("files/first-format.mcap");

/// Returns the offset of each record of a file, and the end of the last.
fn places(bytes: &[u8]) -> Vec<usize> {
    let places = Records::new(bytes).unwrap().map(|(at, _)| at);
    places.chain([bytes.len()]).collect()
}

fn end_of(bytes: Vec<u8>) -> End {
    Recording::parse(bytes).verdict.end
}

fn fault(bytes: Vec<u8>) -> Fault {
    match end_of(bytes) {
        End::Broken(fault) => fault,
        end => panic!("{end:?}"),
    }
}

#[test]
fn a_written_recording_is_read_and_verified() {
    let recording = Recording::parse(file());
    let Verdict { format, records, sealed, unsigned, key, end } = recording.verdict();
    assert_eq!((*format, *records, *sealed, *unsigned), (Format::Second, 12, 11, 0));
    assert_eq!((end, key.as_ref()), (&End::Closed, Some(&signer().public())));
    assert_eq!(recording.body(&recording.records()[1])["number"], 0);
    assert_eq!(recording.sealed().unwrap().records, 11);
    assert_eq!(recording.begin().unwrap()["drive"], 1);
}

#[test]
fn a_file_cut_at_a_signature_with_an_mcap_end_is_not_closed() {
    for bytes in [file(), FIRST.to_vec()] {
        let places = places(&bytes);
        let [.., data_end, _footer, _end] = places[..] else { panic!("{places:?}") };
        let end = &bytes[data_end..];
        for cut in &places[..places.len() - 3] {
            let spliced = [&bytes[..*cut], end].concat();
            assert_eq!(fault(spliced).what, What::End, "cut at {cut}");
        }
        assert_eq!(end_of(bytes.clone()), End::Closed);
    }
}

#[test]
fn a_drive_end_without_a_final_seal_does_not_close_a_file() {
    let mut bytes = Vec::new();
    let mut film = Film::begin(&mut bytes, signer());
    film.put(Topic::Drive, &json!({"event": "end"}), 1_000).unwrap();
    film.seal(false, 1_000).unwrap();
    mcap::write_end(&mut bytes);
    assert_eq!(fault(bytes).what, What::End);
}

#[test]
fn a_last_signature_over_no_drives_end_does_not_close_a_file() {
    let mut bytes = Vec::new();
    let mut film = Film::begin(&mut bytes, signer());
    film.put(Topic::Sample, &json!({"number": 1}), 1_000).unwrap();
    film.seal(true, 1_000).unwrap();
    assert_eq!(fault(bytes).what, What::End);
}

#[test]
fn a_text_in_a_schema_or_a_channel_that_was_changed_is_named() {
    let file = file();
    for text in ["jsonschema", "SHA-256 of these bytes", "x-tautline", "json\0"] {
        let at = file.windows(text.len()).position(|bytes| bytes == text.as_bytes()).unwrap();
        let mut changed = file.clone();
        changed[at] ^= 1;
        let fault = fault(changed);
        // With another profile its chunks are not valid.
        let what = if text.starts_with("x-") { What::Foreign } else { What::Preamble };
        assert_eq!((fault.record, fault.what), (0, what), "{text}");
    }
}

#[test]
fn unsigned_records_are_not_listed() {
    let file = file();
    let places = places(&file);
    // After a signature of a file that was not ended, anybody can write this.
    let cut = places[places.len() - 5];
    let mut forged = file[..cut].to_vec();
    let message = crate::film::message(Topic::Sample, 10, 9_000, b"{\"number\":666}");
    mcap::write_chunk(&message, 9_000, 9_000, &mut forged);
    let recording = Recording::parse(forged);
    let Verdict { records, sealed, unsigned, end, .. } = recording.verdict();
    assert_eq!((*records, *sealed, *unsigned, end), (10, 9, 1, &End::Open));
    assert!(!recording.records().iter().any(|record| record.unix_nanos == 9_000));
}

#[test]
fn zeros_that_a_power_cut_left_are_no_forgery() {
    let file = file();
    let cut = places(&file)[30];
    let recording = Recording::parse([&file[..cut], &[0; 4_096]].concat());
    assert_eq!(recording.verdict().end, End::Open);
}

#[test]
fn a_file_of_the_first_format_is_verified_by_its_chain() {
    let recording = Recording::parse(FIRST.to_vec());
    let Verdict { format, records, sealed, unsigned, key, end } = recording.verdict();
    assert_eq!((*format, *records, *sealed, *unsigned), (Format::First, 10, 9, 0));
    assert_eq!((end, key.as_ref()), (&End::Closed, Some(&signer().public())));
    assert_eq!(recording.body(&recording.records()[2])["number"], 0);
    assert_eq!(recording.seals().len(), 4);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>, cut in 0.0..1.0f64) {
        Recording::parse(bytes.clone());
        for file in [&file()[..], FIRST] {
            let cut = (cut * file.len() as f64) as usize;
            let spliced = [&file[..cut], &bytes].concat();
            prop_assert!(end_of(spliced) != End::Closed);
        }
    }

    #[test]
    fn a_file_cut_anywhere_is_right_up_to_there_and_not_closed(cut in 0.0..1.0f64) {
        for file in [&file()[..], FIRST] {
            let cut = (cut * file.len() as f64) as usize;
            let recording = Recording::parse(file[..cut].to_vec());
            prop_assert_eq!(&recording.verdict().end, &End::Open);
            let whole = Recording::parse(file.to_vec());
            let count = recording.records().len();
            prop_assert_eq!(recording.records(), &whole.records()[..count]);
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_found(at in 0.0..1.0f64, bit in 0u8..8) {
        let mut file = file();
        let at = (at * file.len() as f64) as usize;
        let before = places(&file).iter().rposition(|place| *place <= at).unwrap_or_default();
        file[at] ^= 1 << bit;
        let fault = fault(file.clone());
        // The fault is reported at the change, or at the signature over it.
        // A file with another beginning has no records.
        let places = if at < 8 { vec![0] } else { places(&file) };
        let place = places.iter().position(|place| *place == fault.offset);
        prop_assert!(place.is_some_and(|place| place <= before + 25), "{fault} for byte {at}");
    }

    #[test]
    fn a_flipped_bit_of_any_record_is_found_in_that_record(at in 0.0..1.0f64, bit in 0u8..8) {
        let mut file = FIRST.to_vec();
        let places = places(&file);
        let (first, last) = (places[places.len() - 13], places[places.len() - 3]);
        let at = first + (at * (last - first) as f64) as usize;
        let record = places.iter().rposition(|place| *place <= at).unwrap() - (places.len() - 13);
        file[at] ^= 1 << bit;
        let fault = fault(file);
        prop_assert_eq!(fault.record as usize, record);
    }

    #[test]
    fn parts_of_files_in_another_order_are_never_right(one in 0usize..40, other in 0usize..40) {
        for file in [file(), FIRST.to_vec()] {
            let places = places(&file);
            let (one, other) = (one % (places.len() - 1), other % (places.len() - 1));
            // In the first format header, schemas and channels are not signed.
            let first = if file == FIRST { places.len() - 13 } else { 0 };
            if one >= other || one < first {
                continue;
            }
            let record = |at: usize| &file[places[at]..places[at + 1]];
            let swapped = [
                &file[..places[one]],
                record(other),
                &file[places[one + 1]..places[other]],
                record(one),
                &file[places[other + 1]..],
            ];
            prop_assert!(matches!(end_of(swapped.concat()), End::Broken(_)), "{one} {other}");
            let without = [&file[..places[one]], &file[places[one + 1]..]].concat();
            prop_assert!(matches!(end_of(without), End::Broken(_)), "without {one}");
            let twice = [&file[..places[other]], record(one), &file[places[other]..]].concat();
            prop_assert!(matches!(end_of(twice), End::Broken(_)), "{one} again before {other}");
        }
    }

    #[test]
    fn a_file_that_goes_on_as_another_is_never_right(
        cut in 0.0..1.0f64,
        from in 0usize..40,
        by_other: bool,
        is_first: bool,
    ) {
        let (mine, key) = (file(), [7 + u8::from(by_other); 32]);
        let other = match is_first {
            true => FIRST.to_vec(),
            false => file_of(2, &Signer::from_seed(&key)),
        };
        let (cut, places) = ((cut * mine.len() as f64) as usize, places(&other));
        let rest = &other[places[from % (places.len() - 1)]..];
        // All files have the same end.
        prop_assume!(!mine[cut..].starts_with(rest) || mine.len() - cut != rest.len());
        let end = end_of([&mine[..cut], rest].concat());
        prop_assert!(matches!(end, End::Broken(_)), "{end:?}");
    }

    #[test]
    fn a_closed_file_that_goes_on_is_never_right(more in proptest::collection::vec(any::<u8>(), 1..99)) {
        for file in [&file()[..], FIRST] {
            let end = end_of([file, &more].concat());
            prop_assert!(matches!(end, End::Broken(_)), "{end:?}");
        }
    }
}
