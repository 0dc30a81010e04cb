//! Tests that losses are repaired within the documented time, byte for byte: skip slices replace
//! lost slices, and openh264 decodes the stream.

#![allow(clippy::unwrap_used)]

use crate::random::Random;
use crate::scene::Scene;
use tautline_units::ByteCount;
use tautline_video::avc::{Config, LossRecovery, StripEncoder};
use tautline_video::openh264::StripDecoder;
use tautline_video::{Concealer, Decoder, Encoder, Picture, Refresh, SliceKind};

const WIDTH: usize = 336;
const HEIGHT: usize = 64;

/// A strip from its encoder over a lossy link to its decoder.
struct Strip {
    scene: Scene,
    encoder: StripEncoder,
    concealer: Concealer,
    decoder: StripDecoder,
    recording: Vec<u8>,
    number: u32,
}

impl Strip {
    fn new(loss_recovery: LossRecovery) -> Self {
        let config = Config {
            width: WIDTH,
            height: HEIGHT,
            cropped: [0, 0],
            pictures_per_second: 60,
            loss_recovery,
            joinable: false,
        };
        Self {
            scene: Scene::new(WIDTH, HEIGHT, 31),
            encoder: StripEncoder::new(config).unwrap(),
            concealer: Concealer::new(),
            decoder: StripDecoder::new().unwrap(),
            recording: Vec::new(),
            number: 0,
        }
    }

    /// Codes the next picture, loses it if `lost`, and returns its kind and whether the shown
    /// picture equals the encoder's. A picture that the concealer regards as clean always does.
    fn next(&mut self, lost: bool, budget: u64, refresh: Refresh) -> (SliceKind, bool) {
        let picture = self.picture();
        let coded = self.encoder.encode(&picture, ByteCount::new(budget), refresh).unwrap();
        let bytes = if lost {
            self.concealer.skip().unwrap()
        } else {
            let bytes = self.concealer.pass(&coded.bytes).unwrap().unwrap().into_owned();
            self.concealer.follows_from(coded.history.unwrap());
            bytes
        };
        self.recording.extend_from_slice(&bytes);
        let shown = self.decoder.decode(&bytes).unwrap().expect("one in, one out");
        let exact = shown == self.encoder.reconstruction();
        assert!(exact || self.concealer.is_corrupt(), "picture {}", self.number);
        (coded.kind, exact)
    }

    /// Returns the next picture of a scene that moves in both directions and pauses at times.
    fn picture(&mut self) -> Picture {
        self.number += 1;
        let at = match self.number % 90 {
            step @ 0..40 => step,
            step @ 40..60 => 80 - step,
            _ => 20,
        };
        self.scene.picture(at)
    }
}

/// Loses slices at random, and asserts that each picture is exact if none was lost in the `period`
/// pictures before it.
fn recovers_within(loss_recovery: LossRecovery, period: u32, seed: u64, budget: u64) {
    let mut strip = Strip::new(loss_recovery);
    let mut random = Random(seed);
    let (mut last_loss, mut corrupt, mut clean) = (None, 0, 0);
    for number in 0..period * 14 + 30 {
        let lost = number > 0 && random.next().is_multiple_of(u64::from(period) * 3 / 2);
        if lost {
            last_loss = Some(number);
        }
        let (kind, exact) = strip.next(lost, budget, Refresh::No);
        assert_eq!(kind == SliceKind::Idr, number == 0);
        match last_loss {
            Some(loss) if number < loss + period => corrupt += u32::from(!exact),
            Some(_) => {
                clean += 1;
                assert!(!strip.concealer.is_corrupt(), "{loss_recovery:?}: picture {number}");
                assert!(exact, "{loss_recovery:?}: picture {number} after a loss at {last_loss:?}");
            }
            None => assert!(exact),
        }
    }
    assert!(corrupt > 0 && clean > 0, "{loss_recovery:?}: {corrupt} {clean}");
    let pictures = strip.number as usize;
    crate::ffmpeg::check(&strip.recording, pictures);
}

#[test]
fn after_one_period_of_contiguous_refresh_any_loss_is_gone() {
    for (period, seed, budget) in [(8, 1, 1_500), (16, 2, 1_500), (5, 3, 400), (32, 4, 3_000)] {
        recovers_within(LossRecovery::IntraRefresh { period }, period.into(), seed, budget);
    }
}

