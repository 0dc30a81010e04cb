//! Any access units to join into one picture are joined or rejected. The result is a complete
//! access unit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_fuzz::Input;
use tautline_video::avc::{Joined, Joiner, Shape};
use tautline_video::{Concealer, SliceKind};

fuzz_target!(|bytes: &[u8]| join(&mut Input(bytes)));

fn join(input: &mut Input<'_>) {
    let shape = Shape::read(BEGINNING).expect("our encoder's");
    let mut joiner = Joiner::new(&[shape, shape]).expect("two strips of 64x32");
    // At least its headers must be readable by a receiver.
    let mut concealer = Concealer::new();
    let mut begun = input.byte() & 1 == 1;
    if begun {
        let joined = joiner.join(&[Some(BEGINNING); 2]).expect("two IDRs");
        assert!(joined.refused == 0 && joined.kind == SliceKind::Idr);
        assert!(matches!(concealer.pass(&joined.bytes), Ok(Some(_))));
    }
    while !input.is_empty() {
        let strips = [(); 2].map(|()| (input.byte() & 3 > 0).then(|| slice(input)));
        let Ok(Joined { kind, bytes, .. }) = joiner.join(&strips.each_ref().map(Option::as_deref))
        else {
            assert!(!begun);
            continue;
        };
        assert!(kind == SliceKind::Idr || begun);
        begun = true;
        assert!(matches!(concealer.pass(&bytes), Ok(Some(_))), "{bytes:?}");
    }
}

/// Returns a slice as in a strip's stream, with or without its prerequisites.
fn slice(input: &mut Input<'_>) -> Vec<u8> {
    let mut unit = match input.up_to(4) {
        0 => return BEGINNING.to_vec(),
        1 => PREDICTED.to_vec(),
        2 => vec![0, 0, 0, 1, 0x65],
        3 => vec![0, 0, 0, 1, 0x61],
        _ => vec![0, 0, 1, input.byte()],
    };
    let length = input.up_to(40);
    unit.extend((0..length).map(|_| input.byte()));
    unit
}

/// An IDR of 4x2 macroblocks with its parameter sets, and a slice that may follow it.
const BEGINNING: &[u8] = &[
    0, 0, 0, 1, 103, 66, 192, 31, 141, 104, 69, 161, 0, 0, 3, 0, 1, 0, 0, 3, 0, 120, 11, 8, 132,
    106, 0, 0, 0, 1, 104, 206, 60, 128, 0, 0, 0, 1, 104, 83, 143, 160, 0, 0, 0, 1, 101, 136, 128,
    0, 64, 235, 255, 255, 240, 244, 80, 0, 17, 69, 242, 114, 114, 114, 114, 114, 114, 120,
];
const PREDICTED: &[u8] = &[0, 0, 0, 1, 97, 154, 0, 2, 3, 175, 19];
