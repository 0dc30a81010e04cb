//! The vehicle's connection to the switchboard: registration, and introduction to its operator.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, bail};
use tautline_message::{Control, Held, ProtocolVersions, Refusal};
use tautline_net::clock::Clock;
use tautline_net::control::{Client, Event};
use tautline_net::driver::Driver;
use tautline_net::{LogLimit, Relays, channels, latency, random, reach, routes, streams};
use tautline_transport::crypto::{Identity, PublicKey};
use tautline_transport::order::SignedOrder;
use tautline_transport::reach::{CANDIDATE_PAIRS_MAX, Candidate, CandidatePair, candidate_pairs};
use tautline_transport::{LinkNumber, Route, Seed, Session};
use tokio::sync::{mpsc, watch};

use crate::answers::Answers;
use crate::config::Config;
use crate::epochs::Epochs;
use crate::orders::{Orders, Refused};
use crate::telemetry::Reporter;

/// Connection to the switchboard, and the state that its messages change.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    client: Client,
    events: mpsc::Receiver<Event>,
    candidates: watch::Receiver<Vec<Candidate>>,
    /// Name of the newest introduction's lease; `None` before the first, and after the lease has
    /// ended.
    lease: Option<[u8; 16]>,
    epochs: Epochs,
    orders: Orders,
    answers: Answers,
    operators: Vec<PublicKey>,
    relays: Relays,
    disconnections: LogLimit,
    /// Rate limit for logging refusals, failed introductions, and orders that are not obeyed.
    refusals: LogLimit,
}

/// The vehicle's own parts, which messages of the switchboard act on.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    /// Settings of this vehicle.
    pub config: &'a Config,
    /// Key of this vehicle.
    pub identity: &'a Identity,
    /// Event loop of the sessions.
    pub driver: &'a Driver,
    /// Guard, and state that telemetry reports.
    pub reporter: &'a Reporter,
    /// Clock of this process, for all instants here.
    pub clock: Clock,
}

/// An operator, as the switchboard introduces it.
#[derive(Debug)]
struct Peer {
    name: String,
    key: [u8; 32],
    addresses: Vec<String>,
    versions: Option<ProtocolVersions>,
    candidates: Vec<tautline_message::Candidate>,
}

/// Routes to an operator for the links of a session, and the candidate pairs among them.
#[derive(Debug)]
struct Ways {
    pairs: Vec<CandidatePair>,
    /// Routes of the session's links.
    routes: Vec<Route>,
    /// Direct routes over TLS that the operator offers.
    streams: Vec<Route>,
}

impl Rendezvous {
    /// Connects to the switchboard and registers, in the background; reconnects automatically for
    /// as long as it exists.
    ///
    /// # Errors
    /// Fails if a configured key is malformed.
    pub(crate) fn start(
        config: &Config,
        identity: &Identity,
        driver: &Driver,
        (epochs, orders): (Epochs, Orders),
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let candidates = driver.candidates();
        let register = register(config, driver, &candidates.borrow(), epochs.held(None));
        let key = config.switchboard_public_key()?;
        let (client, events) = Client::start_by(
            &config.links,
            config.switchboard.as_str(),
            key,
            identity,
            vec![register],
            move |frame| latency::pong(frame, clock),
        )?;
        let (disconnections, refusals) = (LogLimit::default(), LogLimit::default());
        let (operators, relays, lease) = (config.operator_keys()?, Relays::default(), None);
        let answers = Answers::new(identity, client.handle());
        Ok(Self {
            client,
            events,
            candidates,
            lease,
            epochs,
            orders,
            answers,
            operators,
            relays,
            disconnections,
            refusals,
        })
    }

    /// Returns the epochs and orders with which to start again after an error.
    pub(crate) fn kept(&self) -> (Epochs, Orders) {
        (self.epochs.clone(), self.orders.clone())
    }

