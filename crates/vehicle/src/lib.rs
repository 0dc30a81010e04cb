//! The vehicle's side: camera, encoders and uplink; a machine behind its failsafe.
#![forbid(unsafe_code)]

pub mod actuators;
pub mod camera;
mod config;
mod convert;
pub mod encode;
pub mod probe;
pub mod readout;
mod rendezvous;
pub mod telemetry;
pub mod uplink;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use tautline_guard::Machine;
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::driver::{Driver, Handle};
use tautline_net::metrics;
use tautline_net::stats::Latest;
use tautline_transport::crypto::Identity;
use tautline_video::Sensor;

pub use config::{AfterPause, Config, EncoderChoice, LossRecovery};

use crate::actuators::Actuators;
use crate::camera::Outlet;
use crate::encode::{EncoderControl, Meter, Turn};
use crate::probe::Probe;
use crate::rendezvous::Rendezvous;
use crate::telemetry::{Recent, Reporter};
use crate::uplink::Uplink;

/// Runs a vehicle until `stop` resolves: moves `machine`, and shows what `sensor` sees. What it sees
/// of its links stands in `latest`.
///
/// # Errors
/// When a part cannot be started, the camera fails, or the switchboard refuses this vehicle; one
/// line that says which and what to do.
pub async fn run(
    config: Config,
    identity: Identity,
    machine: Box<dyn Machine + Send>,
    sensor: Box<dyn Sensor>,
    latest: Latest,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let clock = Clock::start();
    let actuators = Arc::new(Actuators::new(config.failsafe));
    let reporter = Reporter {
        actuators: actuators.clone(),
        control: Arc::new(EncoderControl::with(config.after_pause)),
        meter: Arc::new(Meter::default()),
        camera: Arc::new(camera::Counters::default()),
        uplink: Arc::new(uplink::Counters::default()),
        latest,
        probe: Arc::new(Probe::new(
            config.transport.datagram_bytes_max,
            config.failsafe.command_timeout,
        )),
    };
    let uplink = Uplink::new(&reporter, clock);
    let driver = Driver::spawn(&config.links, clock, move |output| uplink.handle(output))?;
    let mut threads = Threads::default();
    threads.spawn("actuators", {
        let ending = threads.ending.clone();
        move || actuators.run(machine, clock, &ending)
    })?;
    let mut eyes = start_eyes(&mut threads, sensor, &reporter, &driver, &config, clock)?;
    let mut rendezvous = Rendezvous::start(&config, &identity, &driver)?;
    let ended = tokio::select! {
        () = stop => Ok(()),
        failed = &mut eyes => failed.unwrap_or_else(|_| Ok(())),
        failed = serve_metrics(&config, &reporter, clock) => failed,
        never = report(reporter.clone(), driver.handle(), clock) => never,
        refused = async {
            loop {
                let now = || clock.now();
                rendezvous.step(&config, &identity, &driver, &reporter.control, now).await?;
            }
        } => refused,
    };
    rendezvous.close().await;
    threads.end();
    ended
}

/// Starts the camera and its encoders; gives what the camera fails with, if it does.
fn start_eyes(
    threads: &mut Threads,
    sensor: Box<dyn Sensor>,
    reporter: &Reporter,
    driver: &Driver,
    config: &Config,
    clock: Clock,
) -> anyhow::Result<tokio::sync::oneshot::Receiver<anyhow::Result<()>>> {
    let (layout, rate) = (sensor.layout(), sensor.pictures_per_second());
    let (outlet, queues, give_back) = Outlet::new(ENCODER_COUNT, reporter.control.clone());
    let outlet = match config.encoder {
        EncoderChoice::Own => outlet,
        EncoderChoice::Openh264 => outlet.by_strips(),
    };
    let turns = Turn::all(config.backend(), &layout, ENCODER_COUNT, rate)?;
    for (turn, queue) in turns.into_iter().zip(queues) {
        let (give_back, handle) = (give_back.clone(), driver.handle());
        let (control, meter) = (reporter.control.clone(), reporter.meter.clone());
        let deadline = config.transport.media_deadline;
        threads.spawn("encoder", move || {
            turn.run(&queue, &give_back, &control, &meter, clock, |slice, _timing| {
                handle.send(channels::VIDEO, slice.into_unit(), deadline)
            });
        })?;
    }
    let (failed, failure) = tokio::sync::oneshot::channel();
    let counters = reporter.camera.clone();
    let ending = threads.ending.clone();
    threads.spawn("camera", move || {
        let ended = camera::run(sensor, outlet, &counters, clock, &ending);
        // Nobody listens any more when the vehicle ends.
        let _ = failed.send(ended);
    })?;
    Ok(failure)
}

/// Sends telemetry, newest wins, for ever; now and then a snapshot; and follows a probe.
async fn report(reporter: Reporter, handle: Handle, clock: Clock) -> anyhow::Result<()> {
    let mut recent = Recent::default();
    let mut due = tokio::time::interval(TELEMETRY_INTERVAL);
    // Without a session there is nobody to tell; the loop counts what it cannot take.
    let tell = |channel, unit: Vec<u8>| handle.send(channel, unit, TELEMETRY_DEADLINE);
    for turn in 0_u64.. {
        due.tick().await;
        let now = clock.now();
        recent.advance(&reporter, now);
        reporter.latest.set_process(reporter.process(&recent, now), now);
        tell(channels::TELEMETRY, reporter.telemetry(&recent, now).encode());
        if turn % SNAPSHOT_TURNS == 0 {
            for part in reporter.latest.snapshot().parts() {
                tell(channels::SNAPSHOT, part.encode());
            }
        }
        if let Some(turn) = reporter.probe.turn(reporter.health(now), now) {
            handle.set_datagram_bytes_max(turn.datagram_bytes_max);
            if let Some(answer) = turn.answer {
                tell(channels::PROBE_ANSWER, answer.encode());
            }
        }
    }
    Ok(())
}

async fn serve_metrics(config: &Config, reporter: &Reporter, clock: Clock) -> anyhow::Result<()> {
    let Some(address) = config.metrics else { return std::future::pending().await };
    let who = format!("vehicle {}", config.name);
    let latest = reporter.latest.clone();
    let reporter = reporter.clone();
    let page = move || reporter.metrics(clock.now());
    metrics::serve(address, metrics::routes(&who, page, move || latest.to_string())).await
}

/// Threads that end together.
#[derive(Default)]
struct Threads {
    ending: Arc<AtomicBool>,
    running: Vec<JoinHandle<()>>,
}

impl Threads {
    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .context("the system gives no thread")?;
        self.running.push(thread);
        Ok(())
    }

    fn end(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        for thread in self.running.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}

/// Two encoders in turn ([LTE] IV.C).
const ENCODER_COUNT: usize = 2;
const TELEMETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Two snapshots a second.
const SNAPSHOT_TURNS: u64 = 10;
const TELEMETRY_DEADLINE: Duration = Duration::from_millis(250);
