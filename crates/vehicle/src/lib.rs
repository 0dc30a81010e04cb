//! The vehicle's side: camera, encoders and uplink; what is proposed to the guard, which moves the machine.
#![forbid(unsafe_code)]

mod answers;
pub mod camera;
mod config;
mod convert;
pub mod encode;
mod epochs;
mod eyes;
mod facts;
mod geometry;
pub mod guarded;
pub mod load;
pub mod orders;
pub mod parts;
pub mod probe;
pub mod readout;
mod rendezvous;
pub mod sight;
mod steering;
pub mod telemetry;
mod threads;
pub mod ticks;
pub mod topics;
pub mod uplink;
pub mod waiting;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tautline_guard::config::Latency;
use tautline_net::Tls;
use tautline_net::absence;
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::driver::{Driver, Handle};
use tautline_net::metrics;
use tautline_net::stats::Latest;
use tautline_transport::crypto::Identity;
use tautline_units::Instant;
use tokio::time::{MissedTickBehavior, sleep};

pub use config::{AfterPause, Config, EncoderChoice, LossRecovery, Reaction, SteeringCheck};
pub use eyes::OpenSensor;
pub use geometry::CameraGeometry;
pub use guarded::Follow;

use crate::encode::{EncoderControl, Meter};
use crate::epochs::Epochs;
use crate::eyes::Eyes;
use crate::facts::Facts;
use crate::guarded::{Guarded, Vitals};
use crate::orders::Orders;
use crate::parts::{PAUSE_MAX, Parts, SOURCE_PAUSE_MAX, keep};
use crate::probe::Probe;
use crate::rendezvous::Rendezvous;
use crate::steering::Steering;
use crate::telemetry::{Recent, Reporter};
use crate::threads::Threads;
use crate::topics::Topics;
use crate::uplink::Uplink;
use crate::waiting::{Awaited, Waiting};

/// Runs a vehicle: proposes to its guard what the operator asks for, and shows what the sensor sees;
/// `follow` gets what the machine says. What it sees of its links stands in `latest`.
///
/// When `stop` resolves the machine is stopped, and the vehicle ends once it is held, or has said nothing
/// for thirty seconds. Nothing else ends it, however often `stop` resolves: a part that fails is started again.
///
/// # Errors
/// When settings are wrong in themselves; one line that says which and what to do. What is not there yet (a link, a camera,
/// a folder, the guard, the switchboard) is waited for.
pub async fn run(
    config: Config,
    identity: Identity,
    follow: Follow,
    open_sensor: OpenSensor,
    latest: Latest,
    stop: impl AsyncFn(),
) -> anyhow::Result<()> {
    let clock = Clock::start();
    let now = || clock.now();
    let epochs = Epochs::open(config.epoch.clone())?;
    let supervisors = config.supervisor_keys()?;
    let orders = Orders::open(identity.public(), supervisors, config.orders.clone())?;
    let open_sensor = Arc::new(open_sensor);
    let mut opened = match eyes::open(&open_sensor).await {
        // A camera may be enumerated after this process has started, and is waited for as after its loss.
        Err(error) if config.camera.is_none() => return Err(error),
        opened => Some(opened),
    };
    let steering = Steering::open(config.steering_check, config.steering_checked.clone());
    let guarded = Arc::new(Guarded::new()?.with_steering(steering));
    let reporter = Reporter {
        guarded: guarded.clone(),
        control: Arc::new(EncoderControl::with(config.after_pause).governed()),
        meter: Arc::new(Meter::default()),
        camera: Arc::new(camera::Counters::default()),
        uplink: Arc::new(uplink::Counters::default()),
        topics: Arc::default(),
        latest,
        probe: Arc::new(Probe::new(
            config.transport.datagram_bytes_max,
            Latency::default().command_timeout,
        )),
        parts: Arc::new(Parts::default()),
        met: Arc::default(),
        orders: Arc::default(),
    };
    let uplink = Uplink::new(&reporter, clock);
    let tls = config.tls.then(|| Tls { identity: identity.clone(), listen: None });
    let driver =
        Driver::spawn_with(&config.links, tls, clock, move |output| uplink.handle(output))?;
    let mut threads = Threads::default();
    let vitals =
        Vitals::new(reporter.camera.clone(), reporter.meter.clone(), reporter.control.clone())
            .reacting(config.uniform_picture, config.picture_motion);
    threads.spawn("proposals", {
        let (guarded, ending) = (guarded.clone(), threads.ending());
        let address = config.guard.clone();
        move || guarded.run(&address, vitals, follow, clock, &ending)
    })?;
    let mut rendezvous = Rendezvous::start(&config, &identity, &driver, (epochs, orders), clock)?;
    let (parts, handle) = (reporter.parts.clone(), driver.handle());
    let eyes = Eyes { config: &config, reporter: &reporter, handle: driver.handle(), clock };
    let see = keep("seeing", &parts.eyes, SOURCE_PAUSE_MAX, now, async || {
        let sensor = match opened.take() {
            Some(opened) => opened,
            None => eyes::open(&open_sensor).await,
        };
        let error = match sensor {
            // One that is open and gives nothing is not back yet.
            Ok(sensor) => tokio::select! {
                error = eyes.see(sensor) => error,
                never = first_picture(&reporter, now) => match never {},
            },
            Err(error) => error,
        };
        parts.source.handle_lost(&error, now());
        error
    });
    let metrics = keep("the metrics page", &parts.metrics, PAUSE_MAX, now, async || {
        serve_metrics(&config, &reporter, clock).await
    });
    let meet = keep("the way to the switchboard", &parts.switchboard, PAUSE_MAX, now, async || {
        loop {
            let step = rendezvous.step(&config, &identity, &driver, &reporter, clock).await;
            if let Err(error) = step {
                let kept = rendezvous.kept();
                if let Ok(anew) = Rendezvous::start(&config, &identity, &driver, kept, clock) {
                    rendezvous = anew;
                }
                return error;
            }
        }
    });
    let said = driver.handle();
    let carry = async {
        match absence::opened(async || Topics::open(&config.topics)).await {
            Ok(topics) => match topics.carry(&said, &reporter.topics, clock).await {},
            Err(error) => error,
        }
    };
    let facts = Facts::new(&config, identity.public());
    let ended = tokio::select! {
        () = stop_machine(stop, &guarded, clock) => Ok(()),
        error = contradiction(&config, &guarded, clock) => Err(error),
        never = see => match never {},
        never = metrics => match never {},
        error = carry => Err(error),
        never = meet => match never {},
        never = report(reporter.clone(), handle, facts, &config, clock) => match never {},
    };
    rendezvous.close().await;
    threads.end();
    ended
}

