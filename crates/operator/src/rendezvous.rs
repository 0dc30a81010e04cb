//! The operator's connection to the switchboard: it registers, takes its vehicle, and is introduced
//! to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tautline_message::{Control, Held, Refusal, SessionState};
use tautline_net::clock::Clock;
use tautline_net::control::{Client, Event};
use tautline_net::driver::Driver;
use tautline_net::{Destination, LogLimit, Relays, channels, latency, random, reach};
use tautline_transport::crypto::{Identity, PublicKey};
use tautline_transport::reach::{CANDIDATE_PAIRS_MAX, Candidate, candidate_pairs};
use tautline_transport::{Route, Seed, Session};
use tautline_units::Instant;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::config::Config;
use crate::console::Hub;
use crate::fleet::{Fleet, Word};
use crate::reception::{PICK, Shared};

/// Connection to the switchboard, and the state that its messages change.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    client: Client,
    events: mpsc::Receiver<Event>,
    candidates: watch::Receiver<Vec<Candidate>>,
    fleet: Fleet,
    hub: Arc<Hub>,
    choices: mpsc::Receiver<Choice>,
    relays: Relays,
    /// Newest introduction, until a missing answer of the vehicle is reported.
    introduced: Option<Introduced>,
    /// Lease, epoch and vehicle of the newest introduction, until the lease has ended.
    held: Option<Held>,
    /// Name of the lease of the vehicle released last, whose end is expected.
    left: Option<[u8; 16]>,
    /// Why the configured vehicle is refused, until the list of vehicles, which the report names,
    /// has arrived.
    refused: Option<String>,
    /// Time at which to ask again for a refused or lost vehicle.
    take_at: Option<Instant>,
    /// Number of refusals since the last introduction.
    refusals: u32,
    disconnections: LogLimit,
    troubles: LogLimit,
}

/// A person's choice of vehicle.
#[derive(Debug)]
pub(crate) enum Choice {
    /// Take this vehicle.
    Pick(String),
    /// Release the vehicle, to pick another.
    Leave,
}

/// An introduction whose vehicle may not have answered yet.
#[derive(Debug)]
struct Introduced {
    at: Instant,
    /// Description of the addresses used for hole punching.
    punched: String,
}

/// State of the session and its reason, as set by the switchboard's messages and the vehicle's
/// traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// State of the session with the vehicle, or of the way to it.
    pub state: SessionState,
    /// Reason for the state, in words for the operator; empty if there is none.
    pub reason: String,
}

impl Rendezvous {
    /// Connects to the switchboard, registers, and takes the configured vehicle or the one that
    /// `choices` pick from the list that `hub` shows. Reconnects automatically for as long as it
    /// exists.
    ///
    /// # Errors
    /// Fails if a key is malformed.
    pub(crate) fn start(
        config: &Config,
        identity: &Identity,
        driver: &Driver,
        clock: Clock,
        hub: Arc<Hub>,
        choices: mpsc::Receiver<Choice>,
    ) -> anyhow::Result<Self> {
        let candidates = driver.candidates();
        let register = register(config, driver, &candidates.borrow(), None);
        let fleet = Fleet::new(config)?;
        hub.show_fleet(&fleet.told());
        let (client, events) = Client::start_by(
            &config.links,
            config.switchboard.as_str(),
            config.switchboard_public_key()?,
            identity,
            vec![register, take(&fleet)],
            move |frame| latency::pong(frame, clock),
        )?;
        Ok(Self {
            client,
            events,
            candidates,
            fleet,
            hub,
            choices,
            relays: Relays::default(),
            introduced: None,
            held: None,
            left: None,
            refused: None,
            take_at: None,
            refusals: 0,
            disconnections: LogLimit::default(),
            troubles: LogLimit::default(),
        })
    }

