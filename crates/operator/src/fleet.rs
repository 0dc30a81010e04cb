//! The vehicles to pick from, and the picked one.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use tautline_message::{Refusal, VehicleEntry, VehicleState};
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use crate::config::Config;
use crate::console::named::named;

/// Vehicles known at the switchboard, and the one that this operator wants.
///
/// Sans-I/O. The operator wants only a vehicle named in the settings or picked by a person from the
/// switchboard's list. A driven vehicle is released before another is picked.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// This operator's name at the switchboard.
    own: String,
    picked: Option<Picked>,
    vehicles: Vec<VehicleEntry>,
    is_reached: bool,
    /// Time at which the pending list request was sent; `None` if no request is pending.
    asked_at: Option<Instant>,
    /// Round-trip time of the request for the latest list; `None` before the first list, and if
    /// this operator had not requested it.
    round_trip: Option<Duration>,
    /// Time of the next request of the list of vehicles.
    due_at: Instant,
    refused: Option<Refused>,
    /// Public keys of vehicles: those of the settings, and of each one driven since the start.
    keys: BTreeMap<String, PublicKey>,
}

/// Vehicle that this operator wants to drive, until it is released or refused.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Picked {
    name: String,
    /// True if a person picked the vehicle on the console; otherwise the settings name it.
    by_person: bool,
}

/// Latest refused request of a person, to pick this vehicle or to release it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Refused {
    vehicle: String,
    word: Word,
}

named! {
    /// Reason of the refusal of a person's request to pick or to release a vehicle, shown to that
    /// person.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Word {
        /// No vehicle of that name is listed.
        Unknown: "unknown",
        /// Another operator has the requested vehicle.
        Taken: "taken",
        /// The driven vehicle cannot be released while it moves.
        Moving: "moving",
        /// This operator already wants another vehicle, which must be released first.
        Busy: "busy",
        /// The switchboard does not grant the requested vehicle to this operator.
        Refused: "refused",
    }
}

named! {
    /// State of a listed vehicle, from this operator's point of view.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Listed {
        /// No operator has the vehicle, so it can be picked.
        Free: "free",
        /// Driven by this operator.
        Own: "own",
        /// Taken by another operator.
        Taken: "taken",
        /// Not connected to the switchboard.
        Away: "away",
    }
}

impl From<Refusal> for Word {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::UnknownVehicle => Self::Unknown,
            Refusal::VehicleTaken => Self::Taken,
            Refusal::VehicleAway
            | Refusal::NotAllowed
            | Refusal::NotRegistered
            | Refusal::NameTaken
            | Refusal::BadRequest
            | Refusal::Full => Self::Refused,
        }
    }
}

