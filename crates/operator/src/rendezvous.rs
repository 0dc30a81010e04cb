//! The operator's connection to the switchboard: it registers, takes its vehicle, and is introduced
//! to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tautline_message::{Control, Held, ProtocolVersions, Refusal, SessionState, VehicleEntry};
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
    /// Newest introduction, until a missing answer of the vehicle is reported; `None` otherwise.
    introduced: Option<Introduced>,
    /// Lease, epoch and vehicle of the newest introduction; `None` before the first, and once the
    /// lease has ended.
    held: Option<Held>,
    /// Name of the lease of the vehicle released last, while its end is expected; `None` otherwise.
    left: Option<[u8; 16]>,
    /// Reason for which the switchboard refused the configured vehicle, until the list of vehicles
    /// that completes the report has arrived; `None` otherwise.
    refused: Option<String>,
    /// Time at which to request a refused or lost vehicle again; `None` if no request is scheduled.
    take_at: Option<Instant>,
    /// Number of refusals and ended leases since the last introduction.
    refusals: u32,
    disconnections: LogLimit,
    troubles: LogLimit,
}

/// The operator's own parts, which messages of the switchboard act on.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    /// Settings of this operator.
    pub config: &'a Config,
    /// Key of this operator.
    pub identity: &'a Identity,
    /// Event loop of the sessions.
    pub driver: &'a Driver,
    /// State that the session and the pages share.
    pub shared: &'a Shared,
    /// Clock of this process, for all instants here.
    pub clock: Clock,
}

/// A vehicle, as the switchboard introduces it.
#[derive(Debug)]
struct Peer {
    name: String,
    key: [u8; 32],
    versions: Option<ProtocolVersions>,
    candidates: Vec<tautline_message::Candidate>,
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

impl Rendezvous {
    /// Connects to the switchboard, registers, and takes the configured vehicle or the one that
    /// `choices` pick from the list that `hub` shows. Reconnects automatically for as long as it
    /// exists.
    ///
    /// # Errors
    /// Fails if a key or the switchboard's address is malformed, or if a vehicle has two different
    /// keys.
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

    /// Waits for the next event and handles it: a message of the switchboard, a choice of a person,
    /// a change of this end's addresses, or a request that is due. Call it in a loop.
    ///
    /// No message ends this process, or a session whose vehicle is alive. An introduced session
    /// runs alongside, and a vehicle whose lease has ended is requested again. So is a refused one,
    /// unless a person picked it and it has had no session.
    ///
    /// # Errors
    /// Fails if the connection is no longer maintained.
    pub(crate) async fn step(&mut self, own: &Own<'_>) -> anyhow::Result<()> {
        let now = own.clock.now();
        let take_in = self.take_at.map(|at| at.since(now));
        let heard_by = self.introduced.as_ref().map(|introduced| introduced.at + UNHEARD_MAX);
        let heard_in = heard_by.map(|at| at.since(now));
        let list_in = self.fleet.poll_timeout().map(|at| at.since(now));
        tokio::select! {
            event = self.events.recv() => return self.handle_event(event, own),
            Ok(()) = self.candidates.changed() => {
                self.candidates.mark_unchanged();
                let register = self.greet(own);
                // Without a connection nothing is sent; the next connection registers at its start.
                let _ = self.client.handle().send(register);
            }
            () = sleep(heard_in.unwrap_or_default()), if heard_in.is_some() => {
                self.tell_unheard(own.shared);
            }
            () = sleep(take_in.unwrap_or_default()), if take_in.is_some() => {
                self.take_at = None;
                // Without a connection nothing is sent; the next connection sends it at its start.
                let _ = self.client.handle().send(take(&self.fleet));
            }
            () = sleep(list_in.unwrap_or_default()), if list_in.is_some() => {
                self.fleet.on_asked(own.clock.now());
                // Without a connection nothing is sent; the end of the connection is reported
                // separately.
                let _ = self.client.handle().send(Control::ListVehicles.encode());
            }
            Some(choice) = self.choices.recv() => self.handle_choice(choice, own),
        }
        Ok(())
    }

    /// Releases the vehicle, if there is one, and closes the connection to the switchboard.
    pub(crate) async fn close(self) {
        // The switchboard releases the vehicle by itself when the connection is lost.
        let _ = self.client.handle().send(Control::Release.encode());
        self.client.close().await;
    }

