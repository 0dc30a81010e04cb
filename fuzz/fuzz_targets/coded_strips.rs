//! With any pictures, budgets and reports, the encoder codes each picture into an access unit that
//! a receiver can parse.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_fuzz::Input;
use tautline_units::ByteCount;
use tautline_video::avc::{Config, Joiner, LossRecovery, Shape, StripEncoder};
use tautline_video::{
    Concealer, Encoder, Picture, QuantizerEncoder, Quantizers, Refresh, SliceKind,
};

fuzz_target!(|bytes: &[u8]| code(&mut Input(bytes)));

fn code(input: &mut Input<'_>) {
    let loss_recovery = match input.up_to(5) {
        0 => LossRecovery::Idr,
        1 => LossRecovery::IntraRefresh { period: input.byte() },
        2 => LossRecovery::IntraColumns { spacing: input.byte() },
        3 => LossRecovery::IntraRefreshOnLoss { period: input.byte() },
        4 => LossRecovery::AcknowledgedReferences { references: input.byte() },
        _ => LossRecovery::ReferenceSelection { references: input.byte() },
    };
    let (width, height) = (16 * (1 + input.up_to(5)), 16 * (1 + input.up_to(2)));
    let joinable = input.byte() & 1 == 1;
    let config = Config {
        width,
        height,
        cropped: [usize::from(input.byte()), usize::from(input.byte())],
        pictures_per_second: input.byte().into(),
        loss_recovery,
        joinable,
    };
    let Ok(mut encoder) = StripEncoder::new(config) else { return };
    let mut joiner = None;
    let mut concealer = Concealer::new();
    for number in 0..PICTURES_MAX {
        if number > 0 && input.is_empty() {
            break;
        }
        let picture = picture(input, width, height);
        let refresh = match input.up_to(5) {
            0 => Refresh::Idr,
            1 => Refresh::Recover,
            _ => Refresh::No,
        };
        let coded = match input.up_to(4) {
            0 => encoder.encode_at(&picture, Quantizers::both(input.byte() % 52), refresh),
            _ => encoder.encode(&picture, ByteCount::new(input.up_to(0xFFFF) as u64), refresh),
        };
        let coded = coded.expect("a picture of the right size");
        let handed_on = concealer.pass(&coded.bytes).expect("it is whole").expect("an IDR begins");
        assert_eq!(*handed_on, *coded.bytes);
        if joinable {
            let joiner = joiner.get_or_insert_with(|| {
                let shape = Shape::read(&coded.bytes).expect("it begins with its parameter sets");
                Joiner::new(&[shape]).expect("it is joinable")
            });
            let joined = joiner.join(&[Some(&coded.bytes)]).expect("one strip makes a picture");
            assert_eq!(joined.refused, 0);
            assert_eq!(joined.kind == SliceKind::Idr, coded.kind == SliceKind::Idr);
        }
        encoder.acknowledge(u64::from(number).saturating_sub(input.up_to(3) as u64));
    }
}

/// Returns a picture built from the fuzzer's bytes: each block is a constant level or noise.
fn picture(input: &mut Input<'_>, width: usize, height: usize) -> Picture {
    let mut picture = Picture::new(width, height).expect("whole macroblocks");
    let (luma, cb, cr) = picture.planes_mut();
    for plane in [luma, cb, cr] {
        for block in plane.chunks_mut(64) {
            match input.byte() {
                0 => block.copy_from_slice(&input.packet(block.len())),
                level => block.fill(level),
            }
        }
    }
    picture
}

const PICTURES_MAX: u32 = 12;
