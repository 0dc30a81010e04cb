//! The camera: rows handed on as soon as they are read.

pub mod clip;
#[cfg(feature = "v4l2")]
pub mod v4l2;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use anyhow::ensure;
use tautline_net::clock::Clock;
use tautline_units::Instant;
use tautline_video::{Layout, Picture, Sensor, stamp};

use crate::config::Config;
use crate::encode::EncoderControl;
use crate::readout::{BAND_ROWS, Readout, Source};

/// Opens the source that the configuration names, if it names one.
///
/// # Errors
/// One line that says what is wrong with the source.
pub fn open(config: &Config) -> anyhow::Result<Option<Box<dyn Sensor>>> {
    #[cfg(feature = "v4l2")]
    if let Some(device) = &config.camera {
        let sensor = v4l2::DeviceSensor::open(device, config.pictures_per_second)?;
        return Ok(Some(Box::new(sensor)));
    }
    Ok(match &config.clip {
        Some(clip) => Some(Box::new(clip::ClipSensor::open(clip)?)),
        None => None,
    })
}

/// What the camera has done so far.
#[derive(Debug, Default)]
pub struct Counters {
    /// Pictures begun.
    pub pictures: AtomicU64,
    /// Pictures of which no strip was read, because the last one was still being read.
    pub pictures_skipped: AtomicU64,
    /// Pictures of which no strip was read, by frame decimation: the operator's screen cannot keep up
    /// with so many.
    pub pictures_decimated: AtomicU64,
    /// Strips that no encoder had time for.
    pub strips_dropped: AtomicU64,
    /// Strips not encoded because the transport granted no rate.
    pub strips_paused: AtomicU64,
}

/// Way of readouts to the encoders: one bounded queue an encoder, strips dealt out in turn, and the buffers
/// that come back.
#[derive(Debug)]
pub struct Outlet {
    encoders: Vec<SyncSender<Readout>>,
    empties: Receiver<Picture>,
    free: Vec<Picture>,
    control: Arc<EncoderControl>,
    /// Whether encoders get rows as they are read, or strips whole.
    by_rows: bool,
}

impl Outlet {
    /// Makes an outlet to `encoder_count` encoders; gives also each one's queue and the way back for
    /// buffers. Nothing is handed on that `control` rules out.
    pub fn new(
        encoder_count: usize,
        control: Arc<EncoderControl>,
    ) -> (Self, Vec<Receiver<Readout>>, SyncSender<Picture>) {
        let (encoders, queues) = (0..encoder_count).map(|_| sync_channel(QUEUE_MAX)).unzip();
        let (give_back, empties) = sync_channel(QUEUE_MAX * encoder_count * 2);
        (Self { encoders, empties, free: Vec::new(), control, by_rows: true }, queues, give_back)
    }

    /// Hands strips on whole: for encoders that cannot begin with their first rows.
    pub fn by_strips(mut self) -> Self {
        self.by_rows = false;
        self
    }

    fn take_buffer(&mut self, height: usize, width: usize) -> Picture {
        while let Ok(buffer) = self.empties.try_recv() {
            self.free.push(buffer);
        }
        match self.free.iter().position(|buffer| buffer.height() == height) {
            Some(index) => self.free.swap_remove(index),
            None => Picture::new(width, height).expect("the layout's strips are valid pictures"),
        }
    }
}

