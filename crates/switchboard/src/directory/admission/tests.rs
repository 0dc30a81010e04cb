use std::net::SocketAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use tautline_message::Order;
use tautline_transport::crypto::Identity;

use super::super::enrolment::{WRONG_PER_NETWORK_MAX, WRONG_WINDOW};
use super::*;
use crate::Config;
use crate::store::Kept;

/// A switchboard with its administrator on connection 0.
struct Scene {
    directory: Directory,
    kept: Kept,
    next_id: u64,
    now: Instant,
}

impl Scene {
    fn new() -> Self {
        Self::of(Kept::default())
    }

    fn of(kept: Kept) -> Self {
        let now = Instant::from_millis(1_000);
        let config = Config { operators: [("anna".into(), key(1))].into(), ..Config::default() };
        let mut directory = Directory::new(&config, [7; 32]);
        directory.obey(key(0));
        directory.restore(&kept, Duration::from_secs(1_000), now);
        let mut scene = Self { directory, kept, next_id: 0, now };
        scene.connect(0, 0);
        scene
    }

    fn connect(&mut self, seed: u8, network: u8) -> ConnectionId {
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        let remote = SocketAddr::from(([192, 0, network, 1], 9_000));
        self.directory.handle_connected(id, key(seed), remote, self.now);
        id
    }

    /// Sends a message on a connection, and returns the answer.
    fn say(&mut self, id: ConnectionId, message: Control) -> Option<Output> {
        self.directory.handle_message(id, message, self.now);
        let mut answer = None;
        while let Some(output) = self.directory.poll_output() {
            match output {
                Output::Keep(change) => self.kept.apply(change),
                Output::Send { to, ref message } if to == id => {
                    if !matches!(message, Control::Ping { .. }) {
                        answer.get_or_insert(output);
                    }
                }
                Output::Answer { .. } => answer = Some(output),
                Output::Send { .. } | Output::Close { .. } | Output::Relist => {}
            }
        }
        answer
    }

