//! Tests that invalid input is refused in one line, and that later input is coded and decoded
//! normally.

#![allow(clippy::unwrap_used)]

use crate::scene::Scene;
use tautline_units::ByteCount;
use tautline_video::avc::LossRecovery;
use tautline_video::openh264::StripDecoder;
use tautline_video::{Backend, Concealer, Decoder, Error, Layout, Picture, Refresh};

const BUDGET: ByteCount = ByteCount::new(1_000);

#[test]
fn sizes_that_no_strip_can_have_are_refused_by_every_encoder() {
    let refreshing =
        [LossRecovery::IntraRefresh { period: 8 }, LossRecovery::IntraColumns { spacing: 8 }];
    for backend in Backend::all().into_iter().chain(refreshing.map(Backend::Avc)) {
        for (width, height) in [(0, 0), (64, 1), (1, 64), (64, 17), (1_279, 112), (64, 8_208)] {
            let error = backend.open(width, height, 60).err().unwrap();
            assert!(matches!(error, Error::Dimensions { .. }), "{backend}: {error}");
            assert_eq!(
                error.to_string(),
                format!(
                    "a picture of {width}x{height} is not possible: \
                     both sides must be multiples of 16, 16 to 8192"
                )
            );
        }
        assert!(backend.open(64, 16, 0).is_err(), "{backend}: no rate");
    }
    assert!(matches!(Layout::of(1_279, 720), Err(Error::Dimensions { .. })));
    assert!(matches!(Layout::of(1_280, 1), Err(Error::Dimensions { .. })));
}

#[test]
fn rows_of_a_wrong_size_are_refused_and_later_ones_coded() {
    for backend in Backend::all() {
        let mut encoder = backend.open(64, 32, 60).unwrap();
        let wrong = Picture::new(64, 16).unwrap();
        let error = encoder.encode(&wrong, BUDGET, Refresh::No).unwrap_err();
        assert_eq!(error.to_string(), "a picture of 64x16 was given where 64x32 belongs");
        let right = Picture::new(64, 32).unwrap();
        assert!(encoder.encode(&right, BUDGET, Refresh::No).is_ok(), "{backend}");
    }
}

/// A unit is complete or absent on the wire. A decoder that receives part of one reports an error
/// or returns nothing, and decodes the next IDR normally.
#[test]
fn truncated_units_are_errors_and_an_idr_follows_them() {
    for backend in Backend::all() {
        let mut encoder = backend.open(64, 32, 60).unwrap();
        let scene = Scene::new(64, 32, 5);
        let mut coded = |number, refresh| {
            encoder.encode(&scene.picture(number), BUDGET, refresh).unwrap().bytes
        };
        let (idr, predicted) = (coded(0, Refresh::Idr), coded(1, Refresh::No));
        let mut concealer = Concealer::new();
        let mut decoder = StripDecoder::new().unwrap();
        for unit in [&idr, &predicted] {
            for length in 0..unit.len() {
                let cut = &unit[..length];
                if let Err(error) = concealer.pass(cut) {
                    assert_eq!(error.to_string().lines().count(), 1, "{error}");
                }
                if let Err(error) = decoder.decode(cut) {
                    assert_eq!(error.to_string().lines().count(), 1, "{error}");
                }
            }
        }
        let again = coded(2, Refresh::Idr);
        let handed_on = concealer.pass(&again).unwrap().unwrap();
        assert!(!concealer.is_corrupt());
        let mut fresh = StripDecoder::new().unwrap();
        let wanted = fresh.decode(&again).unwrap();
        assert!(wanted.is_some());
        assert!(decoder.decode(&handed_on).unwrap() == wanted, "{backend}");
    }
}