/// Takes note of a source once it gives a picture, and waits for ever.
async fn first_picture(reporter: &Reporter, now: impl Fn() -> Instant) -> Infallible {
    let count = || reporter.camera.pictures.load(Ordering::Relaxed);
    let before = count();
    while count() == before {
        sleep(PICTURE_LOOK).await;
    }
    reporter.parts.source.handle_found(now());
    std::future::pending().await
}

/// Waits until the guard tells a latency budget that the settings contradict, and holds the machine: who
/// drives is not to be stopped by words.
async fn contradiction(config: &Config, guarded: &Guarded, clock: Clock) -> anyhow::Error {
    loop {
        sleep(BUDGET_LOOK).await;
        if let Some(words) = guarded.contradiction(&config.transport)
            && guarded.is_held(clock.now())
        {
            return anyhow::anyhow!(words);
        }
    }
}

/// Waits for the order to end, then for the machine to be held; no further order ends what moves.
async fn stop_machine(stop: impl AsyncFn(), guarded: &Guarded, clock: Clock) {
    stop().await;
    guarded.end();
    if !guarded.is_held(clock.now()) {
        tracing::warn!("asked to end: the machine is stopped first");
    }
    let standstill = async {
        while !guarded.is_held(clock.now()) {
            if guarded.is_out_of_reach(clock.now()) {
                tracing::error!("nothing is heard of the machine: this process ends without it");
                return;
            }
            sleep(STANDSTILL_LOOK).await;
        }
    };
    let asked_again = async {
        loop {
            stop().await;
            tracing::warn!(
                "asked again: this process ends when the machine is held, or has said nothing for 30 s"
            );
        }
    };
    tokio::select! {
        () = standstill => {}
        never = asked_again => never,
    }
}

