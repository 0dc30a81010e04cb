use proptest::prelude::*;
use tautline_units::ByteCount;
use tautline_video::avc::LossRecovery;
use tautline_video::{Backend, Encoder, Picture, Refresh};

use super::*;

const REORDER_TIMEOUT: Duration = Duration::from_millis(30);

/// Interval between two pictures, in ms.
const INTERVAL_MS: u64 = 10;

/// Encoder of one strip. Each next picture is brighter.
struct Source {
    encoder: Box<dyn Encoder>,
    picture: u32,
}

impl Source {
    fn new() -> Self {
        Self::of(Backend::Openh264)
    }

    /// Returns a source whose encoder signals its history.
    fn recovering() -> Self {
        Self::of(Backend::Avc(LossRecovery::IntraRefreshOnLoss { period: 3 }))
    }

    fn of(backend: Backend) -> Self {
        Self { encoder: backend.open(64, 32, 30).unwrap(), picture: 0 }
    }

    /// Returns the next slice of strip 2, as a unit.
    fn next(&mut self, refresh: Refresh) -> Vec<u8> {
        let mut rows = Picture::new(64, 32).unwrap();
        rows.planes_mut().0.fill((self.picture * 8) as u8);
        let encoded = self.encoder.encode(&rows, ByteCount::new(2_000), refresh).unwrap();
        let slice = Slice {
            picture: self.picture,
            strip: 2,
            kind: encoded.kind,
            history: encoded.history,
            motion: encoded.motion,
            captured_at: at(u64::from(self.picture) * INTERVAL_MS),
            encoded_at: at(u64::from(self.picture) * INTERVAL_MS + 1),
            tick: 0,
            bytes: encoded.bytes,
        };
        self.picture += 1;
        slice.into_unit()
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Handles `unit` and returns the picture numbers and kinds of the slices that are shown after it.
fn take(downlink: &mut Downlink, unit: &[u8], now: Instant) -> Vec<(u32, SliceKind)> {
    take_until(downlink, unit, now, now)
}

/// Handles `unit`, which is worthless from `worthless_at` on, and returns the picture numbers and
/// kinds of the slices that are shown after it.
fn take_until(
    downlink: &mut Downlink,
    unit: &[u8],
    worthless_at: Instant,
    now: Instant,
) -> Vec<(u32, SliceKind)> {
    let mut shown = Vec::new();
    if let Some(slice) = downlink.parse(unit.to_vec()) {
        let show = |new: Shown| shown.push((new.slice.picture, new.slice.kind));
        downlink.handle_slice(slice, worthless_at, now, show);
    }
    shown
}

fn wait(downlink: &mut Downlink, now: Instant) -> Vec<(u32, SliceKind)> {
    let mut shown = Vec::new();
    downlink.handle_timeout(now, |new| shown.push((new.slice.picture, new.slice.kind)));
    shown
}

#[test]
fn slices_in_order_are_shown_at_once() {
    let (mut source, mut downlink) = (Source::new(), Downlink::new(REORDER_TIMEOUT));
    assert_eq!(downlink.keyframe_strips(), 0b11_1111);
    let first = source.next(Refresh::Idr);
    assert_eq!(take(&mut downlink, &first, at(1)), [(0, SliceKind::Idr)]);
    assert_eq!(downlink.keyframe_strips(), 0b11_1011);
    let second = source.next(Refresh::No);
    assert_eq!(take(&mut downlink, &second, at(2)), [(1, SliceKind::Predicted)]);
    assert_eq!(downlink.poll_timeout(), None);
}

#[test]
fn a_late_slice_in_time_takes_its_place() {
    let (mut source, mut downlink) = (Source::new(), Downlink::new(REORDER_TIMEOUT));
    let units: Vec<_> = (0..3).map(|_| source.next(Refresh::No)).collect();
    take(&mut downlink, &units[0], at(1));
    assert_eq!(take(&mut downlink, &units[2], at(20)), []);
    assert_eq!(downlink.poll_timeout(), Some(at(50)));
    let shown = take(&mut downlink, &units[1], at(40));
    assert_eq!(shown, [(1, SliceKind::Predicted), (2, SliceKind::Predicted)]);
    assert_eq!(downlink.counters().skipped, 0);
}

#[test]
fn lost_slices_become_skip_slices_until_an_idr() {
    let (mut source, mut downlink) = (Source::new(), Downlink::new(REORDER_TIMEOUT));
    let units: Vec<_> = (0..4).map(|_| source.next(Refresh::No)).collect();
    take(&mut downlink, &units[0], at(1));
    assert_eq!(take(&mut downlink, &units[3], at(50)), []);
    assert_eq!(wait(&mut downlink, at(79)), []);
    let shown = wait(&mut downlink, at(80));
    let expected = [(1, SliceKind::Skip), (2, SliceKind::Skip), (3, SliceKind::Predicted)];
    assert_eq!(shown, expected);
    assert_eq!(downlink.keyframe_strips() & 0b100, 0b100);
    let loss_recovery = source.next(Refresh::Idr);
    assert_eq!(take(&mut downlink, &loss_recovery, at(90)), [(4, SliceKind::Idr)]);
    assert_eq!(downlink.keyframe_strips() & 0b100, 0);
}

/// Returns the report on strip 2 at 100 ms: newest picture, newest clean one, and newest lost one.
fn told(downlink: &Downlink) -> (u32, Option<u32>, Option<u32>) {
    told_at(downlink, at(100))
}

fn told_at(downlink: &Downlink, now: Instant) -> (u32, Option<u32>, Option<u32>) {
    let report = downlink.reports(now)[2].unwrap();
    let before =
        |pictures: Option<u8>| pictures.map(|pictures| report.newest - u32::from(pictures));
    (report.newest, before(report.clean_before), before(report.lost_before))
}

#[test]
fn a_loss_is_reported_while_a_late_slice_may_still_arrive() {
    let (mut source, mut downlink) = (Source::recovering(), Downlink::new(REORDER_TIMEOUT));
    let units: Vec<_> = (0..5).map(|_| source.next(Refresh::No)).collect();
    take(&mut downlink, &units[0], at(1));
    assert_eq!(take_until(&mut downlink, &units[2], at(200), at(20)), []);
    assert_eq!(take_until(&mut downlink, &units[4], at(220), at(40)), []);
    assert_eq!(told_at(&downlink, at(49)), (0, Some(0), None));
    assert_eq!(told_at(&downlink, at(50)), (2, Some(0), Some(1)));
    // A loss among the held slices is reported too: the recovery may be one of them.
    assert_eq!(told_at(&downlink, at(70)), (4, Some(0), Some(3)));
    assert_eq!(wait(&mut downlink, at(189)), []);
    let shown = take_until(&mut downlink, &units[1], at(190), at(189));
    assert_eq!(shown, [(1, SliceKind::Predicted), (2, SliceKind::Predicted)]);
    assert_eq!(told_at(&downlink, at(189)), (4, Some(2), Some(3)));
    let shown = take_until(&mut downlink, &units[3], at(210), at(190));
    assert_eq!(shown, [(3, SliceKind::Predicted), (4, SliceKind::Predicted)]);
    assert_eq!(told_at(&downlink, at(190)), (4, Some(4), None));
    assert_eq!(downlink.counters().skipped, 0);
}

#[test]
fn a_slice_too_old_to_show_is_not_awaited() {
    let (mut source, mut downlink) = (Source::recovering(), Downlink::new(REORDER_TIMEOUT));
    let units: Vec<_> = (0..3).map(|_| source.next(Refresh::No)).collect();
    take(&mut downlink, &units[0], at(1));
    take_until(&mut downlink, &units[2], at(200), at(20));
    // The picture before it was captured earlier, and became worthless earlier by the same time.
    assert_eq!(downlink.poll_timeout(), Some(at(200 - INTERVAL_MS)));
    let shown = wait(&mut downlink, at(200 - INTERVAL_MS));
    assert_eq!(shown, [(1, SliceKind::Skip), (2, SliceKind::Predicted)]);
    assert_eq!(told_at(&downlink, at(190)), (2, Some(0), Some(1)));
}

#[test]
fn slices_are_not_held_beyond_the_report_without_benefit() {
    // An encoder that recovers only by an IDR; and slices without references, one of them late.
    for (source, history) in [(Source::new(), None), (Source::recovering(), Some(0))] {
        let (mut source, mut downlink) = (source, Downlink::new(REORDER_TIMEOUT));
        let units: Vec<_> = (0..3).map(|_| source.next(Refresh::No)).collect();
        take(&mut downlink, &units[0], at(1));
        let slice = Slice { history, ..Slice::parse(units[2].clone()).unwrap() };
        assert_eq!(take_until(&mut downlink, &slice.into_unit(), at(200), at(20)), []);
        assert_eq!(downlink.poll_timeout(), Some(at(50)));
    }
}

#[test]
fn a_slice_that_follows_from_none_before_it_ends_the_wait() {
    let (mut source, mut downlink) = (Source::recovering(), Downlink::new(REORDER_TIMEOUT));
    let units: Vec<_> = (0..3).map(|_| source.next(Refresh::No)).collect();
    let slice = Slice::parse(source.next(Refresh::No)).unwrap();
    let recovery = Slice { history: Some(0), ..slice }.into_unit();
    take(&mut downlink, &units[0], at(1));
    take_until(&mut downlink, &units[2], at(200), at(20));
    let shown = take_until(&mut downlink, &recovery, at(210), at(90));
    let expected = [(1, SliceKind::Skip), (2, SliceKind::Predicted), (3, SliceKind::Predicted)];
    assert_eq!(shown, expected);
    assert_eq!(told_at(&downlink, at(90)), (3, Some(3), Some(1)));
}

#[test]
fn a_lost_first_idr_is_reported_after_the_reorder_timeout() {
    let (mut source, mut downlink) = (Source::recovering(), Downlink::new(REORDER_TIMEOUT));
    let units: Vec<_> = (0..3).map(|_| source.next(Refresh::No)).collect();
    assert_eq!(take_until(&mut downlink, &units[1], at(200), at(20)), []);
    assert_eq!(downlink.reports(at(49))[2], None);
    assert_eq!(told_at(&downlink, at(50)), (1, None, Some(0)));
    take_until(&mut downlink, &units[2], at(210), at(30));
    assert_eq!(told_at(&downlink, at(60)), (2, None, Some(1)));
    assert_ne!(downlink.keyframe_strips() & 0b100, 0);
    // Discarded slices are reported all the same.
    assert_eq!(wait(&mut downlink, at(300)), []);
    assert_eq!(downlink.counters().unusable, 2);
    assert_eq!(told_at(&downlink, at(300)), (2, None, Some(1)));
    let anew = source.next(Refresh::Idr);
    assert_eq!(take(&mut downlink, &anew, at(310)), [(3, SliceKind::Idr)]);
    assert_eq!(told_at(&downlink, at(310)), (3, Some(3), None));
}

#[test]
fn a_first_idr_that_is_late_is_shown_with_what_came_before_it() {
    let (mut source, mut downlink) = (Source::recovering(), Downlink::new(REORDER_TIMEOUT));
    let units: Vec<_> = (0..2).map(|_| source.next(Refresh::No)).collect();
    assert_eq!(take_until(&mut downlink, &units[1], at(200), at(20)), []);
    let shown = take_until(&mut downlink, &units[0], at(190), at(40));
    assert_eq!(shown, [(0, SliceKind::Idr), (1, SliceKind::Predicted)]);
}

#[test]
fn a_recovering_stream_gets_a_loss_report_and_no_idr_request() {
    let (mut source, mut downlink) = (
        Source::of(Backend::Avc(LossRecovery::IntraRefreshOnLoss { period: 3 })),
        Downlink::new(Duration::ZERO),
    );
    assert_eq!(downlink.reports(at(100))[2], None);
    for number in 0..6 {
        let unit = source.next(Refresh::No);
        if number != 3 {
            take(&mut downlink, &unit, at(number));
        }
        assert_eq!(downlink.keyframe_strips() & 0b100, 0);
    }
    assert_eq!(told(&downlink), (5, Some(2), Some(3)));
    assert!(downlink.reports(at(100))[2].unwrap().is_corrupt());
    for (refresh, clean) in [(Refresh::Recover, 2), (Refresh::No, 2), (Refresh::No, 8)] {
        let unit = source.next(refresh);
        take(&mut downlink, &unit, at(9));
        assert_eq!(told(&downlink).1, Some(clean));
        assert_eq!(downlink.keyframe_strips() & 0b100, 0);
    }
    assert!(!downlink.reports(at(100))[2].unwrap().is_corrupt());
}

#[test]
fn intra_refresh_recovers_a_loss_without_a_report() {
    let (mut source, mut downlink) = (
        Source::of(Backend::Avc(LossRecovery::IntraRefresh { period: 4 })),
        Downlink::new(Duration::ZERO),
    );
    for number in 0..20 {
        let unit = source.next(Refresh::No);
        if number != 9 {
            take(&mut downlink, &unit, at(number));
            let is_clean = told(&downlink).1 == Some(number as u32);
            assert_eq!(is_clean, !(10..13).contains(&number), "{number}");
        }
    }
    assert_eq!(downlink.keyframe_strips() & 0b100, 0);
}

#[test]
fn a_strip_that_is_corrupt_for_a_second_begins_anew() {
    let (mut source, mut downlink) = (
        Source::of(Backend::Avc(LossRecovery::IntraRefreshOnLoss { period: 3 })),
        Downlink::new(Duration::ZERO),
    );
    for number in 0..65 {
        let unit = source.next(Refresh::No);
        if number != 3 {
            take(&mut downlink, &unit, at(number));
        }
        let asked = downlink.keyframe_strips() & 0b100 != 0;
        assert_eq!(asked, number > 3 + u64::from(RECOVERY_MAX), "{number}");
    }
    let loss_recovery = source.next(Refresh::Idr);
    take(&mut downlink, &loss_recovery, at(70));
    assert_eq!(downlink.keyframe_strips() & 0b100, 0);
}

#[test]
fn a_lost_idr_is_reported_as_a_loss() {
    let (mut source, mut downlink) = (
        Source::of(Backend::Avc(LossRecovery::IntraRefreshOnLoss { period: 3 })),
        Downlink::new(Duration::ZERO),
    );
    for number in 0..10 {
        let unit = source.next(if number == 5 { Refresh::Idr } else { Refresh::No });
        if number != 5 {
            take(&mut downlink, &unit, at(number));
        }
    }
    assert_eq!(told(&downlink), (9, Some(4), Some(5)));
}

#[test]
fn a_slice_whose_place_was_given_up_is_not_shown() {
    let (mut source, mut downlink) = (Source::new(), Downlink::new(REORDER_TIMEOUT));
    let units: Vec<_> = (0..3).map(|_| source.next(Refresh::No)).collect();
    take(&mut downlink, &units[0], at(1));
    take(&mut downlink, &units[2], at(20));
    wait(&mut downlink, at(60));
    assert_eq!(take(&mut downlink, &units[1], at(61)), []);
    assert_eq!(take(&mut downlink, &units[2], at(62)), []);
    assert_eq!(downlink.counters().overtaken, 2);
}

#[test]
fn an_idr_does_not_wait_for_what_was_lost_before_it() {
    let (mut source, mut downlink) = (Source::new(), Downlink::new(REORDER_TIMEOUT));
    let units: Vec<_> = (0..3).map(|_| source.next(Refresh::No)).collect();
    let loss_recovery = source.next(Refresh::Idr);
    take(&mut downlink, &units[0], at(1));
    take(&mut downlink, &units[2], at(20));
    assert_eq!(take(&mut downlink, &loss_recovery, at(25)), [(3, SliceKind::Idr)]);
    assert_eq!(downlink.counters().overtaken, 1);
}

#[test]
fn before_the_first_idr_nothing_is_shown() {
    let (mut source, mut downlink) = (Source::new(), Downlink::new(REORDER_TIMEOUT));
    source.next(Refresh::Idr);
    let second = source.next(Refresh::No);
    assert_eq!(take(&mut downlink, &second, at(1)), []);
    assert_eq!(wait(&mut downlink, at(100)), []);
    assert_eq!(downlink.counters().unusable, 1);
}

#[test]
fn held_slices_are_bounded() {
    let (mut source, mut downlink) = (Source::new(), Downlink::new(Duration::from_secs(60)));
    let first = source.next(Refresh::Idr);
    take(&mut downlink, &first, at(1));
    source.next(Refresh::No);
    let mut shown = Vec::new();
    for _ in 0..=HELD_MAX {
        let unit = source.next(Refresh::No);
        shown.extend(take(&mut downlink, &unit, at(2)));
    }
    assert_eq!(shown[0], (1, SliceKind::Skip));
    assert_eq!(shown.len(), 1 + HELD_MAX + 1);
}

proptest! {
    #[test]
    fn any_bytes_are_only_counted(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut downlink = Downlink::new(REORDER_TIMEOUT);
        take(&mut downlink, &bytes, at(1));
        wait(&mut downlink, at(100));
        prop_assert_eq!(downlink.counters().shown, 0);
    }

    #[test]
    fn a_damaged_unit_never_panics(position in 0_usize..400, flip in 1_u8..) {
        let (mut source, mut downlink) = (Source::new(), Downlink::new(REORDER_TIMEOUT));
        for _ in 0..3 {
            let mut unit = source.next(Refresh::No);
            let index = position % unit.len();
            unit[index] ^= flip;
            take(&mut downlink, &unit, at(1));
        }
        wait(&mut downlink, at(100));
    }
}
