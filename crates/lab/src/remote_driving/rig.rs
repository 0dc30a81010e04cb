//! The vehicle's camera and encoders, run in real time and watched.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tautline_net::clock::{Clock, thread_time};
use tautline_units::{Bitrate, Instant};
use tautline_vehicle::camera::{self, Counters, Outlet, Sensor};
use tautline_vehicle::encode::{Meter, Turn, Wishes};
use tautline_video::openh264::StripDecoder;
use tautline_video::{Backend, Decoder, Layout, Picture};

use crate::experiment::Run;
use crate::footage::{Footage, Size};

/// Is one slice on its way out of the vehicle, by the rig's clock.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    pub(super) picture: u32,
    pub(super) strip: usize,
    /// Which of the encoders took it.
    pub(super) worker: usize,
    /// The first of its rows begins to be read.
    pub(super) captured_at: Instant,
    /// The last has been read.
    pub(super) read_at: Instant,
    pub(super) begun_at: Instant,
    pub(super) encoded_at: Instant,
    pub(super) bytes: Vec<u8>,
}

impl Passage {
    /// From the first row to the whole slice.
    pub(super) fn latency(&self) -> Duration {
        self.encoded_at.since(self.captured_at)
    }
}

/// Returns the pictures that a rig shows: the simulated camera's, of the paper's size unless it must
/// be quick.
pub(super) fn footage(run: &Run<'_>) -> Result<Footage> {
    let size = run.choose(Size::SMALL, Size::HD);
    Footage::simulated(size, RATE, run.choose(12, 60), run.seed)
}

/// Runs camera and encoders for `pictures` pictures; gives every slice but those of the first
/// pictures, which are IDRs, in the order of reading.
///
/// # Errors
/// When hardly a slice comes out: then nothing can be said.
pub(super) fn watch(
    footage: &Footage,
    backend: Backend,
    workers: usize,
    bitrate: Bitrate,
    pictures: usize,
) -> Result<Vec<Passage>> {
    let first = footage.pictures.first().context("no pictures")?;
    let layout = Layout::of(first.width(), first.height())?;
    let clock = Clock::start();
    let wishes = Wishes::new();
    wishes.set_budget(bitrate, clock.now());
    let (outlet, queues, give_back) = Outlet::new(workers, wishes.paused());
    let (meter, counters, stop) = (Meter::default(), Counters::default(), AtomicBool::new(false));
    let sensor = Box::new(Replay {
        pictures: footage.pictures.clone(),
        rate: footage.rate,
        next: 0,
        left: pictures,
    });
    let turns = Turn::all(backend, &layout, workers, f64::from(footage.rate))?;
    let (sender, passages) = channel();
    std::thread::scope(|scope| {
        for (worker, (turn, queue)) in turns.into_iter().zip(queues).enumerate() {
            let (sender, give_back, wishes, meter) =
                (sender.clone(), give_back.clone(), &wishes, &meter);
            scope.spawn(move || {
                turn.run(&queue, &give_back, wishes, meter, clock, |slice, timing| {
                    let passage = Passage {
                        picture: slice.picture,
                        strip: usize::from(slice.strip),
                        worker,
                        captured_at: slice.captured_at,
                        read_at: timing.read_at,
                        begun_at: timing.begun_at,
                        encoded_at: slice.encoded_at,
                        bytes: slice.bytes,
                    };
                    sender.send(passage).is_ok()
                });
            });
        }
        drop(sender);
        camera::run(sensor, &layout, outlet, &counters, clock, &stop)
    })?;
    let mut passages: Vec<Passage> = passages.into_iter().collect();
    passages.sort_by_key(|passage| (passage.picture, passage.strip));
    let count = passages.len();
    ensure!(!settled(&passages).is_empty(), "this machine is too busy: {count} slices came out");
    Ok(passages)
}

/// Decodes what came out, strip by strip; gives each slice's share of a processor's time.
pub(super) fn decode(passages: &[Passage]) -> Result<Vec<Duration>> {
    let mut decoders =
        (0..Layout::STRIP_COUNT).map(|_| StripDecoder::new()).collect::<Result<Vec<_>, _>>()?;
    let decode = |passage: &Passage| {
        let begun = thread_time();
        decoders[passage.strip].decode(&passage.bytes)?.context("a slice gave no rows")?;
        Ok(thread_time() - begun)
    };
    passages.iter().map(decode).collect()
}

/// Returns the passages after the pictures that are IDRs: how a drive is, not how it begins.
pub(super) fn settled(passages: &[Passage]) -> &[Passage] {
    let from = passages.partition_point(|passage| passage.picture < SETTLING_PICTURES);
    &passages[from..]
}

/// Shows pictures made before: what a camera's drawing would cost is no part of what is measured.
struct Replay {
    pictures: Vec<Picture>,
    rate: u32,
    next: usize,
    left: usize,
}

impl Sensor for Replay {
    fn pictures_per_second(&self) -> f64 {
        f64::from(self.rate)
    }

    fn next_picture(&mut self) -> Result<bool> {
        self.next = (self.next + 1) % self.pictures.len();
        let more = self.left > 0;
        self.left = self.left.saturating_sub(1);
        Ok(more)
    }

    fn read(&mut self, layout: &Layout, strip: usize, rows: &mut Picture) {
        let source = self.pictures[self.next].rows(layout.strip_rows(strip));
        *rows = source.expect("the layout is of these pictures");
    }
}

/// The paper's pictures a second.
pub(super) const RATE: u32 = 60;
/// An IDR may come twice while encoders warm up.
const SETTLING_PICTURES: u32 = 6;
