//! Tests that libavcodec and openh264 decode the same pictures.

#![allow(clippy::unwrap_used)]

use std::borrow::Cow;

use crate::random::Random;
use crate::scene::Scene;
use tautline_units::ByteCount;
use tautline_video::openh264::{self, StripEncoder};
use tautline_video::{Concealer, Decoder, Encoder, Refresh, libavcodec};

#[test]
fn both_decoders_return_equal_pictures_at_once_despite_losses() {
    let scene = Scene::new(640, 112, 4);
    let mut encoder = StripEncoder::new(640, 112, 60).unwrap();
    let mut concealer = Concealer::new();
    let mut one = openh264::StripDecoder::new().unwrap();
    let mut other = libavcodec::StripDecoder::new().unwrap();
    let mut random = Random(5);
    for number in 0..300 {
        let coded =
            encoder.encode(&scene.picture(number), ByteCount::new(1_500), Refresh::No).unwrap();
        let handed_on = match number > 0 && random.next().is_multiple_of(6) {
            true => Cow::Owned(concealer.skip().unwrap()),
            false => concealer.pass(&coded.bytes).unwrap().unwrap(),
        };
        let expected = one.decode(&handed_on).unwrap().unwrap();
        assert_eq!(other.decode(&handed_on).unwrap().unwrap(), expected, "picture {number}");
    }
}

#[test]
fn bytes_that_are_no_access_unit_give_no_picture() {
    let mut decoder = libavcodec::StripDecoder::new().unwrap();
    for bytes in [&[][..], &[0, 0, 0, 1], &[0, 0, 1, 0x65, 0xFF, 0xFF], &[1, 2, 3, 4, 5]] {
        assert!(!matches!(decoder.decode(bytes), Ok(Some(_))));
    }
}
