//! Tests that coded sizes follow the budget.

#![allow(clippy::unwrap_used)]

use crate::scene::Scene;
use tautline_units::ByteCount;
use tautline_video::openh264::StripEncoder;
use tautline_video::{Encoder, Error, Picture, Refresh, SliceKind};

const WIDTH: usize = 640;
const HEIGHT: usize = 112;

/// A scene and its encoder, one picture after another.
struct Source {
    scene: Scene,
    encoder: StripEncoder,
    number: u32,
}

impl Source {
    fn new() -> Self {
        Self {
            scene: Scene::new(WIDTH, HEIGHT, 21),
            encoder: StripEncoder::new(WIDTH, HEIGHT, 60).unwrap(),
            number: 0,
        }
    }

    fn next(&mut self, budget: u64, refresh: Refresh) -> (SliceKind, f64) {
        let picture = self.scene.picture(self.number);
        self.number += 1;
        let coded = self.encoder.encode(&picture, ByteCount::new(budget), refresh).unwrap();
        (coded.kind, coded.bytes.len() as f64 / budget as f64)
    }

    /// Returns the mean size of `count` predicted slices, as a share of the budget.
    fn mean(&mut self, budget: u64, count: u32) -> f64 {
        let sum: f64 = (0..count)
            .map(|_| {
                let (kind, share) = self.next(budget, Refresh::No);
                assert_eq!(kind, SliceKind::Predicted, "a budget never forces an IDR");
                share
            })
            .sum();
        sum / f64::from(count)
    }
}

#[test]
fn mean_sizes_keep_within_a_tenth_of_the_budget() {
    for budget in [500, 1_500, 3_000] {
        let mut source = Source::new();
        source.next(budget, Refresh::No);
        source.mean(budget, 30);
        for _ in 0..3 {
            let mean = source.mean(budget, 30);
            assert!((mean - 1.0).abs() < 0.1, "budget {budget}: {mean}");
        }
    }
}

#[test]
fn sizes_follow_a_tenfold_change_up_and_down() {
    let mut source = Source::new();
    source.next(3_500, Refresh::No);
    source.mean(3_500, 30);
    for _ in 0..2 {
        // Down immediately, because a narrow link cannot wait; up within a few slices.
        let (_, first) = source.next(350, Refresh::No);
        assert!(first < 2.0, "first slice of the lower budget: {first}");
        let mean = source.mean(350, 30);
        assert!((mean - 1.0).abs() < 0.2, "down: {mean}");
        let mean = source.mean(350, 30);
        assert!((mean - 1.0).abs() < 0.1, "down, settled: {mean}");
        let climb: Vec<f64> = (0..6).map(|_| source.next(3_500, Refresh::No).1).collect();
        assert!(climb.iter().all(|&share| share < 3.0), "{climb:?}");
        let mean = source.mean(3_500, 30);
        assert!((mean - 1.0).abs() < 0.1, "up: {mean}");
    }
}

#[test]
fn an_idr_takes_no_more_than_four_budgets_and_is_paid_back() {
    for budget in [800, 2_500] {
        let mut source = Source::new();
        let (kind, share) = source.next(budget, Refresh::No);
        assert_eq!(kind, SliceKind::Idr);
        assert!(share < 4.0, "first of {budget}: {share}");
        source.mean(budget, 30);
        let (kind, share) = source.next(budget, Refresh::Idr);
        assert_eq!(kind, SliceKind::Idr);
        assert!(share < 4.0, "requested of {budget}: {share}");
        let with_idr = (share + 30.0 * source.mean(budget, 30)) / 31.0;
        assert!((with_idr - 1.0).abs() < 0.1, "{with_idr}");
    }
}

#[test]
fn a_strip_that_stood_still_does_not_burst_when_it_moves() {
    let mut source = Source::new();
    let still = source.scene.picture(0);
    for _ in 0..90 {
        source.encoder.encode(&still, ByteCount::new(2_000), Refresh::No).unwrap();
    }
    let shares: Vec<f64> = (0..10).map(|_| source.next(2_000, Refresh::No).1).collect();
    assert!(shares.iter().all(|&share| share < 3.0), "{shares:?}");
}

#[test]
fn a_budget_of_nothing_still_gives_a_picture() {
    let mut source = Source::new();
    for budget in [ByteCount::ZERO, ByteCount::new(u64::MAX), ByteCount::ZERO] {
        let picture = source.scene.picture(source.number);
        let coded = source.encoder.encode(&picture, budget, Refresh::No).unwrap();
        assert!(!coded.bytes.is_empty());
    }
}

#[test]
fn impossible_encoders_and_pictures_are_refused() {
    let sizes = [(0, 16), (1280, 120), (4096, 128), (3840, 3840)];
    for (width, height) in sizes {
        assert!(matches!(StripEncoder::new(width, height, 60), Err(Error::Dimensions { .. })));
    }
    assert!(StripEncoder::new(64, 64, 0).is_err());
    assert!(StripEncoder::new(64, 64, 61).is_err());
    let mut encoder = StripEncoder::new(64, 64, 60).unwrap();
    let other = Picture::new(64, 48).unwrap();
    let refused = encoder.encode(&other, ByteCount::new(1_000), Refresh::No);
    assert!(matches!(refused, Err(Error::SizeMismatch { .. })));
}
