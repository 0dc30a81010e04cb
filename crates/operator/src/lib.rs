//! The operator's side: downlink, console bridge, commands and recorder.
#![forbid(unsafe_code)]

mod canvas;
mod config;
pub mod console;
pub mod downlink;
mod emulator;
mod fleet;
mod input;
pub mod probe;
mod reception;
pub mod recorder;
mod rendezvous;
mod round_trip_log;
mod standing;
mod topics;
mod watch;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use tautline_message::LinkAction;
use tautline_net::Tls;
use tautline_net::accept_limit::{AcceptLimit, Listener};
use tautline_net::clock::Clock;
use tautline_net::driver::Driver;
use tautline_net::metrics::{self, Labels, Page};
use tautline_net::stats::{Latest, Table};
use tautline_transport::crypto::Identity;
use tokio::sync::mpsc;

pub use config::{Behind, Config};
pub use console::{Opening, Right};

use crate::console::{Access, Hub, Request, tls};
use crate::input::Input;
use crate::probe::Probe;
use crate::reception::{Reception, Shared};
use crate::recorder::Recorder;
use crate::rendezvous::{Choice, Own, Rendezvous};
use crate::round_trip_log::RoundTripLog;

/// Runs an operator until `stop` resolves. `latest` gets the snapshots of the session. Each address
/// that admits a browser goes to `announce`: one for each right at the start, the next when it is
/// used.
///
/// # Errors
/// Returns one line: the setting that cannot work and the remedy, or the server or task that failed
/// later. Resources that are not available yet (a link, the console's address, the switchboard, the
/// vehicle) are awaited.
pub async fn run(
    config: Config,
    identity: Identity,
    latest: Latest,
    announce: impl Fn(Opening) + Send + Sync + 'static,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let clock = Clock::start();
    let (requests, asked) = mpsc::channel(REQUESTS_MAX);
    let unix_micros = move || clock.unix_nanos(clock.now()) / 1_000;
    let vehicle = config.vehicle.as_deref().unwrap_or_default();
    let hub = Hub::new(vehicle, requests, unix_micros);
    let hub = Arc::new(hub.of(&config.name, &identity.public().to_string()));
    let (mut stop, door) = (pin!(stop), AcceptLimit::new("the console", clock));
    let (listener, access) = tokio::select! {
        opened = open_console(&config, &identity, door.clone(), announce) => opened?,
        () = &mut stop => return Ok(()),
    };
    let recorder = config.record.as_deref().map(Recorder::create).transpose()?;
    let trips =
        config.record.as_deref().map(|folder| RoundTripLog::create(folder, clock)).transpose()?;
    let records = recorder.is_some();
    let shared = Arc::new(Shared::new(vehicle));
    let recorders = (recorder, trips);
    let mut reception =
        Reception::new(&config, recorders, hub.clone(), shared.clone(), latest.clone(), clock);
    let sent = reception.sent();
    // Links over TLS to a relay are possible whether this end listens for TLS or not.
    let tls = Some(Tls { identity: identity.clone(), listen: config.tls });
    let driver =
        Driver::spawn_with(&config.links, tls, clock, move |output| reception.handle(output))?;
    let (choose, choices) = mpsc::channel(REQUESTS_MAX);
    let mut rendezvous =
        Rendezvous::start(&config, &identity, &driver, clock, hub.clone(), choices)?;
    let beside = beside(&config, &hub, &shared, &latest, (&driver, &door), clock);
    let (beside, apart) = parted(&config, beside);
    let handle = driver.handle();
    let send = move |channel, unit, deadline| {
        // Without a session there is no receiver; the event loop counts the units it refuses.
        handle.send(channel, unit, deadline);
    };
    let input = Input::new(hub.clone(), shared.clone(), send, clock, records);
    let (cuts, cut) = mpsc::channel(REQUESTS_MAX);
    let requests = Requests { asked, cuts, choose };
    let own = Own { config: &config, identity: &identity, driver: &driver, shared: &shared, clock };
    let meet = async {
        loop {
            rendezvous.step(&own).await?;
        }
    };
    let ended = tokio::select! {
        () = &mut stop => Ok(()),
        refused = meet => refused,
        error = tautline_net::topics::serve(&config.topics, driver.handle(), &sent, clock) => Err(error),
        failed = console::serve(listener, access, hub.clone(), beside) => failed,
        failed = serve(apart) => failed,
        never = requests.serve(input, &hub, &shared, &latest, clock) => match never {},
        never = emulator::attend(config.emulator, cut, &shared) => never,
    };
    rendezvous.close().await;
    ended
}

/// Queue of the consoles' requests, and the queues to two other tasks: cuts of emulated links, and
/// choices of a vehicle.
struct Requests {
    asked: mpsc::Receiver<Request>,
    cuts: mpsc::Sender<LinkAction>,
    choose: mpsc::Sender<Choice>,
}

impl Requests {
    /// Passes on every request, and changes of the driving console to `input`, forever. Lets
    /// `input` send the feedback on video, if it is due, every 20 ms and after a loss, and calls
    /// [`tell_idle`] every 250 ms.
    async fn serve(
        mut self,
        mut input: Input,
        hub: &Hub,
        shared: &Shared,
        latest: &Latest,
        clock: Clock,
    ) -> Infallible {
        let mut holding = hub.holding();
        let mut feedback = tokio::time::interval(FEEDBACK_INTERVAL);
        let mut looking = tokio::time::interval(LOOK_INTERVAL);
        loop {
            tokio::select! {
                Some(request) = self.asked.recv() => self.pass(request, &mut input),
                _ = holding.changed() => input.handle_console(*holding.borrow_and_update()),
                _ = feedback.tick() => input.feed_back(),
                _ = looking.tick() => tell_idle(hub, shared, latest, clock),
                () = shared.lost() => input.feed_back(),
            }
        }
    }

