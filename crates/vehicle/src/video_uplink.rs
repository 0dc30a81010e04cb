//! Camera and encoders: threads that start and end together and are restarted when one fails.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{anyhow, ensure};
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::driver::Handle;
use tautline_video::Sensor;

use crate::camera::{self, Outlet};
use crate::config::{Config, EncoderChoice};
use crate::encode::{ENCODER_COUNT, Turn};
use crate::telemetry::Reporter;
use crate::threads::{FirstFailure, Threads};

/// Function that opens the source of pictures: at the start, and again after each failure.
pub type OpenSensor = Box<dyn Fn() -> anyhow::Result<Box<dyn Sensor>> + Send + Sync>;

/// Dependencies of the camera and the encoders.
pub(crate) struct VideoUplink<'a> {
    pub(crate) config: &'a Config,
    pub(crate) reporter: &'a Reporter,
    pub(crate) handle: Handle,
    pub(crate) clock: Clock,
}

impl VideoUplink<'_> {
    /// Runs camera and encoders on `sensor` until a thread fails or all have ended; returns the
    /// cause, also if they cannot be started.
    pub(crate) async fn see(&self, sensor: Box<dyn Sensor>) -> anyhow::Error {
        let mut threads = Threads::default();
        let first = FirstFailure::new();
        if let Err(error) = self.start(&mut threads, sensor, &first) {
            return error;
        }
        let why = first.wait().await;
        // Waiting for threads blocks; a hung thread is abandoned.
        let ended = tokio::task::spawn_blocking(move || threads.end());
        let _ = tokio::time::timeout(END_MAX, ended).await;
        why.unwrap_or_else(|| anyhow!("camera and encoders have ended"))
    }

    fn start(
        &self,
        threads: &mut Threads,
        sensor: Box<dyn Sensor>,
        first: &FirstFailure,
    ) -> anyhow::Result<()> {
        let Self { config, reporter, clock, .. } = self;
        let clock = *clock;
        let (layout, rate) = (sensor.layout(), sensor.pictures_per_second());
        let (outlet, queues, give_back) = Outlet::new(ENCODER_COUNT, reporter.control.clone());
        let outlet = match config.encoder {
            EncoderChoice::Own => outlet,
            EncoderChoice::Openh264 => outlet.by_strips(),
        };
        // Restarted encoders have no earlier pictures to refer to.
        reporter.control.request_keyframes(u64::MAX);
        let turns = Turn::all(config.backend(), &layout, ENCODER_COUNT, rate)?;
        for (turn, queue) in turns.into_iter().zip(queues) {
            let (give_back, handle) = (give_back.clone(), self.handle.clone());
            let (control, meter) = (reporter.control.clone(), reporter.meter.clone());
            let (guard_client, set) =
                (reporter.guard_client.clone(), config.transport.media_deadline);
            let ticks = guard_client.ticks();
            threads.spawn_fallible("encoder", first, move || {
                turn.run(&queue, &give_back, &control, &meter, clock, |slice, _timing| {
                    let (tick, deadline) = (slice.tick, guard_client.media_deadline(set));
                    let is_sent = handle.send(channels::VIDEO, slice.into_unit(), deadline);
                    if is_sent {
                        ticks.note_sent(tick);
                    }
                    is_sent
                });
                Ok(())
            })?;
        }
        let (counters, ticks) = (reporter.camera.clone(), reporter.guard_client.ticks());
        let ending = threads.ending();
        threads.spawn_fallible("camera", first, move || {
            camera::run(sensor, outlet, &counters, &ticks, clock, &ending)?;
            ensure!(ending.load(Ordering::Relaxed), "the picture source has ended");
            Ok(())
        })
    }
}

/// Opens the source on a blocking thread, since opening may take long; small pictures are enlarged.
pub(crate) async fn open(open: &std::sync::Arc<OpenSensor>) -> anyhow::Result<Box<dyn Sensor>> {
    let open = open.clone();
    let opened = tokio::task::spawn_blocking(move || camera::fitted(open()?));
    match opened.await {
        Ok(opened) => opened,
        Err(error) => Err(anyhow!("a bug while opening the picture source: {error}")),
    }
}

/// Time for which the end of the threads is awaited before the restart: a picture's time plus a
/// margin.
const END_MAX: Duration = Duration::from_millis(500);