/// Reads `sensor` strip by strip at its own rate, by `clock`, until `stop` is set.
///
/// A strip takes its share of the picture's time to read, as from a rolling shutter. Its encoder has
/// it from the first row on, and the rows as they are read; of a sensor that gives whole pictures,
/// all at once. A camera that cannot keep up skips whole pictures. Of the others, frame decimation
/// leaves one in every picture interval.
/// Each picture is given the guard's `tick` that is the newest when it is begun.
///
/// # Errors
/// When the pictures are narrower than the stamp, or the sensor fails.
pub fn run(
    mut sensor: Box<dyn Sensor>,
    mut outlet: Outlet,
    counters: &Counters,
    tick: &AtomicU32,
    clock: Clock,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let layout = sensor.layout();
    ensure!(
        layout.width() >= stamp::WIDTH,
        "pictures {} pixels wide have no room for the stamp: {} are the least",
        layout.width(),
        stamp::WIDTH
    );
    let period = Duration::from_secs_f64(1.0 / sensor.pictures_per_second());
    let gives_rows = sensor.gives_rows();
    let slot = if gives_rows { period / layout.strip_count() as u32 } else { Duration::ZERO };
    let mut due = clock.now();
    // A camera that is started again counts on: the other end takes no number twice.
    let mut picture = counters.pictures.load(Ordering::Relaxed) as u32;
    while !stop.load(Ordering::Relaxed) && sensor.next_picture()? {
        counters.pictures.fetch_add(1, Ordering::Relaxed);
        if !gives_rows {
            due = clock.now();
        }
        clock.sleep_until(due);
        if !picture.is_multiple_of(outlet.control.picture_interval()) {
            counters.pictures_decimated.fetch_add(1, Ordering::Relaxed);
        } else if clock.now().since(due) < period {
            let tick = tick.load(Ordering::Relaxed);
            for strip in 0..layout.strip_count() {
                let begun = due + slot * strip as u32;
                clock.sleep_until(begun);
                let place = (picture, strip);
                if let Some(source) = begin(&outlet, &layout, place, (begun, tick), counters, clock)
                {
                    let height = layout.strip_rows(strip).len();
                    let mut rows = outlet.take_buffer(height, layout.width());
                    sensor.read(strip, &mut rows);
                    if strip == 0 {
                        let unix_millis = clock.unix_nanos(begun) / 1_000_000;
                        stamp::draw(&mut rows, unix_millis as u32).expect("the width was checked");
                    }
                    source.hand_over(rows);
                    let band = if outlet.by_rows { BAND_ROWS } else { height };
                    for end in (band..=height).step_by(band) {
                        clock.sleep_until(begun + slot * end as u32 / height as u32);
                        source.tell_read(end, clock.now());
                    }
                }
            }
        } else {
            counters.pictures_skipped.fetch_add(1, Ordering::Relaxed);
        }
        picture = picture.wrapping_add(1);
        due += period;
        if clock.now().since(due) > CATCH_UP_MAX {
            due = clock.now();
        }
    }
    Ok(())
}

/// Offers a strip that is about to be read to its encoder; gives the way for its rows if it takes it.
fn begin(
    outlet: &Outlet,
    layout: &Layout,
    (picture, strip): (u32, usize),
    capture: (Instant, u32),
    counters: &Counters,
    clock: Clock,
) -> Option<Source> {
    if outlet.control.is_paused() {
        counters.strips_paused.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    let size = [layout.width(), layout.strip_rows(strip).len()];
    let (readout, source) = Readout::new((picture, strip), capture, size, clock);
    let encoder = &outlet.encoders[strip % outlet.encoders.len()];
    match encoder.try_send(readout) {
        Ok(()) => Some(source),
        Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
            counters.strips_dropped.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

/// Strips that may wait for one encoder: half a picture.
const QUEUE_MAX: usize = 3;
/// A camera further behind than this starts anew rather than hurry.
const CATCH_UP_MAX: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use tautline_message::VideoFeedback;
    use tautline_units::Bitrate;

    use super::*;

    /// Grey pictures, a hundred a second.
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
        let tick = AtomicU32::new(41);
        run(Box::new(Grey { left: 61 }), outlet, &counters, &tick, clock, &stop).unwrap();
        encoder.join().unwrap();
        assert_eq!(counters.pictures.load(Ordering::Relaxed), 60);
        assert_eq!(counters.pictures_decimated.load(Ordering::Relaxed), 40);
        let taken: Vec<u32> = taken.iter().collect();
        assert!(!taken.is_empty());
        assert!(taken.iter().all(|picture| picture.is_multiple_of(3)), "{taken:?}");
    }
}