    /// Waits for the next message of the switchboard and handles it; call it in a loop.
    ///
    /// No message ends this process, or a session whose vehicle is alive. An introduced session
    /// runs alongside, and a released or refused vehicle is taken again.
    ///
    /// # Errors
    /// Fails if the connection is no longer maintained.
    pub(crate) async fn step(
        &mut self,
        config: &Config,
        identity: &Identity,
        driver: &Driver,
        shared: &Shared,
        clock: Clock,
    ) -> anyhow::Result<()> {
        let take_in = self.take_at.map(|at| at.since(clock.now()));
        let heard_by = self.introduced.as_ref().map(|introduced| introduced.at + UNHEARD_MAX);
        let heard_in = heard_by.map(|at| at.since(clock.now()));
        let list_in = self.fleet.poll_timeout().map(|at| at.since(clock.now()));
        let event = tokio::select! {
            event = self.events.recv() => event,
            Ok(()) = self.candidates.changed() => {
                self.candidates.mark_unchanged();
                let register = self.greet(config, driver);
                // Without a connection nothing is sent; the next connection registers at its start.
                let _ = self.client.handle().send(register);
                return Ok(());
            }
            () = sleep(heard_in.unwrap_or_default()), if heard_in.is_some() => {
                self.tell_unheard(shared);
                return Ok(());
            }
            () = sleep(take_in.unwrap_or_default()), if take_in.is_some() => {
                self.take_at = None;
                // Without a connection nothing is sent; the next connection sends it at its start.
                let _ = self.client.handle().send(take(&self.fleet));
                return Ok(());
            }
            () = sleep(list_in.unwrap_or_default()), if list_in.is_some() => {
                self.fleet.on_asked(clock.now());
                // Without a connection nothing is sent; the end of the connection is reported
                // separately.
                let _ = self.client.handle().send(Control::ListVehicles.encode());
                return Ok(());
            }
            Some(choice) = self.choices.recv() => {
                self.handle_choice(choice, config, driver, shared, clock);
                return Ok(());
            }
        };
        match event {
            Some(Event::Frame(frame)) => {
                self.handle_frame(&frame, config, identity, driver, shared, clock)
            }
            Some(Event::Connected { by, servers, .. }) => {
                tracing::info!(switchboard = config.switchboard, by, "registered");
                self.handle_reached(true, clock.now());
                match self.fleet.picked() {
                    Some(name) => {
                        let why = format!("requesting {name} from the switchboard");
                        shared.set_waiting(SessionState::Waiting, &why);
                    }
                    None => shared.set_waiting(SessionState::Waiting, PICK),
                }
                if config.advertise.is_empty() {
                    driver.handle().find_addresses(servers);
                }
                Ok(())
            }
            Some(Event::Disconnected { error, retry_in }) => {
                let why = error.to_string();
                if let Some(left_out) = self.disconnections.take_of(&why, clock.now()) {
                    tracing::warn!(%error, ?retry_in, left_out, "cannot reach the switchboard");
                }
                self.handle_reached(false, clock.now());
                let why = format!("cannot reach the switchboard: {error}");
                shared.set_waiting(SessionState::Registering, &why);
                Ok(())
            }
            None => bail!("the connection to the switchboard ended"),
        }
    }

    /// Releases the vehicle, if there is one, and closes the connection to the switchboard.
    pub(crate) async fn close(self) {
        // The switchboard releases the vehicle by itself when the connection is lost.
        let _ = self.client.handle().send(Control::Release.encode());
        self.client.close().await;
    }

