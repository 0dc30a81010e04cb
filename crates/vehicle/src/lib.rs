//! The vehicle's side: camera, encoders, uplink, and the proposals to the guard, which moves the
//! machine.
#![forbid(unsafe_code)]

mod answers;
pub mod camera;
mod camera_address;
mod config;
mod convert;
mod delivery;
mod described;
pub mod ego_motion;
pub mod encode;
mod epochs;
mod facts;
mod geometry;
pub mod guard_client;
pub mod load;
pub mod orders;
pub mod parts;
pub mod probe;
pub mod readiness;
pub mod readout;
mod rendezvous;
mod steering;
pub mod telemetry;
mod threads;
pub mod ticks;
pub mod uplink;
mod video_uplink;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tautline_net::Tls;
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::driver::{Driver, Handle};
use tautline_net::metrics;
use tautline_net::stats::Latest;
use tautline_net::topics;
use tautline_transport::crypto::Identity;
use tautline_units::Instant;
use tokio::time::{MissedTickBehavior, sleep};

pub use camera_address::CameraAddress;
pub use config::{
    AfterPause, Config, EncoderChoice, LossRecovery, Reaction, SimulatedMachine, SteeringCheck,
};
pub use geometry::CameraGeometry;
pub use guard_client::Follow;
pub use video_uplink::OpenSensor;

use crate::delivery::Delivery;
use crate::described::DescribedMachine;
use crate::encode::{EncoderControl, Meter};
use crate::epochs::Epochs;
use crate::facts::Facts;
use crate::guard_client::{GuardClient, Liveness};
use crate::orders::Orders;
use crate::parts::{PAUSE_MAX, Parts, SOURCE_PAUSE_MAX, keep, restart};
use crate::probe::Probe;
use crate::readiness::{Requirement, Waiting};
use crate::rendezvous::{Own, Rendezvous};
use crate::steering::Steering;
use crate::telemetry::{Recent, Reporter};
use crate::threads::Threads;
use crate::video_uplink::VideoUplink;

/// Runs a vehicle: proposes the operator's commands to the guard and sends the sensor's pictures.
/// `follow` receives the machine's state and returns its extra values. `latest` gets the snapshots
/// of the session.
///
/// When `stop` resolves, the vehicle stops the machine. It ends once the machine is held, or after
/// 30 s without a message from the guard. Nothing else ends it but invalid settings, however often
/// `stop` resolves: a component that fails is restarted.
///
/// # Errors
/// Returns a one-line error that names the setting and the remedy if the settings or a file of
/// state are invalid. Some of this shows only later: deadlines that contradict the guard's latency
/// budget (once the machine is held), and topics that cannot be opened. Resources that are not
/// available yet (a link, a camera, a folder, the guard, the switchboard) are awaited.
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
    let mut opened = match video_uplink::open(&open_sensor).await {
        // A camera or a file may come after this process starts, so wait for it as after a loss.
        Err(error) if config.source().is_none() => return Err(error),
        opened => Some(opened),
    };
    let steering = Steering::open(config.steering_check, config.steering_checked.clone());
    let guard_client = Arc::new(GuardClient::new()?.with_steering(steering));
    let reporter = reporter(&config, guard_client.clone(), latest);
    let uplink = reporter.uplink(clock);
    let tls = config.tls.then(|| Tls { identity: identity.clone(), listen: None });
    let driver =
        Driver::spawn_with(&config.links, tls, clock, move |output| uplink.handle(output))?;
    let mut threads = Threads::default();
    propose(&mut threads, &config, &reporter, follow, clock)?;
    let mut rendezvous = Rendezvous::start(&config, &identity, &driver, (epochs, orders), clock)?;
    let parts = reporter.parts.clone();
    let video_uplink =
        VideoUplink { config: &config, reporter: &reporter, handle: driver.handle(), clock };
    let see = restart(&parts.video_uplink, SOURCE_PAUSE_MAX, now, async || {
        let sensor = match opened.take() {
            Some(opened) => opened,
            None => video_uplink::open(&open_sensor).await,
        };
        let error = match sensor {
            // A source that opens but delivers no picture does not count as available again.
            Ok(sensor) => tokio::select! {
                error = video_uplink.see(sensor) => error,
                never = first_picture(&reporter, now) => match never {},
            },
            Err(error) => error,
        };
        parts.source.handle_lost(&error, now());
        error
    });
    let metrics = keep("the metrics server", &parts.metrics, PAUSE_MAX, now, async || {
        serve_metrics(&config, &reporter, clock).await
    });
    let own =
        Own { config: &config, identity: &identity, driver: &driver, reporter: &reporter, clock };
    let meet =
        keep("the connection to the switchboard", &parts.switchboard, PAUSE_MAX, now, async || {
            meet(&mut rendezvous, &own).await
        });
    let facts = Facts::new(&config, identity.public());
    let ended = tokio::select! {
        () = stop_machine(stop, &guard_client, clock) => Ok(()),
        error = contradiction(&config, &guard_client, clock) => Err(error),
        never = see => match never {},
        never = metrics => match never {},
        error = topics::serve(&config.topics, driver.handle(), &reporter.topics, clock) => Err(error),
        never = meet => match never {},
        never = report(reporter.clone(), driver.handle(), facts, &config, clock) => match never {},
    };
    rendezvous.close().await;
    threads.end();
    ended
}

