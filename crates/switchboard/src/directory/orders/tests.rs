use std::net::SocketAddr;
use std::time::Duration;

use tautline_transport::crypto::Identity;
use tautline_transport::order;

use super::*;
use crate::Config;
use crate::store::Kept;

/// Rover on connection 0, anna who drives it on 1, bert on 2, supervisor eva on 3.
struct Scene {
    directory: Directory,
    now: Instant,
}

const ROVER: u8 = 1;
const ANNA: u8 = 2;
const BERT: u8 = 3;
const EVA: u8 = 4;
/// Number of a person who is not a supervisor.
const UDO: u8 = 5;
const UNIX: Duration = Duration::from_secs(1_800_000_000);

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

fn key(seed: u8) -> PublicKey {
    identity(seed).public()
}

fn signed(supervisor: u8, vehicle: u8, made_at: Duration) -> Vec<u8> {
    let until = made_at + Duration::from_secs(60);
    let order = order::Order { supervisor: key(supervisor), vehicle: key(vehicle), made_at, until };
    order.sign(&identity(supervisor)).as_bytes().to_vec()
}

impl Scene {
    fn new() -> Self {
        let config = Config {
            vehicles: [("rover".into(), key(ROVER))].into(),
            operators: [("anna".into(), key(ANNA)), ("bert".into(), key(BERT))].into(),
            supervisors: [("eva".into(), key(EVA))].into(),
            ..Config::default()
        };
        let now = Instant::from_millis(1_000);
        let mut directory = Directory::new(&config, [7; 32]);
        directory.restore(&Kept::default(), UNIX, now);
        let mut scene = Self { directory, now };
        for (id, seed) in [ROVER, ANNA, BERT, EVA].into_iter().enumerate() {
            let remote = SocketAddr::from(([192, 0, 2, seed], 9_000));
            scene.directory.handle_connected(ConnectionId(id as u64), key(seed), remote, now);
        }
        let addresses = vec!["10.0.0.1:7000".to_owned()];
        let (versions, relays, candidates, held) = (None, false, vec![], None);
        let rover = Control::RegisterVehicle {
            name: "rover".to_owned(),
            addresses: addresses.clone(),
            versions,
            relays,
            candidates: candidates.clone(),
            held: held.clone(),
            place: None,
        };
        scene.say(0, rover);
        for (id, name) in [(1, "anna"), (2, "bert")] {
            let name = name.to_owned();
            let (addresses, candidates, held) =
                (addresses.clone(), candidates.clone(), held.clone());
            let register =
                Control::RegisterOperator { name, addresses, versions, relays, candidates, held };
            scene.say(id, register);
        }
        assert!(introduces(&scene.take(1)));
        scene
    }

    /// Sends a message, and returns all outputs except pings.
    fn say(&mut self, id: u64, message: Control) -> Vec<Output> {
        self.directory.handle_message(ConnectionId(id), message, self.now);
        let is_ping =
            |it: &Output| matches!(it, Output::Send { message: Control::Ping { .. }, .. });
        std::iter::from_fn(|| self.directory.poll_output()).filter(|it| !is_ping(it)).collect()
    }

    fn take(&mut self, id: u64) -> Vec<Output> {
        self.say(id, Control::Take { vehicle_name: "rover".to_owned() })
    }

    fn end(&mut self, id: u64, signed: Vec<u8>) -> Vec<Output> {
        self.say(id, Control::Order(Order::End { name: "rover".to_owned(), signed }))
    }

    fn unix(&self) -> Duration {
        UNIX + self.now.since(Instant::ZERO)
    }
}

fn introduces(outputs: &[Output]) -> bool {
    outputs.iter().any(|it| matches!(it, Output::Send { message: Control::Introduce { .. }, .. }))
}