    fn handle_frame(
        &mut self,
        frame: &[u8],
        config: &Config,
        identity: &Identity,
        driver: &Driver,
        shared: &Shared,
        clock: Clock,
    ) -> anyhow::Result<()> {
        match Control::decode(frame) {
            Ok(Control::Introduce {
                lease,
                peer_name,
                peer_key,
                peer_versions,
                peer_candidates,
                epoch,
                ..
            }) => {
                if self.fleet.picked() != Some(peer_name.as_str()) {
                    self.tell(&format!("{peer_name} is not the requested vehicle"), clock);
                    if self.fleet.picked().is_none() {
                        // The lease is of an earlier run, or was on the way when the vehicle was
                        // released.
                        let _ = self.client.handle().send(Control::Release.encode());
                    }
                    return Ok(());
                }
                let punches = punch_targets(config, driver, &reach::from_message(&peer_candidates));
                if self.held.as_ref().is_some_and(|held| held.lease == Some(lease)) {
                    driver.handle().punch(lease, punches);
                    return Ok(());
                }
                let begun = known_vehicle(peer_key, &self.fleet, shared).and_then(|peer| {
                    let (transport, seed) = (config.transport.clone(), Seed::from(random::seed()?));
                    let now = clock.now();
                    let mut session =
                        Session::respond(transport, identity, peer, lease, seed, now)?;
                    session.punch(&punches, now);
                    channels::open(&mut session)?;
                    Ok(session)
                });
                match begun {
                    Ok(session) => {
                        tracing::info!(vehicle = peer_name, "introduced");
                        (self.take_at, self.refusals) = (None, 0);
                        shared.expect(lease);
                        self.held = Some(Held { lease: Some(lease), epoch, peer_key });
                        self.greet(config, driver);
                        let locals = driver.local_addresses();
                        let is_over_tls = driver.tls_address().is_some()
                            || !self.relays.streams(session.peer(), &locals).is_empty();
                        let punched = in_words(&punches, is_over_tls);
                        self.introduced = Some(Introduced { at: clock.now(), punched });
                        driver.handle().start(session);
                        let mismatch = channels::mismatch(peer_versions);
                        let why = mismatch.map(|mismatch| mismatch.told("the vehicle"));
                        let why = why.as_deref().unwrap_or("introduced to the vehicle");
                        shared.set_standing_unless_heard(SessionState::Connecting, why);
                    }
                    Err(error) => {
                        self.tell(&format!("no session with {peer_name}: {error:#}"), clock)
                    }
                }
                Ok(())
            }
            Ok(Control::Relays { peer_key, relays }) => {
                match self.relays.take(identity, peer_key, &relays) {
                    Ok(admission) => driver.handle().admit(admission),
                    Err(error) => self.tell(&format!("no relays: {error:#}"), clock),
                }
                Ok(())
            }
            // Released by a person, so its end is expected.
            Ok(Control::Released { lease, .. })
                if self.fleet.picked().is_none() || self.left == Some(lease) =>
            {
                Ok(())
            }
            Ok(Control::Released { reason, lease }) => {
                self.held.take_if(|held| held.lease == Some(lease));
                self.greet(config, driver);
                self.tell(&format!("the switchboard has ended the lease: {reason}"), clock);
                driver.handle().release();
                self.take_later(clock.now());
                shared.set_standing_unless_heard(SessionState::Lost, &reason);
                Ok(())
            }
            // The switchboard reserves the vehicle for us and introduces it when it registers.
            Ok(Control::Refused { reason_code: Refusal::VehicleAway, text }) => {
                shared.set_standing_unless_heard(SessionState::Waiting, &text);
                Ok(())
            }
            // Another operator has registered with this key, a copy of it. The text names both, and
            // the switchboard closes the connection of the second.
            Ok(Control::Refused { reason_code: Refusal::NameTaken, text }) => {
                self.tell(&text, clock);
                shared.set_standing_unless_heard(SessionState::Waiting, &text);
                Ok(())
            }
            Ok(Control::Refused { reason_code, text }) => {
                self.handle_refusal(reason_code, &text, config, driver, shared, clock)
            }
            Ok(Control::VehicleList { vehicles }) => {
                let Some(text) = self.refused.take() else {
                    self.fleet.handle_list(vehicles, clock.now());
                    self.hub.show_fleet(&self.fleet.told());
                    return Ok(());
                };
                let names: Vec<&str> = vehicles.iter().map(|entry| entry.name.as_str()).collect();
                // Asked again later: the vehicle may be admitted, or listed for this operator,
                // while the switchboard runs.
                let text =
                    format!("the switchboard refused: {text}; it knows: {}", names.join(", "));
                self.tell(&text, clock);
                self.take_later(clock.now());
                shared.set_standing_unless_heard(SessionState::Waiting, &text);
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) => {
                self.tell(&format!("the switchboard sent a malformed message: {error}"), clock);
                Ok(())
            }
        }
    }

