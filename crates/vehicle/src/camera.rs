//! Reading of the camera: rows are passed to the encoders as soon as they are read.

mod captures;
pub mod clip;
mod complaint;
mod counters;
mod dating;
mod enlarged;
mod numbers;
mod reduced;
pub mod socket;
pub mod v4l2;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use anyhow::{Context, ensure};
use tautline_net::clock::Clock;
use tautline_units::Instant;
use tautline_video::{Enlargement, Error, Layout, Losses, Picture, Sensor, stamp};

use crate::config::{Config, PictureSource};
use crate::encode::{EncoderControl, Taking};
use crate::load::Load;
use crate::readout::{BAND_ROWS, Readout, Source};
use crate::ticks::Ticks;
use captures::Captures;
pub use counters::Counters;
use enlarged::Enlarged;
use reduced::Reduced;

/// Opens the configured clip, V4L2 device or socket; returns `None` if none is configured.
///
/// # Errors
/// Returns one line that says what is wrong with the source.
pub fn open(config: &Config) -> anyhow::Result<Option<Box<dyn Sensor>>> {
    Ok(match config.source() {
        Some(PictureSource::Camera(device)) => {
            let wanted = config.camera_mode()?;
            let rate = config.pictures_per_second;
            Some(Box::new(v4l2::DeviceSensor::open(device, &wanted, rate)?))
        }
        Some(PictureSource::Socket(path)) => {
            Some(Box::new(socket::SocketSensor::open(path, config.pictures_per_second)?))
        }
        Some(PictureSource::Clip(file)) => Some(Box::new(clip::ClipSensor::open(file)?)),
        None => None,
    })
}

/// Returns a source whose pictures can be coded: small pictures are enlarged until they have room
/// for the stamp and all strips.
///
/// # Errors
/// Returns one line that names the size that is not possible.
pub fn fitted(sensor: Box<dyn Sensor>) -> anyhow::Result<Box<dyn Sensor>> {
    let (width, height) = sensor.layout().shown();
    let cannot =
        || format!("pictures of {width}x{height} cannot be enlarged to a size that can be sent");
    let Some(enlargement) = Enlargement::of(&sensor.layout()).with_context(cannot)? else {
        return Ok(sensor);
    };
    let (wide, high) = enlargement.layout().shown();
    let (from, to) = (format!("{width}x{height}"), format!("{wide}x{high}"));
    tracing::info!(from, to, "small pictures are enlarged before they are sent");
    Ok(Box::new(Enlarged::new(sensor, enlargement).with_context(cannot)?))
}

/// Camera's end of the encoders' queues: strip `i` goes to encoder `i` modulo their number, through
/// a bounded queue of its own; used buffers come back.
#[derive(Debug)]
pub struct Outlet {
    encoders: Vec<(SyncSender<Readout>, Arc<Load>)>,
    empties: Receiver<Picture>,
    free: Vec<Picture>,
    control: Arc<EncoderControl>,
    /// True if encoders get rows as they are read, rather than complete strips.
    by_rows: bool,
}

impl Outlet {
    /// Creates an outlet to `encoder_count` encoders. Also returns the queue of each encoder and
    /// the return channel for buffers. Pictures that `control` excludes are not passed on.
    pub fn new(
        encoder_count: usize,
        control: Arc<EncoderControl>,
    ) -> (Self, Vec<Receiver<Readout>>, SyncSender<Picture>) {
        let queue = || {
            let (sender, queue) = sync_channel(QUEUE_MAX);
            ((sender, Arc::default()), queue)
        };
        let (encoders, queues) = (0..encoder_count).map(|_| queue()).unzip();
        let (give_back, empties) = sync_channel(QUEUE_MAX * encoder_count * 2);
        (Self { encoders, empties, free: Vec::new(), control, by_rows: true }, queues, give_back)
    }

    /// Makes the outlet pass on complete strips only, for encoders that cannot begin with the first
    /// rows.
    pub fn by_strips(mut self) -> Self {
        self.by_rows = false;
        self
    }

    /// Returns whether a picture of `strips` strips begun now would be coded in time.
    fn has_room(&self, strips: usize) -> bool {
        let share = strips.div_ceil(self.encoders.len().max(1)) as u64;
        self.encoders.iter().all(|(_, load)| load.has_room(share))
    }