/// Returns the reason of a refusal, which must be the only output.
fn refused(outputs: &[Output]) -> &str {
    match outputs {
        [Output::Send { message: Control::Refused { text, .. }, .. }] => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_order_goes_to_the_vehicle_first_and_ends_the_lease() {
    let mut scene = Scene::new();
    let order = signed(EVA, ROVER, scene.unix());
    let outputs = scene.end(3, order.clone());
    let [handed, Output::Keep(_), to_vehicle, to_operator, Output::Answer { answer, .. }] =
        &outputs[..]
    else {
        panic!("{outputs:?}")
    };
    let handed_to = Output::Send {
        to: ConnectionId(0),
        message: Control::Ordered { signed: order, is_answered: true },
    };
    assert_eq!(*handed, handed_to);
    for (released, id) in [(to_vehicle, 0), (to_operator, 1)] {
        let Output::Send { to, message: Control::Released { reason, .. } } = released else {
            panic!("{released:?}")
        };
        assert_eq!((to.0, reason.as_str()), (id, "supervisor eva has ended the drive"));
    }
    let words = "rover: the lease of anna has ended; the order was delivered\n";
    assert_eq!(*answer, Answer::Text(words.to_owned()));
}

#[test]
fn an_ended_driver_gets_no_lease_while_the_order_is_valid() {
    let mut scene = Scene::new();
    scene.end(3, signed(EVA, ROVER, scene.unix()));
    assert_eq!(refused(&scene.take(1)), "a supervisor has ended this drive: wait 60 s more");
    assert!(introduces(&scene.take(2)));
    scene.say(2, Control::Release);
    scene.now += Duration::from_secs(59);
    assert!(refused(&scene.take(1)).ends_with("wait 1 s more"));
    scene.now += Duration::from_secs(1);
    assert!(introduces(&scene.take(1)));
}

#[test]
fn order_times_are_judged_by_the_vehicle_not_the_switchboard() {
    // Started before time synchronization, and with a clock years ahead.
    for unix_start in [Duration::ZERO, UNIX * 2] {
        let mut scene = Scene::new();
        scene.directory.handle_unix_start(unix_start);
        let outputs = scene.end(3, signed(EVA, ROVER, scene.unix()));
        let handed = Output::Send {
            to: ConnectionId(0),
            message: Control::Ordered {
                signed: signed(EVA, ROVER, scene.unix()),
                is_answered: true,
            },
        };
        assert_eq!(outputs[0], handed);
        // The former driver is excluded for as long as the order is valid, and no longer.
        assert!(refused(&scene.take(1)).ends_with("wait 60 s more"));
        scene.now += Duration::from_secs(30);
        scene.directory.handle_unix_start(UNIX);
        assert!(refused(&scene.take(1)).ends_with("wait 30 s more"));
        scene.now += Duration::from_secs(30);
        assert!(introduces(&scene.take(1)));
    }
}

#[test]
fn answers_go_to_who_has_ordered_and_no_more_than_four_of_them() {
    let mut scene = Scene::new();
    let answer = |byte| Control::Answered { signed: vec![byte; 146] };
    assert_eq!(scene.say(0, answer(0)), [], "nobody waits");
    assert_eq!(scene.directory.unclaimed_answers(), 1);
    scene.end(3, signed(EVA, ROVER, scene.unix()));
    for byte in 1..=4 {
        let carried = Output::Send { to: ConnectionId(3), message: answer(byte) };
        assert_eq!(scene.say(0, answer(byte)), [carried]);
    }
    assert_eq!(scene.say(0, answer(5)), []);
    assert_eq!(scene.directory.unclaimed_answers(), 2);
    // A disconnected supervisor receives nothing, nor does one whose order was not accepted.
    scene.end(3, signed(EVA, ROVER, scene.unix() + Duration::from_secs(1)));
    scene.directory.handle_closed(ConnectionId(3), scene.now);
    assert_eq!(scene.say(0, answer(6)), []);
    let told = scene.say(1, answer(7));
    assert!(told.contains(&Output::Close { to: ConnectionId(1) }), "an operator answers nothing");
}

#[test]
fn a_second_order_takes_nothing_from_the_first() {
    let mut scene = Scene::new();
    scene.end(3, signed(EVA, ROVER, scene.unix()));
    scene.end(3, signed(EVA, ROVER, scene.unix() + Duration::from_secs(1)));
    assert!(refused(&scene.take(1)).ends_with("wait 60 s more"));
}

#[test]
fn orders_that_the_vehicle_would_refuse_end_nothing() {
    let mut scene = Scene::new();
    let now = scene.unix();
    for (signed, words) in [
        (vec![7; 40], "not an order"),
        (signed(EVA, BERT, now), "for another vehicle"),
        (signed(UDO, ROVER, now), "is not a supervisor here"),
    ] {
        let outputs = scene.end(3, signed);
        assert!(refused(&outputs).contains(words), "{outputs:?}");
    }
    let gone = Order::End { name: "mule".to_owned(), signed: signed(EVA, ROVER, now) };
    assert!(refused(&scene.say(3, Control::Order(gone))).contains("there is no vehicle"));
    // An operator may give no order, and a supervisor only those to end a drive and to query.
    let carried = scene.end(2, signed(EVA, ROVER, now));
    assert!(carried.contains(&Output::Close { to: ConnectionId(2) }), "{carried:?}");
    let who = scene.say(3, Control::Order(Order::Who));
    let [Output::Answer { answer: Answer::Text(text), .. }] = &who[..] else { panic!("{who:?}") };
    assert!(text.contains("driven by anna"), "{text}");
    let backup = scene.say(3, Control::Order(Order::Backup));
    assert!(backup.contains(&Output::Close { to: ConnectionId(3) }), "{backup:?}");
}