    /// Handles a refusal by the switchboard: a vehicle that a person picked, and that has had no
    /// session, is given up; any other wanted one is requested again later.
    fn handle_refusal(
        &mut self,
        reason_code: Refusal,
        text: &str,
        config: &Config,
        driver: &Driver,
        shared: &Shared,
        clock: Clock,
    ) -> anyhow::Result<()> {
        let is_met = shared.vehicle_key().is_some();
        let text = match reason_code {
            Refusal::UnknownVehicle if !is_met && !self.fleet.is_by_person() => {
                self.refused = Some(text.to_owned());
                self.client.handle().send(Control::ListVehicles.encode())?;
                return Ok(());
            }
            _ => format!("the switchboard refused: {text}"),
        };
        if !is_met && self.fleet.is_by_person() {
            self.tell(&text, clock);
            self.fleet.handle_refused(reason_code.into(), clock.now());
            self.let_go(config, driver, shared);
            return Ok(());
        }
        self.tell(&text, clock);
        if self.fleet.picked().is_some() {
            self.take_later(clock.now());
        }
        shared.set_standing_unless_heard(SessionState::Waiting, &text);
        Ok(())
    }

    /// Carries out a person's choice, or shows on the consoles why not.
    fn handle_choice(
        &mut self,
        choice: Choice,
        config: &Config,
        driver: &Driver,
        shared: &Shared,
        clock: Clock,
    ) {
        let is_picked = self.fleet.picked().is_some();
        match choice {
            Choice::Pick(name) => match self.fleet.pick(&name) {
                Ok(()) if is_picked => {}
                Ok(()) => {
                    tracing::info!(vehicle = name, "picked on the console");
                    shared.set_vehicle(&name);
                    self.hub.set_vehicle(&name);
                    self.greet(config, driver);
                    // Without a connection nothing is sent; the next connection sends it at its
                    // start.
                    let _ = self.client.handle().send(take(&self.fleet));
                }
                Err(word) => {
                    self.tell(&format!("vehicle {name:?} cannot be driven: {word:?}"), clock)
                }
            },
            Choice::Leave if !is_picked => {}
            Choice::Leave if !shared.may_leave(clock.now()) => self.fleet.keep(Word::Moving),
            Choice::Leave => {
                tracing::info!(vehicle = shared.vehicle_name(), "released on the console");
                let key = shared.vehicle_key();
                self.fleet.leave(key, clock.now());
                self.let_go(config, driver, shared);
            }
        }
        self.hub.show_fleet(&self.fleet.told());
    }

    /// Ends the session with a released vehicle, and its lease. Its guard gets no further command,
    /// so it holds the machine.
    fn let_go(&mut self, config: &Config, driver: &Driver, shared: &Shared) {
        self.left = self.held.take().and_then(|held| held.lease);
        (self.introduced, self.take_at, self.refusals) = (None, None, 0);
        driver.handle().stop();
        shared.leave();
        self.hub.set_vehicle("");
        self.hub.show_fleet(&self.fleet.told());
        self.greet(config, driver);
        // Without a connection nothing is sent; the next connection sends it at its start.
        let _ = self.client.handle().send(take(&self.fleet));
    }

    fn handle_reached(&mut self, is_reached: bool, now: Instant) {
        self.fleet.set_reached(is_reached, now);
        self.hub.show_fleet(&self.fleet.told());
    }