    fn take_buffer(&mut self, height: usize, width: usize) -> Picture {
        while let Ok(buffer) = self.empties.try_recv() {
            self.free.push(buffer);
        }
        // Buffers of earlier pictures may have another size.
        self.free.retain(|buffer| buffer.width() == width);
        match self.free.iter().position(|buffer| buffer.height() == height) {
            Some(index) => self.free.swap_remove(index),
            None => Picture::new(width, height).expect("the layout's strips are valid pictures"),
        }
    }
}

/// Reads `sensor` strip by strip at its own times, by `clock`, until it ends or `stop` is set.
///
/// Reading a strip takes its share of the picture interval, as with a rolling shutter. The encoder
/// gets the strip from the first row on, as rows are read; a sensor of complete pictures delivers
/// all rows at once. A camera that cannot keep up skips complete pictures. So does a camera whose
/// encoders cannot keep up: a picture that cannot be coded in time is not begun. Of the rest, frame
/// decimation keeps one picture per picture interval. Each picture carries the newest guard tick
/// known when its capture began. Its age thus includes the time it waited in the sensor or in a
/// queue. `ticks` gets each tick once its picture is read, and whether the picture counts as a new
/// capture.
///
/// # Errors
/// Fails if the pictures are narrower than the stamp, or if the sensor fails.
pub fn run(
    sensor: Box<dyn Sensor>,
    outlet: Outlet,
    counters: &Counters,
    ticks: &Ticks,
    clock: Clock,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let whole = sensor.layout();
    ensure!(
        whole.width() >= stamp::WIDTH,
        "pictures {} pixels wide have no room for the stamp: at least {} are needed",
        whole.width(),
        stamp::WIDTH
    );
    let period = Duration::from_secs_f64(1.0 / sensor.pictures_per_second());
    counters.period_nanos.store(period.as_nanos() as u64, Ordering::Relaxed);
    let gives_rows = sensor.gives_rows();
    outlet.control.set_source(sensor.pictures_per_second(), gives_rows, &whole);
    counters.origin.store(sensor.origin() as u8, Ordering::Relaxed);
    let delayed_before = counters.pictures_delayed.load(Ordering::Relaxed);
    // A restarted camera continues the numbering: the peer accepts no number twice.
    let mut picture = counters.pictures.load(Ordering::Relaxed) as u32;
    let (mut history, mut losses) = (TickHistory::default(), Losses::default());
    let (cadence, captures) = (Cadence::new(clock.now()), Captures::new(sensor.as_ref()));
    let reduced = None;
    let mut reading = Reading {
        sensor,
        outlet,
        counters,
        ticks,
        clock,
        whole,
        period,
        reduced,
        captures,
        cadence,
    };
    while begin_picture(reading.sensor.as_mut(), counters, &mut losses, stop)? {
        counters.pictures.fetch_add(1, Ordering::Relaxed);
        let interval = reading.sensor.interval();
        if !gives_rows {
            reading.cadence.due = clock.now() - reading.sensor.age();
        }
        clock.sleep_until(reading.cadence.due);
        history.note(ticks.newest(), clock.now());
        match reading.left_out(picture, interval) {
            Some(counter) => {
                counter.fetch_add(1, Ordering::Relaxed);
            }
            None => {
                let tick = history.at(reading.cadence.due);
                reading.read_picture(picture, interval, tick)?;
            }
        }
        picture = picture.wrapping_add(1);
        let delayed = delayed_before + reading.cadence.delayed;
        counters.pictures_delayed.store(delayed, Ordering::Relaxed);
        reading.cadence.due += interval;
    }
    Ok(())
}

/// Reading of a sensor's pictures, strip by strip, into the queues of the encoders.
struct Reading<'a> {
    sensor: Box<dyn Sensor>,
    outlet: Outlet,
    counters: &'a Counters,
    ticks: &'a Ticks,
    clock: Clock,
    /// Layout of the sensor's pictures.
    whole: Layout,
    /// Nominal picture interval.
    period: Duration,
    /// Reduction of the pictures, while the encoder control asks for one; `None` otherwise.
    reduced: Option<Reduced>,
    captures: Captures,
    cadence: Cadence,
}

