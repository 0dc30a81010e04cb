use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tautline_transport::crypto::Identity;

use super::*;
use crate::Config;
use crate::directory::ConnectionId;

/// A switchboard, its vehicles and operators, and the content of its disk.
struct World {
    directory: Directory,
    kept: Kept,
    now: Instant,
    connections: BTreeMap<u8, ConnectionId>,
    next_id: u64,
    /// Lease that each end holds: a vehicle accepts no lower epoch.
    held: BTreeMap<u8, Held>,
    /// Leases that each vehicle accepted, by key: epoch and operator.
    taken: BTreeMap<u8, BTreeMap<u64, [u8; 32]>>,
    /// Introductions that a vehicle refuses.
    refused: usize,
}

impl World {
    fn new() -> Self {
        Self {
            directory: directory(&Kept::default(), Instant::from_millis(1_000)),
            kept: Kept::default(),
            now: Instant::from_millis(1_000),
            connections: BTreeMap::new(),
            next_id: 0,
            held: BTreeMap::new(),
            taken: BTreeMap::new(),
            refused: 0,
        }
    }

    /// Kills the switchboard and restarts it with the content of its disk.
    fn restart(&mut self) {
        self.directory = directory(&self.kept, self.now);
        self.connections.clear();
        self.drain(usize::MAX);
    }

    fn register(&mut self, who: u8) {
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        // Close its former connection, or this one would count as a duplicate registration.
        if let Some(former) = self.connections.insert(who, id) {
            self.directory.handle_closed(former, self.now);
        }
        let key = key(who);
        let remote = ([192, 0, 2, who], 9_000).into();
        self.directory.handle_connected(id, key, remote, self.now);
        let (addresses, versions, relays) = (vec!["10.0.0.1:7000".to_owned()], None, false);
        let (candidates, held) = (vec![], self.held.get(&who).cloned());
        let name = NAMES[usize::from(who)].to_owned();
        let register = match who {
            ROVER | MULE => {
                let place = None;
                Control::RegisterVehicle {
                    name,
                    addresses,
                    versions,
                    relays,
                    candidates,
                    held,
                    place,
                }
            }
            _operator => {
                Control::RegisterOperator { name, addresses, versions, relays, candidates, held }
            }
        };
        self.directory.handle_message(id, register, self.now);
    }

    fn say(&mut self, who: u8, message: Control) {
        if let Some(id) = self.connections.get(&who) {
            self.directory.handle_message(*id, message, self.now);
        }
    }

    fn take(&mut self, operator: u8, vehicle: u8) {
        let vehicle_name = NAMES[usize::from(vehicle)].to_owned();
        self.say(operator, Control::Take { vehicle_name });
    }

    /// Ends the process of `who`, a vehicle or an operator; a vehicle's epoch stays on its disk.
    fn end(&mut self, who: u8) {
        if let Some(id) = self.connections.remove(&who) {
            self.directory.handle_closed(id, self.now);
        }
        match self.held.get_mut(&who).filter(|_| who <= MULE) {
            Some(held) => held.lease = None,
            None => drop(self.held.remove(&who)),
        }
    }

    fn wait(&mut self, duration: Duration) {
        self.now += duration;
        self.directory.handle_timeout(self.now);
    }

    /// Carries out `left` outputs of the directory; returns `false` if the switchboard is killed
    /// there.
    fn drain(&mut self, mut left: usize) -> bool {
        while let Some(output) = self.directory.poll_output() {
            if left == 0 {
                return false;
            }
            left -= 1;
            match output {
                Output::Keep(change) => {
                    if let Change::Vehicle { key, record } = &change {
                        let before = self.kept.vehicles.get(key).map_or(0, |before| before.epoch);
                        assert!(record.epoch >= before, "an epoch falls from {before}");
                    }
                    self.kept.apply(change);
                }
                Output::Send { to, message } => {
                    let who = self.connections.iter().find(|(_, id)| **id == to);
                    if let Some(who) = who.map(|(who, _)| *who) {
                        self.hear(who, to, message);
                    }
                }
                Output::Close { to } => self.connections.retain(|_, id| *id != to),
                Output::Answer { .. } | Output::Relist => panic!("nobody orders"),
            }
        }
        true
    }