    /// Handles an event of the connection; fails for `None`, because the connection is then no
    /// longer maintained.
    fn handle_event(&mut self, event: Option<Event>, own: &Own<'_>) -> anyhow::Result<()> {
        let (config, shared, now) = (own.config, own.shared, own.clock.now());
        match event {
            Some(Event::Frame(frame)) => self.handle_frame(&frame, own)?,
            Some(Event::Connected { by, servers, .. }) => {
                tracing::info!(switchboard = config.switchboard, by, "registered");
                self.handle_reached(true, now);
                match self.fleet.picked() {
                    Some(name) => {
                        let why = format!("requesting {name} from the switchboard");
                        shared.set_waiting(SessionState::Waiting, &why);
                    }
                    None => shared.set_waiting(SessionState::Waiting, PICK),
                }
                if config.advertise.is_empty() {
                    own.driver.handle().find_addresses(servers);
                }
            }
            Some(Event::Disconnected { error, retry_in }) => {
                let why = error.to_string();
                if let Some(left_out) = self.disconnections.take_of(&why, now) {
                    tracing::warn!(%error, ?retry_in, left_out, "cannot reach the switchboard");
                }
                self.handle_reached(false, now);
                let why = format!("cannot reach the switchboard: {error}");
                shared.set_waiting(SessionState::Registering, &why);
            }
            None => bail!("the connection to the switchboard ended"),
        }
        Ok(())
    }

    fn handle_frame(&mut self, frame: &[u8], own: &Own<'_>) -> anyhow::Result<()> {
        let (shared, clock) = (own.shared, own.clock);
        let control = match Control::decode(frame) {
            Ok(control) => control,
            Err(error) => {
                self.tell(&format!("the switchboard sent a malformed message: {error}"), clock);
                return Ok(());
            }
        };
        match control {
            Control::Introduce {
                lease,
                peer_name: name,
                peer_key: key,
                peer_versions: versions,
                peer_candidates: candidates,
                epoch,
                ..
            } => {
                let peer = Peer { name, key, versions, candidates };
                self.handle_introduction(lease, epoch, &peer, own);
            }
            Control::Relays { peer_key, relays } => {
                match self.relays.take(own.identity, peer_key, &relays) {
                    Ok(admission) => own.driver.handle().admit(admission),
                    Err(error) => self.tell(&format!("no relays: {error:#}"), clock),
                }
            }
            Control::Released { lease, reason } => self.handle_release(lease, &reason, own),
            // The switchboard reserves the vehicle for us and introduces it when it registers.
            Control::Refused { reason_code: Refusal::VehicleAway, text } => {
                shared.set_standing_unless_heard(SessionState::Waiting, &text);
            }
            // Another operator has registered with this key, a copy of it. The text names both, and
            // the switchboard closes the connection of the second.
            Control::Refused { reason_code: Refusal::NameTaken, text } => {
                self.tell(&text, clock);
                shared.set_standing_unless_heard(SessionState::Waiting, &text);
            }
            Control::Refused { reason_code, text } => {
                return self.handle_refusal(reason_code, &text, own);
            }
            Control::VehicleList { vehicles } => self.handle_list(vehicles, own),
            _ => {}
        }
        Ok(())
    }

    /// Begins a session with the introduced vehicle or, if it has one under this lease, punches
    /// holes to its further addresses. Releases the vehicle if none is wanted, and ignores one that
    /// is not the wanted one. Only logs why a session cannot begin.
    fn handle_introduction(&mut self, lease: [u8; 16], epoch: u64, peer: &Peer, own: &Own<'_>) {
        let Own { config, driver, clock, .. } = *own;
        let name = &peer.name;
        if self.fleet.picked() != Some(name.as_str()) {
            self.tell(&format!("{name} is not the requested vehicle"), clock);
            if self.fleet.picked().is_none() {
                // The lease is of an earlier run, or was on the way when the vehicle was
                // released.
                let _ = self.client.handle().send(Control::Release.encode());
            }
            return;
        }
        let punches = punch_targets(config, driver, &reach::from_message(&peer.candidates));
        if self.held.as_ref().is_some_and(|held| held.lease == Some(lease)) {
            driver.handle().punch(lease, punches);
            return;
        }
        let session = match self.respond(lease, peer, &punches, own) {
            Ok(session) => session,
            Err(error) => {
                self.tell(&format!("no session with {name}: {error:#}"), clock);
                return;
            }
        };
        tracing::info!(vehicle = name, "introduced");
        (self.take_at, self.refusals) = (None, 0);
        own.shared.expect(lease);
        self.held = Some(Held { lease: Some(lease), epoch, peer_key: peer.key });
        self.greet(own);
        let locals = driver.local_addresses();
        let is_over_tls = driver.tls_address().is_some()
            || !self.relays.streams(session.peer(), &locals).is_empty();
        let punched = in_words(&punches, is_over_tls);
        self.introduced = Some(Introduced { at: clock.now(), punched });
        driver.handle().start(session);
        let mismatch = channels::mismatch(peer.versions);
        let why = mismatch.map(|mismatch| mismatch.told("the vehicle"));
        let why = why.as_deref().unwrap_or("introduced to the vehicle");
        own.shared.set_standing_unless_heard(SessionState::Connecting, why);
    }