#[test]
fn after_one_period_of_the_papers_columns_any_loss_is_gone() {
    for (spacing, seed, budget) in [(8, 5, 1_500), (16, 6, 1_500), (3, 7, 400)] {
        recovers_within(LossRecovery::IntraColumns { spacing }, spacing.into(), seed, budget);
    }
}

#[test]
fn after_one_refresh_a_reported_loss_is_gone() {
    const PERIOD: u32 = 8;
    const REPORT: u32 = 4;
    let mut strip = Strip::new(LossRecovery::IntraRefreshOnLoss { period: PERIOD as u8 });
    let mut random = Random(9);
    let mut last_report = None;
    let mut reports = Vec::new();
    for number in 0..250 {
        let lost = number > 0 && random.next().is_multiple_of(20);
        if lost {
            reports.push(number + REPORT);
        }
        let refresh = if reports.contains(&number) { Refresh::Recover } else { Refresh::No };
        if refresh == Refresh::Recover {
            last_report = Some(number);
        }
        let (kind, exact) = strip.next(lost, 1_500, refresh);
        assert_eq!(kind == SliceKind::Idr, number == 0);
        let under_way = reports.last().is_some_and(|report| number < report + PERIOD - 1);
        if !under_way {
            assert!(!strip.concealer.is_corrupt(), "picture {number}");
            assert!(exact, "picture {number}, last report {last_report:?}");
        }
    }
    assert!(reports.len() > 5);
    crate::ffmpeg::check(&strip.recording, 250);
}

#[test]
fn prediction_from_acknowledged_pictures_confines_losses() {
    const DELAY: u64 = 6;
    let mut strip = Strip::new(LossRecovery::AcknowledgedReferences { references: 16 });
    let mut random = Random(12);
    let mut acknowledgements = std::collections::VecDeque::new();
    let mut lost_count = 0;
    for number in 0..250u64 {
        while acknowledgements.front().is_some_and(|picture| picture + DELAY <= number) {
            strip.encoder.acknowledge(acknowledgements.pop_front().unwrap());
        }
        let lost = number > 0 && random.next().is_multiple_of(5);
        assert_eq!(strip.encoder.next_picture(), number);
        let (kind, exact) = strip.next(lost, 1_500, Refresh::No);
        assert_eq!(kind == SliceKind::Idr, number == 0);
        // Where nothing moves, a lost slice may equal the skip slice in its place.
        assert!(exact || lost, "picture {number}");
        assert_eq!(strip.concealer.is_corrupt(), lost, "picture {number}");
        if lost {
            lost_count += u32::from(!exact);
        } else {
            acknowledgements.push_back(number);
        }
    }
    assert!(lost_count > 20);
    crate::ffmpeg::check(&strip.recording, 250);
}

#[test]
fn reference_selection_ends_a_loss_as_soon_as_it_is_known() {
    const DELAY: u64 = 6;
    let mut strip = Strip::new(LossRecovery::ReferenceSelection { references: 16 });
    let mut random = Random(14);
    // Feedback for each picture: whether the receiver has it clean.
    let mut told = std::collections::VecDeque::new();
    let (mut lost_at, mut asked_at, mut idrs) = (None, None, 0);
    for number in 0..400u64 {
        let mut refresh = Refresh::No;
        while told.front().is_some_and(|(picture, _)| picture + DELAY <= number) {
            match told.pop_front().unwrap() {
                (picture, true) => strip.encoder.acknowledge(picture),
                // A loss after the last selected reference is a new one.
                (picture, false) if asked_at.is_none_or(|at| picture >= at) => {
                    refresh = Refresh::Recover;
                }
                (_, false) => {}
            }
        }
        if refresh == Refresh::Recover {
            asked_at = Some(number);
        }
        let lost = number > 0 && random.next().is_multiple_of(12);
        let (kind, exact) = strip.next(lost, 1_500, refresh);
        idrs += u32::from(kind == SliceKind::Idr);
        if lost {
            lost_at = Some(number);
        }
        // Each loss is visible for one delay, until the picture with the selected reference
        // arrives.
        let recovered = lost_at.is_none_or(|at| number >= at + DELAY);
        assert!(exact || !recovered, "picture {number}, lost {lost_at:?}");
        assert!(!recovered || !strip.concealer.is_corrupt(), "picture {number}, lost {lost_at:?}");
        told.push_back((number, !strip.concealer.is_corrupt()));
    }
    assert_eq!(idrs, 1);
    crate::ffmpeg::check(&strip.recording, 400);
}

