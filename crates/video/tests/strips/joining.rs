//! Tests that strips joined into one picture of several slices decode to the same pixels as the
//! strips.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use crate::scene::Scene;
use tautline_units::ByteCount;
use tautline_video::avc::{Config, Joined, Joiner, LossRecovery, Planner, Shape, StripEncoder};
use tautline_video::openh264::StripDecoder;
use tautline_video::{Decoder, Encoder, Picture, Refresh, SliceKind};

const WIDTH: usize = 176;
const HEIGHTS: [usize; 6] = [32, 48, 16, 48, 32, 48];

fn config(loss_recovery: LossRecovery, height: usize) -> Config {
    Config {
        width: WIDTH,
        height,
        cropped: [0, 0],
        pictures_per_second: 60,
        loss_recovery,
        joinable: true,
    }
}

/// Codes strips with a planner and joins them; asserts that the joined picture decodes to the
/// strips' own pictures.
fn joined(loss_recovery: LossRecovery) {
    let height = HEIGHTS.iter().sum();
    let scene = Scene::new(WIDTH, height, 17);
    let mut encoders =
        HEIGHTS.map(|height| StripEncoder::new(config(loss_recovery, height)).unwrap());
    let mut planner = Planner::new(HEIGHTS.len(), 2.5);
    let mut joiner = None;
    let mut decoder = StripDecoder::new().unwrap();
    let (mut recording, mut expected) = (Vec::new(), Vec::new());
    for number in 0..40 {
        let source = scene.picture(number);
        let mut shown = Picture::new(WIDTH, height).unwrap();
        let (mut units, mut first) = (Vec::new(), 0);
        planner.begin(ByteCount::new(6_000));
        for (strip, encoder) in encoders.iter_mut().enumerate() {
            let rows = source.rows(first..first + HEIGHTS[strip]).unwrap();
            let refresh = match (number, strip) {
                (20, 2) => Refresh::Idr,
                // Only two strips recover from a loss.
                (10, 1) | (12, 4) => Refresh::Recover,
                _ => Refresh::No,
            };
            let given = planner.give(strip);
            let coded = encoder.encode(&rows, given, refresh).unwrap();
            planner.done(strip, given, ByteCount::of(&coded.bytes), encoder.weight());
            shown.place(first, &encoder.reconstruction()).unwrap();
            units.push(coded.bytes.to_vec());
            first += HEIGHTS[strip];
        }
        let slices: Vec<Option<&[u8]>> = units.iter().map(|unit| Some(unit.as_slice())).collect();
        let joiner = joiner.get_or_insert_with(|| {
            let shapes = units.iter().map(|unit| Shape::read(unit).unwrap());
            Joiner::new(&shapes.collect::<Vec<_>>()).unwrap()
        });
        let Joined { kind, bytes, refused } = joiner.join(&slices).unwrap();
        assert_eq!((kind == SliceKind::Idr, refused), (number == 0, 0));
        let idr_in_it = units.iter().any(|unit| unit.starts_with(&[0, 0, 0, 1, 0x67]));
        if !idr_in_it {
            assert!(bytes.len() <= 6_100, "picture {number}: {}", bytes.len());
        }
        let decoded = decoder.decode(&bytes).unwrap().expect("one in, one out");
        assert!(decoded == shown, "{loss_recovery:?}: picture {number}");
        recording.extend_from_slice(&bytes);
        for plane in [shown.luma(), shown.cb(), shown.cr()] {
            expected.extend_from_slice(plane);
        }
    }
    assert!(ffmpeg(&recording) == expected, "{loss_recovery:?}: ffmpeg");
}

/// Decodes a stream with ffmpeg, with all its threads and in strict mode; returns the planes of all
/// pictures.
fn ffmpeg(stream: &[u8]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("picture.h264");
    std::fs::write(&file, stream).unwrap();
    let output = Command::new("ffmpeg")
        .args(["-v", "warning", "-err_detect", "explode", "-f", "h264", "-i"])
        .arg(&file)
        .args(["-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-"])
        .output()
        .expect("needs ffmpeg: ./setup ffmpeg");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    output.stdout
}

#[test]
fn strips_joined_to_one_picture_decode_to_the_same() {
    joined(LossRecovery::Idr);
}

#[test]
fn swept_strips_joined_to_one_picture_decode_to_the_same() {
    joined(LossRecovery::IntraColumns { spacing: 4 });
}

#[test]
fn joined_strips_with_intra_refresh_decode_to_the_same() {
    joined(LossRecovery::IntraRefreshOnLoss { period: 5 });
}