    fn hear(&mut self, who: u8, id: ConnectionId, message: Control) {
        match message {
            Control::Introduce { lease, peer_key, epoch, .. } => {
                assert!(epoch > 0);
                if who <= MULE {
                    let taken = self.taken.entry(who).or_default();
                    let newest = taken.last_key_value();
                    if newest.is_some_and(|(last, operator)| {
                        epoch < *last || epoch == *last && *operator != peer_key
                    }) {
                        self.refused += 1;
                        return;
                    }
                    taken.insert(epoch, peer_key);
                }
                self.held.insert(who, Held { lease: Some(lease), epoch, peer_key });
            }
            Control::Released { lease, .. } => {
                let held = self.held.get_mut(&who).filter(|held| held.lease == Some(lease));
                if let Some(held) = held {
                    held.lease = None;
                }
            }
            Control::Ping { t } => {
                self.directory.handle_message(id, Control::Pong { t, seen_at: None }, self.now);
            }
            _ => {}
        }
    }

    /// Checks the stored state: no operator has two vehicles, and no vehicle two operators.
    fn check(&self) {
        let leases = self.kept.vehicles.values().filter_map(|record| record.lease.as_ref());
        let mut drivers: Vec<_> = leases.map(|lease| lease.operator).collect();
        let count = drivers.len();
        drivers.sort_unstable();
        drivers.dedup();
        assert_eq!(drivers.len(), count, "an operator has two vehicles");
    }

    fn both_meet(&mut self) {
        self.register(ROVER);
        self.register(ANNA);
        self.take(ANNA, ROVER);
        assert!(self.drain(usize::MAX));
    }
}

fn directory(kept: &Kept, now: Instant) -> Directory {
    let entry = |seed: u8| (NAMES[usize::from(seed)].to_owned(), key(seed));
    let config = Config {
        vehicles: [entry(ROVER), entry(MULE)].into(),
        operators: [entry(ANNA), entry(BERT)].into(),
        lease_grace_ms: 500,
        ..Config::default()
    };
    let mut directory = Directory::new(&config, [now.as_nanos() as u8; 32]);
    directory.restore(kept, Duration::from_secs(1_700_000_000), now);
    directory
}

fn key(seed: u8) -> PublicKey {
    Identity::from_seed(&[seed + 1; 32]).public()
}

const NAMES: [&str; 4] = ["rover", "mule", "anna", "bert"];
const ROVER: u8 = 0;
const MULE: u8 = 1;
const ANNA: u8 = 2;
const BERT: u8 = 3;

proptest! {
    #[test]
    fn killed_at_any_point_no_lease_doubles_and_no_epoch_falls(
        steps in vec((0..7_u8, 0..2_u8, 0..2_u8, 0..12_usize), 1..60)
    ) {
        let mut world = World::new();
        for (what, vehicle, operator, left) in steps {
            let operator = ANNA + operator;
            match what {
                0 => world.register(vehicle),
                1 => world.register(operator),
                2 | 3 => world.take(operator, vehicle),
                4 => world.say(operator, Control::Release),
                5 => world.end(if left < 6 { vehicle } else { operator }),
                _ => world.wait(Duration::from_millis(400 * left as u64)),
            }
            // One step in three is the last of its process.
            let left = if left < 4 { left } else { usize::MAX };
            if !world.drain(left) {
                world.restart();
            }
            world.check();
        }
        // Each introduced operator is accepted: the vehicle sees no lower epoch, nor two leases in
        // one.
        prop_assert_eq!(world.refused, 0);
    }

    #[test]
    fn after_any_backup_a_vehicle_takes_what_it_is_given(
        first in vec((0..3_u8, 0..2_u8), 1..12), second in vec((0..3_u8, 0..2_u8), 1..12)
    ) {
        let mut world = World::new();
        let mut backup = Kept::default();
        for (round, steps) in [first, second].into_iter().enumerate() {
            for (what, operator) in steps {
                let operator = ANNA + operator;
                match what {
                    0 => world.register(operator),
                    1 => world.take(operator, ROVER),
                    _ => world.say(operator, Control::Release),
                }
                if !world.connections.contains_key(&ROVER) {
                    world.register(ROVER);
                }
                assert!(world.drain(usize::MAX));
            }
            if round == 0 {
                backup = world.kept.clone();
            }
        }
        world.kept = backup;
        world.restart();
        for who in [ANNA, BERT, ROVER] {
            world.register(who);
            if who != ROVER {
                world.take(who, ROVER);
            }
            assert!(world.drain(usize::MAX));
        }
        world.check();
        prop_assert_eq!(world.refused, 0);
        let (epoch, operator) = world.taken[&ROVER].last_key_value().unwrap();
        let record = &world.kept.vehicles[&key(ROVER)];
        prop_assert!(record.epoch >= *epoch);
        let lease = record.lease.as_ref().unwrap();
        prop_assert_eq!((record.epoch, lease.operator.as_bytes()), (*epoch, operator));
    }
}

