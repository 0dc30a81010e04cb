//! Tests of complete strips through encoder, concealer and decoder.

#![allow(clippy::unwrap_used)]

use std::borrow::Cow;

use crate::ffmpeg;
use crate::random::Random;
use crate::scene::Scene;
use tautline_units::ByteCount;
use tautline_video::avc::{self, LossRecovery};
use tautline_video::openh264::{StripDecoder, StripEncoder};
use tautline_video::{
    Concealer, Decoder, Encoder, Layout, Motion, Picture, Refresh, SliceKind, stamp,
};

#[test]
fn a_moving_picture_comes_back_above_30_db_from_all_six_strips() {
    let layout = Layout::of(640, 368).unwrap();
    let scene = Scene::new(640, 368, 1);
    let mut coders: Vec<_> = (0..Layout::STRIP_COUNT)
        .map(|strip| {
            let rows = layout.strip_rows(strip).len();
            (StripEncoder::new(640, rows, 60).unwrap(), StripDecoder::new().unwrap())
        })
        .collect();
    for number in 0..20 {
        let picture = scene.picture(number);
        let mut shown = Picture::new(640, 368).unwrap();
        for (strip, (encoder, decoder)) in coders.iter_mut().enumerate() {
            let rows = layout.strip_rows(strip);
            let source = picture.rows(rows.clone()).unwrap();
            let coded = encoder.encode(&source, ByteCount::new(4_000), Refresh::No).unwrap();
            let expected = if number == 0 { SliceKind::Idr } else { SliceKind::Predicted };
            assert_eq!(coded.kind, expected);
            let decoded = decoder.decode(&coded.bytes).unwrap().expect("one in, one out");
            shown.place(rows.start, &decoded).unwrap();
        }
        let psnr = psnr(&shown, &picture);
        assert!(psnr > 30.0, "picture {number}: {psnr} dB");
    }
}

#[test]
fn every_picture_comes_out_when_slices_are_lost() {
    let mut strip = Strip::new(320, 64);
    let mut random = Random(7);
    for number in 0..300 {
        let coded = strip.encode(number, Refresh::No);
        let lost = number > 0 && random.next().is_multiple_of(4);
        let arrived = (!lost).then_some(coded.as_slice());
        assert_eq!((strip.show(arrived).width(), strip.is_corrupt()), (320, strip.lost_any));
    }
    assert!(strip.lost_any);
}

#[test]
fn the_substitute_of_a_lost_slice_moves_by_integer_samples() {
    let (width, height) = (320, 64);
    let mut strip = Strip::new(width, height);
    let coded = strip.encode(0, Refresh::No);
    let before = strip.show(Some(&coded));
    // Source position: 3 to the left and 2 down.
    strip.concealer.moves_by(Motion { x: 12, y: -8 });
    let moved = strip.show(None);
    for row in 0..height {
        for column in 0..width {
            let from = row.saturating_sub(2) * width + (column + 3).min(width - 1);
            assert_eq!(moved.luma()[row * width + column], before.luma()[from], "{row}, {column}");
        }
    }
    // The motion continues for a few pictures, then stops.
    let mut last = moved;
    let mut standing = 0;
    for _ in 0..6 {
        let next = strip.show(None);
        standing += u32::from(next == last);
        last = next;
    }
    assert_eq!(standing, 3);
    ffmpeg::check(&strip.recording, 8);
}

#[test]
fn a_lost_slice_of_what_slides_is_shown_nearer_by_its_motion() {
    let scene = Scene::new(320, 64, 11);
    let recovery = LossRecovery::AcknowledgedReferences { references: 16 };
    for pictures_between in [1, 3] {
        let mut encoder = avc::StripEncoder::new(avc::Config {
            width: 320,
            height: 64,
            cropped: [0, 0],
            pictures_per_second: 60,
            loss_recovery: recovery,
            joinable: false,
        })
        .unwrap();
        let mut shown =
            [true, false].map(|moves| (moves, Concealer::new(), StripDecoder::new().unwrap()));
        for number in 0..12 {
            // One sample down and six to the left in each picture.
            let picture = scene.picture(2 * number);
            let coded = encoder.encode(&picture, ByteCount::new(6_000), Refresh::No).unwrap();
            if number >= pictures_between {
                encoder.acknowledge(u64::from(number - pictures_between));
            }
            for (moves, concealer, decoder) in &mut shown {
                let handed_on = concealer.pass(&coded.bytes).unwrap().unwrap();
                decoder.decode(&handed_on).unwrap().unwrap();
                if *moves {
                    concealer.moves_by(coded.motion);
                }
            }
        }
        let lost = scene.picture(2 * 12);
        let [moved, still] = shown.map(|(_, mut concealer, mut decoder)| {
            let picture = decoder.decode(&concealer.skip().unwrap()).unwrap().unwrap();
            // A region away from the post, which moves differently, and from newly visible content.
            let there = (0..64).flat_map(|row| row * 320 + 160..row * 320 + 300);
            there.map(|at| u32::from(picture.luma()[at].abs_diff(lost.luma()[at]))).sum::<u32>()
        });
        assert!(4 * moved < still, "{pictures_between}: {moved} moved, {still} still");
    }
}