    fn order(&mut self, order: Order) -> Answer {
        match self.say(ConnectionId(0), Control::Order(order)) {
            Some(Output::Answer { answer, .. }) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn invite(&mut self, role: Role, name: &str) -> (u16, [u8; 4]) {
        match self.order(Order::Invite { role, name: name.to_owned() }) {
            Answer::Code(number, secret) => (number, secret),
            other => panic!("{other:?}"),
        }
    }

    /// Enrols with a code; returns the new role, or the refusal.
    fn enroll(
        &mut self,
        seed: u8,
        network: u8,
        (number, secret): (u16, [u8; 4]),
    ) -> Result<(Role, String, usize), Refusal> {
        let id = self.connect(seed, network);
        match self.say(id, Control::Enroll { number, secret }) {
            Some(Output::Send { message: Control::Enrolled { role, name, peers }, .. }) => {
                Ok((role, name, peers.len()))
            }
            Some(Output::Send { message: Control::Refused { reason_code, .. }, .. }) => {
                Err(reason_code)
            }
            other => panic!("{other:?}"),
        }
    }
}

fn key(seed: u8) -> PublicKey {
    Identity::from_seed(&[seed + 1; 32]).public()
}

fn wrong((number, [a, b, c, d]): (u16, [u8; 4])) -> (u16, [u8; 4]) {
    (number, [a, b, c, d ^ 1])
}

const WRONG: Result<(Role, String, usize), Refusal> = Err(Refusal::NotAllowed);

#[test]
fn a_code_enrols_one_machine_and_survives_a_restart() {
    let mut scene = Scene::new();
    let code = scene.invite(Role::Vehicle, "rover");
    assert_eq!(scene.enroll(5, 1, code), Ok((Role::Vehicle, "rover".into(), 1)));
    // Another machine with the same code; then the first one again, which missed the answer.
    assert_eq!(scene.enroll(6, 2, code), WRONG);
    assert_eq!(scene.enroll(5, 1, code), Ok((Role::Vehicle, "rover".into(), 1)));
    let mut scene = Scene::of(scene.kept);
    assert!(scene.directory.listed().any(|listed| listed == key(5)));
    let code = scene.invite(Role::Operator, "bert");
    assert_eq!(scene.enroll(7, 1, code), Ok((Role::Operator, "bert".into(), 1)));
    let Answer::Text(text) = scene.order(Order::Who) else { panic!() };
    assert!(text.contains("vehicle   rover  away") && text.contains("operator  bert"), "{text}");
}

#[test]
fn a_code_ends_by_time_attempts_or_a_newer_one_for_its_name() {
    let mut scene = Scene::new();
    let code = scene.invite(Role::Vehicle, "rover");
    scene.now += Duration::from_secs(599);
    assert_eq!(scene.enroll(6, 1, wrong(code)), WRONG);
    scene.now += Duration::from_secs(1);
    let other = scene.invite(Role::Vehicle, "mule");
    assert_eq!(scene.enroll(5, 2, code), WRONG);
    for network in 3..6 {
        assert_eq!(scene.enroll(6, network, wrong(other)), WRONG);
    }
    assert_eq!(scene.enroll(5, 6, other), WRONG);
    let first = scene.invite(Role::Vehicle, "tank");
    let second = scene.invite(Role::Vehicle, "tank");
    assert_eq!(scene.enroll(5, 7, first), WRONG);
    assert!(scene.enroll(5, 7, second).is_ok());
}

#[test]
fn wrong_codes_are_limited_per_network_and_in_all() {
    let mut scene = Scene::new();
    let code = scene.invite(Role::Vehicle, "rover");
    let guess = (code.0 ^ 1, [0; 4]);
    for _ in 0..WRONG_PER_NETWORK_MAX {
        assert_eq!(scene.enroll(6, 1, guess), WRONG);
    }
    // For a minute even the right code is refused from that network, but not from others.
    assert_eq!(scene.enroll(5, 1, code), Err(Refusal::Full));
    scene.now += WRONG_WINDOW;
    assert_eq!(scene.enroll(6, 1, guess), WRONG);
    for network in 2..200 {
        let _ = scene.enroll(6, network, guess);
    }
    assert_eq!(scene.enroll(5, 250, code), Err(Refusal::Full));
    scene.now += WRONG_WINDOW;
    assert!(scene.enroll(5, 250, code).is_ok());
}

#[test]
fn an_uninvited_key_is_refused_at_once_as_unknown() {
    let mut scene = Scene::new();
    let id = scene.connect(6, 1);
    assert!(matches!(scene.directory.poll_output(), Some(Output::Send { to, .. }) if to == id));
    let code = scene.invite(Role::Vehicle, "rover");
    // Now it may present a code; without one it is refused as before.
    let id = scene.connect(6, 1);
    let (name, addresses) = ("rover".to_owned(), vec![]);
    let (versions, relays, candidates, held, place) = (None, false, vec![], None, None);
    let register =
        Control::RegisterVehicle { name, addresses, versions, relays, candidates, held, place };
    let Some(Output::Send { message: Control::Refused { text, .. }, .. }) = scene.say(id, register)
    else {
        panic!()
    };
    assert!(text.starts_with("this key is unknown here"), "{text}");
    assert!(scene.enroll(6, 1, code).is_ok());
}

#[test]
fn a_revocation_survives_restarts_and_configured_names_are_kept() {
    let mut scene = Scene::new();
    let code = scene.invite(Role::Vehicle, "rover");
    scene.enroll(5, 1, code).unwrap();
    let revoke = Order::Revoke { role: Role::Vehicle, name: "rover".to_owned() };
    assert!(matches!(scene.order(revoke.clone()), Answer::Text(_)));
    assert!(!scene.directory.listed().any(|listed| listed == key(5)));
    for refused in [
        revoke,
        Order::Revoke { role: Role::Operator, name: "anna".to_owned() },
        Order::Invite { role: Role::Operator, name: "anna".to_owned() },
        Order::Invite { role: Role::Operator, name: "a\nb".to_owned() },
    ] {
        let answer = scene.say(ConnectionId(0), Control::Order(refused.clone()));
        let is_refused = |output: &Output| {
            matches!(output, Output::Send { message: Control::Refused { .. }, .. })
        };
        assert!(answer.as_ref().is_some_and(is_refused), "{refused:?}: {answer:?}");
    }
    assert!(Scene::of(scene.kept).directory.machine_of(key(5)).is_none());
}

#[test]
fn a_key_in_the_settings_too_cannot_be_revoked_by_command() {
    let mut scene = Scene::new();
    let code = scene.invite(Role::Vehicle, "rover");
    scene.enroll(5, 1, code).unwrap();
    let listed = |scene: &Scene| scene.directory.listed().any(|listed| listed == key(5));
    let rover = [("mule".to_owned(), key(5))].into();
    let revoke = Control::Order(Order::Revoke { role: Role::Vehicle, name: "rover".to_owned() });
    scene.directory.relist(&rover, &BTreeMap::new(), scene.now);
    let answer = scene.say(ConnectionId(0), revoke);
    let Some(Output::Send { message: Control::Refused { text, .. }, .. }) = answer else {
        panic!()
    };
    assert!(text.contains("the settings list its key"), "{text}");
    assert!(listed(&scene) && scene.kept.machines.is_empty());
    scene.directory.relist(&BTreeMap::new(), &BTreeMap::new(), scene.now);
    assert!(!listed(&scene));
}

#[test]
fn no_more_are_let_in_than_fit_a_list() {
    let mut kept = Kept::default();
    let key = |number: u16| {
        let mut seed = [9; 32];
        seed[..2].copy_from_slice(&number.to_be_bytes());
        Identity::from_seed(&seed).public()
    };
    for number in 0..300 {
        let machine = Machine { role: Role::Vehicle, name: format!("v{number}") };
        kept.apply(Change::Machine { key: key(number), machine: Some(machine) });
    }
    let mut scene = Scene::of(kept);
    assert_eq!(scene.directory.vehicles.len(), ENTRIES_MAX);
    let invite = Order::Invite { role: Role::Vehicle, name: "one more".to_owned() };
    let answer = scene.say(ConnectionId(0), Control::Order(invite));
    let Some(Output::Send { message: Control::Refused { text, .. }, .. }) = answer else {
        panic!()
    };
    assert_eq!(text, "256 keys are already listed");
    // An operator receives all of them in one valid message.
    let code = scene.invite(Role::Operator, "bert");
    assert_eq!(scene.enroll(5, 1, code), Ok((Role::Operator, "bert".into(), ENTRIES_MAX)));
    scene.directory.relist(&BTreeMap::new(), &BTreeMap::new(), scene.now);
    assert_eq!(scene.directory.vehicles.len(), ENTRIES_MAX);
}

proptest! {
    #[test]
    fn no_row_of_guesses_lets_anybody_in(
        guesses in vec((any::<u16>(), any::<[u8; 4]>(), any::<u8>(), 0..30_u64), 1..80)
    ) {
        let mut scene = Scene::new();
        let code = scene.invite(Role::Vehicle, "rover");
        for (number, secret, network, seconds) in guesses {
            scene.now += Duration::from_secs(seconds);
            prop_assume!((number, secret) != code);
            // Every other guess uses the right number, which is not secret.
            let number = if network % 2 == 0 { code.0 } else { number };
            if (number, secret) != code {
                let id = scene.connect(6, network);
                scene.say(id, Control::Enroll { number, secret });
                prop_assert!(!scene.directory.listed().any(|listed| listed == key(6)));
            }
        }
        prop_assert!(scene.kept.machines.is_empty());
    }
}