    /// Sets what each new connection sends first: the registration and the request for the vehicle.
    /// Returns the registration.
    fn greet(&self, config: &Config, driver: &Driver) -> Vec<u8> {
        let register = register(config, driver, &self.candidates.borrow(), self.held.clone());
        self.client.handle().set_greeting(vec![register.clone(), take(&self.fleet)]);
        register
    }

    /// Schedules the next request for the vehicle, unless one is scheduled, with a longer pause
    /// each time.
    fn take_later(&mut self, now: Instant) {
        let pause = TAKE_PAUSE.saturating_mul(1 << self.refusals.min(8)).min(TAKE_PAUSE_MAX);
        self.refusals = self.refusals.saturating_add(1);
        self.take_at.get_or_insert(now + pause);
    }

    /// Reports that nothing has arrived from the introduced vehicle for 5 s, with the possible
    /// cause; does nothing if something has.
    fn tell_unheard(&mut self, shared: &Shared) {
        let Some(Introduced { punched, .. }) = self.introduced.take() else { return };
        let seconds = UNHEARD_MAX.as_secs();
        let text = format!("no UDP from the vehicle for {seconds} s: {punched}");
        if shared.set_unheard(&text) {
            tracing::warn!("{text}");
        }
    }

    fn tell(&mut self, trouble: &str, clock: Clock) {
        if let Some(left_out) = self.troubles.take_of(trouble, clock.now()) {
            tracing::warn!(left_out, "{trouble}");
        }
    }
}

/// Returns the addresses at which the vehicle reaches this end, configured or local, with those of
/// TLS last.
fn advertised(config: &Config, locals: &[SocketAddr], tls: Option<SocketAddr>) -> Vec<String> {
    let datagrams = if config.advertise.is_empty() { locals } else { &config.advertise };
    let streams = match config.tls_advertise.is_empty() {
        true => tls.as_slice(),
        false => config.tls_advertise.as_slice(),
    };
    let datagrams = datagrams.iter().copied().map(Destination::Datagrams);
    let streams = streams.iter().copied().map(Destination::Tls);
    datagrams.chain(streams).map(|destination| destination.to_string()).collect()
}

/// Returns the message that requests the wanted vehicle, or releases an earlier one if none is
/// wanted.
fn take(fleet: &Fleet) -> Vec<u8> {
    match fleet.picked() {
        Some(name) => Control::Take { vehicle_name: name.to_owned() }.encode(),
        None => Control::Release.encode(),
    }
}

/// Parses a vehicle's key, which must match the settings and an earlier session. The vehicle itself
/// knows its operators. An operator without a configured key relies on the switchboard for the
/// first key.
fn known_vehicle(key: [u8; 32], fleet: &Fleet, shared: &Shared) -> anyhow::Result<PublicKey> {
    let key = PublicKey::from_bytes(key).context("the switchboard sent no key")?;
    fleet.check_key(key)?;
    if let Some(known) = shared.vehicle_key().filter(|known| *known != key) {
        bail!("its key is {key}, and was {known}: restart this operator to connect to it");
    }
    Ok(key)
}

/// Returns the operator's registration, with its configured addresses or those known so far.
fn register(
    config: &Config,
    driver: &Driver,
    candidates: &[Candidate],
    held: Option<Held>,
) -> Vec<u8> {
    let register = Control::RegisterOperator {
        name: config.name.clone(),
        addresses: advertised(config, &driver.open_addresses(), driver.tls_address()),
        versions: channels::versions(),
        relays: true,
        candidates: reach::to_message(candidates),
        held,
    };
    register.encode()
}

/// Returns the routes for hole punching; none if the vehicle has to use a configured address.
fn punch_targets(config: &Config, driver: &Driver, candidates: &[Candidate]) -> Vec<Route> {
    if !config.advertise.is_empty() {
        return Vec::new();
    }
    let pairs = candidate_pairs(&driver.local_addresses(), candidates, CANDIDATE_PAIRS_MAX);
    pairs.into_iter().map(|pair| pair.route).collect()
}