/// Sends telemetry, newest wins, for ever; now and then a snapshot; tells the black box; and follows a probe.
async fn report(
    reporter: Reporter,
    handle: Handle,
    mut facts: Facts,
    config: &Config,
    clock: Clock,
) -> Infallible {
    let mut recent = Recent::default();
    let mut due = tokio::time::interval(TELEMETRY_INTERVAL);
    // What was due while this process did not run is out of date.
    due.set_missed_tick_behavior(MissedTickBehavior::Skip);
    // Without a session there is nobody to tell; the loop counts what it cannot take.
    let tell = |channel, unit: Vec<u8>| handle.send(channel, unit, TELEMETRY_DEADLINE);
    let mut turn = 0_u64;
    let mut waiting = Waiting::default();
    loop {
        due.tick().await;
        let now = clock.now();
        reporter.guarded.handle_life(now);
        say_what_is_missing(&mut waiting, &reporter, config, now);
        let was_overloaded = recent.is_overloaded();
        recent.advance(&reporter, now);
        if recent.is_overloaded() != was_overloaded {
            recent.say_overload();
        }
        reporter.latest.set_process(reporter.process(&recent, now), now);
        if turn.is_multiple_of(telemetry::turns(reporter.control.budget())) {
            tell(channels::TELEMETRY, reporter.telemetry(&recent, now).encode());
        }
        if let Some(file) = reporter.guarded.steering().take_unkept() {
            tokio::task::spawn_blocking(move || {
                if let Err(error) = steering::keep(&file) {
                    tracing::warn!(error = format!("{error:#}"), "the steering is asked for again");
                }
            });
        }
        if let Some(fact) = facts.next(config, &reporter, now) {
            reporter.guarded.tell(fact);
        }
        if turn.is_multiple_of(telemetry::snapshot_turns(reporter.control.budget())) {
            for part in reporter.latest.snapshot().parts() {
                handle.send(channels::SNAPSHOT, part.encode(), SNAPSHOT_DEADLINE);
            }
            let waiting = reporter.telemetry_waiting(&recent, now).encode();
            handle.send_waiting(channels::TELEMETRY, waiting, TELEMETRY_DEADLINE);
        }
        if let Some(turn) = reporter.probe.turn(reporter.health(now), now) {
            handle.set_datagram_bytes_max(turn.datagram_bytes_max);
            if let Some(answer) = turn.answer {
                tell(channels::PROBE_ANSWER, answer.encode());
            }
        }
        turn += 1;
    }
}

/// Logs, once each time, what nobody can drive without and has been missing for a while.
fn say_what_is_missing(waiting: &mut Waiting, reporter: &Reporter, config: &Config, now: Instant) {
    let Config { name, switchboard, guard, .. } = config;
    for awaited in Awaited::ALL {
        if !waiting.observe(awaited, reporter.lacks(awaited, now), now) {
            continue;
        }
        match awaited {
            Awaited::Guard => {
                tracing::warn!("waiting for the guard: nothing comes from {guard}; is it running?");
            }
            Awaited::Pictures => tracing::warn!("waiting for pictures: their source is lost"),
            Awaited::Switchboard => tracing::warn!("waiting for the switchboard {switchboard}"),
            Awaited::Operator => {
                tracing::info!("registered as {name}; waiting for an operator who takes it");
            }
            Awaited::Session => {
                let operator = reporter.met.introduced().unwrap_or_default();
                let help = match reporter.met.is_over_tls() {
                    true => "a link over TLS is tried too",
                    false => {
                        "no link over TLS leads there: where a network lets no UDP pass, the operator's `tls` or a \
                         relay with `tls` is the way (docs/running.md)"
                    }
                };
                tracing::warn!(
                    "waiting for operator {operator}: introduced, and no datagram comes; `tautline reach` \
                     at both ends shows what lies between; {help}"
                );
            }
        }
    }
}

async fn serve_metrics(config: &Config, reporter: &Reporter, clock: Clock) -> anyhow::Error {
    let Some(address) = config.metrics else { return std::future::pending().await };
    let who = format!("vehicle {}", config.name);
    let latest = reporter.latest.clone();
    let reporter = reporter.clone();
    let page = move || reporter.metrics(clock.now());
    let served = metrics::serve(address, metrics::routes(&who, page, move || latest.to_string()));
    served.await.err().unwrap_or_else(|| anyhow::anyhow!("its listener ended"))
}

const TELEMETRY_INTERVAL: Duration = Duration::from_millis(50);
const TELEMETRY_DEADLINE: Duration = Duration::from_millis(250);
/// Until the next one comes: with telemetry's, in packets of 400 bytes, some are more than the channel's cap carries in
/// half of it, and refused; others expire.
const SNAPSHOT_DEADLINE: Duration = Duration::from_millis(500);
/// How often a source is looked at that has given no picture yet.
const PICTURE_LOOK: Duration = Duration::from_millis(10);
/// How often the guard's latency budget is looked at.
const BUDGET_LOOK: Duration = Duration::from_millis(200);
/// How often a machine that is to stand is looked at.
const STANDSTILL_LOOK: Duration = Duration::from_millis(20);
