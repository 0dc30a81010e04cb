//! Vehicle list for an operator.

use std::collections::BTreeSet;

use tautline_message::{Control, VehicleEntry, VehicleState};

use super::{ConnectionId, Directory, Vehicle};

impl Directory {
    /// Sends the operator on this connection the list of vehicles: all, or the first
    /// [`VEHICLES_MAX`] by name.
    pub(super) fn list(&mut self, id: ConnectionId) {
        let vehicles = self.vehicles.iter().map(|(name, vehicle)| self.entry(name, vehicle));
        let vehicles = vehicles.take(VEHICLES_MAX).collect();
        self.send(id, Control::VehicleList { vehicles });
    }

    fn entry(&self, name: &str, vehicle: &Vehicle) -> VehicleEntry {
        let presence = vehicle.presence.as_ref();
        let lease = vehicle.lease.as_ref();
        let state = match (presence, lease) {
            (None, _) => VehicleState::Away,
            (Some(_), Some(_)) => VehicleState::Taken,
            (Some(_), None) => VehicleState::Free,
        };
        let since = match state {
            VehicleState::Away => vehicle.away_since,
            VehicleState::Taken => lease.map(|lease| lease.since),
            VehicleState::Free => None,
        };
        let known = presence.map(|presence| {
            presence.candidates.iter().map(|candidate| candidate.end).collect::<BTreeSet<_>>()
        });
        let round_trip = presence
            .and_then(|presence| self.connections.get(&presence.id)?.latency.newest())
            .map(|round_trip| round_trip.as_secs_f32() * 1e3);
        VehicleEntry {
            name: name.to_owned(),
            key: *vehicle.key.as_bytes(),
            state,
            round_trip_ms: round_trip,
            driver: lease.map(|lease| lease.operator.clone()),
            since,
            place: presence.and_then(|presence| presence.place.clone()),
            link_count: presence.map_or(0, |presence| presence.link_count),
            links: known.map_or(0, |known| known.len() as u8),
        }
    }
}

/// Maximum number of vehicles in a message: the first by name.
const VEHICLES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tautline_message::{Candidate, CandidateKind};
    use tautline_transport::crypto::{Identity, PublicKey};
    use tautline_units::Instant;

    use super::super::Output;
    use super::*;
    use crate::Config;

    const UNIX_START: Duration = Duration::from_secs(1_000_000);
    const ROVER: u8 = 1;
    const MULE: u8 = 2;
    const ANNA: u8 = 3;

    fn key(seed: u8) -> PublicKey {
        Identity::from_seed(&[seed; 32]).public()
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1_000)
    }

    fn directory() -> Directory {
        let config = Config {
            vehicles: [("rover".into(), key(ROVER)), ("mule".into(), key(MULE))].into(),
            operators: [("anna".into(), key(ANNA))].into(),
            ..Config::default()
        };
        let mut directory = Directory::new(&config, [7; 32]);
        directory.handle_unix_start(UNIX_START);
        directory
    }

    fn say(directory: &mut Directory, who: u8, message: Control, at_s: u64) {
        directory.handle_message(ConnectionId(who.into()), message, at(at_s));
    }

    fn come(directory: &mut Directory, who: u8, at_s: u64) {
        let (id, now) = (ConnectionId(who.into()), at(at_s));
        directory.handle_connected(id, key(who), ([192, 0, 2, who], 9_000).into(), now);
        let addresses = vec!["10.0.0.1:7000".to_owned(), "10.0.0.1:7001".to_owned()];
        let end = |end, port| Candidate {
            kind: CandidateKind::Host,
            end,
            address: format!("10.0.0.1:{port}"),
        };
        let (versions, relays, held) = (None, false, None);
        let register = match who {
            ANNA => Control::RegisterOperator {
                name: "anna".to_owned(),
                addresses,
                versions,
                relays,
                candidates: vec![],
                held,
            },
            _vehicle => Control::RegisterVehicle {
                name: if who == ROVER { "rover" } else { "mule" }.to_owned(),
                addresses,
                versions,
                relays,
                candidates: vec![end(1, 7_001), end(1, 7_002)],
                held,
                place: (who == ROVER).then(|| "north yard".to_owned()),
            },
        };
        say(directory, who, register, at_s);
    }

    /// Returns anna's list entries of mule and rover.
    fn listed(directory: &mut Directory, at_s: u64) -> [VehicleEntry; 2] {
        say(directory, ANNA, Control::ListVehicles, at_s);
        let outputs = std::iter::from_fn(|| directory.poll_output());
        let lists = outputs.filter_map(|output| match output {
            Output::Send { message: Control::VehicleList { vehicles }, .. } => Some(vehicles),
            _other => None,
        });
        lists.last().expect("a list").try_into().expect("two vehicles")
    }

    #[test]
    fn a_listed_vehicle_has_state_driver_place_links_and_since() {
        let mut directory = directory();
        come(&mut directory, ANNA, 1);
        let [mule, rover] = listed(&mut directory, 1);
        assert_eq!((&*mule.name, &*rover.name), ("mule", "rover"));
        assert_eq!((rover.state, rover.since, rover.link_count), (VehicleState::Away, None, 0));
        come(&mut directory, ROVER, 2);
        let [_, rover] = listed(&mut directory, 2);
        assert_eq!((rover.state, rover.driver, rover.since), (VehicleState::Free, None, None));
        assert_eq!(rover.place.as_deref(), Some("north yard"));
        assert_eq!((rover.links, rover.link_count), (1, 2), "both addresses are of one link");
        say(&mut directory, ANNA, Control::Take { vehicle_name: "rover".to_owned() }, 5);
        let [_, rover] = listed(&mut directory, 9);
        assert_eq!((rover.state, rover.driver.as_deref()), (VehicleState::Taken, Some("anna")));
        assert_eq!(rover.since, Some(UNIX_START + Duration::from_secs(5)));
        directory.handle_closed(ConnectionId(ROVER.into()), at(11));
        let [_, rover] = listed(&mut directory, 12);
        assert_eq!((rover.state, rover.driver.as_deref()), (VehicleState::Away, Some("anna")));
        assert_eq!(rover.since, Some(UNIX_START + Duration::from_secs(11)));
        assert_eq!((rover.place, rover.link_count), (None, 0), "what it said counts no more");
    }
}
