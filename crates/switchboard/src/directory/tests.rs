use std::collections::BTreeSet;

use tautline_message::{CandidateKind, VehicleEntry};
use tautline_net::latency::Leg;
use tautline_transport::crypto::Identity;

use super::registration::UNSAID;
use super::*;

mod duplicates;

/// Steps, and the directory's outputs: one line per output, without pings.
type Table<'a> = &'a [(Step<'a>, &'a [&'a str])];

#[derive(Clone, Copy)]
enum Step<'a> {
    /// Connects, as this connection and with this key.
    Call(u64, u8),
    /// Registers as this vehicle, at this address.
    Vehicle(u64, &'a str, &'a str),
    /// Registers as this operator, at this address.
    Operator(u64, &'a str, &'a str),
    /// Registers as an operator of a build that reports its versions.
    Newer(u64, &'a str, &'a str),
    /// Registers the holder of this key under this name, with this candidate.
    Reachable(u64, u8, &'a str, &'a str),
    List(u64),
    Take(u64, &'a str),
    Release(u64),
    Gone(u64),
    /// Advances time by milliseconds; everybody answers pings.
    Wait(u64),
    /// Silences this connection from now on.
    Mute(u64),
}
use Step::*;

#[test]
fn changed_candidates_are_announced_under_the_same_lease() {
    play(&[
        (Call(1, ROVER), &[]),
        (Reachable(1, ROVER, "rover", "198.51.100.1:1"), &[]),
        (Call(2, ANNA), &[]),
        (Reachable(2, ANNA, "anna", "198.51.100.2:1"), &[]),
        (
            Take(2, "rover"),
            &[
                "2: meet rover perhaps at 198.51.100.1:1, lease A",
                "1: meet anna perhaps at 198.51.100.2:1, lease A",
            ],
        ),
        (
            Reachable(1, ROVER, "rover", "198.51.100.1:2"),
            &["2: meet rover perhaps at 198.51.100.1:2, lease A"],
        ),
        (Reachable(1, ROVER, "rover", "198.51.100.1:2"), &[]),
        (
            Reachable(2, ANNA, "anna", "198.51.100.2:7"),
            &["1: meet anna perhaps at 198.51.100.2:7, lease A"],
        ),
    ]);
}

#[test]
fn an_end_without_candidates_gets_no_candidate_updates() {
    play(&[
        (Call(1, ROVER), &[]),
        (Reachable(1, ROVER, "rover", "198.51.100.1:1"), &[]),
        (Call(2, ANNA), &[]),
        (Operator(2, "anna", "10.0.0.2:8000"), &[]),
        (
            Take(2, "rover"),
            &[
                "2: meet rover perhaps at 198.51.100.1:1, lease A",
                "1: meet anna at 10.0.0.2:8000, lease A",
            ],
        ),
        (Reachable(1, ROVER, "rover", "198.51.100.1:2"), &[]),
    ]);
}

#[test]
fn an_operator_takes_a_vehicle_and_both_are_introduced() {
    play(&[
        (Call(1, ROVER), &[]),
        (Vehicle(1, "rover", "10.0.0.1:7000"), &[]),
        (Call(2, ANNA), &[]),
        (Operator(2, "anna", "0.0.0.0:8000"), &[]),
        (List(2), &["2: mule away, rover free"]),
        (
            Take(2, "rover"),
            &["2: meet rover at 10.0.0.1:7000, lease A", "1: meet anna at 192.0.2.2:8000, lease A"],
        ),
        (List(2), &["2: mule away, rover taken"]),
        // Taking it again changes nothing, so there is no output.
        (Take(2, "rover"), &[]),
        (
            Release(2),
            &[
                "1: lease A over, operator anna has released it",
                "2: lease A over, operator anna has released it",
            ],
        ),
        (Release(2), &[]),
        (List(2), &["2: mule away, rover free"]),
    ]);
}

#[test]
fn each_end_gets_the_others_versions_or_version_1_if_unstated() {
    play(&[
        (Call(1, ROVER), &[]),
        (Vehicle(1, "rover", "10.0.0.1:7000"), &[]),
        (Call(2, ANNA), &[]),
        (Newer(2, "anna", "10.0.0.2:8000"), &[]),
        (
            Take(2, "rover"),
            &[
                "2: meet rover at 10.0.0.1:7000, lease A",
                "1: meet anna at 10.0.0.2:8000, lease A, 2 to 3",
            ],
        ),
    ]);
}

#[test]
fn a_second_operator_is_refused_by_name_until_the_first_lets_go() {
    let taken = driving(&[
        (Call(3, BERT), &[]),
        (Operator(3, "bert", "10.0.0.3:8000"), &[]),
        (Take(3, "rover"), &["3: refused VehicleTaken, vehicle rover is driven by anna"]),
        (Take(3, "tank"), &["3: refused UnknownVehicle, there is no vehicle \"tank\" here"]),
        // Within the grace time it is still anna's.
        (Gone(2), &[]),
        (Wait(9_999), &[]),
        (Take(3, "rover"), &["3: refused VehicleTaken, vehicle rover is driven by anna"]),
        (Wait(1), &["1: lease A over, operator anna has been away for 10 s"]),
        (
            Take(3, "rover"),
            &["3: meet rover at 10.0.0.1:7000, lease B", "1: meet bert at 10.0.0.3:8000, lease B"],
        ),
    ]);
    play(&taken);
}

#[test]
fn a_vehicle_that_restarts_is_introduced_again() {
    play(&driving(&[
        (Gone(1), &[]),
        (List(2), &["2: mule away, rover away"]),
        // A vehicle may stay away for any time: the lease belongs to the operator.
        (Wait(60_000), &[]),
        (Call(3, ROVER), &[]),
        (
            Vehicle(3, "rover", "10.0.0.9:7001"),
            &["2: meet rover at 10.0.0.9:7001, lease B", "3: meet anna at 10.0.0.2:8000, lease B"],
        ),
    ]));
}

#[test]
fn a_restarted_vehicle_replaces_its_old_connection() {
    play(&driving(&[
        (Mute(1), &[]),
        (Call(3, ROVER), &[]),
        (Vehicle(3, "rover", "10.0.0.9:7001"), &[]),
        (
            Wait(3_000),
            &[
                "1: closed",
                "2: meet rover at 10.0.0.9:7001, lease B",
                "3: meet anna at 10.0.0.2:8000, lease B",
            ],
        ),
        (Gone(1), &[]),
        (List(2), &["2: mule away, rover taken"]),
    ]));
}

#[test]
fn an_operator_back_within_the_grace_time_keeps_its_lease() {
    play(&driving(&[
        (Gone(2), &[]),
        (Wait(9_000), &[]),
        (Call(3, ANNA), &[]),
        (
            Operator(3, "anna", "10.0.0.2:8001"),
            &["3: meet rover at 10.0.0.1:7000, lease B", "1: meet anna at 10.0.0.2:8001, lease B"],
        ),
        // A client that repeats its greeting is not introduced twice.
        (Take(3, "rover"), &[]),
        (Wait(30_000), &[]),
        (List(3), &["3: mule away, rover taken"]),
    ]));
}

#[test]
fn a_restarted_operator_replaces_its_old_connection() {
    play(&driving(&[
        (Mute(2), &[]),
        (Call(3, ANNA), &[]),
        (Operator(3, "anna", "10.0.0.2:8001"), &[]),
        (
            Wait(3_000),
            &[
                "2: closed",
                "3: meet rover at 10.0.0.1:7000, lease B",
                "1: meet anna at 10.0.0.2:8001, lease B",
            ],
        ),
        // The end of the old connection does not end the lease.
        (Gone(2), &[]),
        (Wait(60_000), &[]),
        (List(3), &["3: mule away, rover taken"]),
    ]));
}

#[test]
fn both_ends_may_be_away_at_once() {
    play(&driving(&[
        (Gone(2), &[]),
        (Gone(1), &[]),
        (Call(3, ROVER), &[]),
        (Vehicle(3, "rover", "10.0.0.1:7000"), &[]),
        (Call(4, ANNA), &[]),
        (
            Operator(4, "anna", "10.0.0.2:8000"),
            &["4: meet rover at 10.0.0.1:7000, lease B", "3: meet anna at 10.0.0.2:8000, lease B"],
        ),
    ]));
}

#[test]
fn an_absent_vehicle_receives_its_release_on_return() {
    play(&driving(&[
        (Gone(1), &[]),
        (Release(2), &["2: lease A over, operator anna has released it"]),
        (Call(3, ROVER), &[]),
        (Vehicle(3, "rover", "10.0.0.1:7000"), &["3: lease A over, operator anna has released it"]),
        (Mute(3), &[]),
        (Call(4, ROVER), &[]),
        (Vehicle(4, "rover", "10.0.0.1:7000"), &[]),
        (Wait(3_000), &["3: closed"]),
    ]));
}

#[test]
fn a_vehicle_may_be_taken_before_it_comes() {
    let away =
        "2: refused VehicleAway, vehicle rover is away: it is reserved for you until it returns";
    play(&[
        (Call(2, ANNA), &[]),
        (Operator(2, "anna", "10.0.0.2:8000"), &[]),
        (Take(2, "rover"), &[away]),
        (Take(2, "rover"), &[away]),
        (List(2), &["2: mule away, rover away"]),
        (Call(3, BERT), &[]),
        (Operator(3, "bert", "10.0.0.3:8000"), &[]),
        (Take(3, "rover"), &["3: refused VehicleTaken, vehicle rover is driven by anna"]),
        (Call(1, ROVER), &[]),
        (
            Vehicle(1, "rover", "10.0.0.1:7000"),
            &["2: meet rover at 10.0.0.1:7000, lease A", "1: meet anna at 10.0.0.2:8000, lease A"],
        ),
    ]);
}

#[test]
fn an_operator_has_one_vehicle_at_a_time() {
    play(&driving(&[
        (Call(3, MULE), &[]),
        (Vehicle(3, "mule", "10.0.0.3:7000"), &[]),
        (
            Take(2, "mule"),
            &[
                "1: lease A over, operator anna takes vehicle mule instead",
                "2: lease A over, operator anna takes vehicle mule instead",
                "2: meet mule at 10.0.0.3:7000, lease B",
                "3: meet anna at 10.0.0.2:8000, lease B",
            ],
        ),
        (List(2), &["2: mule taken, rover free"]),
    ]));
}

#[test]
fn a_silent_connection_is_given_up_and_the_grace_time_begins() {
    play(&driving(&[
        (Mute(2), &[]),
        (Wait(2_999), &[]),
        (Wait(1), &["2: closed"]),
        (Wait(9_999), &[]),
        (Wait(1), &["1: lease A over, operator anna has been away for 10 s"]),
    ]));
}

#[test]
fn a_connection_that_does_not_register_is_closed() {
    play(&[(Call(1, ROVER), &[]), (Wait(2_999), &[]), (Wait(1), &["1: closed"])]);
}

#[test]
fn a_new_address_on_the_same_connection_is_introduced() {
    play(&driving(&[
        (Vehicle(1, "rover", "10.0.0.1:7000"), &[]),
        (
            Vehicle(1, "rover", "10.0.0.1:7009"),
            &["2: meet rover at 10.0.0.1:7009, lease B", "1: meet anna at 10.0.0.2:8000, lease B"],
        ),
    ]));
}

#[test]
fn only_listed_keys_under_their_own_names_are_served() {
    let key = Identity::from_seed(&[99; 32]).public();
    let unknown = format!(
        "1: refused NotAllowed, this key is unknown here: to admit it, add NAME = \"{key}\" to \
         [vehicles] or [operators] in the switchboard's settings and send it SIGHUP"
    );
    let rover = Identity::from_seed(&[ROVER; 32]).public();
    let wrong_role = format!(
        "3: refused NotAllowed, the key {rover} is listed as vehicle, so it cannot register as an operator"
    );
    play(&[
        (Call(1, 99), &[&unknown, "1: closed"]),
        (Vehicle(1, "rover", "10.0.0.1:7000"), &[]),
        (Call(2, ROVER), &[]),
        (
            Vehicle(2, "mule", "10.0.0.1:7000"),
            &[
                "2: refused NotAllowed, this key is listed as vehicle \"rover\", not \"mule\": set this name",
                "2: closed",
            ],
        ),
        (Call(3, ROVER), &[]),
        (Operator(3, "rover", "10.0.0.1:7000"), &[&wrong_role, "3: closed"]),
        (Call(4, ANNA), &[]),
        (Take(4, "rover"), &["4: refused NotRegistered, register as an operator first"]),
        (
            Operator(4, "anna", "[::]:x"),
            &["4: refused BadRequest, \"[::]:x\" is not an address with a port", "4: closed"],
        ),
    ]);
}

#[test]
fn server_messages_and_malformed_bytes_close_the_connection() {
    let mut scene = Scene::new();
    for id in [1, 2] {
        scene.act(Call(id, ROVER));
    }
    let pushed = Control::Released { lease: [0; 16], reason: String::new() };
    scene.directory.handle_message(ConnectionId(1), pushed, scene.now);
    assert_eq!(
        scene.outputs(),
        ["1: refused BadRequest, only a switchboard sends this message", "1: closed"]
    );
    scene.directory.handle_malformed(ConnectionId(2), &"ü".repeat(500), scene.now);
    let outputs = scene.outputs();
    assert!(outputs[0].starts_with("2: refused BadRequest, this is not a message"), "{outputs:?}");
    assert!(outputs[0].len() <= "2: refused BadRequest, ".len() + TEXT_BYTES_MAX);
    assert_eq!(outputs[1], "2: closed");
}

#[test]
fn the_vehicle_list_has_the_newest_round_trip() {
    let mut scene = Scene::new();
    for step in [Call(1, ROVER), Call(2, ANNA)] {
        scene.act(step);
    }
    scene.act(Vehicle(1, "rover", "10.0.0.1:7000"));
    scene.act(Operator(2, "anna", "10.0.0.2:8000"));
    let (pinged_at, timer) = scene.directory.poll_timeout().unwrap();
    assert_eq!((pinged_at, timer), (scene.now, Timer::Ping));
    scene.directory.handle_timeout(pinged_at);
    let pings: Vec<_> = std::iter::from_fn(|| scene.directory.poll_output()).collect();
    assert_eq!(
        pings,
        [1, 2].map(|to| Output::Send {
            to: ConnectionId(to),
            message: Control::Ping { t: pinged_at }
        })
    );
    let answered_at = pinged_at + Duration::from_millis(42);
    let wrong = Control::Pong { t: answered_at, seen_at: None };
    scene.directory.handle_message(ConnectionId(1), wrong, answered_at);
    assert_eq!(scene.directory.poll_round_trip(), None);
    let seen_at = Some(Instant::from_millis(900_000));
    // The second pong matches no ping.
    for is_first in [true, false] {
        let pong = Control::Pong { t: pinged_at, seen_at };
        scene.directory.handle_message(ConnectionId(1), pong, answered_at);
        let trip = scene.directory.poll_round_trip();
        assert_eq!(trip.is_some(), is_first);
        let Some(trip) = trip else { continue };
        assert_eq!((trip.leg, trip.name.as_str()), (Leg::SwitchboardVehicle, "rover"));
        assert_eq!((trip.sent_at, trip.seen_at, trip.back_at), (pinged_at, seen_at, answered_at));
        // Only the sum of both directions is known.
        let one_way = trip.one_way.unwrap();
        assert_eq!((one_way.out_nanos, one_way.in_nanos), (21_000_000, 21_000_000));
        assert_eq!(one_way.error, Duration::from_nanos(21_000_001));
        assert_eq!(scene.directory.poll_round_trip(), None);
    }
    scene.directory.handle_message(ConnectionId(2), Control::ListVehicles, answered_at);
    let Some(Output::Send { message: Control::VehicleList { vehicles }, .. }) =
        scene.directory.poll_output()
    else {
        panic!("no list")
    };
    assert_eq!(vehicles[0].round_trip_ms, None);
    assert_eq!(vehicles[1].round_trip_ms, Some(42.0));
}

#[test]
fn one_seed_gives_the_same_lease_names() {
    let names = |seed| {
        let mut scene = Scene::new();
        scene.directory = Directory::new(&config(), [seed; 32]);
        for (step, _) in DRIVING {
            scene.act(*step);
        }
        scene.leases
    };
    assert_eq!(names(1), names(1));
    assert_ne!(names(1), names(2));
}

proptest::proptest! {
    #[test]
    fn the_directory_stays_consistent_under_any_events(
        events in proptest::collection::vec((0..10_u8, 1..7_u64, 0..5_u8), 1..80)
    ) {
        let mut scene = Scene::new();
        for (what, id, which) in events {
            let vehicle = ["rover", "mule", "tank"][usize::from(which) % 3];
            let operator = ["anna", "bert"][usize::from(which) % 2];
            let is_there = scene.directory.connections.contains_key(&ConnectionId(id));
            scene.act(match what {
                // A connection number is used only once at a time.
                0 | 1 if !is_there => Call(id, which),
                2 => Vehicle(id, vehicle, "10.0.0.1:7000"),
                3 => Operator(id, operator, "10.0.0.2:8000"),
                4 | 5 => Take(id, vehicle),
                6 => Release(id),
                7 => Gone(id),
                8 => Mute(id),
                0 | 1 | 9.. => Wait(u64::from(which) * 2_500),
            });
            scene.check();
        }
    }
}

/// Vehicle rover on connection 1, driven by operator anna on connection 2.
const DRIVING: Table<'_> = &[
    (Call(1, ROVER), &[]),
    (Vehicle(1, "rover", "10.0.0.1:7000"), &[]),
    (Call(2, ANNA), &[]),
    (Operator(2, "anna", "10.0.0.2:8000"), &[]),
    (
        Take(2, "rover"),
        &["2: meet rover at 10.0.0.1:7000, lease A", "1: meet anna at 10.0.0.2:8000, lease A"],
    ),
];

fn driving<'a>(then: Table<'a>) -> Vec<(Step<'a>, &'a [&'a str])> {
    DRIVING.iter().chain(then).copied().collect()
}

fn play(table: Table<'_>) {
    let mut scene = Scene::new();
    for (row, (step, expected)) in table.iter().enumerate() {
        scene.act(*step);
        assert_eq!(scene.outputs(), *expected, "row {row}");
    }
}

struct Scene {
    directory: Directory,
    now: Instant,
    present: BTreeSet<u64>,
    leases: Vec<[u8; 16]>,
    lines: Vec<String>,
}

impl Scene {
    fn new() -> Self {
        Self {
            directory: Directory::new(&config(), [7; 32]),
            now: Instant::from_millis(1_000),
            present: BTreeSet::new(),
            leases: Vec::new(),
            lines: Vec::new(),
        }
    }

    fn act(&mut self, step: Step<'_>) {
        match step {
            Call(id, seed) => {
                self.present.insert(id);
                let key = Identity::from_seed(&[seed; 32]).public();
                let remote = SocketAddr::from(([192, 0, 2, id as u8], 9_000));
                self.directory.handle_connected(ConnectionId(id), key, remote, self.now);
            }
            Vehicle(id, name, address) => {
                let (name, addresses) = (name.to_owned(), vec![address.to_owned()]);
                self.say(
                    id,
                    Control::RegisterVehicle {
                        name,
                        addresses,
                        versions: None,
                        relays: false,
                        candidates: vec![],
                        held: None,
                        place: None,
                    },
                );
            }
            Operator(id, name, address) => {
                let (name, addresses) = (name.to_owned(), vec![address.to_owned()]);
                self.say(
                    id,
                    Control::RegisterOperator {
                        name,
                        addresses,
                        versions: None,
                        relays: false,
                        candidates: vec![],
                        held: None,
                    },
                );
            }
            Newer(id, name, address) => {
                let (name, addresses) = (name.to_owned(), vec![address.to_owned()]);
                let versions = Some(ProtocolVersions { lowest: 2, highest: 3 });
                self.say(
                    id,
                    Control::RegisterOperator {
                        name,
                        addresses,
                        versions,
                        relays: false,
                        candidates: vec![],
                        held: None,
                    },
                );
            }
            Reachable(id, seed, name, candidate) => {
                let (name, addresses) = (name.to_owned(), vec!["10.0.0.9:9".to_owned()]);
                let candidate = Candidate {
                    kind: CandidateKind::Reflexive,
                    end: 0,
                    address: candidate.to_owned(),
                };
                let (versions, relays, candidates) = (None, false, vec![candidate]);
                self.say(
                    id,
                    match seed {
                        ROVER | MULE => Control::RegisterVehicle {
                            name,
                            addresses,
                            versions,
                            relays,
                            candidates,
                            held: None,
                            place: None,
                        },
                        _ => Control::RegisterOperator {
                            name,
                            addresses,
                            versions,
                            relays,
                            candidates,
                            held: None,
                        },
                    },
                );
            }
            List(id) => self.say(id, Control::ListVehicles),
            Take(id, name) => self.say(id, Control::Take { vehicle_name: name.to_owned() }),
            Release(id) => self.say(id, Control::Release),
            Gone(id) => {
                self.present.remove(&id);
                self.directory.handle_closed(ConnectionId(id), self.now);
            }
            Mute(id) => {
                self.present.remove(&id);
            }
            Wait(ms) => {
                let until = self.now + Duration::from_millis(ms);
                while let Some((at, _)) = self.directory.poll_timeout()
                    && at <= until
                {
                    self.now = self.now.max(at);
                    self.directory.handle_timeout(self.now);
                    self.drain();
                }
                self.now = until;
            }
        }
        self.drain();
    }

    fn say(&mut self, id: u64, message: Control) {
        self.directory.handle_message(ConnectionId(id), message, self.now);
    }

    fn outputs(&mut self) -> Vec<String> {
        self.drain();
        std::mem::take(&mut self.lines)
    }

    fn drain(&mut self) {
        while let Some(output) = self.directory.poll_output() {
            match output {
                Output::Keep(_) => {}
                Output::Answer { .. } | Output::Relist => {}
                Output::Send { to, message: Control::Ping { t } } => {
                    if self.present.contains(&to.0) {
                        self.directory.handle_message(
                            to,
                            Control::Pong { t, seen_at: None },
                            self.now,
                        );
                    }
                }
                Output::Send { to, message } => {
                    let line = self.line(&message);
                    self.lines.push(format!("{}: {line}", to.0));
                }
                Output::Close { to } => self.lines.push(format!("{}: closed", to.0)),
            }
        }
    }

    /// Checks the invariants.
    fn check(&mut self) {
        let directory = &self.directory;
        let mut drivers = BTreeSet::new();
        for vehicle in directory.vehicles.values() {
            if let Some(lease) = &vehicle.lease {
                assert!(drivers.insert(&lease.operator), "{} has two vehicles", lease.operator);
                let is_away = directory.operators[&lease.operator].presence.is_none();
                assert_eq!(lease.ends_at.is_some(), is_away);
                assert!(lease.ends_at.is_none_or(|at| at > self.now));
                let both_here = !is_away && vehicle.presence.is_some();
                assert!(!both_here || lease.name.is_some(), "there, but not introduced");
            }
            assert!(vehicle.presence.is_none() || vehicle.pending_release.is_none());
        }
        let vehicles = directory.vehicles.values().map(|v| (v.key, &v.presence));
        let operators = directory.operators.values().map(|o| (o.key, &o.presence));
        for (key, presence) in vehicles.chain(operators) {
            if let Some(presence) = presence {
                assert_eq!(directory.connections[&presence.id].key, key);
            }
        }
        let registered = directory.connections.values();
        let registered =
            registered.filter(|connection| !matches!(connection.role, Role::Unregistered));
        let keys: Vec<_> = registered.map(|connection| *connection.key.as_bytes()).collect();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "a key twice");
        self.lines.clear();
    }

    fn line(&mut self, message: &Control) -> String {
        match message {
            Control::Introduce { lease, peer_name, peer_versions, peer_candidates, .. }
                if !peer_candidates.is_empty() =>
            {
                assert!(peer_versions.is_some());
                let at: Vec<_> = peer_candidates.iter().map(|at| at.address.as_str()).collect();
                format!(
                    "meet {peer_name} perhaps at {}, lease {}",
                    at.join(" "),
                    self.letter(lease)
                )
            }
            Control::Introduce { lease, peer_name, peer_addresses, peer_versions, .. } => {
                let lease = self.letter(lease);
                let speaks = match peer_versions.expect("the switchboard knows") {
                    UNSAID => String::new(),
                    ProtocolVersions { lowest, highest } => format!(", {lowest} to {highest}"),
                };
                format!("meet {peer_name} at {}, lease {lease}{speaks}", peer_addresses.join(" "))
            }
            Control::Released { lease, reason } => {
                format!("lease {} over, {reason}", self.letter(lease))
            }
            Control::Refused { reason_code, text } => format!("refused {reason_code:?}, {text}"),
            Control::VehicleList { vehicles } => {
                let entry = |entry: &VehicleEntry| {
                    format!("{} {}", entry.name, format!("{:?}", entry.state).to_lowercase())
                };
                vehicles.iter().map(entry).collect::<Vec<_>>().join(", ")
            }
            other => format!("{other:?}"),
        }
    }

    fn letter(&mut self, lease: &[u8; 16]) -> char {
        let place = self.leases.iter().position(|known| known == lease).unwrap_or_else(|| {
            self.leases.push(*lease);
            self.leases.len() - 1
        });
        char::from(b'A' + place as u8)
    }
}

fn config() -> Config {
    let key = |seed| Identity::from_seed(&[seed; 32]).public();
    Config {
        vehicles: [("rover".into(), key(ROVER)), ("mule".into(), key(MULE))].into(),
        operators: [("anna".into(), key(ANNA)), ("bert".into(), key(BERT))].into(),
        ..Config::default()
    }
}

const ROVER: u8 = 1;
const MULE: u8 = 2;
const ANNA: u8 = 3;
const BERT: u8 = 4;
const RELAY: u8 = 5;
const SWITCHBOARD: u8 = 6;

/// Both ends receive the relays before they are introduced, and again at half the tokens' life. An
/// end of an older build, or its peer, receives none.
#[test]
fn ends_that_support_relays_receive_them_with_own_tokens() {
    let own = Identity::from_seed(&[SWITCHBOARD; 32]);
    let key = |seed| Identity::from_seed(&[seed; 32]).public();
    let relay = crate::relays::Relay {
        key: key(RELAY),
        addresses: vec!["192.0.2.99:7444".parse().unwrap()],
        tls: Vec::new(),
    };
    let life = Duration::from_secs(600);
    for (vehicle_knows, operator_knows) in [(true, true), (true, false), (false, true)] {
        let mut directory = Directory::new(&config(), [1; 32]);
        let start = Duration::from_secs(1_000);
        directory.name_relays(Issuer::new(&own, std::slice::from_ref(&relay), life));
        directory.handle_unix_start(start);
        let (vehicle, operator) = (ConnectionId(1), ConnectionId(2));
        let mut now = Instant::from_millis(1);
        let mut named = Vec::new();
        for (id, seed) in [(vehicle, ROVER), (operator, ANNA)] {
            let remote = SocketAddr::from(([192, 0, 2, seed], 9_000));
            directory.handle_connected(id, key(seed), remote, now);
        }
        let (addresses, versions) = (vec!["10.0.0.1:7000".to_owned()], None);
        let (name, relays) = ("rover".to_owned(), vehicle_knows);
        let register = Control::RegisterVehicle {
            name,
            addresses: addresses.clone(),
            versions,
            relays,
            candidates: vec![],
            held: None,
            place: None,
        };
        directory.handle_message(vehicle, register, now);
        let (name, relays) = ("anna".to_owned(), operator_knows);
        let candidates = vec![];
        let register =
            Control::RegisterOperator { name, addresses, versions, relays, candidates, held: None };
        directory.handle_message(operator, register, now);
        let take = Control::Take { vehicle_name: "rover".to_owned() };
        directory.handle_message(operator, take, now);
        for _ in 0..400 {
            while let Some(Output::Send { to, message }) = directory.poll_output() {
                match message {
                    Control::Ping { t } => {
                        directory.handle_message(to, Control::Pong { t, seen_at: None }, now)
                    }
                    Control::Relays { peer_key, relays } => {
                        let token = tautline_transport::relay::Token::from_bytes(&relays[0].token);
                        let unix = start + now.since(Instant::ZERO);
                        let grant = token.unwrap().read(&own.public(), unix).unwrap();
                        assert_eq!(*grant.peer.as_bytes(), peer_key);
                        named.push((to.0, grant.holder, grant.until.as_secs()));
                    }
                    Control::Introduce { .. } => named.push((to.0, key(SWITCHBOARD), 0)),
                    _other => {}
                }
            }
            now += Duration::from_secs(1);
            directory.handle_timeout(now);
        }
        let introduced = [(2, key(SWITCHBOARD), 0), (1, key(SWITCHBOARD), 0)];
        if !(vehicle_knows && operator_knows) {
            assert_eq!(named, introduced);
            continue;
        }
        let told = |until| [(2, key(ANNA), until), (1, key(ROVER), until)];
        let later = named.iter().rev().take(2).map(|(.., until)| *until).next().unwrap();
        assert!((1_900..1_902).contains(&later), "{later}");
        assert_eq!(named, [told(1_600), introduced, told(later)].concat());
    }
}
