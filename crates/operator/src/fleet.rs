//! The vehicles that a person may pick from, and the one that is picked.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use tautline_message::{Refusal, VehicleEntry, VehicleState};
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use crate::config::Config;

/// What is known of the vehicles at the switchboard, and which of them this operator wants.
///
/// Sans-I/O. Nothing is wanted but what the settings name or a person has picked from the list that the
/// switchboard told; a vehicle that is driven is let go of before another is picked.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// This operator's name at the switchboard.
    own: String,
    picked: Option<Picked>,
    vehicles: Vec<VehicleEntry>,
    is_reached: bool,
    /// When the switchboard was asked for the list, while it has not answered.
    asked_at: Option<Instant>,
    /// From the last question to its answer.
    round_trip: Option<Duration>,
    /// When it is asked again.
    due_at: Instant,
    refused: Option<Refused>,
    /// The keys of vehicles: those of the settings, and of each that was driven since the start.
    keys: BTreeMap<String, PublicKey>,
}

/// The vehicle that is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Picked {
    name: String,
    /// By a person, on the console; else the settings name it.
    by_person: bool,
}

/// What a person asked for in vain last.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Refused {
    vehicle: String,
    word: Word,
}

/// The one word in which a person is told why not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// No vehicle of that name is in the list.
    Unknown,
    /// Another operator has it.
    Taken,
    /// The one that is driven is not let go of while it moves.
    Moving,
    /// One is picked already.
    Busy,
    /// The switchboard does not let this operator have it.
    Refused,
}

impl Word {
    fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Taken => "taken",
            Self::Moving => "moving",
            Self::Busy => "busy",
            Self::Refused => "refused",
        }
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
    /// Makes the fleet of an operator, of which nothing is known yet; what its settings name is picked.
    ///
    /// # Errors
    /// When a key of the settings is malformed.
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

    /// Returns the name of the vehicle that is wanted.
    pub(crate) fn picked(&self) -> Option<&str> {
        self.picked.as_ref().map(|picked| picked.name.as_str())
    }

    /// Returns whether a person has picked it, and may pick another one where it cannot be had.
    pub(crate) fn is_by_person(&self) -> bool {
        self.picked.as_ref().is_some_and(|picked| picked.by_person)
    }

    /// Picks a vehicle of the list for a person.
    ///
    /// # Errors
    /// The word that the person is told, which [`told`](Self::told) tells too.
    pub(crate) fn pick(&mut self, name: &str) -> Result<(), Word> {
        let entry = self.vehicles.iter().find(|entry| entry.name == name);
        let word = match entry {
            // Sent again, or by two pages at once.
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

    /// Lets go of the vehicle, whose key was found to be that: nothing is wanted any more.
    pub(crate) fn leave(&mut self, key: Option<PublicKey>, now: Instant) {
        let Some(picked) = self.picked.take() else { return };
        if let Some(key) = key {
            self.keys.insert(picked.name, key);
        }
        (self.refused, self.asked_at, self.due_at) = (None, None, now);
    }

    /// Says that the vehicle is not let go of.
    pub(crate) fn keep(&mut self, word: Word) {
        if let Some(name) = self.picked().map(str::to_owned) {
            self.refuse(&name, word);
        }
    }

    /// Takes the switchboard's word that the vehicle cannot be had: a person picks another one.
    pub(crate) fn handle_refused(&mut self, word: Word, now: Instant) {
        let Some(name) = self.picked().map(str::to_owned) else { return };
        self.leave(None, now);
        self.refuse(&name, word);
    }

    /// Takes note whether the switchboard is reached.
    pub(crate) fn set_reached(&mut self, is_reached: bool, now: Instant) {
        self.is_reached = is_reached;
        (self.asked_at, self.due_at) = (None, now);
        if !is_reached {
            self.round_trip = None;
        }
    }

    /// Takes the list that the switchboard tells.
    pub(crate) fn handle_list(&mut self, vehicles: Vec<VehicleEntry>, now: Instant) {
        self.round_trip = self.asked_at.take().map(|asked_at| now.since(asked_at));
        self.vehicles = vehicles;
    }

    /// Returns when the list is to be asked for: each second while somebody has to pick.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        (self.is_reached && self.picked.is_none()).then_some(self.due_at)
    }

    /// Takes note that the list is asked for now.
    pub(crate) fn on_asked(&mut self, now: Instant) {
        self.asked_at = Some(now);
        self.due_at = now + LIST_INTERVAL;
    }

    /// Checks the key that the switchboard tells of the picked vehicle: it must be the one of the settings, or the one
    /// that was met before.
    ///
    /// # Errors
    /// One line that names both.
    pub(crate) fn check_key(&self, key: PublicKey) -> anyhow::Result<()> {
        let known = self.picked().and_then(|name| self.keys.get(name));
        match known.filter(|known| **known != key) {
            Some(known) => bail!("its key is {key}, and the one that is known here is {known}"),
            None => Ok(()),
        }
    }

    /// Returns what the consoles are told, as JSON.
    pub(crate) fn told(&self) -> String {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let vehicles = self.vehicles.iter().map(|entry| {
            serde_json::json!({
                "name": entry.name,
                "state": match entry.state {
                    VehicleState::Free => "free",
                    VehicleState::Taken if !self.is_taken(entry) => "own",
                    VehicleState::Taken => "taken",
                    VehicleState::Away => "away",
                },
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

    /// Returns whether another operator has it; an older switchboard does not say who.
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

/// As often as people look at a list.
const LIST_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