    /// Passes a request on to the input or to the task that carries it out, or drops it. A full
    /// queue means that earlier requests are not done yet: then this one is outdated.
    fn pass(&self, request: Request, input: &mut Input) {
        match request {
            Request::Command(command) => input.handle_command(command),
            Request::Link(action) => {
                let _ = self.cuts.try_send(action);
            }
            Request::Pick(name) => {
                let _ = self.choose.try_send(Choice::Pick(name));
            }
            Request::Leave => {
                let _ = self.choose.try_send(Choice::Leave);
            }
        }
    }
}

/// Returns the routes to serve at the console's address, and those to serve at the metrics' own
/// address, with that address. All of `routes` are in the latter if it is configured, else in the
/// former; in neither if it is not and other machines can reach the console.
fn parted(config: &Config, routes: Router) -> (Router, Option<(SocketAddr, Router)>) {
    match config.metrics {
        Some(address) => (Router::new(), Some((address, routes))),
        // Beyond this machine, status and probes are not served without authentication.
        None if config.console_is_open() => (Router::new(), None),
        None => (routes, None),
    }
}

/// Serves routes at their own address until that fails; waits forever for `None`.
async fn serve(apart: Option<(SocketAddr, Router)>) -> anyhow::Result<()> {
    match apart {
        Some((address, routes)) => metrics::serve(address, routes).await,
        None => std::future::pending().await,
    }
}

/// Opens the console's address, with TLS if it needs that, and creates and announces the first
/// token for each right.
async fn open_console(
    config: &Config,
    identity: &Identity,
    door: AcceptLimit,
    announce: impl Fn(Opening) + Send + Sync + 'static,
) -> anyhow::Result<(Listener, Arc<Access>)> {
    let listener = console::listen(config.console).await?;
    let address = listener.local_addr().context("the console's address is unknown")?;
    let names = config.names(address)?;
    let shown = match config.certificate()? {
        Some(files) => Some(tls::read(&files)?),
        None if config.console_is_secure() => Some(tls::make(identity, &names)?),
        None => None,
    };
    let (tls, fingerprint) = shown.map(|shown| (shown.config, shown.fingerprint)).unzip();
    let listener = console::accept(listener, tls, &names.origin(), door)?;
    let rights: &[Right] =
        if config.watch { &[Right::Drive, Right::Watch] } else { &[Right::Drive] };
    let access = Access::new(names, address.port(), fingerprint, rights, announce)?;
    Ok((listener, Arc::new(access)))
}

/// Repeats the list of vehicles to the consoles, and reports to them and the metrics what is
/// awaited, unless a session has reported its own status within 250 ms.
fn tell_idle(hub: &Hub, shared: &Shared, latest: &Latest, clock: Clock) {
    hub.repeat_fleet();
    let now = clock.now();
    let Some(status) = shared.idle_status(clock.unix_nanos(now), now) else { return };
    let (own, vehicle, machine) = (latest.snapshot(), shared.vehicle(), shared.machine());
    hub.set_metrics(reception::metrics(&status, hub.decoder(), &own, &vehicle, &machine));
    hub.show_status(&status.encode());
}

/// Returns the routes served next to the console: metrics, both ends' tables, and the probe.
fn beside(
    config: &Config,
    hub: &Arc<Hub>,
    shared: &Arc<Shared>,
    latest: &Latest,
    (driver, door): (&Driver, &AcceptLimit),
    clock: Clock,
) -> Router {
    let who = {
        let (name, shared) = (config.name.clone(), shared.clone());
        move || match shared.vehicle_name().as_str() {
            "" => format!("operator {name}"),
            vehicle => format!("operator {name} of {vehicle}"),
        }
    };
    let page = {
        let (hub, counters) = (hub.clone(), door.counters());
        move || {
            let mut page = Page::new("tautline_operator");
            let drops = counters.iter().map(|(name, count)| (Labels::of("name", name), count));
            let help = "Browser connections that were refused or closed, by name";
            page.counters("console_drops", None, help, drops);
            let metrics = hub.metrics();
            format!("{}{}", metrics.trim_end_matches("# EOF\n"), page.finish())
        }
    };
    let configured = config.transport.datagram_bytes_max;
    let probe = Probe::new(shared.clone(), latest.clone(), driver.handle(), clock, configured);
    let (latest, shared) = (latest.clone(), shared.clone());
    let told = hub.clone();
    let status = move || {
        let decoder = told.decoder().map_or("unknown", console::Decoder::name);
        format!(
            "this end\n{latest}\nthe vehicle's end\n{}\nthe last page decodes by: {decoder}\n",
            Table(&shared.vehicle())
        )
    };
    metrics::routes_of(who, page, status).merge(probe.routes())
}

const REQUESTS_MAX: usize = 64;
/// Interval at which [`tell_idle`] is called: longer than that of a session's own reports.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Interval at which feedback to the vehicle is checked for changes, the same as that of commands;
/// a loss is reported to the vehicle at once.
const FEEDBACK_INTERVAL: Duration = Duration::from_millis(20);