/// Creates the sources of all telemetry.
fn reporter(config: &Config, guard_client: Arc<GuardClient>, latest: Latest) -> Reporter {
    Reporter {
        guard_client,
        control: Arc::new(EncoderControl::with(config.after_pause).governed()),
        meter: Arc::new(Meter::default()),
        camera: Arc::new(camera::Counters::default()),
        uplink: Arc::new(uplink::Counters::default()),
        topics: Arc::default(),
        delivery: Arc::new(Delivery::new(&config.deliver)),
        latest,
        probe: Arc::new(Probe::new(config.transport.datagram_bytes_max)),
        parts: Arc::new(Parts::default()),
        met: Arc::default(),
        orders: Arc::default(),
    }
}

/// Starts the thread that proposes to the guard.
fn propose(
    threads: &mut Threads,
    config: &Config,
    reporter: &Reporter,
    follow: Follow,
    clock: Clock,
) -> anyhow::Result<()> {
    let Reporter { camera, meter, control, .. } = reporter.clone();
    let liveness = Liveness::new(camera, meter, control)
        .reacting(config.uniform_picture, config.picture_motion);
    let (guard_client, ending) = (reporter.guard_client.clone(), threads.ending());
    let address = config.guard.clone();
    threads.spawn("proposals", move || {
        guard_client.run(&address, liveness, follow, clock, &ending);
    })
}

/// Serves the connection to the switchboard until it fails; then replaces it by a new one, if that
/// can be started, and returns the error.
async fn meet(rendezvous: &mut Rendezvous, own: &Own<'_>) -> anyhow::Error {
    let Own { config, identity, driver, clock, .. } = *own;
    loop {
        if let Err(error) = rendezvous.step(own).await {
            let kept = rendezvous.kept();
            if let Ok(anew) = Rendezvous::start(config, identity, driver, kept, clock) {
                *rendezvous = anew;
            }
            return error;
        }
    }
}

/// Waits for the first picture of a source, marks the source present, then never returns.
async fn first_picture(reporter: &Reporter, now: impl Fn() -> Instant) -> Infallible {
    let count = || reporter.camera.pictures.load(Ordering::Relaxed);
    let before = count();
    while count() == before {
        sleep(PICTURE_LOOK).await;
    }
    reporter.parts.source.handle_found(now());
    std::future::pending().await
}

/// Waits until the machine is held while the guard reports a latency budget that contradicts the
/// settings; returns the contradiction. An ongoing drive is not interrupted by a configuration
/// error.
async fn contradiction(config: &Config, guard_client: &GuardClient, clock: Clock) -> anyhow::Error {
    loop {
        sleep(BUDGET_LOOK).await;
        if let Some(words) = guard_client.contradiction(&config.transport)
            && guard_client.is_held(clock.now())
        {
            return anyhow::anyhow!(words);
        }
    }
}

/// Waits for the request to stop, then until the machine is held or has been out of reach for 30 s.
/// Further requests do not cut this short.
async fn stop_machine(stop: impl AsyncFn(), guard_client: &GuardClient, clock: Clock) {
    stop().await;
    guard_client.end();
    if !guard_client.is_held(clock.now()) {
        tracing::warn!("stopping the machine before this process ends");
    }
    let standstill = async {
        while !guard_client.is_held(clock.now()) {
            if guard_client.is_out_of_reach(clock.now()) {
                tracing::error!(
                    "the machine does not respond: this process ends without stopping it"
                );
                return;
            }
            sleep(STANDSTILL_LOOK).await;
        }
    };
    let asked_again = async {
        loop {
            stop().await;
            tracing::warn!(
                "this process ends once the machine is held, or after 30 s without its state"
            );
        }
    };
    tokio::select! {
        () = standstill => {}
        never = asked_again => never,
    }
}