#[test]
fn a_killed_switchboard_disturbs_no_end_that_reconnects() {
    let mut world = World::new();
    world.both_meet();
    let (held, kept) = (world.held.clone(), world.kept.clone());
    let record = &kept.vehicles[&key(ROVER)];
    let lease = record.lease.as_ref().unwrap();
    assert_eq!((record.epoch, lease.operator, lease.name), (1, key(ANNA), held[&ROVER].lease));
    assert_eq!(lease.since, Duration::from_secs(1_700_000_001));
    world.restart();
    world.register(BERT);
    world.take(BERT, ROVER);
    // The other operator is refused from the first moment on, whichever end reconnects first.
    world.register(ROVER);
    world.wait(Duration::from_secs(2));
    world.register(ANNA);
    world.take(ANNA, ROVER);
    world.drain(usize::MAX);
    assert_eq!((&world.held, &world.kept), (&held, &kept), "nobody was introduced anew");
}

/// Registers first in a copied folder, without the lease, as `who`; the process of the lease
/// follows, and goes on. Returns the world after that.
fn copy_comes_first(who: u8) -> World {
    let mut world = World::new();
    world.both_meet();
    let held = world.held.clone();
    world.restart();
    world.held.remove(&who);
    world.register(who);
    let copy = world.connections.remove(&who).unwrap();
    let peer = if who == ROVER { ANNA } else { ROVER };
    world.held = held.clone();
    world.register(peer);
    world.wait(Duration::from_millis(2_900));
    assert!(world.drain(usize::MAX));
    assert_eq!(world.held, held, "nobody is introduced to the copy");
    world.register(who);
    let outputs: Vec<_> = std::iter::from_fn(|| world.directory.poll_output()).collect();
    assert!(outputs.contains(&Output::Close { to: copy }), "{outputs:?}");
    let is_told = |id| {
        outputs.iter().any(|output| match output {
            Output::Send { to, message: Control::Refused { text, .. } } => {
                *to == id && text.contains("another machine uses its key")
            }
            _ => false,
        })
    };
    assert!(is_told(copy) && is_told(world.connections[&who]), "{outputs:?}");
    assert!(world.directory.who(world.now).contains("a connection with the same key from"));
    assert_eq!(world.kept.vehicles[&key(ROVER)].lease.as_ref().unwrap().name, held[&ROVER].lease);
    world
}

#[test]
fn the_process_of_a_kept_lease_replaces_a_copy() {
    for who in [ROVER, ANNA] {
        let mut world = copy_comes_first(who);
        // The copy is refused from then on, like any other.
        let held = world.held.clone();
        let first = world.connections[&who];
        world.held.remove(&who);
        world.connections.remove(&who);
        world.register(who);
        let copy = world.connections.insert(who, first).unwrap();
        world.wait(Duration::from_millis(100));
        assert!(world.drain(usize::MAX));
        world.held = held;
        let closed = Output::Close { to: copy };
        world.wait(Duration::from_millis(100));
        let late: Vec<_> = std::iter::from_fn(|| world.directory.poll_output()).collect();
        assert!(!late.contains(&closed), "it was closed before");
        assert!(world.directory.who(world.now).contains("a connection with the same key from"));
    }
}

#[test]
fn an_end_that_restarts_too_is_introduced_within_ten_seconds() {
    let mut world = World::new();
    world.both_meet();
    let lease = world.held[&ANNA].lease;
    // Another seed, so another name.
    world.now += Duration::from_millis(1);
    world.restart();
    world.register(ANNA);
    world.end(ROVER);
    world.register(ROVER);
    for _ in 0..9 {
        world.wait(Duration::from_secs(1));
        assert!(world.drain(usize::MAX));
        assert_eq!(world.held[&ANNA].lease, lease, "the session's own process may come");
    }
    world.wait(Duration::from_secs(1));
    assert!(world.drain(usize::MAX));
    assert_ne!(world.held[&ANNA].lease, lease);
    assert_eq!(world.held[&ANNA].lease, world.held[&ROVER].lease);
    // If no process of the lease is left, there is nothing to wait for.
    world.restart();
    world.end(ANNA);
    world.end(ROVER);
    world.register(ANNA);
    world.register(ROVER);
    assert!(world.drain(usize::MAX));
    assert_eq!(world.held[&ANNA].lease, world.held[&ROVER].lease);
    assert!(world.held[&ANNA].lease.is_some());
}

