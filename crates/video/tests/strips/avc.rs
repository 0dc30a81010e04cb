//! Tests that the encoder's reconstruction equals the decoders' pictures, byte for byte.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use crate::scene::Scene;
use openh264::OpenH264API;
use openh264::decoder::{Decoder as Native, DecoderConfig, Flush};
use openh264::formats::YUVSource;
use tautline_units::ByteCount;
use tautline_video::avc::{Config, LossRecovery, StripEncoder};
use tautline_video::{
    Encoded, Encoder, Error, Picture, QuantizerEncoder, Quantizers, Refresh, SliceKind,
};

/// An encoder's stream and the expected pictures of its decoder.
struct Recording {
    config: Config,
    encoder: StripEncoder,
    units: Vec<Vec<u8>>,
    expected: Vec<Picture>,
}

impl Recording {
    fn new(config: Config) -> Self {
        let encoder = StripEncoder::new(config).unwrap();
        Self { config, encoder, units: Vec::new(), expected: Vec::new() }
    }

    fn take(&mut self, encoded: Encoded) {
        self.units.push(encoded.bytes.to_vec());
        self.expected.push(self.encoder.reconstruction());
    }

    fn encode_at(&mut self, picture: &Picture, qp: u8, refresh: Refresh) -> SliceKind {
        let encoded = self.encoder.encode_at(picture, Quantizers::both(qp), refresh).unwrap();
        let kind = encoded.kind;
        self.take(encoded);
        kind
    }

    /// Returns the shown planes of a picture, without the cropped part, one after another.
    fn shown(&self, picture: &Picture) -> Vec<u8> {
        let [right, below] = self.config.cropped;
        let mut out = Vec::new();
        let planes = [(picture.luma(), 1), (picture.cb(), 2), (picture.cr(), 2)];
        for (plane, part) in planes {
            let width = picture.width() / part;
            let rows = (picture.height() - below) / part;
            for row in plane.chunks_exact(width).take(rows) {
                out.extend_from_slice(&row[..width - right / part]);
            }
        }
        out
    }

    fn check(&self) {
        self.check_with_openh264();
        self.check_with_ffmpeg();
    }

    fn check_with_openh264(&self) {
        let config = DecoderConfig::new().flush_after_decode(Flush::Flush);
        let mut decoder = Native::with_api_config(OpenH264API::from_source(), config).unwrap();
        for (number, (unit, expected)) in self.units.iter().zip(&self.expected).enumerate() {
            let decoded = decoder.decode(unit).unwrap().expect("one in, one out");
            let (width, height) = decoded.dimensions();
            let (luma_stride, cb_stride, cr_stride) = decoded.strides();
            let mut shown = Vec::new();
            for (plane, stride, part) in [
                (decoded.y(), luma_stride, 1),
                (decoded.u(), cb_stride, 2),
                (decoded.v(), cr_stride, 2),
            ] {
                for row in plane.chunks(stride).take(height / part) {
                    shown.extend_from_slice(&row[..width / part]);
                }
            }
            self.compare(number, &shown, &self.shown(expected), "openh264");
        }
    }

    fn check_with_ffmpeg(&self) {
        let decoded = ffmpeg(&self.units.concat());
        let expected: Vec<Vec<u8>> =
            self.expected.iter().map(|picture| self.shown(picture)).collect();
        let size = expected[0].len();
        assert_eq!(decoded.len(), size * expected.len(), "ffmpeg: pictures");
        for (number, (shown, expected)) in decoded.chunks(size).zip(&expected).enumerate() {
            self.compare(number, shown, expected, "ffmpeg");
        }
    }

    fn compare(&self, number: usize, shown: &[u8], expected: &[u8], decoder: &str) {
        assert_eq!(shown.len(), expected.len(), "{decoder}: size of picture {number}");
        let Some(at) = shown.iter().zip(expected).position(|(a, b)| a != b) else { return };
        let width = self.config.width - self.config.cropped[0];
        panic!(
            "{decoder}: picture {number} of {:?} differs at byte {at} (luma x {} y {}): {} for {}",
            self.config,
            at % width,
            at / width,
            shown[at],
            expected[at]
        );
    }
}

/// Decodes a stream with ffmpeg, in strict mode (any warning is an error); returns the planes of
/// all pictures.
fn ffmpeg(stream: &[u8]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("strip.h264");
    std::fs::write(&file, stream).unwrap();
    let output = Command::new("ffmpeg")
        .args(["-v", "warning", "-err_detect", "explode", "-flags", "low_delay", "-threads", "1"])
        .args(["-f", "h264", "-i"])
        .arg(&file)
        .args(["-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-"])
        .output()
        .expect("needs ffmpeg: ./setup ffmpeg");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
    output.stdout
}

/// Returns the median, 99th percentile and mean of `sizes`, each a share of its budget.
fn shares(sizes: &[f64]) -> (f64, f64, f64) {
    let mut sorted = sizes.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    (at(0.5), at(0.99), sizes.iter().sum::<f64>() / sizes.len() as f64)
}

fn config(width: usize, height: usize) -> Config {
    Config {
        width,
        height,
        cropped: [0, 0],
        pictures_per_second: 60,
        loss_recovery: LossRecovery::Idr,
        joinable: false,
    }
}

#[test]
fn every_quantizer_decodes_to_the_reconstruction() {
    let scene = Scene::new(160, 64, 3);
    let mut recording = Recording::new(config(160, 64));
    for qp in 0..=51 {
        for number in 0..5 {
            let refresh = if number == 0 { Refresh::Idr } else { Refresh::No };
            let kind = recording.encode_at(&scene.picture(number), qp, refresh);
            assert_eq!(kind == SliceKind::Idr, number == 0);
        }
    }
    recording.check();
}

