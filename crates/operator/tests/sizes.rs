//! Pictures of any size, from a sensor through camera, encoders and downlink into a recording.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use tautline_net::clock::Clock;
use tautline_operator::downlink::Downlink;
use tautline_operator::recorder::{Entry, INDEX, PICTURES, Recorder};
use tautline_units::{Bitrate, Instant};
use tautline_vehicle::camera::{self, Counters, Outlet};
use tautline_vehicle::encode::{EncoderControl, Meter, Turn};
use tautline_vehicle::ticks::Ticks;
use tautline_video::avc::LossRecovery;
use tautline_video::openh264::StripDecoder;
use tautline_video::{
    Backend, Decoder, Error, Layout, Picture, Reduction, Sensor, Slice, SliceKind,
};

/// Camera that delivers a moving gradient at 30 pictures per second.
struct Gradient {
    layout: Layout,
    shown: usize,
    left: usize,
}

impl Sensor for Gradient {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn pictures_per_second(&self) -> f64 {
        30.0
    }

    fn next_picture(&mut self) -> Result<bool, Error> {
        self.shown += 1;
        Ok(self.shown <= self.left)
    }

    fn read(&mut self, strip: usize, rows: &mut Picture) {
        let (width, top) = (rows.width(), self.layout.strip_rows(strip).start);
        for (row, luma) in rows.planes_mut().0.chunks_exact_mut(width).enumerate() {
            for (column, value) in luma.iter_mut().enumerate() {
                *value = ((top + row) / 8 + column / 16 + self.shown) as u8;
            }
        }
    }
}

/// Returns every slice that the vehicle's own threads encode of `pictures` pictures.
fn slices_of(layout: Layout, pictures: usize) -> Vec<Slice> {
    slices_by(EncoderControl::new(), layout, pictures, |_, _, _| {})
}

/// Returns every slice that the vehicle's own threads encode of `pictures` pictures under
/// `control`. `befall` is called with the picture number of each slice.
fn slices_by(
    control: EncoderControl,
    layout: Layout,
    pictures: usize,
    befall: impl Fn(&EncoderControl, u32, Instant) + Sync,
) -> Vec<Slice> {
    let sensor = Gradient { layout, shown: 0, left: pictures };
    let clock = Clock::start();
    let control = Arc::new(control);
    control.set_budget(Bitrate::from_mbps(4), clock.now());
    let (outlet, queues, give_back) = Outlet::new(2, control.clone());
    let turns = Turn::all(Backend::JoinableAvc(LossRecovery::Idr), &layout, 2, 30.0).unwrap();
    let (meter, counters, stop) = (Meter::default(), Counters::default(), AtomicBool::new(false));
    let (sender, slices) = channel();
    std::thread::scope(|scope| {
        for (turn, queue) in turns.into_iter().zip(queues) {
            let (sender, give_back, control, meter, befall) =
                (sender.clone(), give_back.clone(), &control, &meter, &befall);
            scope.spawn(move || {
                turn.run(&queue, &give_back, control, meter, clock, |slice, _| {
                    befall(control, slice.picture, clock.now());
                    sender.send(slice).is_ok()
                });
            });
        }
        drop(sender);
        camera::run(Box::new(sensor), outlet, &counters, &Ticks::default(), clock, &stop).unwrap();
    });
    slices.into_iter().collect()
}

/// Passes the slices as units, in order, and records what is shown.
fn record(slices: Vec<Slice>, downlink: &mut Downlink, recorder: &mut Recorder) {
    for slice in slices {
        let slice = downlink.parse(slice.into_unit()).unwrap();
        downlink.handle_slice(slice, Instant::ZERO, Instant::ZERO, |shown| {
            recorder.record(Entry {
                picture: shown.slice.picture,
                strip: shown.slice.strip,
                kind: shown.slice.kind,
                captured_at: shown.slice.captured_at,
                encoded_at: shown.slice.encoded_at,
                shown_at: shown.slice.encoded_at,
                is_clean: shown.is_clean,
                bytes: shown.slice.bytes.to_vec().into(),
            });
        });
    }
}

/// Returns the width and height of the decoded picture of an access unit.
fn size(access_unit: &[u8]) -> (usize, usize) {
    let picture = StripDecoder::new().unwrap().decode(access_unit).unwrap().unwrap();
    (picture.width(), picture.height())
}

/// Returns the first access unit of a stream of complete pictures. It ends before the second slice
/// of macroblock 0, whose header has its first bit set.
fn first_access_unit(stream: &[u8]) -> &[u8] {
    let begins = |at: &usize| {
        let unit = &stream[*at..];
        unit.starts_with(&[0, 0, 1]) && matches!(unit[3] & 31, 1 | 5) && unit[4] & 0x80 != 0
    };
    let second = (0..stream.len() - 5).filter(begins).nth(1);
    // A start code may have one more leading zero.
    &stream[..second.map_or(stream.len(), |at| at - usize::from(stream[at - 1] == 0))]
}