#[test]
fn reference_selection_without_acknowledgement_is_an_idr() {
    let mut strip = Strip::new(LossRecovery::ReferenceSelection { references: 4 });
    strip.next(false, 1_500, Refresh::No);
    assert_eq!(strip.next(false, 1_500, Refresh::Recover).0, SliceKind::Idr);
    for _ in 0..2 {
        let known = strip.encoder.next_picture() - 1;
        strip.encoder.acknowledge(known);
        strip.next(false, 1_500, Refresh::No);
    }
    assert_eq!(strip.next(false, 1_500, Refresh::Recover).0, SliceKind::Predicted);
    for _ in 0..4 {
        strip.next(false, 1_500, Refresh::No);
    }
    assert_eq!(strip.next(false, 1_500, Refresh::Recover).0, SliceKind::Idr);
}

#[test]
fn without_acknowledgements_idrs_are_not_repeated() {
    let mut strip = Strip::new(LossRecovery::AcknowledgedReferences { references: 4 });
    let next = |strip: &mut Strip, lost: bool| {
        let (kind, exact) = strip.next(lost, 1_500, Refresh::No);
        (kind == SliceKind::Idr, exact)
    };
    // Predicted from the IDR while it is kept, then from one another.
    for number in 0..4 {
        assert_eq!(next(&mut strip, number == 2), (number == 0, number != 2));
    }
    for _ in 4..11 {
        assert_eq!(next(&mut strip, false), (false, true));
    }
    assert_eq!(next(&mut strip, true), (false, false));
    assert_eq!(next(&mut strip, false), (false, false));
    // After the first acknowledgement the strip is clean, and later pictures are predicted from
    // acknowledged ones.
    strip.encoder.acknowledge(10);
    assert_eq!(next(&mut strip, false), (false, true));
    assert!(!strip.concealer.is_corrupt());
    assert_eq!(next(&mut strip, true), (false, false));
    assert_eq!(next(&mut strip, false), (true, true));
}

#[test]
fn a_loss_before_any_acknowledgement_brings_an_idr() {
    let mut strip = Strip::new(LossRecovery::AcknowledgedReferences { references: 4 });
    for _ in 0..7 {
        strip.next(false, 1_500, Refresh::No);
    }
    strip.next(true, 1_500, Refresh::No);
    assert_eq!(strip.next(false, 1_500, Refresh::Recover), (SliceKind::Idr, true));
}

#[test]
fn a_reported_loss_causes_an_idr_without_other_recovery() {
    let mut strip = Strip::new(LossRecovery::Idr);
    strip.next(false, 1_500, Refresh::No);
    assert_eq!(strip.next(false, 1_500, Refresh::Recover).0, SliceKind::Idr);
    let mut strip = Strip::new(LossRecovery::IntraRefresh { period: 8 });
    strip.next(false, 1_500, Refresh::No);
    assert_eq!(strip.next(false, 1_500, Refresh::Recover).0, SliceKind::Predicted);
    assert_eq!(strip.next(false, 1_500, Refresh::Idr).0, SliceKind::Idr);
}

#[test]
fn impossible_periods_are_refused() {
    let ways = [
        LossRecovery::IntraRefresh { period: 1 },
        LossRecovery::IntraColumns { spacing: 0 },
        LossRecovery::IntraRefreshOnLoss { period: 251 },
        LossRecovery::AcknowledgedReferences { references: 0 },
        LossRecovery::AcknowledgedReferences { references: 17 },
        LossRecovery::ReferenceSelection { references: 0 },
    ];
    for loss_recovery in ways {
        let config = Config {
            width: 64,
            height: 64,
            cropped: [0, 0],
            pictures_per_second: 60,
            loss_recovery,
            joinable: false,
        };
        assert!(StripEncoder::new(config).is_err(), "{loss_recovery:?}");
    }
}