/// Reports forever, every 50 ms: telemetry and, less often, snapshots to the operator, records to
/// the black box, and a running probe's sizes and answers.
async fn report(
    reporter: Reporter,
    handle: Handle,
    mut facts: Facts,
    config: &Config,
    clock: Clock,
) -> Infallible {
    let mut recent = Recent::default();
    let mut due = tokio::time::interval(TELEMETRY_INTERVAL);
    // Ticks missed while this process was suspended are outdated.
    due.set_missed_tick_behavior(MissedTickBehavior::Skip);
    // Without a session there is no receiver; the event loop counts the units it refuses.
    let tell = |channel, unit: Vec<u8>| handle.send(channel, unit, TELEMETRY_DEADLINE);
    let mut turn = 0_u64;
    let mut waiting = Waiting::default();
    let mut machine = DescribedMachine::default();
    loop {
        due.tick().await;
        let now = clock.now();
        reporter.guard_client.handle_life(now);
        say_what_is_missing(&mut waiting, &reporter, config, now);
        let was_overloaded = recent.is_overloaded();
        recent.advance(&reporter, now);
        if recent.is_overloaded() != was_overloaded {
            recent.say_overload();
        }
        reporter.latest.set_process(reporter.process(&recent, now), now);
        for declared in reporter.guard_client.take_declared() {
            machine.handle(&declared, now);
        }
        if turn.is_multiple_of(telemetry::turns(reporter.control.budget())) {
            tell(channels::TELEMETRY, reporter.telemetry(&recent, now).encode());
            if let Some(description) = machine.take_description(now) {
                handle.send(channels::DESCRIPTION, description.encode(), SNAPSHOT_DEADLINE);
            }
            if let Some(values) = machine.take_values(now) {
                tell(channels::VALUES, values.encode());
            }
        }
        if let Some(file) = reporter.guard_client.steering().take_unkept() {
            tokio::task::spawn_blocking(move || {
                if let Err(error) = steering::keep(&file) {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "the steering check must be repeated"
                    );
                }
            });
        }
        if let Some(fact) = facts.next(config, &reporter, now) {
            reporter.guard_client.tell(fact);
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

/// Logs once per outage what driving requires and has been missing for 5 s.
fn say_what_is_missing(waiting: &mut Waiting, reporter: &Reporter, config: &Config, now: Instant) {
    let Config { name, switchboard, guard, .. } = config;
    for awaited in Requirement::ALL {
        if !waiting.observe(awaited, reporter.lacks(awaited, now), now) {
            continue;
        }
        match awaited {
            Requirement::Guard => {
                tracing::warn!("waiting for the guard: nothing comes from {guard}; is it running?");
            }
            Requirement::Pictures => tracing::warn!("waiting for pictures: their source is lost"),
            Requirement::Switchboard => tracing::warn!("waiting for the switchboard {switchboard}"),
            Requirement::Operator => {
                tracing::info!("registered as {name}; waiting for an operator who takes it");
            }
            Requirement::Session => {
                let operator = reporter.met.introduced().unwrap_or_default();
                let help = match reporter.met.is_over_tls() {
                    true => "a link over TLS is tried too",
                    false => {
                        "no link over TLS leads there: if a network blocks UDP, use the \
                         operator's `tls` or a relay with `tls` (docs/links.md)"
                    }
                };
                tracing::warn!(
                    "waiting for operator {operator}: introduced, but no datagram arrives; \
                     `tautline reach` at both ends shows what is in between; {help}"
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
    served.await.err().unwrap_or_else(|| anyhow::anyhow!("its listener has ended"))
}

const TELEMETRY_INTERVAL: Duration = Duration::from_millis(50);
const TELEMETRY_DEADLINE: Duration = Duration::from_millis(250);
/// Deadline of a snapshot, and the interval between two. Half of it is too short: in packets of 400
/// bytes, and together with telemetry, some snapshots exceed the channel's rate cap and are
/// refused, and others expire.
const SNAPSHOT_DEADLINE: Duration = Duration::from_millis(500);
/// Polling interval while waiting for a source's first picture.
const PICTURE_LOOK: Duration = Duration::from_millis(10);
/// Polling interval of the guard's latency budget.
const BUDGET_LOOK: Duration = Duration::from_millis(200);
/// Polling interval while waiting for the machine to stand still.
const STANDSTILL_LOOK: Duration = Duration::from_millis(20);