impl<'a> Reading<'a> {
    /// Decides about the current picture, which lasts for `interval`. Returns the counter of the
    /// reason if the picture is not read, and `None` if it is.
    fn left_out(&mut self, picture: u32, interval: Duration) -> Option<&'a AtomicU64> {
        let counters = self.counters;
        let now = self.clock.now();
        match self.outlet.control.take(picture, now) {
            Taking::Taken => {}
            Taking::LeftOutForScreen => return Some(&counters.pictures_decimated),
            Taking::LeftOutForLinks => return Some(&counters.pictures_thinned),
            Taking::Waits => return Some(&counters.pictures_held),
            Taking::Paused => return Some(&counters.pictures_paused),
        }
        if self.sensor.gives_rows() && !self.cadence.takes(interval, self.clock.now()) {
            return Some(&counters.pictures_skipped);
        }
        let has_room = self.outlet.has_room(self.whole.strip_count());
        (!has_room).then_some(&counters.pictures_unencoded)
    }

    /// Reads the strips of the current picture, which lasts for `interval` and carries `tick`, at
    /// the size that the encoder control asks for.
    fn read_picture(&mut self, picture: u32, interval: Duration, tick: u32) -> anyhow::Result<()> {
        let factor = self.outlet.control.reduction();
        self.reduced = Reduced::of(self.reduced.take(), &self.whole, factor)?;
        let layout = self.reduced.as_ref().map_or(self.whole, |reduced| *reduced.layout());
        let slot = match self.sensor.gives_rows() {
            true => interval.min(self.period) / self.whole.strip_count() as u32,
            false => Duration::ZERO,
        };
        for strip in 0..layout.strip_count() {
            self.read_strip((picture, strip), layout, slot, tick);
        }
        if let Some(reduced) = &mut self.reduced {
            reduced.end_picture();
        }
        // If no encoder had time for the last strip, judge by the others.
        if self.captures.is_begun() {
            self.judge(tick);
        }
        Ok(())
    }

    /// Reads a strip of the picture's layout, if the queue of its encoder has room. Reading one of
    /// the sensor's strips takes `slot`.
    fn read_strip(&mut self, place: (u32, usize), layout: Layout, slot: Duration, tick: u32) {
        let (clock, strip) = (self.clock, place.1);
        let strips = match &self.reduced {
            Some(reduced) => reduced.strips(strip),
            None => strip..strip + 1,
        };
        // A sensor of complete pictures captured it earlier, possibly much earlier.
        let due = self.cadence.due;
        let read_at = |strip: usize| due + slot * strip as u32;
        let begun = read_at(strips.start);
        clock.sleep_until(begun);
        let counters = self.counters;
        let source = begin(&self.outlet, layout, place, (begun, tick), counters, clock);
        let Some(source) = source else { return };
        let height = layout.strip_rows(strip).len();
        let mut rows = self.outlet.take_buffer(height, layout.width());
        let (captures, sensor) = (&mut self.captures, self.sensor.as_mut());
        match &mut self.reduced {
            Some(reduced) => reduced.read(strip, &mut rows, |strip, rows| {
                clock.sleep_until(read_at(strip));
                captures.read(sensor, strip, rows);
            }),
            None => captures.read(sensor, strip, &mut rows),
        }
        if strip + 1 == layout.strip_count() {
            self.judge(tick);
        }
        if strip == 0 {
            let unix_millis = clock.unix_nanos(begun) / 1_000_000;
            stamp::draw(&mut rows, unix_millis as u32).expect("the width was checked");
        }
        source.hand_over(rows);
        let by_rows = self.outlet.by_rows && self.reduced.is_none();
        let band = if by_rows { BAND_ROWS } else { height };
        let lasts = slot * strips.len() as u32;
        for end in (band..=height).step_by(band) {
            clock.sleep_until(begun + lasts * end as u32 / height as u32);
            source.tell_read(end, clock.now());
        }
    }

    /// Compares the current picture with earlier ones, and tells the ticks whether it counts as a
    /// capture. It runs before the last strip is passed on: no one can have seen the picture yet.
    fn judge(&mut self, tick: u32) {
        let (sequence, is_moving) = (self.sensor.sequence(), self.ticks.is_moving());
        let now = self.clock.now();
        let counts = self.captures.end_picture(sequence, is_moving, self.counters, now);
        self.ticks.note_capture(tick, counts);
    }
}