/// Returns a text for people about the addresses tried and, if there is no TLS, the options that
/// remain where UDP is blocked.
fn in_words(punches: &[Route], is_over_tls: bool) -> String {
    let tried = match punches {
        [] => "it may be a firewall, or a wrong address given to the vehicle".to_owned(),
        punches => {
            let at: Vec<String> = punches.iter().map(|route| route.remote.to_string()).collect();
            format!("tried {}; UDP may be blocked, or both NATs need a relay", at.join(", "))
        }
    };
    match is_over_tls {
        true => tried,
        false => format!("{tried}. {NO_TLS}"),
    }
}

impl Standing {
    /// Creates a standing with its reason.
    pub(crate) fn new(state: SessionState, reason: &str) -> Self {
        Self { state, reason: reason.to_owned() }
    }
}

/// Remedy for a network that blocks UDP, if this end has no TLS.
const NO_TLS: &str = "There is no link over TLS to replace UDP: give this operator a TCP port \
                      with --tls 0.0.0.0:443 that the vehicle can reach, or a relay with `tls`";
/// Time after an introduction without a packet of the vehicle that is reported: longer than any
/// working candidate pair needs.
const UNHEARD_MAX: Duration = Duration::from_secs(5);
/// Pause before a refused or lost vehicle is requested again; it doubles each time, up to
/// [`TAKE_PAUSE_MAX`].
const TAKE_PAUSE: Duration = Duration::from_secs(1);
const TAKE_PAUSE_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tls_address_is_advertised_as_tls() {
        let locals = ["0.0.0.0:7000".parse().unwrap()];
        let tls = Some("0.0.0.0:443".parse().unwrap());
        let told = advertised(&Config::default(), &locals, tls);
        assert_eq!(told, ["0.0.0.0:7000", "tls:0.0.0.0:443"]);
        assert_eq!(advertised(&Config::default(), &locals, None), ["0.0.0.0:7000"]);
        let elsewhere = ["203.0.113.9:443".parse().unwrap()];
        let config = Config { tls_advertise: elsewhere.to_vec(), ..Config::default() };
        assert_eq!(advertised(&config, &locals, tls), ["0.0.0.0:7000", "tls:203.0.113.9:443"]);
        let nowhere = Config {
            switchboard_key: Identity::from_seed(&[1; 32]).public().to_string(),
            ..config
        };
        assert!(nowhere.validate().unwrap_err().to_string().contains("--tls"));
    }

    #[test]
    fn without_udp_the_advice_names_tls_unless_it_is_configured() {
        let route = Route { socket: 0, remote: "192.0.2.7:7".parse().unwrap() };
        for punches in [&[][..], &[route]] {
            assert!(in_words(punches, false).ends_with(NO_TLS));
            assert!(!in_words(punches, true).contains("TLS"));
        }
        assert!(in_words(&[route], true).starts_with("tried 192.0.2.7:7; "));
    }

    #[test]
    fn a_vehicle_with_another_key_than_the_one_that_is_set_is_none() {
        let [own, other] = [1, 2].map(|seed| Identity::from_seed(&[seed; 32]).public());
        let named = Config { vehicle: Some("car-1".into()), ..Config::default() };
        let (shared, open) = (Shared::new("car-1"), Fleet::new(&named).unwrap());
        assert_eq!(known_vehicle(*other.as_bytes(), &open, &shared).unwrap(), other);
        let set = Config { vehicle_key: Some(own.to_string()), ..named.clone() };
        let fleet = Fleet::new(&set).unwrap();
        assert_eq!(known_vehicle(*own.as_bytes(), &fleet, &shared).unwrap(), own);
        let refused = known_vehicle(*other.as_bytes(), &fleet, &shared).unwrap_err().to_string();
        assert_eq!(refused, format!("its key is {other}, but the one known here is {own}"));
        let malformed = Config { vehicle_key: Some("ab".into()), ..named };
        assert!(malformed.vehicle_public_key().unwrap_err().to_string().contains("vehicle_key"));
    }
}