    /// Waits for the next message of the switchboard and handles it, or registers again when this
    /// vehicle's candidates change; call it in a loop.
    ///
    /// No message ends this process. A session whose operator is alive ends only by a supervisor's
    /// order, or for another introduced operator once the machine stands. A refused registration is
    /// repeated.
    ///
    /// # Errors
    /// Fails if the connection is no longer maintained, or a lease's epoch cannot be stored: then
    /// start again.
    pub(crate) async fn step(&mut self, own: &Own<'_>) -> anyhow::Result<()> {
        let event = tokio::select! {
            event = self.events.recv() => event,
            Ok(()) = self.candidates.changed() => {
                self.candidates.mark_unchanged();
                let register = self.greet(own);
                // Without a connection nothing is sent; the next connection registers at its start.
                let _ = self.client.handle().send(register);
                return Ok(());
            }
        };
        match event {
            Some(Event::Frame(frame)) => self.handle_frame(&frame, own).await?,
            Some(Event::Connected { by, servers, .. }) => {
                own.reporter.met.set_registered(true);
                tracing::info!(switchboard = own.config.switchboard, by, "registered");
                own.driver.handle().find_addresses(servers);
            }
            Some(Event::Disconnected { error, retry_in }) => {
                own.reporter.met.set_registered(false);
                own.reporter.parts.switchboard.fetch_add(1, Ordering::Relaxed);
                let why = error.to_string();
                if let Some(left_out) = self.disconnections.take_of(&why, own.clock.now()) {
                    tracing::warn!(%error, ?retry_in, left_out, "cannot reach the switchboard");
                }
            }
            None => bail!("the connection to the switchboard ended"),
        }
        Ok(())
    }

    async fn handle_frame(&mut self, frame: &[u8], own: &Own<'_>) -> anyhow::Result<()> {
        match Control::decode(frame) {
            Ok(Control::Introduce {
                lease,
                peer_name: name,
                peer_key: key,
                peer_addresses: addresses,
                peer_versions: versions,
                peer_candidates: candidates,
                epoch,
            }) => {
                let peer = Peer { name, key, addresses, versions, candidates };
                return self.handle_introduction(lease, epoch, &peer, own).await;
            }
            Ok(Control::Relays { peer_key, relays }) => {
                match self.relays.take(own.identity, peer_key, &relays) {
                    Ok(admission) => own.driver.handle().admit(admission),
                    Err(error) => tracing::warn!("no relays: {error:#}"),
                }
            }
            Ok(Control::Ordered { signed, is_answered }) => {
                if let Err(refused) = self.obey(&signed, is_answered, own).await {
                    if is_answered {
                        self.answer(&signed, refused, own.identity);
                    }
                    self.tell_refused(&format!("an order was not obeyed: {refused}"), own);
                }
            }
            Ok(Control::Released { reason, lease }) => {
                tracing::info!(reason, "released");
                self.lease.take_if(|held| *held == lease);
                self.greet(own);
                own.reporter.met.handle_release();
                own.driver.handle().release();
            }
            // Another machine has registered with this key, a copy of it; the text names both.
            Ok(Control::Refused { reason_code: Refusal::NameTaken, text }) => {
                self.tell_refused(&text, own);
            }
            Ok(Control::Refused { text, .. }) => {
                self.tell_refused(&format!("the switchboard refused: {text}"), own);
            }
            Ok(_) => {}
            Err(error) => {
                let text = format!("the switchboard sent a malformed message: {error}");
                self.tell_refused(&text, own);
            }
        }
        Ok(())
    }

    /// Begins a session with the introduced operator; under the present lease, offers it further
    /// candidate pairs instead. Fails only if the lease's epoch cannot be stored: a refused
    /// introduction is counted and logged.
    async fn handle_introduction(
        &mut self,
        lease: [u8; 16],
        epoch: u64,
        peer: &Peer,
        own: &Own<'_>,
    ) -> anyhow::Result<()> {
        let Own { config, driver, reporter, clock, .. } = *own;
        let ways = self.ways(peer, own);
        if self.lease == Some(lease) {
            driver.handle().offer_pairs(lease, ways.pairs);
            return Ok(());
        }
        if let Some(mismatch) = channels::mismatch(peer.versions) {
            tracing::warn!("no session: {}", mismatch.told("the operator"));
        }
        let session = match self.initiate(lease, epoch, peer, &ways, own) {
            Ok(session) => session,
            Err(error) => {
                let text = format!("no session with operator {}: {error:#}", peer.name);
                self.tell_refused(&text, own);
                return Ok(());
            }
        };
        let kept = self.epochs.take(epoch, *session.peer()).await;
        kept.with_context(|| format!("no session with operator {}", peer.name))?;
        self.lease = Some(lease);
        self.greet(own);
        let Ways { routes, streams, .. } = ways;
        let is_over_tls = routes.iter().any(|it| it.stream_index().is_some());
        reporter.met.handle_introduction(&peer.name, is_over_tls);
        tracing::info!(operator = peer.name, links = routes.len(), "introduced");
        if !streams.is_empty() && !config.tls {
            tracing::info!("tls = false: refuses the operator's links over TLS");
        }
        let called: Vec<_> = routes.into_iter().filter(|route| streams.contains(route)).collect();
        driver.handle().call(&called, *session.peer());
        // Another operator waits until the machine stands.
        let guard_client = reporter.guard_client.clone();
        driver.handle().introduce(session, move || guard_client.stands(clock.now()));
        Ok(())
    }