#[test]
fn pictures_of_any_size_come_through_to_the_recording() {
    for (width, height) in [(640, 480), (1024, 768), (352, 96), (646, 101)] {
        let layout = Layout::around(width, height).unwrap();
        // The decoder returns complete macroblocks; the visible part is checked below.
        let (width, height) = (layout.width(), layout.height());
        let slices = slices_of(layout, 12);
        assert!(slices.iter().filter(|slice| slice.kind == SliceKind::Idr).count() >= 6);
        let folder = tempfile::tempdir().unwrap();
        let mut downlink = Downlink::new(Duration::ZERO);
        let mut recorder = Recorder::create(folder.path()).unwrap();
        assert_eq!(downlink.layout(), None);
        record(slices, &mut downlink, &mut recorder);
        assert_eq!(downlink.layout(), Some(layout));
        assert!(downlink.codec().unwrap().starts_with("avc1.42"));
        drop(recorder);
        let index = fs::read_to_string(folder.path().join(INDEX)).unwrap();
        for strip in 0..Layout::STRIP_COUNT {
            let lines =
                index.lines().filter(|line| line.split(',').nth(1) == Some(&strip.to_string()));
            let bytes = lines.map(|line| line.split(',').nth(6).unwrap().parse::<usize>().unwrap());
            let first = bytes.clone().next().unwrap();
            assert!(bytes.count() > 1, "strip {strip} of {width}x{height}");
            let stream = fs::read(folder.path().join(format!("strip-{strip}.h264"))).unwrap();
            assert_eq!(size(&stream[..first]), (width, layout.strip_rows(strip).len()));
        }
        let stream = fs::read(folder.path().join(PICTURES)).unwrap();
        assert_eq!(size(first_access_unit(&stream)), (width, height));
    }
}

#[test]
fn a_vehicle_that_comes_back_with_another_size_is_recorded_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut downlink = Downlink::new(Duration::ZERO);
    let mut recorder = Recorder::create(folder.path()).unwrap();
    for (width, height) in [(640, 480), (352, 192)] {
        let layout = Layout::of(width, height).unwrap();
        downlink.reset();
        assert_eq!(downlink.layout(), None);
        record(slices_of(layout, 6), &mut downlink, &mut recorder);
        assert_eq!(downlink.layout(), Some(layout));
    }
    drop(recorder);
    // One file: the second size begins with its own parameter sets.
    let stream = fs::read(folder.path().join(PICTURES)).unwrap();
    assert_eq!(size(first_access_unit(&stream)), (640, 480));
    let mut sets = (0..stream.len() - 4).filter(|at| stream[*at..].starts_with(&[0, 0, 1, 0x67]));
    let last = sets.next_back().unwrap();
    assert_eq!(size(first_access_unit(&stream[last - 1..])), (352, 192));
}

#[test]
fn pictures_that_get_another_size_amid_a_session_come_through() {
    let layout = Layout::of(1280, 720).unwrap();
    let control = EncoderControl::new().governed();
    control.note_shown(Bitrate::from_kbps(200));
    let begun_anew = AtomicBool::new(false);
    let slices = slices_by(control, layout, 60, |control, picture, now| {
        // A new session, over links with more capacity.
        if picture >= 20 && !begun_anew.swap(true, Ordering::Relaxed) {
            control.handle_new_session();
            control.note_shown(Bitrate::from_mbps(10));
            control.set_budget(Bitrate::from_mbps(4), now);
        }
    });
    let mut downlink = Downlink::new(Duration::ZERO);
    let mut decoders: Vec<_> = (0..6).map(|_| StripDecoder::new().unwrap()).collect();
    let mut sizes = Vec::new();
    for slice in slices {
        let strip = usize::from(slice.strip);
        let picture = decoders[strip].decode(&slice.bytes).unwrap().unwrap();
        let slice = downlink.parse(slice.into_unit()).unwrap();
        let mut shown = 0;
        downlink.handle_slice(slice, Instant::ZERO, Instant::ZERO, |_| shown += 1);
        assert_eq!(shown, 1);
        if let Some(layout) = downlink.layout().filter(|layout| sizes.last() != Some(layout)) {
            sizes.push(layout);
        }
        if let Some(layout) = sizes.last().filter(|layout| downlink.fits(strip, layout)) {
            let rows = layout.strip_rows(strip).len();
            assert_eq!((picture.width(), picture.height()), (layout.width(), rows));
        }
    }
    assert_eq!(sizes, [*Reduction::new(&layout, 3).unwrap().layout(), layout]);
}
