//! The operator at the switchboard: it registers, takes its vehicle, and is introduced to it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use tautline_message::{Control, Held, Refusal, SessionState};
use tautline_net::clock::Clock;
use tautline_net::control::{Client, Event};
use tautline_net::driver::Driver;
use tautline_net::{Destination, LogLimit, Relays, channels, latency, random, reach};
use tautline_transport::crypto::{Identity, PublicKey};
use tautline_transport::reach::{Candidate, WAYS_MAX, ways};
use tautline_transport::{Route, Seed, Session};
use tautline_units::Instant;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::config::Config;
use crate::reception::Shared;

/// The connection to the switchboard, and what follows from what it says.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    client: Client,
    events: mpsc::Receiver<Event>,
    candidates: watch::Receiver<Vec<Candidate>>,
    take: Vec<u8>,
    relays: Relays,
    /// The newest introduction, until it is told that nothing has come of it, if that is so.
    introduced: Option<Introduced>,
    /// Its lease, until that has ended.
    held: Option<Held>,
    refused: Option<String>,
    /// When the vehicle is taken again that was refused or released.
    take_at: Option<Instant>,
    /// How often it was refused since it was introduced.
    refusals: u32,
    disconnections: LogLimit,
    troubles: LogLimit,
}

/// An introduction of which nothing may have come.
#[derive(Debug)]
struct Introduced {
    at: Instant,
    /// Where the vehicle is knocked at, in words.
    knocked: String,
}

/// What the switchboard's last word means for the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Where the session stands.
    pub state: SessionState,
    /// Why, in words for the operator.
    pub reason: String,
}

impl Rendezvous {
    /// Starts to register and to take the vehicle; connects again by itself for as long as it
    /// lives.
    ///
    /// # Errors
    /// When the switchboard's key is malformed.
    pub(crate) fn start(
        config: &Config,
        identity: &Identity,
        driver: &Driver,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let candidates = driver.candidates();
        let register = register(config, driver, &candidates.borrow(), None);
        let take = Control::Take { vehicle_name: config.vehicle.clone() }.encode();
        let (client, events) = Client::start(
            config.switchboard.as_str(),
            config.switchboard_public_key()?,
            identity,
            vec![register, take.clone()],
            move |frame| latency::pong(frame, clock),
        )?;
        Ok(Self {
            client,
            events,
            candidates,
            take,
            relays: Relays::default(),
            introduced: None,
            held: None,
            refused: None,
            take_at: None,
            refusals: 0,
            disconnections: LogLimit::default(),
            troubles: LogLimit::default(),
        })
    }