    /// Returns the routes and candidate pairs to an operator, including those through relays; pairs
    /// through relays only if there are direct ones.
    fn ways(&self, peer: &Peer, own: &Own<'_>) -> Ways {
        let locals = &own.driver.local_addresses();
        let (relayed, relayed_streams) = PublicKey::from_bytes(peer.key)
            .map(|key| (self.relays.routes(&key, locals), self.relays.streams(&key, locals)))
            .unwrap_or_default();
        let direct = CANDIDATE_PAIRS_MAX.saturating_sub(relayed.len());
        let mut pairs = candidate_pairs(locals, &reach::from_message(&peer.candidates), direct);
        if !pairs.is_empty() {
            pairs.extend(relayed.iter().copied().map(CandidatePair::relayed));
        }
        let streams = streams(locals, &peer.addresses);
        let kept = some_of_each(streams.clone(), relayed_streams);
        let routes = routes_to(own.config, locals, &peer.addresses, &pairs, relayed, kept);
        Ways { pairs, routes, streams }
    }

    /// Creates the session with an introduced operator. Fails if its key is not listed here, its
    /// lease's epoch is refused, or the session cannot be initiated.
    fn initiate(
        &self,
        lease: [u8; 16],
        epoch: u64,
        peer: &Peer,
        ways: &Ways,
        own: &Own<'_>,
    ) -> anyhow::Result<Session> {
        self.epochs.judge(epoch, &peer.key)?;
        let key = self.known_operator(peer.key)?;
        let (transport, seed) = (own.config.transport.clone(), Seed::from(random::seed()?));
        let (routes, now) = (&ways.routes, own.clock.now());
        let mut session =
            Session::initiate(transport, own.identity, key, lease, routes, seed, now)?;
        session.offer(&ways.pairs, now);
        channels::open(&mut session)?;
        Ok(session)
    }

    /// Counts and logs a refusal, a failed introduction, or an order that is not obeyed.
    fn tell_refused(&mut self, text: &str, own: &Own<'_>) {
        own.reporter.parts.refusals.fetch_add(1, Ordering::Relaxed);
        if let Some(left_out) = self.refusals.take_of(text, own.clock.now()) {
            tracing::warn!(left_out, "{text}");
        }
    }

    /// Ends the drive if `signed` is a supervisor's valid order, and the sessions once the machine
    /// stands or after 30 s; otherwise counts and returns the refusal.
    async fn obey(
        &mut self,
        signed: &[u8],
        is_answered: bool,
        own: &Own<'_>,
    ) -> Result<(), Refused> {
        let (reporter, clock) = (own.reporter, own.clock);
        // The system's time may have been set since this process began.
        let now = Clock::start();
        let unix = Duration::from_nanos(now.unix_nanos(now.now()));
        let taken = self.orders.take(signed, unix);
        let (supervisor, order) = taken.inspect_err(|refused| reporter.orders.refuse(*refused))?;
        tracing::warn!(supervisor, number = order.number(), "ordered to end the drive");
        reporter.guard_client.end_drive(&supervisor);
        reporter.orders.obey();
        let (guard_client, begun) = (reporter.guard_client.clone(), clock.now());
        own.driver.handle().end_sessions(move || {
            let now = clock.now();
            guard_client.stands(now) || now.since(begun) >= STANDSTILL_MAX
        });
        if is_answered {
            self.answers.follow(order, self.epochs.newest(), reporter.guard_client.clone(), clock);
        }
        if let Err(error) = self.orders.keep().await {
            tracing::error!("a restart will forget this order: {error:#}");
        }
        Ok(())
    }

    /// Tells the signer of an order for this vehicle why it is not obeyed; unsigned or forged bytes
    /// get no answer.
    fn answer(&self, signed: &[u8], refused: Refused, identity: &Identity) {
        let order = SignedOrder::read(signed).ok();
        let order = order.filter(|order| order.vehicle == identity.public());
        if let (Some(order), Some(outcome)) = (order, refused.outcome()) {
            self.answers.refuse(&order, outcome, self.epochs.newest());
        }
    }

    /// Closes the connection to the switchboard.
    pub(crate) async fn close(self) {
        self.client.close().await;
    }

