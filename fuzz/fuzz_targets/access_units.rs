//! The concealer accepts or rejects any access units, and can still replace a missing one. This
//! covers the parsers of parameter sets, slice headers and NAL units.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_fuzz::Input;
use tautline_video::Concealer;

fuzz_target!(|bytes: &[u8]| conceal(&mut Input(bytes)));

fn conceal(input: &mut Input<'_>) {
    let mut concealer = Concealer::new();
    let mut has_begun = false;
    if input.byte() & 1 == 1 {
        has_begun = matches!(concealer.pass(BEGINNING), Ok(Some(_)));
        assert!(has_begun);
    }
    while !input.is_empty() {
        let unit = access_unit(input);
        if let Ok(parsed) = concealer.parse(&unit) {
            assert!(concealer.missing_before(&parsed) <= MISSING_MAX);
        }
        let before = concealer.clone();
        match concealer.pass(&unit) {
            Ok(Some(handed_on)) => {
                // The decoder also receives a complete access unit.
                assert!(matches!(before.clone().pass(&handed_on), Ok(Some(_))));
                has_begun = true;
            }
            Ok(None) => assert!(!has_begun),
            // A rejected unit changes nothing.
            Err(_) => assert_eq!(format!("{concealer:?}"), format!("{before:?}")),
        }
        assert_eq!(concealer.skip().is_some(), has_begun);
        assert_eq!(concealer.codec().is_some(), has_begun);
    }
}

/// Returns some NAL units with start codes, usually of the kinds in a strip's stream.
fn access_unit(input: &mut Input<'_>) -> Vec<u8> {
    let mut unit = Vec::new();
    for _ in 0..=input.up_to(3) {
        let header = match input.up_to(5) {
            0 => 0x67,
            1 => 0x68,
            2 => 0x65,
            3 => 0x41,
            4 => 0x06,
            _ => input.byte(),
        };
        unit.extend_from_slice(&[0, 0, 0, 1, header]);
        let length = input.up_to(40);
        unit.extend((0..length).map(|_| input.byte()));
        if header != 0x06 {
            unit.push(0x80);
        }
    }
    unit
}

/// An IDR of 4x2 macroblocks with its parameter sets.
const BEGINNING: &[u8] = &[
    0, 0, 0, 1, 103, 66, 192, 31, 233, 8, 178, 0, 0, 0, 1, 104, 206, 60, 128, 0, 0, 0, 1, 101, 136,
    132, 21, 121, 176,
];
/// Maximum number of pictures that the concealer counts as missing, as
/// [`Concealer::missing_before`] documents.
const MISSING_MAX: u32 = 60;
