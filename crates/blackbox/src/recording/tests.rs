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

/// Returns a file of six records and four signatures.
fn file() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut film = Film::begin(&mut bytes, Signer::from_seed(&[7; 32]));
    for number in 0..6 {
        film.put(Topic::Sample, &json!({"number": number}), 1_000 + number).unwrap();
        if number % 2 == 1 {
            film.seal(false, 2_000).unwrap();
        }
    }
    film.seal(true, 3_000).unwrap();
    bytes
}

/// Returns where each message of a file begins, and where the last ends.
fn places(bytes: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    for (at, record) in Records::new(bytes).unwrap() {
        match record.unwrap() {
            mcap::Record::Message(_) | mcap::Record::DataEnd => places.push(at),
            _ => {}
        }
    }
    places
}

fn fault(bytes: Vec<u8>) -> Fault {
    match Recording::parse(bytes).verdict {
        Verdict { end: End::Broken(fault), .. } => fault,
        verdict => panic!("{verdict:?}"),
    }
}

#[test]
fn what_was_written_is_read_and_verified() {
    let recording = Recording::parse(file());
    let Verdict { records, sealed, key, end } = recording.verdict();
    assert_eq!((*records, *sealed, end), (10, 9, &End::Closed));
    assert_eq!(key.as_ref().unwrap(), &Signer::from_seed(&[7; 32]).public());
    assert_eq!(recording.body(&recording.records()[1])["number"], 1);
    assert_eq!(recording.sealed().unwrap().records, 9);
}

#[test]
fn a_record_taken_out_or_moved_is_named() {
    let bytes = file();
    let places = places(&bytes);
    let record = |at: usize| &bytes[places[at]..places[at + 1]];
    let without = [&bytes[..places[4]], &bytes[places[5]..]].concat();
    assert_eq!((fault(without.clone()).record, fault(without).what), (4, What::Order));
    let swapped = [&bytes[..places[3]], record(4), record(3), &bytes[places[5]..]].concat();
    assert_eq!((fault(swapped.clone()).record, fault(swapped).what), (3, What::Order));
    let twice = [&bytes[..places[4]], record(3), &bytes[places[4]..]].concat();
    assert_eq!((fault(twice.clone()).record, fault(twice).what), (4, What::Order));
}

#[test]
fn a_chain_made_anew_lacks_the_machines_signature() {
    // All that a forger without the key can do: put another key's seals on another story.
    let mut bytes = Vec::new();
    let mut film = Film::begin(&mut bytes, Signer::from_seed(&[8; 32]));
    film.put(Topic::Sample, &json!({"number": 0}), 1_000).unwrap();
    film.seal(true, 3_000).unwrap();
    let key = Recording::parse(bytes).verdict.key;
    assert_ne!(key, Some(Signer::from_seed(&[7; 32]).public()));
    // Or write the machine's key into a seal of his own.
    let text = String::from_utf8_lossy(&file()).into_owned();
    assert!(text.contains(&Signer::from_seed(&[7; 32]).public()));
    let head = Head::default().after(Topic::Sample, 0, 1, &[b"{}"]);
    let signature = Signer::from_seed(&[8; 32]).sign(head, 1);
    assert!(!chain::is_signed(&Signer::from_seed(&[7; 32]).public(), &signature, head, 1));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>, cut in 0usize..9_000) {
        Recording::parse(bytes.clone());
        let file = file();
        let cut = cut.min(file.len());
        Recording::parse([&file[..cut], &bytes].concat());
    }

    #[test]
    fn a_file_cut_anywhere_is_right_up_to_there_and_not_closed(cut in 0.0..1.0f64) {
        let file = file();
        let cut = (cut * file.len() as f64) as usize;
        let recording = Recording::parse(file[..cut].to_vec());
        prop_assert_eq!(&recording.verdict().end, &End::Open);
        let whole = places(&file).iter().skip(1).filter(|end| **end <= cut).count();
        prop_assert_eq!(recording.records().len(), whole);
    }

    #[test]
    fn a_flipped_bit_of_any_record_is_found_in_that_record(at in 0.0..1.0f64, bit in 0u8..8) {
        let mut file = file();
        let places = places(&file);
        let (first, last) = (places[0], places[places.len() - 1]);
        let at = first + (at * (last - first) as f64) as usize;
        let record = places.iter().rposition(|place| *place <= at).unwrap();
        file[at] ^= 1 << bit;
        let verdict = Recording::parse(file).verdict;
        // A length that reaches beyond the file looks as a file does that was cut.
        prop_assert!(verdict.end != End::Closed);
        prop_assert_eq!(verdict.records as usize, record);
    }

    #[test]
    fn two_parts_of_a_file_in_another_order_are_never_right(one in 0usize..10, other in 0usize..10) {
        prop_assume!(one < other);
        let file = file();
        let places = places(&file);
        let record = |at: usize| &file[places[at]..places[at + 1]];
        let swapped = [
            &file[..places[one]],
            record(other),
            &file[places[one + 1]..places[other]],
            record(one),
            &file[places[other + 1]..],
        ];
        let verdict = Recording::parse(swapped.concat()).verdict;
        prop_assert_eq!(verdict.records as usize, one);
        prop_assert!(matches!(verdict.end, End::Broken(_)));
    }
}
