//! The vehicle's camera and encoders, run in real time and measured.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use tautline_net::clock::Clock;
use tautline_units::{Bitrate, Instant};
use tautline_vehicle::camera::{self, Counters, Outlet};
use tautline_vehicle::encode::{EncoderControl, Meter, Timing, Turn};
use tautline_vehicle::ticks::Ticks;
use tautline_video::avc::LossRecovery;
use tautline_video::openh264::StripDecoder;
use tautline_video::{AccessUnit, Backend, Decoder, Layout, Picture, Sensor, Slice};

use crate::experiment::Run;
use crate::pictures::footage::{Footage, Size};

/// One slice on its way out of the vehicle, on the rig's clock.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    pub(super) picture: u32,
    pub(super) strip: usize,
    /// Index of the encoder that codes the slice.
    pub(super) worker: usize,
    /// Start of the slice's readout.
    pub(super) captured_at: Instant,
    /// End of the slice's readout.
    pub(super) read_at: Instant,
    pub(super) begun_at: Instant,
    pub(super) encoded_at: Instant,
    /// Time at which the slice's rows are decoded; `None` without a decoder.
    pub(super) decoded_at: Option<Instant>,
    pub(super) bytes: AccessUnit,
}

impl Passage {
    fn of(slice: Slice, timing: Timing, worker: usize) -> Self {
        Self {
            picture: slice.picture,
            strip: usize::from(slice.strip),
            worker,
            captured_at: slice.captured_at,
            read_at: timing.read_at,
            begun_at: timing.begun_at,
            encoded_at: slice.encoded_at,
            decoded_at: None,
            bytes: slice.bytes,
        }
    }

    /// Returns the time from the start of the slice's readout to the end of its coding.
    pub(super) fn latency(&self) -> Duration {
        self.encoded_at.since(self.captured_at)
    }
}

/// Returns the rig's footage: the simulated camera's pictures with camera noise, in the paper's
/// size unless the run is quick.
pub(super) fn footage(run: &Run<'_>) -> Result<Footage> {
    let size = run.choose(Size::SMALL, Size::HD);
    Footage::simulated(size, RATE, run.choose(12, 60), run.seed)?.with_noise(run.seed)
}

/// Parameters of a rig: a vehicle's camera and encoders, in real time, without a network.
#[derive(Clone, Copy)]
pub(super) struct Rig {
    pub(super) backend: Backend,
    /// Number of encoders, which take strips in turn.
    pub(super) workers: usize,
    pub(super) strips: usize,
    pub(super) bitrate: Bitrate,
    pub(super) pictures: usize,
    pub(super) behind: Behind,
}

/// The decoder that decodes each slice on arrival, in its own thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    Nothing,
    Openh264,
    #[cfg(feature = "libavcodec")]
    Libavcodec,
}

impl Behind {
    /// Returns the decoders of this build.
    pub(super) fn all() -> Vec<Self> {
        vec![
            Self::Openh264,
            #[cfg(feature = "libavcodec")]
            Self::Libavcodec,
        ]
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Openh264 => "openh264",
            #[cfg(feature = "libavcodec")]
            Self::Libavcodec => "libavcodec",
        }
    }

    fn open(self) -> Result<Option<Box<dyn Decoder>>> {
        Ok(match self {
            Self::Nothing => None,
            Self::Openh264 => Some(Box::new(StripDecoder::new()?)),
            #[cfg(feature = "libavcodec")]
            Self::Libavcodec => Some(Box::new(tautline_video::libavcodec::StripDecoder::new()?)),
        })
    }
}

/// Slices that a rig coded, and the number of those it missed.
pub(super) struct Watched {
    /// All slices, in readout order.
    pub(super) passages: Vec<Passage>,
    /// Number of slices that were never coded: an encoder was late, or the camera was, which loses
    /// a complete picture.
    pub(super) missing: usize,
}