impl Fleet {
    /// Creates the fleet of an operator without any information yet; the vehicle named in the
    /// settings is picked.
    ///
    /// # Errors
    /// Fails if a key of the settings is malformed, or if a vehicle has two different ones.
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        let picked = config.vehicle.clone().map(|name| Picked { name, by_person: false });
        Ok(Self {
            own: config.name.clone(),
            picked,
            vehicles: Vec::new(),
            is_reached: false,
            asked_at: None,
            round_trip: None,
            due_at: Instant::ZERO,
            refused: None,
            keys: config.vehicle_keys()?,
        })
    }

    /// Returns the name of the wanted vehicle; `None` if a person has to pick one.
    pub(crate) fn picked(&self) -> Option<&str> {
        self.picked.as_ref().map(|picked| picked.name.as_str())
    }

    /// Returns whether a person picked the wanted vehicle, so that another may be picked if it is
    /// not available.
    pub(crate) fn is_by_person(&self) -> bool {
        self.picked.as_ref().is_some_and(|picked| picked.by_person)
    }

    /// Picks a vehicle of the list for a person; picking the wanted one again does nothing.
    ///
    /// # Errors
    /// Returns the reason shown to the person, which [`told`](Self::told) also contains.
    pub(crate) fn pick(&mut self, name: &str) -> Result<(), Word> {
        let entry = self.vehicles.iter().find(|entry| entry.name == name);
        let word = match entry {
            // A repeated request, or two pages at once.
            _ if self.picked() == Some(name) => return Ok(()),
            _ if self.picked.is_some() => Word::Busy,
            None => Word::Unknown,
            Some(entry) if self.is_taken(entry) => Word::Taken,
            Some(_) => {
                self.picked = Some(Picked { name: name.to_owned(), by_person: true });
                self.refused = None;
                return Ok(());
            }
        };
        self.refuse(name, word);
        Err(word)
    }

    /// Releases the wanted vehicle, if there is one: nothing is wanted any more, the latest refusal
    /// is forgotten, and a list request is due at `now`. The vehicle's public key, if `key` is
    /// given, is required of a vehicle of that name from now on.
    pub(crate) fn leave(&mut self, key: Option<PublicKey>, now: Instant) {
        let Some(picked) = self.picked.take() else { return };
        if let Some(key) = key {
            self.keys.insert(picked.name, key);
        }
        (self.refused, self.asked_at, self.due_at) = (None, None, now);
    }

    /// Records, for the consoles, why the wanted vehicle is not released; does nothing if none is
    /// wanted.
    pub(crate) fn keep(&mut self, word: Word) {
        if let Some(name) = self.picked().map(str::to_owned) {
            self.refuse(&name, word);
        }
    }

    /// Handles the switchboard's refusal of the wanted vehicle: it is no longer wanted, a person
    /// must pick another, the consoles show `word`, and a list request is due at `now`. Does
    /// nothing if no vehicle is wanted.
    pub(crate) fn handle_refused(&mut self, word: Word, now: Instant) {
        let Some(name) = self.picked().map(str::to_owned) else { return };
        self.leave(None, now);
        self.refuse(&name, word);
    }

    /// Records whether the switchboard is connected. The next list request is due at once and a
    /// pending one is forgotten; without a connection, the round-trip time is too.
    pub(crate) fn set_reached(&mut self, is_reached: bool, now: Instant) {
        self.is_reached = is_reached;
        (self.asked_at, self.due_at) = (None, now);
        if !is_reached {
            self.round_trip = None;
        }
    }

    /// Records the switchboard's list of vehicles, and the round-trip time of the pending request;
    /// no round-trip time if none is pending.
    pub(crate) fn handle_list(&mut self, vehicles: Vec<VehicleEntry>, now: Instant) {
        self.round_trip = self.asked_at.take().map(|asked_at| now.since(asked_at));
        self.vehicles = vehicles;
    }

    /// Returns when to request the list, at intervals of a second; `None` without a connection, or
    /// while the settings or a person have picked a vehicle.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        (self.is_reached && self.picked.is_none()).then_some(self.due_at)
    }

    /// Records that the list is requested now; the next request is due a second later.
    pub(crate) fn on_asked(&mut self, now: Instant) {
        self.asked_at = Some(now);
        self.due_at = now + LIST_INTERVAL;
    }

    /// Checks the switchboard's key of the picked vehicle: it must match the key in the settings,
    /// or else that of an earlier drive, if one of them is known.
    ///
    /// # Errors
    /// Returns one line that names both keys.
    pub(crate) fn check_key(&self, key: PublicKey) -> anyhow::Result<()> {
        let known = self.picked().and_then(|name| self.keys.get(name));
        match known.filter(|known| **known != key) {
            Some(known) => bail!("its key is {key}, but the one known here is {known}"),
            None => Ok(()),
        }
    }

    fn listed(&self, entry: &VehicleEntry) -> Listed {
        match entry.state {
            VehicleState::Free => Listed::Free,
            VehicleState::Taken if !self.is_taken(entry) => Listed::Own,
            VehicleState::Taken => Listed::Taken,
            VehicleState::Away => Listed::Away,
        }
    }

    /// Returns the wanted vehicle, the list and the latest refusal for the consoles, as JSON.
    pub(crate) fn told(&self) -> String {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let vehicles = self.vehicles.iter().map(|entry| {
            serde_json::json!({
                "name": entry.name,
                "state": self.listed(entry).name(),
                "driver": entry.driver,
                "sinceUnixMs": entry.since.map(|since| since.as_millis() as u64),
                "place": entry.place,
                "links": entry.links,
                "linkCount": entry.link_count,
                "roundTripMs": entry.round_trip_ms,
            })
        });
        let refused = self.refused.as_ref().map(|Refused { vehicle, word }| {
            serde_json::json!({ "vehicle": vehicle, "word": word.name() })
        });
        let json = serde_json::json!({
            "picked": self.picked(),
            "isReached": self.is_reached,
            "roundTripMs": self.round_trip.map(millis),
            "vehicles": vehicles.collect::<Vec<_>>(),
            "refused": refused,
        });
        json.to_string()
    }

    /// Returns whether another operator has the vehicle. An older switchboard does not name the
    /// operator; then a taken vehicle counts as another's, and one that is away as nobody's.
    fn is_taken(&self, entry: &VehicleEntry) -> bool {
        let is_own = entry.driver.as_ref() == Some(&self.own);
        match entry.state {
            VehicleState::Free => false,
            VehicleState::Taken => !is_own,
            VehicleState::Away => entry.driver.is_some() && !is_own,
        }
    }

    fn refuse(&mut self, vehicle: &str, word: Word) {
        self.refused = Some(Refused { vehicle: vehicle.to_owned(), word });
    }
}

/// Interval of list requests: about as often as a person looks at a list.
const LIST_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
