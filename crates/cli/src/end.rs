//! `tautline end`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use tautline_message::{Control, Order};
use tautline_net::clock::Clock;
use tautline_net::control::Event;
use tautline_transport::crypto::PublicKey;
use tautline_transport::order;
use tautline_transport::order::answer::{Outcome, SignedAnswer};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::settings::{beside, load, set};
use crate::{keys, switchboard};

/// End a running drive: the lease ends at once, and the vehicle's guard stops the machine with its
/// manoeuvre.
///
/// The order is signed with a supervisor's key, which both the vehicle and the switchboard must
/// list. The switchboard carries it to the vehicle. The vehicle's answers are signed as well, and
/// printed. Exit status: 0 once the machine is held; 3 if the vehicle refuses; 4 if it has obeyed
/// but is not held within a minute; 5 without a signed answer of the vehicle.
///
/// Every flag can also be set in the TOML file under the same name, with _ for -. The section
/// [vehicles] of the file contains lines of name = "key".
#[derive(Debug, Args)]
pub(crate) struct End {
    /// Name of the vehicle
    vehicle: String,
    /// TOML file with any of these settings; flags and environment variables override it
    #[arg(long, env = "TAUTLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Secret key file of the supervisor, created by `tautline keys new` [default: supervisor.key]
    #[arg(long, env = "TAUTLINE_KEY")]
    key: Option<PathBuf>,
    /// Address of the switchboard, as host:port [default: 127.0.0.1:7443]
    #[arg(long, env = "TAUTLINE_SWITCHBOARD")]
    switchboard: Option<String>,
    /// Public key of the switchboard, 64 hexadecimal digits
    #[arg(long, env = "TAUTLINE_SWITCHBOARD_KEY")]
    switchboard_key: Option<String>,
    /// Public key of the vehicle, 64 hexadecimal digits [default: the one of its name in the file]
    #[arg(long, value_name = "KEY")]
    vehicle_key: Option<String>,
}

/// Settings of a supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Secret key file of the supervisor.
    key: PathBuf,
    /// Address of the switchboard, `host:port`.
    switchboard: String,
    /// Public key of the switchboard, 64 hexadecimal digits.
    switchboard_key: String,
    /// Public keys of vehicles, by name.
    vehicles: BTreeMap<String, String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            key: "supervisor.key".into(),
            switchboard: "127.0.0.1:7443".into(),
            switchboard_key: String::new(),
            vehicles: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Returns the switchboard's key.
    ///
    /// # Errors
    /// One line that names the setting.
    pub(crate) fn switchboard_public_key(&self) -> anyhow::Result<PublicKey> {
        self.switchboard_key.parse().context("switchboard_key: missing, or no key")
    }
}

impl End {
    /// Signs the order, sends it through the switchboard, and prints the answers.
    ///
    /// # Errors
    /// Returns [`Unheld`] if the order was sent and the vehicle does not report that the machine is
    /// held; before that, one line if the settings are incomplete or invalid, or the switchboard
    /// does not answer or refuses.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config: Config = load(self.config.as_deref())?;
        beside(self.config.as_deref(), [&mut config.key]);
        set(&mut config.key, self.key);
        set(&mut config.switchboard, self.switchboard);
        set(&mut config.switchboard_key, self.switchboard_key);
        let name = self.vehicle;
        let key = self.vehicle_key.as_ref().or_else(|| config.vehicles.get(&name));
        // The key must not come from the switchboard, which could substitute another vehicle's.
        let key = key.with_context(|| {
            format!("the key of {name} is missing: give it with --vehicle-key, or in [vehicles]")
        })?;
        let vehicle: PublicKey = key.parse().with_context(|| format!("vehicle_key: {key:?}"))?;
        let switchboard = config.switchboard_public_key()?;
        let supervisor = keys::read(&config.key)?;
        let clock = Clock::start();
        // An order's times are in whole milliseconds.
        let made_at = Duration::from_millis(clock.unix_nanos(clock.now()) / 1_000_000);
        let until = made_at + LIFE;
        let order = order::Order { supervisor: supervisor.public(), vehicle, made_at, until };
        let signed = order.sign(&supervisor).as_bytes().to_vec();
        let end = Order::End { name: name.clone(), signed };
        let (client, mut events) =
            switchboard::ask(config.switchboard, switchboard, &supervisor, end)?;
        let told = switchboard::told(&mut events).await?;
        tell!("{}", String::from_utf8_lossy(&told).trim_end());
        let mut answers = Answers { name, order, events, outcome: None, refused_count: 0 };
        let held = answers.await_held(&clock).await;
        client.close().await;
        held
    }
}

