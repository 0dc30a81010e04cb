//! x264 strips through concealer and decoders.

#![cfg(feature = "x264")]
#![allow(clippy::unwrap_used)]

#[path = "../../video/tests/strips/ffmpeg.rs"]
mod ffmpeg;
#[path = "../../video/tests/strips/random.rs"]
mod random;
#[path = "../../video/tests/strips/scene.rs"]
mod scene;

use std::borrow::Cow;

use tautline_lab::pictures::x264::{Settings, StripEncoder};
use tautline_lab::quality;
use tautline_units::ByteCount;
use tautline_video::openh264::StripDecoder;
use tautline_video::{
    Concealer, Decoder, Encoder, QuantizerEncoder, Quantizers, Refresh, SliceKind,
};

use crate::random::Random;
use crate::scene::Scene;

const WIDTH: usize = 640;
const HEIGHT: usize = 112;

#[test]
fn mean_sizes_follow_the_budget_from_the_next_slices_on() {
    let scene = Scene::new(WIDTH, HEIGHT, 21);
    let mut encoder = StripEncoder::new(WIDTH, HEIGHT, 60, Settings::default()).unwrap();
    let mut number = 0;
    for budget in [3_000, 800, 2_500] {
        let mut mean = |count: u32| {
            let sizes = (0..count).map(|_| {
                let rows = scene.picture(number);
                number += 1;
                encoder.encode(&rows, ByteCount::new(budget), Refresh::No).unwrap().bytes.len()
            });
            sizes.sum::<usize>() as f64 / f64::from(count) / budget as f64
        };
        mean(30);
        let share = mean(30);
        assert!((share - 1.0).abs() < 0.1, "{budget}: {share}");
    }
}

#[test]
fn every_mode_survives_losses_across_frame_num_wraps() {
    for refresh_period in [0, 16] {
        let settings = Settings { refresh_period, ..Settings::default() };
        let mut encoder = StripEncoder::new(WIDTH, HEIGHT, 60, settings).unwrap();
        let scene = Scene::new(WIDTH, HEIGHT, 4);
        let mut concealer = Concealer::new();
        let mut decoder = StripDecoder::new().unwrap();
        let mut random = Random(9);
        let mut recording = Vec::new();
        for number in 0..300 {
            let rows = scene.picture(number);
            let coded = encoder.encode(&rows, ByteCount::new(1_500), Refresh::No).unwrap();
            let expected = if number == 0 { SliceKind::Idr } else { SliceKind::Predicted };
            assert_eq!(coded.kind, expected, "picture {number}, refresh {refresh_period}");
            let lost = number > 0 && random.next().is_multiple_of(5);
            let handed_on = match lost {
                true => Cow::Owned(concealer.skip().unwrap()),
                false => concealer.pass(&coded.bytes).unwrap().unwrap(),
            };
            recording.extend_from_slice(&handed_on);
            decoder.decode(&handed_on).unwrap().expect("one in, one out");
        }
        crate::ffmpeg::check(&recording, 300);
    }
}

#[test]
fn quantizers_are_obeyed() {
    let rows = Scene::new(WIDTH, HEIGHT, 4).picture(0);
    let mut last = f64::INFINITY;
    for qp in [12, 25, 40, 51] {
        let mut encoder = StripEncoder::new(WIDTH, HEIGHT, 60, Settings::default()).unwrap();
        let coded = encoder.encode_at(&rows, Quantizers::both(qp), Refresh::No).unwrap();
        let shown = StripDecoder::new().unwrap().decode(&coded.bytes).unwrap().unwrap();
        let psnr = quality::psnr(&shown, &rows).unwrap();
        assert!(psnr < last - 4.0, "{qp}: {psnr} dB after {last}");
        last = psnr;
    }
}