impl Rig {
    /// Runs camera and encoders in real time over `footage`, forwards and backwards.
    ///
    /// # Errors
    /// If hardly any slice is produced: the result would be meaningless.
    pub(super) fn watch(self, footage: &Footage) -> Result<Watched> {
        let Self { backend, workers, strips, bitrate, pictures, behind } = self;
        let first = footage.pictures.first().context("no pictures")?;
        let layout = Layout::with_strips(first.width(), first.height(), strips)?;
        let clock = Clock::start();
        let control = Arc::new(EncoderControl::new());
        control.set_budget(bitrate, clock.now());
        let (outlet, queues, give_back) = Outlet::new(workers, control.clone());
        let (meter, counters, stop) =
            (Meter::default(), Counters::default(), AtomicBool::new(false));
        let sensor = Box::new(Replay::of(footage, layout, pictures));
        let turns = Turn::all(backend, &layout, workers, f64::from(footage.rate))?;
        let decoders = (0..strips).map(|_| behind.open()).collect::<Result<Vec<_>>>()?;
        let (sender, receiver) = channel();
        let mut passages = std::thread::scope(|scope| {
            for (worker, (turn, queue)) in turns.into_iter().zip(queues).enumerate() {
                let (sender, give_back, control, meter) =
                    (sender.clone(), give_back.clone(), &control, &meter);
                scope.spawn(move || {
                    turn.run(&queue, &give_back, control, meter, clock, |slice, timing| {
                        sender.send(Passage::of(slice, timing, worker)).is_ok()
                    });
                });
            }
            drop(sender);
            let show = scope.spawn(move || collect(&receiver, decoders, clock));
            camera::run(sensor, outlet, &counters, &Ticks::default(), clock, &stop)?;
            show.join().map_err(|_| anyhow!("the decoder's thread broke"))?
        })?;
        passages.sort_by_key(|passage| (passage.picture, passage.strip));
        let count = passages.len();
        ensure!(
            !settled(&passages).is_empty(),
            "this machine is too busy: {count} slices came out"
        );
        Ok(Watched { missing: pictures * strips - count, passages })
    }
}

/// Collects slices until no more can come, and returns them. Those of a strip with a decoder are
/// decoded on arrival, and get the time of that.
fn collect(
    receiver: &Receiver<Passage>,
    mut decoders: Vec<Option<Box<dyn Decoder>>>,
    clock: Clock,
) -> Result<Vec<Passage>> {
    let mut passages = Vec::new();
    for mut passage in receiver {
        if let Some(decoder) = &mut decoders[passage.strip] {
            decoder.decode(&passage.bytes)?.context("a slice gave no rows")?;
            passage.decoded_at = Some(clock.now());
        }
        passages.push(passage);
    }
    Ok(passages)
}

/// Returns the passages after the first [`SETTLING_PICTURES`] pictures: the steady state.
pub(super) fn settled(passages: &[Passage]) -> &[Passage] {
    let from = passages.partition_point(|passage| passage.picture < SETTLING_PICTURES);
    &passages[from..]
}

/// A sensor with prerendered pictures: rendering is not part of the measurement.
struct Replay {
    pictures: Vec<Picture>,
    layout: Layout,
    rate: u32,
    /// Number of pictures begun.
    begun: usize,
    /// Number of pictures until the sensor ends.
    left: usize,
}

impl Replay {
    fn of(footage: &Footage, layout: Layout, left: usize) -> Self {
        Self { pictures: footage.pictures.clone(), layout, rate: footage.rate, begun: 0, left }
    }

    /// Returns the current picture: the clip runs forwards and backwards, without a jump.
    fn showing(&self) -> &Picture {
        let last = self.pictures.len() - 1;
        let turn = self.begun % (2 * last).max(1);
        &self.pictures[turn.min(2 * last - turn)]
    }
}

impl Sensor for Replay {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn pictures_per_second(&self) -> f64 {
        f64::from(self.rate)
    }

    fn next_picture(&mut self) -> Result<bool, tautline_video::Error> {
        self.begun += 1;
        let more = self.left > 0;
        self.left = self.left.saturating_sub(1);
        Ok(more)
    }

    fn read(&mut self, strip: usize, rows: &mut Picture) {
        let source = self.showing().rows(self.layout.strip_rows(strip));
        *rows = source.expect("the layout is of these pictures");
    }
}

/// Picture rate of the paper.
pub(super) const RATE: u32 = 60;
/// Backend under test by default: our own.
pub(super) const BACKEND: Backend = Backend::Avc(LossRecovery::Idr);
/// Pictures to skip: IDRs may repeat while encoders warm up.
const SETTLING_PICTURES: u32 = 6;

/// Reason for the bound on real-time stages.
pub(super) const SLOWER: &str = "a bound, no spread; ten times it in a quick run, whose build is not \
                                 optimized and whose machine is busy with other tests";