    /// Returns the vehicle's current registration, and sets it as what each new connection sends
    /// first.
    fn greet(&self, own: &Own<'_>) -> Vec<u8> {
        let held = self.epochs.held(self.lease);
        let register = register(own.config, own.driver, &self.candidates.borrow(), held);
        self.client.handle().set_greeting(vec![register.clone()]);
        register
    }

    fn known_operator(&self, key: [u8; 32]) -> anyhow::Result<PublicKey> {
        let key = PublicKey::from_bytes(key)?;
        if !self.operators.contains(&key) {
            bail!("its key {key} is not listed here");
        }
        Ok(key)
    }
}

/// Returns the vehicle's registration, including its addresses as far as they are known.
fn register(
    config: &Config,
    driver: &Driver,
    candidates: &[Candidate],
    held: Option<Held>,
) -> Vec<u8> {
    let register = Control::RegisterVehicle {
        name: config.name.clone(),
        addresses: driver.open_addresses().iter().map(ToString::to_string).collect(),
        versions: channels::versions(),
        relays: true,
        candidates: reach::to_message(candidates),
        held,
        place: config.place.clone(),
    };
    register.encode()
}

/// Returns the routes to an operator, as many as a session may have links. They are the candidate
/// pairs if there are any, else routes to its addresses; then those through relays, and last those
/// over TLS if they are enabled.
fn routes_to(
    config: &Config,
    locals: &[SocketAddr],
    peer_addresses: &[String],
    pairs: &[CandidatePair],
    relayed: Vec<Route>,
    streams: Vec<Route>,
) -> Vec<Route> {
    let mut routes = match pairs.is_empty() {
        true => routes(locals, peer_addresses),
        false => pairs.iter().map(|leg| leg.route).collect(),
    };
    // Direct routes yield to relayed ones, since a relay works behind any NAT.
    let relayed: Vec<_> = relayed.into_iter().filter(|route| !routes.contains(route)).collect();
    routes.truncate(LinkNumber::COUNT.saturating_sub(relayed.len()));
    routes.extend(relayed);
    routes.truncate(LinkNumber::COUNT);
    if config.tls {
        routes.truncate(LinkNumber::COUNT - streams.len());
        routes.extend(streams);
    }
    routes
}

/// Returns the routes over TLS to keep, four in all: at least two direct and two relayed ones,
/// where available.
fn some_of_each(mut direct: Vec<Route>, mut relayed: Vec<Route>) -> Vec<Route> {
    direct.truncate(STREAMS_MAX - relayed.len().min(STREAMS_MAX / 2));
    relayed.truncate(STREAMS_MAX - direct.len());
    direct.extend(relayed);
    direct
}

/// Maximum number of links over TLS per session; further routes are left out.
const STREAMS_MAX: usize = 4;
/// Time after an order to end the drive at which the sessions end even without a report of
/// standstill: by then a machine stands, from any speed of a road vehicle at 2 m/s^2.
const STANDSTILL_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_over_tls_come_last_and_only_if_they_are_wanted() {
        let locals: Vec<SocketAddr> = vec!["0.0.0.0:0".parse().unwrap(); 4];
        let mut peer: Vec<String> = (1..6).map(|port| format!("192.0.2.7:{port}")).collect();
        peer.push("tls:192.0.2.7:443".into());
        let over_tls = streams(&locals, &peer);
        assert_eq!(over_tls.len(), 4);
        let routes_to =
            |config: &Config| routes_to(config, &locals, &peer, &[], Vec::new(), over_tls.clone());
        let routes = routes_to(&Config::default());
        assert_eq!(routes.len(), 16);
        assert!(routes.iter().take(12).all(|route| route.stream_index().is_none()));
        assert!(routes.iter().skip(12).all(|route| route.stream_index().is_some()));
        let routes = routes_to(&Config { tls: false, ..Config::default() });
        assert_eq!(routes.len(), 16);
        assert!(routes.iter().all(|route| route.stream_index().is_none()));
    }

    #[test]
    fn relays_have_their_part_of_the_links_over_tls() {
        let routes = |port, count: u8| -> Vec<Route> {
            (0..count).map(|index| Route::stream(index, ([192, 0, 2, 7], port).into())).collect()
        };
        for (direct, relayed, taken) in
            [(4, 4, [2, 2]), (4, 0, [4, 0]), (0, 4, [0, 4]), (1, 4, [1, 3]), (4, 1, [3, 1])]
        {
            let found = some_of_each(routes(1, direct), routes(2, relayed));
            let count = |port| found.iter().filter(|route| route.remote.port() == port).count();
            assert_eq!([count(1), count(2)], taken, "{direct} {relayed}");
        }
    }
}
