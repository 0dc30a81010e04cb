//! The operator at the switchboard: it registers, takes its vehicle, and is introduced to it.

use std::net::SocketAddr;

use anyhow::bail;
use tautline_message::{Control, Refusal, SessionState};
use tautline_net::control::{Client, Event};
use tautline_net::driver::Driver;
use tautline_net::{channels, random};
use tautline_transport::crypto::{Identity, PublicKey};
use tautline_transport::{Seed, Session};
use tautline_units::Instant;
use tokio::sync::mpsc;

use crate::config::Config;

/// The connection to the switchboard, and what follows from what it says.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    client: Client,
    events: mpsc::Receiver<Event>,
    take: Vec<u8>,
    refused: Option<String>,
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
        locals: &[SocketAddr],
    ) -> anyhow::Result<Self> {
        let advertise = if config.advertise.is_empty() { locals } else { &config.advertise };
        let addresses = advertise.iter().map(ToString::to_string).collect();
        let register = Control::RegisterOperator {
            name: config.name.clone(),
            addresses,
            versions: channels::versions(),
        };
        let take = Control::Take { vehicle_name: config.vehicle.clone() }.encode();
        let (client, events) = Client::start(
            config.switchboard.as_str(),
            config.switchboard_public_key()?,
            identity,
            vec![register.encode(), take.clone()],
            |frame| match Control::decode(frame) {
                Ok(Control::Ping { t }) => Some(Control::Pong { t }.encode()),
                Ok(_) | Err(_) => None,
            },
        )?;
        Ok(Self { client, events, take, refused: None })
    }

    /// Waits for the next word of the switchboard and acts on it; call it again and again. Gives
    /// where the session stands when that has changed.
    ///
    /// # Errors
    /// When the vehicle cannot be had: unknown, another's, or not for this key.
    pub(crate) async fn step(
        &mut self,
        config: &Config,
        identity: &Identity,
        driver: &Driver,
        now: impl Fn() -> Instant,
    ) -> anyhow::Result<Option<Standing>> {
        match self.events.recv().await {
            Some(Event::Frame(frame)) => self.handle_frame(&frame, config, identity, driver, now()),
            Some(Event::Connected { .. }) => {
                tracing::info!(switchboard = config.switchboard, "registered");
                Ok(None)
            }
            Some(Event::Disconnected { error, retry_in }) => {
                tracing::warn!(%error, ?retry_in, "the switchboard is not reached");
                Ok(None)
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
        now: Instant,
    ) -> anyhow::Result<Option<Standing>> {
        let handle = self.client.handle();
        match Control::decode(frame) {
            Ok(Control::Introduce { lease, peer_name, peer_key, peer_versions, .. }) => {
                let peer = PublicKey::from_bytes(peer_key)?;
                let seed = Seed::from(random::seed()?);
                let transport = config.transport.clone();
                let mut session = Session::respond(transport, identity, peer, lease, seed, now)?;
                channels::open(&mut session)?;
                tracing::info!(vehicle = peer_name, "introduced");
                driver.handle().start(session);
                let mismatch = channels::mismatch(peer_versions);
                let why = mismatch.map(|mismatch| mismatch.told("the vehicle"));
                let why = why.as_deref().unwrap_or("introduced to the vehicle");
                Ok(Some(Standing::new(SessionState::Connecting, why)))
            }
            Ok(Control::Released { reason, .. }) => {
                tracing::warn!(reason, "released");
                driver.handle().stop();
                handle.send(self.take.clone())?;
                Ok(Some(Standing::new(SessionState::Lost, &reason)))
            }
            // The switchboard keeps the vehicle for us and introduces it when it comes.
            Ok(Control::Refused { reason_code: Refusal::VehicleAway, text }) => {
                Ok(Some(Standing::new(SessionState::Waiting, &text)))
            }
            Ok(Control::Refused { reason_code: Refusal::UnknownVehicle, text }) => {
                self.refused = Some(text);
                handle.send(Control::ListVehicles.encode())?;
                Ok(None)
            }
            Ok(Control::Refused { text, .. }) => bail!("the switchboard refuses: {text}"),
            Ok(Control::VehicleList { vehicles }) => {
                let Some(text) = self.refused.take() else { return Ok(None) };
                let names: Vec<&str> = vehicles.iter().map(|entry| entry.name.as_str()).collect();
                bail!("the switchboard refuses: {text}; it knows: {}", names.join(", "))
            }
            Ok(_) => Ok(None),
            Err(error) => {
                tracing::warn!(%error, "the switchboard sent a malformed message");
                Ok(None)
            }
        }
    }
}

impl Standing {
    /// Makes a standing and its reason.
    pub(crate) fn new(state: SessionState, reason: &str) -> Self {
        Self { state, reason: reason.to_owned() }
    }
}
