//! The vehicle at the switchboard: it registers, and is introduced to its operator.

use anyhow::bail;
use tautline_message::Control;
use tautline_net::control::{Client, Event};
use tautline_net::driver::Driver;
use tautline_net::{channels, random, routes};
use tautline_transport::crypto::{Identity, PublicKey};
use tautline_transport::{Seed, Session};
use tautline_units::{Bitrate, Instant};
use tokio::sync::mpsc;

use crate::config::Config;
use crate::encode::EncoderControl;

/// The connection to the switchboard, and what follows from what it says.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    client: Client,
    events: mpsc::Receiver<Event>,
    operators: Vec<PublicKey>,
}

impl Rendezvous {
    /// Starts to register; connects again by itself for as long as it lives.
    ///
    /// # Errors
    /// When a configured key is malformed.
    pub(crate) fn start(
        config: &Config,
        identity: &Identity,
        driver: &Driver,
    ) -> anyhow::Result<Self> {
        let addresses = driver.local_addresses().iter().map(ToString::to_string).collect();
        let register = Control::RegisterVehicle {
            name: config.name.clone(),
            addresses,
            versions: channels::versions(),
        };
        let key = config.switchboard_public_key()?;
        let (client, events) = Client::start(
            config.switchboard.as_str(),
            key,
            identity,
            vec![register.encode()],
            |frame| match Control::decode(frame) {
                Ok(Control::Ping { t }) => Some(Control::Pong { t }.encode()),
                Ok(_) | Err(_) => None,
            },
        )?;
        Ok(Self { client, events, operators: config.operator_keys()? })
    }

    /// Waits for the next word of the switchboard and acts on it; call it again and again.
    ///
    /// # Errors
    /// When the switchboard will not have this vehicle: in its words, why.
    pub(crate) async fn step(
        &mut self,
        config: &Config,
        identity: &Identity,
        driver: &Driver,
        control: &EncoderControl,
        now: impl Fn() -> Instant,
    ) -> anyhow::Result<()> {
        let frame = match self.events.recv().await {
            Some(Event::Frame(frame)) => frame,
            Some(Event::Connected { .. }) => {
                tracing::info!(switchboard = config.switchboard, "registered");
                return Ok(());
            }
            Some(Event::Disconnected { error, retry_in }) => {
                tracing::warn!(%error, ?retry_in, "the switchboard is not reached");
                return Ok(());
            }
            None => bail!("the connection to the switchboard ended"),
        };
        match Control::decode(&frame) {
            Ok(Control::Introduce {
                lease,
                peer_name,
                peer_key,
                peer_addresses,
                peer_versions,
            }) => {
                if let Some(mismatch) = channels::mismatch(peer_versions) {
                    tracing::warn!("no session: {}", mismatch.told("the operator"));
                }
                let Some(peer) = self.known_operator(peer_key) else {
                    tracing::warn!(operator = peer_name, "introduced to an operator not listed");
                    return Ok(());
                };
                let routes = routes(driver.local_addresses(), &peer_addresses);
                let transport = config.transport.clone();
                let seed = Seed::from(random::seed()?);
                let session =
                    Session::initiate(transport, identity, peer, lease, &routes, seed, now());
                match session {
                    Ok(mut session) => {
                        channels::open(&mut session)?;
                        tracing::info!(operator = peer_name, links = routes.len(), "introduced");
                        control.set_budget(Bitrate::ZERO, now());
                        driver.handle().start(session);
                    }
                    Err(error) => tracing::warn!(operator = peer_name, %error, "no session"),
                }
            }
            Ok(Control::Released { reason, .. }) => {
                tracing::info!(reason, "released");
                driver.handle().stop();
                control.set_budget(Bitrate::ZERO, now());
            }
            Ok(Control::Refused { text, .. }) => bail!("the switchboard refuses: {text}"),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the switchboard sent a malformed message"),
        }
        Ok(())
    }

    /// Says goodbye.
    pub(crate) async fn close(self) {
        self.client.close().await;
    }

    fn known_operator(&self, key: [u8; 32]) -> Option<PublicKey> {
        let key = PublicKey::from_bytes(key).ok()?;
        self.operators.contains(&key).then_some(key)
    }
}
