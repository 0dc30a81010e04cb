//! Any access units to join into one picture are joined or rejected. The result is a complete
//! access unit.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tautline_fuzz::Input;
use tautline_video::avc::{Config, Joined, Joiner, LossRecovery, Shape, StripEncoder};
use tautline_video::{Concealer, Picture, QuantizerEncoder, Quantizers, Refresh, SliceKind};

fuzz_target!(|bytes: &[u8]| join(&mut Input(bytes)));

fn join(input: &mut Input<'_>) {
    let [beginning, _] = &*CODED;
    let shape = Shape::read(beginning).expect("our encoder's");
    let mut joiner = Joiner::new(&[shape, shape]).expect("two strips of 64x32");
    // At least its headers must be readable by a receiver.
    let mut concealer = Concealer::new();
    let mut begun = input.byte() & 1 == 1;
    if begun {
        let joined = joiner.join(&[Some(beginning.as_slice()); 2]).expect("two IDRs");
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
        0 => return CODED[0].clone(),
        1 => CODED[1].clone(),
        2 => vec![0, 0, 0, 1, 0x65],
        3 => vec![0, 0, 0, 1, 0x61],
        _ => vec![0, 0, 1, input.byte()],
    };
    let length = input.up_to(40);
    unit.extend((0..length).map(|_| input.byte()));
    unit
}

/// An IDR of 4x2 macroblocks with its parameter sets, and a slice that may follow it, by today's
/// encoder.
static CODED: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let (width, height) = (64, 32);
    let loss_recovery = LossRecovery::ReferenceSelection { references: 4 };
    let config = Config {
        width,
        height,
        cropped: [0, 0],
        pictures_per_second: 30,
        loss_recovery,
        joinable: true,
    };
    let mut encoder = StripEncoder::new(config).expect("a small strip");
    [40, 90].map(|level| {
        let mut picture = Picture::new(width, height).expect("whole macroblocks");
        picture.planes_mut().0[..width * height / 2].fill(level);
        let coded = encoder.encode_at(&picture, Quantizers::both(30), Refresh::No);
        coded.expect("a picture of the right size").bytes.to_vec()
    })
});