/// Begins the source's next picture; pictures that the source loses are counted and skipped.
/// Returns false at the end of the source, or when `stop` is set.
fn begin_picture(
    sensor: &mut dyn Sensor,
    counters: &Counters,
    losses: &mut Losses,
    stop: &AtomicBool,
) -> Result<bool, Error> {
    while !stop.load(Ordering::Relaxed) {
        let begun = sensor.next_picture();
        counters.note_losses(sensor, losses);
        match begun {
            // The loss is counted; the source continues.
            Err(Error::PictureLost { .. }) => {}
            Ok(_) | Err(_) => return begun,
        }
    }
    Ok(false)
}

/// Newest guard tick at the start of each of the last 60 pictures, with the instant of that start.
#[derive(Debug, Default)]
struct TickHistory {
    seen: VecDeque<(Instant, u32)>,
}

impl TickHistory {
    fn note(&mut self, tick: u32, now: Instant) {
        if self.seen.len() == TICKS_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back((now, tick));
    }

    /// Returns the newest tick known at `captured_at`, with a tolerance of one guard step; 0 (no
    /// tick) if that is too long ago.
    fn at(&self, captured_at: Instant) -> u32 {
        let there = |(at, _): &&(Instant, u32)| *at <= captured_at + STEP;
        self.seen.iter().rev().find(there).map_or(0, |(_, tick)| *tick)
    }
}

/// Schedule of the pictures, and how to handle a late one.
#[derive(Debug)]
struct Cadence {
    /// Start of the current picture.
    due: Instant,
    taken_at: Instant,
    /// Lateness of the previous picture, if it was skipped; `None` if it was taken.
    late_before: Option<Duration>,
    /// True while skipping does not help, because the source needs longer per picture than its
    /// interval. Set by a picture at least as late as the one skipped before it; cleared by one
    /// whose lateness is at most a quarter of an interval.
    is_source_slow: bool,
    /// Number of pictures that came late, were taken and dated by their arrival.
    delayed: u64,
}

impl Cadence {
    fn new(now: Instant) -> Self {
        Self { due: now, taken_at: now, late_before: None, is_source_slow: false, delayed: 0 }
    }

    /// Returns whether to take the current picture at `now`, which was due at `due` and lasts for
    /// `interval`.
    ///
    /// A picture that is late by `interval` or more is skipped, to catch up. If skipping does not
    /// help, or no picture was taken for 100 ms, it is taken and `due` becomes `now`: some pictures
    /// must always be seen.
    fn takes(&mut self, interval: Duration, now: Instant) -> bool {
        let late = now.since(self.due);
        if late < interval {
            // If the next picture has to be waited for again, the source is not slow.
            self.is_source_slow &= late > interval / 4;
        } else {
            self.is_source_slow |= self.late_before.is_some_and(|before| late >= before);
            if !self.is_source_slow && now.since(self.taken_at) < UNSEEN_MAX {
                self.late_before = Some(late);
                return false;
            }
            self.due = now;
            self.delayed += 1;
        }
        (self.late_before, self.taken_at) = (None, now);
        true
    }
}