    /// Waits for the next word of the switchboard and acts on it; call it again and again.
    ///
    /// Nothing that it says ends a session whose vehicle is heard: what it introduces runs beside, and a
    /// vehicle that it releases or refuses is taken again.
    ///
    /// # Errors
    /// When there has been no session yet and the vehicle cannot be had: unknown, or not for this key.
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
        let event = tokio::select! {
            event = self.events.recv() => event,
            Ok(()) = self.candidates.changed() => {
                self.candidates.mark_unchanged();
                let register = self.greet(config, driver);
                // Without a connection it is said with the next.
                let _ = self.client.handle().send(register);
                return Ok(());
            }
            () = sleep(heard_in.unwrap_or_default()), if heard_in.is_some() => {
                self.tell_unheard(shared);
                return Ok(());
            }
            () = sleep(take_in.unwrap_or_default()), if take_in.is_some() => {
                self.take_at = None;
                // Without a connection it is said anew, first of all, with the next.
                let _ = self.client.handle().send(self.take.clone());
                return Ok(());
            }
        };
        match event {
            Some(Event::Frame(frame)) => {
                self.handle_frame(&frame, config, identity, driver, shared, clock)
            }
            Some(Event::Connected { .. }) => {
                tracing::info!(switchboard = config.switchboard, "registered");
                if config.advertise.is_empty() {
                    driver.handle().find_addresses(reach::servers(&config.switchboard).await);
                }
                Ok(())
            }
            Some(Event::Disconnected { error, retry_in }) => {
                if let Some(left_out) = self.disconnections.take(clock.now()) {
                    tracing::warn!(%error, ?retry_in, left_out, "the switchboard is not reached");
                }
                Ok(())
            }
            None => bail!("the connection to the switchboard ended"),
        }
    }

    /// Lets go of the vehicle and says goodbye.
    pub(crate) async fn close(self) {
        // A connection that is gone has let go already.
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
                let knocks = knocks(config, driver, &reach::from_message(&peer_candidates));
                if self.held.as_ref().is_some_and(|held| held.lease == Some(lease)) {
                    driver.handle().knock(lease, knocks);
                    return Ok(());
                }
                let begun = known_vehicle(peer_key, config, shared).and_then(|peer| {
                    let (transport, seed) = (config.transport.clone(), Seed::from(random::seed()?));
                    let now = clock.now();
                    let mut session =
                        Session::respond(transport, identity, peer, lease, seed, now)?;
                    session.knock(&knocks, now);
                    channels::open(&mut session)?;
                    Ok(session)
                });
                match begun {
                    Ok(session) => {
                        tracing::info!(vehicle = peer_name, "introduced");
                        (self.take_at, self.refusals) = (None, 0);
                        self.held = Some(Held { lease: Some(lease), epoch, peer_key });
                        self.greet(config, driver);
                        self.introduced =
                            Some(Introduced { at: clock.now(), knocked: in_words(&knocks) });
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
            Ok(Control::Released { reason, lease }) => {
                self.held.take_if(|held| held.lease == Some(lease));
                self.greet(config, driver);
                self.tell(&format!("the switchboard has ended the lease: {reason}"), clock);
                driver.handle().release();
                self.take_later(clock.now());
                shared.set_standing_unless_heard(SessionState::Lost, &reason);
                Ok(())
            }
            // The switchboard keeps the vehicle for us and introduces it when it comes.
            Ok(Control::Refused { reason_code: Refusal::VehicleAway, text }) => {
                shared.set_standing_unless_heard(SessionState::Waiting, &text);
                Ok(())
            }
            Ok(Control::Refused { reason_code: Refusal::UnknownVehicle, text })
                if shared.vehicle_key().is_none() =>
            {
                self.refused = Some(text);
                self.client.handle().send(Control::ListVehicles.encode())?;
                Ok(())
            }
            Ok(Control::Refused { reason_code, text }) => {
                let text = format!("the switchboard refuses: {text}");
                // Who drives will have driven.
                if shared.vehicle_key().is_none() && reason_code != Refusal::VehicleTaken {
                    bail!(text);
                }
                self.tell(&text, clock);
                self.take_later(clock.now());
                shared.set_standing_unless_heard(SessionState::Waiting, &text);
                Ok(())
            }
            Ok(Control::VehicleList { vehicles }) => {
                let Some(text) = self.refused.take() else { return Ok(()) };
                let names: Vec<&str> = vehicles.iter().map(|entry| entry.name.as_str()).collect();
                bail!("the switchboard refuses: {text}; it knows: {}", names.join(", "))
            }
            Ok(_) => Ok(()),
            Err(error) => {
                self.tell(&format!("the switchboard sent a malformed message: {error}"), clock);
                Ok(())
            }
        }
    }

    /// Sets what is said with the next connection, and returns the first of it.
    fn greet(&self, config: &Config, driver: &Driver) -> Vec<u8> {
        let register = register(config, driver, &self.candidates.borrow(), self.held.clone());
        self.client.handle().set_greeting(vec![register.clone(), self.take.clone()]);
        register
    }

    /// Takes the vehicle again after a while, a longer one each time.
    fn take_later(&mut self, now: Instant) {
        let pause = TAKE_PAUSE.saturating_mul(1 << self.refusals.min(8)).min(TAKE_PAUSE_MAX);
        self.refusals = self.refusals.saturating_add(1);
        self.take_at.get_or_insert(now + pause);
    }

    /// Says that nothing has come of the vehicle, if that is so, and what may be the cause.
    fn tell_unheard(&mut self, shared: &Shared) {
        let Some(Introduced { knocked, .. }) = self.introduced.take() else { return };
        let seconds = UNHEARD_MAX.as_secs();
        let text = format!("no UDP from the vehicle for {seconds} s: {knocked}");
        if shared.set_unheard(&text) {
            tracing::warn!("{text}");
        }
    }

    fn tell(&mut self, trouble: &str, clock: Clock) {
        if let Some(left_out) = self.troubles.take(clock.now()) {
            tracing::warn!(left_out, "{trouble}");
        }
    }
}