#[test]
fn after_a_requested_idr_the_strip_is_exact_again() {
    let mut strip = Strip::new(320, 64);
    let mut clean = StripDecoder::new().unwrap();
    for number in 0..60 {
        let refresh = if number == 30 { Refresh::Idr } else { Refresh::No };
        let coded = strip.encode(number, refresh);
        let lost = number == 10 || (20..25).contains(&number);
        let shown = strip.show((!lost).then_some(coded.as_slice()));
        let expected = clean.decode(&coded).unwrap().unwrap();
        if !(10..30).contains(&number) {
            assert_eq!(shown, expected, "picture {number}");
            assert!(!strip.is_corrupt());
        } else {
            assert_ne!(shown, expected, "picture {number}");
            assert!(strip.is_corrupt());
        }
    }
}

#[test]
fn a_skip_slice_shows_the_picture_before_exactly() {
    let mut strip = Strip::new(320, 64);
    let mut shown = Vec::new();
    for number in 0..10 {
        let coded = strip.encode(number, Refresh::No);
        shown.push(strip.show((number < 5).then_some(coded.as_slice())));
    }
    assert_ne!(shown[3], shown[4]);
    assert!(shown[5..].iter().all(|picture| *picture == shown[4]));
}

#[test]
fn a_lost_idr_leaves_a_stream_that_decodes() {
    let mut strip = Strip::new(320, 64);
    for number in 0..90 {
        let refresh = if number % 20 == 0 { Refresh::Idr } else { Refresh::No };
        let coded = strip.encode(number, refresh);
        let lost = number == 20 || number == 40 || number == 41;
        strip.show((!lost).then_some(coded.as_slice()));
        assert_eq!(strip.is_corrupt(), (20..60).contains(&number), "picture {number}");
    }
}

#[test]
fn pictures_that_were_never_coded_may_be_skipped_too() {
    let mut strip = Strip::new(320, 64);
    for number in 0..30 {
        if (10..13).contains(&number) {
            strip.show(None);
            continue;
        }
        let coded = strip.encode(number, Refresh::No);
        strip.show(Some(&coded));
    }
    assert!(strip.is_corrupt());
}

#[test]
fn a_lost_picture_at_the_frame_num_wrap_is_concealed() {
    // openh264's frame_num has 15 bits.
    const WRAP: u32 = 1 << 15;
    let mut strip = Strip::new(16, 16);
    let picture = Picture::new(16, 16).unwrap();
    for number in 0..WRAP + 40 {
        let coded = strip.code(&picture, Refresh::No);
        let lost = (WRAP - 1..=WRAP).contains(&number);
        strip.show((!lost).then_some(coded.as_slice()));
    }
    assert!(strip.recording.len() > WRAP as usize);
    crate::ffmpeg::check(&strip.recording, WRAP as usize + 40);
}

#[test]
fn ffmpeg_decodes_a_concealed_stream_without_a_word() {
    let mut strip = Strip::new(320, 64);
    let mut random = Random(3);
    for number in 0..240 {
        let refresh = if number % 50 == 49 { Refresh::Idr } else { Refresh::No };
        let coded = strip.encode(number, refresh);
        let lost = number > 0 && random.next().is_multiple_of(5);
        strip.show((!lost).then_some(coded.as_slice()));
    }
    crate::ffmpeg::check(&strip.recording, 240);
}