/// Answers of the vehicle to the order, as they arrive.
struct Answers {
    name: String,
    order: order::Order,
    events: mpsc::Receiver<Event>,
    /// Outcome in the vehicle's newest answer; `None` before the first.
    outcome: Option<Outcome>,
    /// Number of answers without the vehicle's signature, or not to this order.
    refused_count: u32,
}

impl Answers {
    /// Prints each answer until the machine is held, or until the vehicle refuses, no answer comes
    /// in time or the connection is lost, which is an [`Unheld`] error.
    async fn await_held(&mut self, clock: &Clock) -> anyhow::Result<()> {
        let begun = clock.now();
        loop {
            let most = if self.outcome.is_some() { HELD_MAX } else { ANSWER_MAX };
            let left = most.saturating_sub(clock.now().since(begun));
            let event = match timeout(left, self.events.recv()).await {
                Ok(Some(event)) => event,
                Ok(None) | Err(_) => bail!(self.unheld()),
            };
            match event {
                Event::Frame(frame) => {
                    if let Ok(Control::Answered { signed }) = Control::decode(&frame) {
                        self.handle(&signed);
                    }
                }
                // The order would be sent again on the next connection, which was not requested.
                Event::Disconnected { .. } => bail!(self.unheld()),
                Event::Connected { .. } => {}
            }
            match self.outcome {
                Some(Outcome::Held) => return Ok(()),
                Some(outcome) if !outcome.is_obeyed() => bail!(self.unheld()),
                Some(_) | None => {}
            }
        }
    }

    fn handle(&mut self, signed: &[u8]) {
        let Answers { name, order, .. } = self;
        let awaited = (&order.supervisor, order.number());
        match SignedAnswer::read(signed, &order.vehicle, awaited) {
            Ok(answer) => {
                tell!("{name}, by its own signature: {}; epoch {}", answer.outcome, answer.epoch);
                self.outcome = Some(answer.outcome);
            }
            Err(error) => {
                self.refused_count += 1;
                if self.refused_count == 1 {
                    note!("what the switchboard brings of {name} is left out: {error}");
                }
            }
        }
    }

    fn unheld(&self) -> Unheld {
        let name = self.name.clone();
        match self.outcome {
            None => Unheld::Unanswered { name },
            Some(outcome) if outcome.is_obeyed() => Unheld::Unfinished { name },
            Some(_) => Unheld::Refused { name },
        }
    }
}

/// Reason why an order has not verifiably led to a held machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unheld {
    /// The vehicle has answered that it does not obey.
    Refused {
        /// Name of the vehicle.
        name: String,
    },
    /// The vehicle has answered that it obeys, but not in time that the machine is held.
    Unfinished {
        /// Name of the vehicle.
        name: String,
    },
    /// No answer with the vehicle's signature has come in time, or before the connection was lost.
    Unanswered {
        /// Name of the vehicle.
        name: String,
    },
}

impl Unheld {
    /// Returns the exit code of the process: 3, 4 or 5, in the order of the variants.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Refused { .. } => 3,
            Self::Unfinished { .. } => 4,
            Self::Unanswered { .. } => 5,
        }
    }
}

impl fmt::Display for Unheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { name } => write!(f, "{name} has not obeyed, and may be driven"),
            Self::Unfinished { name } => {
                write!(f, "{name} has obeyed, and does not say that the machine is held")
            }
            Self::Unanswered { name } => write!(
                f,
                "nothing that {name} has signed came back: whether it has obeyed is not known. It is away, of an older \
                 build, or the order was kept back"
            ),
        }
    }
}

impl std::error::Error for Unheld {}

/// Time from the signing of an order for which it is valid, so its longest transit time. For that
/// time the operator whose drive is ended gets no other lease.
const LIFE: Duration = Duration::from_secs(60);
/// Time after the order within which a signed answer of the vehicle must come: the worst delays of
/// a mobile link in both directions, and the second after which a guard counts as unheard.
const ANSWER_MAX: Duration = Duration::from_secs(13);
/// Time limit, from the order on, for the answer that the machine is held: as long as a vehicle
/// checks for that.
const HELD_MAX: Duration = Duration::from_secs(60);