    /// Creates the session that answers an introduced vehicle.
    fn respond(
        &self,
        lease: [u8; 16],
        peer: &Peer,
        punches: &[Route],
        own: &Own<'_>,
    ) -> anyhow::Result<Session> {
        let key = known_vehicle(peer.key, &self.fleet, own.shared)?;
        let (transport, seed) = (own.config.transport.clone(), Seed::from(random::seed()?));
        let now = own.clock.now();
        let mut session = Session::respond(transport, own.identity, key, lease, seed, now)?;
        session.punch(punches, now);
        channels::open(&mut session)?;
        Ok(session)
    }

    /// Handles the end of a lease: the vehicle is requested again after a pause. Does nothing if no
    /// vehicle is wanted, or if a person released the vehicle of this lease.
    fn handle_release(&mut self, lease: [u8; 16], reason: &str, own: &Own<'_>) {
        if self.fleet.picked().is_none() || self.left == Some(lease) {
            return;
        }
        self.held.take_if(|held| held.lease == Some(lease));
        self.greet(own);
        self.tell(&format!("the switchboard has ended the lease: {reason}"), own.clock);
        own.driver.handle().release();
        self.take_later(own.clock.now());
        own.shared.set_standing_unless_heard(SessionState::Lost, reason);
    }

    /// Reports a pending refusal together with the names in the list, and schedules a new request
    /// for the vehicle. Without a pending refusal, shows the list on the consoles.
    fn handle_list(&mut self, vehicles: Vec<VehicleEntry>, own: &Own<'_>) {
        let now = own.clock.now();
        let Some(text) = self.refused.take() else {
            self.fleet.handle_list(vehicles, now);
            self.hub.show_fleet(&self.fleet.told());
            return;
        };
        let names: Vec<&str> = vehicles.iter().map(|entry| entry.name.as_str()).collect();
        // Asked again later: the vehicle may be admitted, or listed for this operator, while the
        // switchboard runs.
        let text = format!("the switchboard refused: {text}; it knows: {}", names.join(", "));
        self.tell(&text, own.clock);
        self.take_later(now);
        own.shared.set_standing_unless_heard(SessionState::Waiting, &text);
    }

    /// Handles a refusal by the switchboard: a vehicle that a person picked, and that has had no
    /// session, is given up; any other wanted one is requested again later. For an unknown vehicle
    /// of the settings, the list of vehicles is requested first, for the report.
    fn handle_refusal(
        &mut self,
        reason_code: Refusal,
        text: &str,
        own: &Own<'_>,
    ) -> anyhow::Result<()> {
        let (shared, clock) = (own.shared, own.clock);
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
            self.let_go(own);
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
    fn handle_choice(&mut self, choice: Choice, own: &Own<'_>) {
        let (shared, clock) = (own.shared, own.clock);
        let is_picked = self.fleet.picked().is_some();
        match choice {
            Choice::Pick(name) => match self.fleet.pick(&name) {
                Ok(()) if is_picked => {}
                Ok(()) => {
                    tracing::info!(vehicle = name, "picked on the console");
                    shared.set_vehicle(&name);
                    self.hub.set_vehicle(&name);
                    self.greet(own);
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
                self.let_go(own);
            }
        }
        self.hub.show_fleet(&self.fleet.told());
    }

    /// Ends the session with a released vehicle, and its lease. Its guard gets no further command,
    /// so it holds the machine.
    fn let_go(&mut self, own: &Own<'_>) {
        self.left = self.held.take().and_then(|held| held.lease);
        (self.introduced, self.take_at, self.refusals) = (None, None, 0);
        own.driver.handle().stop();
        own.shared.leave();
        self.hub.set_vehicle("");
        self.hub.show_fleet(&self.fleet.told());
        self.greet(own);
        // Without a connection nothing is sent; the next connection sends it at its start.
        let _ = self.client.handle().send(take(&self.fleet));
    }

    fn handle_reached(&mut self, is_reached: bool, now: Instant) {
        self.fleet.set_reached(is_reached, now);
        self.hub.show_fleet(&self.fleet.told());
    }

    /// Sets what each new connection sends first: the registration and the request for the vehicle.
    /// Returns the registration.
    fn greet(&self, own: &Own<'_>) -> Vec<u8> {
        let candidates = self.candidates.borrow();
        let register = register(own.config, own.driver, &candidates, self.held.clone());
        self.client.handle().set_greeting(vec![register.clone(), take(&self.fleet)]);
        register
    }

    /// Schedules the next request for the vehicle, unless one is scheduled, after a pause of 1 s
    /// that doubles with each refusal since the last introduction, up to 30 s.
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

/// Returns the operator's registration, with its configured addresses or those known so far, and
/// the lease that it holds.
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

/// Remedy for a network that blocks UDP, if this end has no TLS.
const NO_TLS: &str = "There is no link over TLS to replace UDP: give this operator a TCP port \
                      with --tls 0.0.0.0:443 that the vehicle can reach, or a relay with `tls`";
/// Time after an introduction at which a vehicle without any packet so far is reported: longer than
/// any working candidate pair needs.
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