#[test]
fn nothing_is_handed_on_before_the_first_idr() {
    let mut strip = Strip::new(320, 64);
    let first = strip.encode(0, Refresh::No);
    let second = strip.encode(1, Refresh::No);
    let mut late = Concealer::new();
    assert!(late.skip().is_none());
    assert!(late.is_corrupt());
    assert_eq!(late.codec(), None);
    // Without parameter sets the slice cannot even be parsed.
    assert!(late.pass(&second).is_err());
    assert!(matches!(late.pass(&first).unwrap(), Some(Cow::Borrowed(_))));
    assert_eq!(late.codec().as_deref(), Some("avc1.42C01F"));
    assert!(matches!(late.pass(&second).unwrap(), Some(Cow::Borrowed(_))));
    assert!(!late.is_corrupt());
}

#[test]
fn a_cut_idr_is_refused_and_leaves_the_concealer_as_it_was() {
    let mut strip = Strip::new(320, 64);
    let coded = strip.encode(0, Refresh::No);
    strip.show(Some(&coded));
    let idr = strip.encode(1, Refresh::Idr);
    let before = format!("{:?}", strip.concealer);
    for length in 0..36.min(idr.len()) {
        if strip.concealer.pass(&idr[..length]).is_err() {
            assert_eq!(format!("{:?}", strip.concealer), before);
        }
    }
}

#[test]
fn the_stamp_survives_the_narrowest_budget() {
    let scene = Scene::new(640, 112, 5);
    let mut encoder = StripEncoder::new(640, 112, 60).unwrap();
    let mut decoder = StripDecoder::new().unwrap();
    for number in 0..40u32 {
        let value = number.wrapping_mul(0x9E37_79B9);
        let mut picture = scene.picture(number);
        stamp::draw(&mut picture, value).unwrap();
        let coded = encoder.encode(&picture, ByteCount::new(600), Refresh::No).unwrap();
        let shown = decoder.decode(&coded.bytes).unwrap().unwrap();
        assert_eq!(stamp::read(shown.luma(), 640), Some(value), "picture {number}");
    }
}

#[test]
fn a_decoder_refuses_bytes_that_are_no_access_unit() {
    let mut decoder = StripDecoder::new().unwrap();
    for bytes in [&[][..], &[0, 0, 0, 1], &[0, 0, 1, 0x65, 0xFF, 0xFF], &[1, 2, 3, 4, 5]] {
        assert!(!matches!(decoder.decode(bytes), Ok(Some(_))));
    }
}

/// One strip from its encoder to its decoder.
struct Strip {
    scene: Scene,
    encoder: StripEncoder,
    concealer: Concealer,
    decoder: StripDecoder,
    recording: Vec<u8>,
    lost_any: bool,
}

impl Strip {
    fn new(width: usize, height: usize) -> Self {
        Self {
            scene: Scene::new(width, height, 11),
            encoder: StripEncoder::new(width, height, 60).unwrap(),
            concealer: Concealer::new(),
            decoder: StripDecoder::new().unwrap(),
            recording: Vec::new(),
            lost_any: false,
        }
    }

    fn encode(&mut self, number: u32, refresh: Refresh) -> Vec<u8> {
        let picture = self.scene.picture(number);
        self.code(&picture, refresh)
    }

    fn code(&mut self, picture: &Picture, refresh: Refresh) -> Vec<u8> {
        self.encoder.encode(picture, ByteCount::new(1_500), refresh).unwrap().bytes.to_vec()
    }

    /// Decodes the slice that arrived, or a skip slice if none did, and returns the picture; an
    /// error fails the test.
    fn show(&mut self, arrived: Option<&[u8]>) -> Picture {
        let bytes = match arrived {
            Some(bytes) => self.concealer.pass(bytes).unwrap().expect("after the first IDR"),
            None => Cow::Owned(self.concealer.skip().expect("after the first IDR")),
        };
        self.lost_any |= arrived.is_none();
        self.recording.extend_from_slice(&bytes);
        self.decoder.decode(&bytes).unwrap().expect("one in, one out")
    }

    fn is_corrupt(&self) -> bool {
        self.concealer.is_corrupt()
    }
}

/// Returns the peak signal-to-noise ratio of the luma planes in dB.
fn psnr(picture: &Picture, reference: &Picture) -> f64 {
    let square = |(a, b): (&u8, &u8)| f64::from(a.abs_diff(*b)).powi(2);
    let sum: f64 = picture.luma().iter().zip(reference.luma()).map(square).sum();
    10.0 * (255.0 * 255.0 * picture.luma().len() as f64 / sum).log10()
}