/// Returns where the vehicle reaches this end, as the switchboard is told.
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

/// Reads a vehicle's key, which must be the one of the settings and the one met before. The vehicle knows
/// its operators by itself; an operator that has no key in its settings has only the switchboard's word for
/// the first.
fn known_vehicle(key: [u8; 32], config: &Config, shared: &Shared) -> anyhow::Result<PublicKey> {
    let key = PublicKey::from_bytes(key).context("the switchboard tells no key")?;
    if let Some(set) = config.vehicle_public_key()?.filter(|set| *set != key) {
        bail!("its key is {key}, and vehicle_key is {set}");
    }
    if let Some(known) = shared.vehicle_key().filter(|known| *known != key) {
        bail!("its key is {key}, and was {known}: start this operator anew to meet it");
    }
    Ok(key)
}

/// Returns what the operator says of itself: also where it may be reached, as far as that is found out and
/// nobody has set it.
fn register(
    config: &Config,
    driver: &Driver,
    candidates: &[Candidate],
    held: Option<Held>,
) -> Vec<u8> {
    let register = Control::RegisterOperator {
        name: config.name.clone(),
        addresses: advertised(config, driver.local_addresses(), driver.tls_address()),
        versions: channels::versions(),
        relays: true,
        candidates: reach::to_message(candidates),
        held,
    };
    register.encode()
}

/// Returns where to knock: nowhere if it is set where the vehicle reaches us, for then it has to go there.
fn knocks(config: &Config, driver: &Driver, candidates: &[Candidate]) -> Vec<Route> {
    if !config.advertise.is_empty() {
        return Vec::new();
    }
    let ways = ways(driver.local_addresses(), candidates, WAYS_MAX);
    ways.into_iter().map(|way| way.route).collect()
}

/// Returns for people what was tried.
fn in_words(knocks: &[Route]) -> String {
    if knocks.is_empty() {
        return "is it a firewall, or the address that it was told?".to_owned();
    }
    let at: Vec<String> = knocks.iter().map(|route| route.remote.to_string()).collect();
    format!("tried {}; UDP may be blocked, or both NATs need a relay", at.join(", "))
}

impl Standing {
    /// Makes a standing and its reason.
    pub(crate) fn new(state: SessionState, reason: &str) -> Self {
        Self { state, reason: reason.to_owned() }
    }
}

/// Longer than any way takes that works.
const UNHEARD_MAX: Duration = Duration::from_secs(5);
/// Until a vehicle that was refused or released is taken again; twice as long each time.
const TAKE_PAUSE: Duration = Duration::from_secs(1);
const TAKE_PAUSE_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_listens_for_tls_is_advertised_as_such() {
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
    fn a_vehicle_with_another_key_than_the_one_that_is_set_is_none() {
        let [own, other] = [1, 2].map(|seed| Identity::from_seed(&[seed; 32]).public());
        let (shared, open) = (Shared::new("car-1"), Config::default());
        assert_eq!(known_vehicle(*other.as_bytes(), &open, &shared).unwrap(), other);
        let set = Config { vehicle_key: Some(own.to_string()), ..Config::default() };
        assert_eq!(known_vehicle(*own.as_bytes(), &set, &shared).unwrap(), own);
        let refused = known_vehicle(*other.as_bytes(), &set, &shared).unwrap_err().to_string();
        assert_eq!(refused, format!("its key is {other}, and vehicle_key is {own}"));
        let malformed = Config { vehicle_key: Some("ab".into()), ..Config::default() };
        assert!(malformed.vehicle_public_key().unwrap_err().to_string().contains("vehicle_key"));
    }
}