#[test]
fn an_absent_operator_loses_its_lease_and_the_next_epoch_rises() {
    let mut world = World::new();
    world.both_meet();
    world.restart();
    world.register(ROVER);
    for _ in 0..10 {
        world.wait(Duration::from_millis(999));
        world.drain(usize::MAX);
    }
    assert!(world.kept.vehicles[&key(ROVER)].lease.is_some(), "it has ten seconds");
    world.wait(Duration::from_millis(10));
    world.drain(usize::MAX);
    assert_eq!(world.kept.vehicles[&key(ROVER)], Record { epoch: 1, lease: None });
    assert_eq!(world.held[&ROVER].lease, None);
    world.register(BERT);
    world.take(BERT, ROVER);
    world.drain(usize::MAX);
    assert_eq!((world.held[&ROVER].epoch, world.held[&ROVER].peer_key), (2, *key(BERT).as_bytes()));
}

#[test]
fn a_vehicle_that_is_listed_again_goes_on_from_its_epoch() {
    let mut world = World::new();
    world.both_meet();
    let listed = |seeds: &[u8]| -> BTreeMap<String, PublicKey> {
        let entry = |seed: &u8| (NAMES[usize::from(*seed)].to_owned(), key(*seed));
        seeds.iter().map(entry).collect()
    };
    let operators = listed(&[ANNA, BERT]);
    world.directory.relist(&listed(&[MULE]), &operators, world.now);
    assert!(world.drain(usize::MAX));
    assert_eq!(world.held[&ROVER].lease, None);
    assert!(!world.connections.contains_key(&ROVER), "it has lost its connection");
    assert!(world.connections.contains_key(&ANNA), "which has not");
    // Also if the switchboard was restarted in between.
    for restarts in [false, true] {
        if restarts {
            world.restart();
            world.directory.relist(&listed(&[MULE]), &operators, world.now);
        }
        world.directory.relist(&listed(&[MULE, ROVER]), &operators, world.now);
        let epoch = world.held[&ROVER].epoch;
        world.both_meet();
        assert_eq!(world.held[&ROVER].epoch, epoch + 1);
        world.say(ANNA, Control::Release);
        assert!(world.drain(usize::MAX));
    }
    assert_eq!(world.refused, 0);
}

#[test]
fn a_running_session_keeps_its_lease_though_the_store_is_lost() {
    let mut world = World::new();
    world.both_meet();
    let held = world.held.clone();
    world.kept = Kept::default();
    world.restart();
    world.register(BERT);
    world.take(BERT, ROVER);
    world.register(ROVER);
    world.register(ANNA);
    world.take(ANNA, ROVER);
    world.drain(usize::MAX);
    assert_eq!(world.held[&ROVER].peer_key, *key(ANNA).as_bytes());
    assert_eq!(world.held[&ROVER], held[&ROVER], "the session goes on");
    assert_eq!(world.refused, 0);
}

/// Otherwise a holder of a vehicle's key could make all its later leases impossible.
#[test]
fn an_epoch_that_no_lease_can_have_had_is_not_kept() {
    let mut world = World::new();
    world.both_meet();
    world.say(ANNA, Control::Release);
    assert!(world.drain(usize::MAX));
    for far in [u64::MAX, 2 + EPOCH_STEP_MAX] {
        world.end(ROVER);
        let peer_key = *key(BERT).as_bytes();
        world.held.insert(ROVER, Held { lease: Some([9; 16]), epoch: far, peer_key });
        world.register(ROVER);
        assert!(world.drain(usize::MAX));
        assert_eq!(world.kept.vehicles[&key(ROVER)], Record { epoch: 1, lease: None });
    }
    world.end(ROVER);
    world.held.remove(&ROVER);
    world.both_meet();
    assert_eq!(world.held[&ROVER].epoch, 2);
}