#[test]
fn every_size_decodes_to_the_reconstruction() {
    for (columns, rows) in [(1, 1), (2, 1), (1, 2), (3, 7), (11, 8), (5, 45)] {
        let mut recording = Recording::new(config(columns * 16, rows * 16));
        let scene = Scene::new(columns * 16, rows * 16, 5);
        for number in 0..6 {
            recording.encode_at(&scene.picture(number), 26, Refresh::No);
        }
        recording.check();
    }
}

#[test]
fn cropped_pictures_are_shown_without_their_edge() {
    for cropped in [[2, 0], [0, 14], [14, 6]] {
        let mut recording = Recording::new(Config { cropped, ..config(48, 32) });
        let scene = Scene::new(48, 32, 5);
        for number in 0..3 {
            recording.encode_at(&scene.picture(number), 30, Refresh::No);
        }
        recording.check();
    }
}

#[test]
fn quantizers_and_idrs_may_change_from_picture_to_picture() {
    let mut recording = Recording::new(config(320, 112));
    let scene = Scene::new(320, 112, 9);
    for number in 0..40 {
        let qp = [20, 34, 40, 12, 51, 28, 0][number as usize % 7];
        let refresh = if number % 9 == 8 { Refresh::Idr } else { Refresh::No };
        recording.encode_at(&scene.picture(number * 3), qp, refresh);
    }
    recording.check();
}

#[test]
fn noise_is_coded_as_samples_where_levels_would_be_longer() {
    let mut recording = Recording::new(config(64, 48));
    let mut state = 1u32;
    for qp in [0, 0, 3, 20] {
        let mut picture = Picture::new(64, 48).unwrap();
        let (luma, cb, cr) = picture.planes_mut();
        for value in luma.iter_mut().chain(cb).chain(cr) {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *value = if qp == 3 { (state >> 31) as u8 * 255 } else { (state >> 24) as u8 };
        }
        recording.encode_at(&picture, qp, Refresh::No);
        if qp == 0 {
            assert_eq!(recording.expected.last(), Some(&picture));
        }
    }
    recording.check();
}

#[test]
fn sizes_meet_their_budgets_and_never_exceed_them() {
    let mut recording = Recording::new(config(640, 112));
    let scene = Scene::new(640, 112, 21);
    let (mut after_steps, mut sizes) = (Vec::new(), Vec::new());
    for number in 0..200 {
        // Tenfold steps down and up again.
        let budget = [3_500, 350][number as usize / 25 % 2];
        let picture = scene.picture(number);
        let encoded =
            recording.encoder.encode(&picture, ByteCount::new(budget), Refresh::No).unwrap();
        let share = encoded.bytes.len() as f64 / budget as f64;
        recording.take(encoded);
        match number {
            0 => assert!(share < 3.0, "the IDR: {share}"),
            _ if number.is_multiple_of(25) => after_steps.push(share),
            _ => sizes.push(share),
        }
    }
    let (_, most, mean) = shares(&sizes);
    assert!(most <= 1.0 && mean >= 0.9, "{most} {mean}");
    assert!(after_steps.iter().all(|share| (0.6..=1.0).contains(share)), "{after_steps:?}");
    recording.check();
}

#[test]
fn budgets_of_nothing_and_of_everything_give_slices_that_decode() {
    let mut recording = Recording::new(config(320, 64));
    let scene = Scene::new(320, 64, 2);
    for (number, budget) in [0, u64::MAX, 0, 1, 5, 60, u64::MAX].into_iter().enumerate() {
        for refresh in [Refresh::No, Refresh::Idr] {
            let picture = scene.picture(number as u32);
            let budget = ByteCount::new(budget);
            let encoded = recording.encoder.encode(&picture, budget, refresh).unwrap();
            recording.take(encoded);
        }
    }
    recording.check();
}

#[test]
fn a_quantizer_drifting_over_skips_stays_in_range() {
    let mut recording = Recording::new(config(80, 720));
    let (scene, mut still) = (Scene::new(80, 720, 4), Picture::new(80, 720).unwrap());
    for number in 0..8 {
        let budget = if number == 0 { 500 } else { 1_000_000 };
        let ground = scene.picture(number).rows(704..720).unwrap();
        still.place(704, &ground).unwrap();
        let encoded =
            recording.encoder.encode(&still, ByteCount::new(budget), Refresh::No).unwrap();
        recording.take(encoded);
    }
    recording.check();
}

#[test]
fn impossible_encoders_and_pictures_are_refused() {
    let refused = [
        Config { width: 0, ..config(64, 64) },
        Config { height: 120, ..config(64, 64) },
        Config { width: 8208, ..config(64, 64) },
        Config { pictures_per_second: 0, ..config(64, 64) },
        Config { pictures_per_second: 241, ..config(64, 64) },
        Config { cropped: [1, 0], ..config(64, 64) },
        Config { cropped: [0, 16], ..config(64, 64) },
        Config { pictures_per_second: 240, ..config(8192, 8192) },
    ];
    for config in refused {
        assert!(StripEncoder::new(config).is_err(), "{config:?}");
    }
    let mut encoder = StripEncoder::new(config(64, 64)).unwrap();
    let other = Picture::new(64, 48).unwrap();
    let budget = ByteCount::new(1_000);
    let refused = encoder.encode(&other, budget, Refresh::No);
    assert!(matches!(refused, Err(Error::SizeMismatch { .. })));
    let picture = Picture::new(64, 64).unwrap();
    assert!(encoder.encode_at(&picture, Quantizers::both(52), Refresh::No).is_err());
}