/// Offers a strip that is about to be read to its encoder, and returns the sink for its rows. If
/// the encoder's queue is full, or the encoder has ended, returns `None` and counts the strip as
/// dropped.
fn begin(
    outlet: &Outlet,
    layout: Layout,
    (picture, strip): (u32, usize),
    capture: (Instant, u32),
    counters: &Counters,
    clock: Clock,
) -> Option<Source> {
    let (encoder, load) = &outlet.encoders[strip % outlet.encoders.len()];
    let (readout, source) = Readout::new((picture, strip), capture, layout, load.clone(), clock);
    match encoder.try_send(readout) {
        Ok(()) => Some(source),
        Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
            counters.strips_dropped.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

/// Maximum number of strips that wait for one encoder, beyond which strips are dropped and counted:
/// with two encoders, three of one picture and three of the next.
const QUEUE_MAX: usize = 6;
/// Number of remembered ticks: one second at 60 pictures per second; older ticks do not count.
const TICKS_MAX: usize = 60;
/// Period of the guard's tick.
const STEP: Duration = Duration::from_millis(10);
/// Time without a picture after which the next one is taken however late it is. This gives 10
/// pictures per second, where 5 are required.
const UNSEEN_MAX: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use tautline_message::VideoFeedback;
    use tautline_units::Bitrate;

    use super::*;

    /// Source of grey pictures, 100 per second.
    struct Grey {
        left: usize,
    }

    impl Sensor for Grey {
        fn layout(&self) -> Layout {
            Layout::of(640, 96).unwrap()
        }

        fn pictures_per_second(&self) -> f64 {
            100.0
        }

        fn next_picture(&mut self) -> Result<bool, tautline_video::Error> {
            self.left = self.left.saturating_sub(1);
            Ok(self.left > 0)
        }

        fn read(&mut self, _strip: usize, _rows: &mut Picture) {}
    }

    /// Source of grey pictures as of a thermal camera; every third is lost.
    struct Thermal {
        number: u64,
        losses: Losses,
    }

    impl Sensor for Thermal {
        fn layout(&self) -> Layout {
            Layout::of_sensor(160, 120).unwrap()
        }

        fn pictures_per_second(&self) -> f64 {
            100.0
        }

        fn losses(&self) -> Losses {
            self.losses
        }

        fn trouble(&self) -> Option<&str> {
            (self.number >= 8).then_some("it is fogged")
        }

        fn next_picture(&mut self) -> Result<bool, Error> {
            self.number += 1;
            if self.number.is_multiple_of(3) {
                self.losses.damaged += 1;
                return Err(Error::PictureLost { reason: "cut".to_owned() });
            }
            Ok(self.number < 10)
        }

        fn read(&mut self, _strip: usize, rows: &mut Picture) {
            rows.planes_mut().0.fill(90);
        }
    }

    #[test]
    fn small_pictures_are_enlarged_and_lost_ones_are_counted() {
        let clock = Clock::start();
        let control = Arc::new(EncoderControl::new());
        control.set_budget(Bitrate::from_mbps(1), clock.now());
        let (outlet, queues, give_back) = Outlet::new(1, control);
        let (counters, stop) = (Counters::default(), AtomicBool::new(false));
        let encoder = std::thread::spawn(move || {
            for mut readout in &queues[0] {
                assert_eq!(readout.layout.shown(), (480, 360));
                let rows = tautline_video::Rows::read(&mut readout, usize::MAX);
                let below_stamp = rows.width() * stamp::HEIGHT;
                assert!(rows.luma()[below_stamp..].iter().all(|value| *value == 90));
                if readout.strip == 0 {
                    assert!(stamp::read(readout.into_rows().unwrap().luma(), 480).is_some());
                } else {
                    let _ = give_back.try_send(readout.into_rows().unwrap());
                }
            }
        });
        let sensor = fitted(Box::new(Thermal { number: 0, losses: Losses::default() })).unwrap();
        run(sensor, outlet, &counters, &Ticks::default(), clock, &stop).unwrap();
        encoder.join().unwrap();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        assert_eq!((count(&counters.pictures), count(&counters.pictures_damaged)), (6, 3));
        assert_eq!(counters.trouble().as_deref(), Some("it is fogged"));
    }

    #[test]
    fn a_picture_that_waited_has_the_tick_of_its_capture() {
        let mut history = TickHistory::default();
        for picture in 0..200_u32 {
            history.note(picture * 3, Instant::from_millis(u64::from(picture) * 33));
        }
        let now = 199 * 33;
        assert_eq!(history.at(Instant::from_millis(now)), 597);
        assert_eq!(history.at(Instant::from_millis(now - 5)), 597);
        // The previous tick was known, the newer one was not.
        assert_eq!(history.at(Instant::from_millis(now - 30)), 594);
        assert_eq!(history.at(Instant::from_millis(now - 300)), 570);
        assert_eq!(history.at(Instant::from_millis(now - 3_000)), 0);
        assert_eq!(TickHistory::default().at(Instant::from_millis(now)), 0);
    }

    #[test]
    fn pictures_that_the_screen_cannot_keep_up_with_are_not_taken() {
        let clock = Clock::start();
        let control = Arc::new(EncoderControl::new());
        control.set_budget(Bitrate::from_mbps(1), clock.now());
        control.handle_feedback(&VideoFeedback { picture_interval: 3, ..VideoFeedback::default() });
        let (outlet, queues, give_back) = Outlet::new(1, control);
        let (counters, stop) = (Counters::default(), AtomicBool::new(false));
        let (sender, taken) = channel();
        let encoder = std::thread::spawn(move || {
            for readout in &queues[0] {
                assert_eq!(readout.tick, 41);
                sender.send(readout.picture).unwrap();
                if let Some(rows) = readout.into_rows() {
                    let _ = give_back.try_send(rows);
                }
            }
        });
        let ticks = Ticks::default();
        ticks.handle_tick(41, 0.0);
        run(Box::new(Grey { left: 61 }), outlet, &counters, &ticks, clock, &stop).unwrap();
        encoder.join().unwrap();
        assert_eq!(counters.pictures.load(Ordering::Relaxed), 60);
        assert_eq!(counters.pictures_decimated.load(Ordering::Relaxed), 40);
        let taken: Vec<u32> = taken.iter().collect();
        assert!(!taken.is_empty());
        assert!(taken.iter().all(|picture| picture.is_multiple_of(3)), "{taken:?}");
    }

    #[test]
    fn slow_encoders_get_fewer_but_complete_pictures() {
        let clock = Clock::start();
        let control = Arc::new(EncoderControl::new());
        control.set_budget(Bitrate::from_mbps(1), clock.now());
        let (outlet, queues, give_back) = Outlet::new(2, control);
        let (counters, stop) = (Counters::default(), AtomicBool::new(false));
        let (sender, taken) = channel();
        std::thread::scope(|scope| {
            for queue in queues {
                let (sender, give_back) = (sender.clone(), give_back.clone());
                scope.spawn(move || {
                    for mut readout in queue {
                        tautline_video::Rows::read(&mut readout, usize::MAX);
                        // 100 pictures per second would take 12 times as long.
                        clock.sleep_until(clock.now() + Duration::from_millis(40));
                        sender.send((readout.picture, readout.strip)).unwrap();
                        if let Some(rows) = readout.into_rows() {
                            let _ = give_back.try_send(rows);
                        }
                    }
                });
            }
            drop(sender);
            let ticks = Ticks::default();
            run(Box::new(Grey { left: 101 }), outlet, &counters, &ticks, clock, &stop).unwrap();
        });
        let mut strips = [0; 101];
        taken.iter().for_each(|(picture, _)| strips[picture as usize] += 1);
        assert!(strips.iter().all(|count| [0, 6].contains(count)), "{strips:?}");
        let whole = strips.iter().filter(|count| **count == 6).count() as u64;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        assert_eq!(count(&counters.strips_dropped), 0);
        let skipped = count(&counters.pictures_unencoded) + count(&counters.pictures_skipped);
        assert_eq!(whole + skipped, 100);
        assert!(whole >= 2 && count(&counters.pictures_unencoded) > 50, "{strips:?}");
    }

    /// Returns the indices of the pictures taken out of `count`. The source needs `read` ms per
    /// picture and claims an interval of 33 ms; a taken picture costs `cost` ms more.
    fn taken(count: usize, read: u64, cost: u64) -> Vec<usize> {
        let [interval, read, cost] = [33, read, cost].map(Duration::from_millis);
        let mut now = Instant::ZERO;
        let mut cadence = Cadence::new(now);
        let mut step = |_: &usize| {
            now = (now + read).max(cadence.due);
            let is_taken = cadence.takes(interval, now);
            now += if is_taken { cost } else { Duration::ZERO };
            cadence.due += interval;
            is_taken
        };
        (0..count).filter(|at| step(at)).collect()
    }

    #[test]
    fn a_slow_source_loses_few_pictures() {
        assert_eq!(taken(100, 5, 20).len(), 100);
        for read in [40, 60, 150, 400] {
            let seen = taken(100, read, 0).len();
            assert!(seen >= 80, "{seen} of 100, each read in {read} ms");
        }
    }

    #[test]
    fn pictures_are_skipped_where_that_catches_up() {
        let seen = taken(300, 2, 60);
        assert!((140..=160).contains(&seen.len()), "{} of 300", seen.len());
        assert!(seen.windows(2).all(|pair| pair[1] - pair[0] <= 2));
    }
}
