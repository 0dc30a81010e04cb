//! Tests of a vehicle with a switchboard, components and orders that would end its drive, over
//! loopback sockets.
#![expect(clippy::unwrap_used, reason = "a failed test panics")]

pub(crate) mod stand;

use std::net::Ipv4Addr;
use std::process::Command as Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::anyhow;
use tautline_message::{Control, Refusal, RelayTicket};
use tautline_net::clock::Clock;
use tautline_net::free_port;
use tautline_transport::order::Order;
use tautline_transport::order::answer::Outcome;
use tautline_transport::relay::Token;
use tautline_transport::relay::wire::Message;
use tautline_units::Instant;
use tautline_vehicle::camera::clip::ClipSensor;
use tautline_video::Sensor;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use stand::{
    ANNA, BERT, Car, EVA, Ending, Grey, LONG, Operator, ROVER, STRANGER, SWITCHBOARD, Stand, TURN,
    grey, identity,
};

/// Runs a test in real time, and repeats it after a stall of the machine, like those with real
/// processes.
pub(crate) fn tried(test: impl AsyncFn()) {
    crate::tries::tried(|| Runtime::new().unwrap().block_on(test()));
}

#[test]
fn no_word_of_the_switchboard_ends_a_drive() {
    tried(async || {
        let mut stand = Stand::start(Car::default(), grey()).await;
        let mut anna = Operator::start(ANNA);
        stand.introduce(&anna, [1; 16]).await;
        anna.respond([1; 16]);
        anna.arm().await;
        anna.drive(0.5, 0.0, || stand.car().state.speed > 2.0).await;
        stand.car().turns_braked = 0;

        // The switchboard ends leases and introduces the same pair repeatedly, and no peer answers.
        for lease in 2..8 {
            let reason = "because I can".to_owned();
            stand.say(&Control::Released { lease: [1; 16], reason }).await;
            stand.introduce(&anna, [lease; 16]).await;
            anna.drive_for(0.5, 0.0, 100).await;
        }
        // A stranger, and another listed operator: neither is there.
        let nowhere = Operator::start(STRANGER);
        stand.introduce(&nowhere, [9; 16]).await;
        stand.introduce(&Operator { seed: BERT, ..nowhere }, [10; 16]).await;
        anna.drive_for(0.5, 0.0, 300).await;
        // The switchboard refuses, for every reason, and restarts.
        for reason_code in
            [Refusal::NotAllowed, Refusal::NameTaken, Refusal::Full, Refusal::BadRequest]
        {
            stand.say(&Control::Refused { reason_code, text: "no".to_owned() }).await;
            // The vehicle's next attempt follows its last failure after up to 1.6 s; it is driven
            // meanwhile.
            tokio::join!(stand.restart(), anna.drive_for(0.5, 0.0, 2_000));
        }
        // The switchboard sends malformed messages.
        for length in [0, 1, 7, 40, 400, 4_000] {
            stand.send(&vec![0xa5; length]).await;
        }
        stand.say(&Control::ListVehicles).await;
        stand.say(&Control::Release).await;
        anna.drive_for(0.5, 0.0, 300).await;
        // The switchboard accepts the connection and sends nothing more; then it is gone.
        anna.drive_for(0.5, 0.0, 3_500).await;
        stand.connection = None;
        drop(stand.listener);
        anna.drive_for(0.5, 0.0, 1_000).await;

        assert!(!stand.run.is_finished());
        let turns_braked = stand.car.lock().unwrap().turns_braked;
        assert_eq!(turns_braked, 0, "{:?}", anna.telemetry().status());
        // The session is still the first one.
        let steering = || stand.car.lock().unwrap().controls.steering;
        anna.drive(0.5, -0.25, || steering() == -0.25).await;
        assert!(anna.telemetry().status().unwrap().mode.is_driving());
    });
}

/// No peer is at the operator's own address: the vehicle connects to the relay it was given, and
/// sends its session's first datagrams there too.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_named_by_the_switchboard_becomes_a_link() {
    let mut stand = Stand::start(Car::default(), grey()).await;
    let anna = Operator::start(ANNA);
    let relay = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let ticket = RelayTicket {
        addresses: vec![relay.local_addr().unwrap().to_string()],
        key: *identity(STRANGER).public().as_bytes(),
        token: vec![7; Token::BYTES],
    };
    let peer_key = *identity(ANNA).public().as_bytes();
    stand.say(&Control::Relays { peer_key, relays: vec![ticket] }).await;
    stand.introduce(&anna, [1; 16]).await;
    let (mut calls, mut inits, mut buffer) = (0, 0, [0; 2_048]);
    while calls == 0 || inits == 0 {
        let heard = timeout(Duration::from_secs(10), relay.recv_from(&mut buffer)).await;
        let (length, _vehicle) = heard.expect("nothing comes").unwrap();
        match Message::parse(&buffer[..length]) {
            Some(Message::Call { .. }) => calls += 1,
            Some(other) => panic!("{other:?}"),
            // An init of link 1, after the direct link.
            None => inits += usize::from(buffer[0] == 0x11),
        }
    }
}

#[test]
fn another_operator_waits_for_standstill_and_sees_the_reason() {
    tried(async || {
        let mut stand = Stand::start(Car::default(), grey()).await;
        let (mut anna, mut bert) = (Operator::start(ANNA), Operator::start(BERT));
        stand.introduce(&anna, [1; 16]).await;
        anna.respond([1; 16]);
        anna.arm().await;
        anna.drive(0.5, 0.0, || stand.car().state.speed > 1.0).await;
        stand.introduce(&bert, [2; 16]).await;
        bert.respond([2; 16]);
        stand.car().turns_braked = 0;
        let mut told = String::new();
        for _ in 0..1_000 {
            anna.command(0.5, 0.0);
            bert.command(0.0, 0.75);
            sleep(TURN).await;
            if let Some(telemetry) = bert.newest() {
                told = telemetry.mode_reason.unwrap_or_default();
                break;
            }
        }
        assert_eq!(told, "the vehicle drives under another operator");
        assert_eq!(stand.car().turns_braked, 0);
        assert_eq!(stand.car().controls.steering, 0.0);
        // One operator brakes, and the other has released the throttle.
        for _ in 0..1_000 {
            anna.brake();
            bert.ask_to_arm();
            bert.command(0.0, 0.75);
            sleep(TURN).await;
            let car = stand.car();
            if car.controls.steering == 0.75 {
                break;
            }
            assert!(car.state.speed < 0.05 || car.controls.steering == 0.0);
        }
        assert_eq!(stand.car().controls.steering, 0.75);
        bert.drive(0.5, 0.75, || stand.car().state.speed > 1.0).await;
    });
}

#[test]
fn an_order_to_end_stops_the_machine_first() {
    tried(async || {
        let mut stand = Stand::start(Car::default(), grey()).await;
        let mut anna = Operator::start(ANNA);
        stand.introduce(&anna, [1; 16]).await;
        anna.respond([1; 16]);
        anna.arm().await;
        anna.drive(0.5, 0.0, || stand.car().state.speed > 3.0).await;
        stand.stop.notify_one();
        anna.drive(1.0, 0.0, || stand.run.is_finished()).await;
        let car = stand.car();
        assert_eq!((car.state.speed, car.controls.throttle, car.controls.brake), (0.0, 0.0, 1.0));
        drop(car);
        stand.run.join().unwrap().unwrap();
    });
}

/// Messages through the switchboard stop nothing unless a supervisor on the vehicle's own list has
/// signed them, for this vehicle, now, and once.
#[test]
fn only_a_valid_supervisors_order_ends_a_drive() {
    tried(async || {
        let mut stand = Stand::start(Car::default(), grey()).await;
        let mut anna = Operator::start(ANNA);
        stand.introduce(&anna, [1; 16]).await;
        anna.respond([1; 16]);
        anna.arm().await;
        anna.drive(0.5, 0.0, || stand.car().state.speed > 2.0).await;
        stand.car().turns_braked = 0;
        let order = signed(EVA, ROVER, Duration::ZERO);
        let mut forged = order.clone();
        forged[140] ^= 1;
        let foreign = signed(EVA, BERT, Duration::ZERO);
        let expired = signed(EVA, ROVER, Duration::from_secs(61));
        let strangers = signed(STRANGER, ROVER, Duration::ZERO);
        let switchboards = signed(SWITCHBOARD, ROVER, Duration::ZERO);
        let malformed = [vec![], vec![7; 146]];
        let signed = [&forged, &foreign, &expired, &strangers, &switchboards];
        for signed in signed.into_iter().chain(&malformed).cloned() {
            stand.say(&Control::Ordered { signed, is_answered: true }).await;
            anna.drive_for(0.5, 0.0, 100).await;
        }
        assert_eq!(stand.car().turns_braked, 0, "{:?}", anna.telemetry().status());
        let count = |stand: &Stand, name: &str| {
            let snapshot = stand.latest.snapshot();
            snapshot.drops().find(|(told, _)| *told == name).map_or(0, |(_, count)| count)
        };
        anna.drive(0.5, 0.0, || count(&stand, "order: malformed") == 2).await;
        let names = ["order: forged", "order: for another vehicle", "order: expired"];
        assert_eq!(names.map(|name| count(&stand, name)), [1; 3]);
        assert_eq!(count(&stand, "order: of no supervisor"), 2);
        // Only signers of an order for this vehicle get an answer.
        assert_eq!(stand.answer(EVA, &expired).await, Outcome::Expired);
        assert_eq!(stand.answer(STRANGER, &strangers).await, Outcome::Stranger);
        assert_eq!(stand.answer(SWITCHBOARD, &switchboards).await, Outcome::Stranger);

        // The throttle stays pressed.
        stand.say(&Control::Ordered { signed: order.clone(), is_answered: true }).await;
        let mut words = String::new();
        let stands = |stand: &Stand| stand.car().state.speed == 0.0;
        let mut hardest = 0.0_f32;
        for turn in 0..1_000 {
            anna.command(0.5, 0.0);
            if turn % 20 == 0 {
                stand.say(&Control::Ping { t: Instant::ZERO }).await;
            }
            if stand.car().state.speed > 0.2 {
                hardest = hardest.max(stand.car().controls.brake);
            }
            words = anna.newest().and_then(|telemetry| telemetry.mode_reason).unwrap_or(words);
            sleep(TURN).await;
            if stands(&stand) {
                break;
            }
        }
        assert!(stands(&stand), "{:?}", anna.telemetry().status());
        assert_eq!(words, "supervisor eva has ended the drive");
        assert!(hardest < 0.9, "{hardest}: the ramp of a manoeuvre, no full brake");
        assert_eq!(stand.answer(EVA, &order).await, Outcome::Begun);
        assert_eq!(stand.answer(EVA, &order).await, Outcome::Held);
        // The machine stands whatever is requested, and no session is left.
        for _ in 0..100 {
            anna.ask_to_arm();
            anna.command(0.5, 0.0);
            sleep(TURN).await;
        }
        assert!(stands(&stand) && stand.car().controls.parking_brake);

        // A new lease drives, and the same order does not end it. The switchboard was silent for
        // too long meanwhile.
        stand.restart().await;
        stand.introduce(&anna, [2; 16]).await;
        anna.respond([2; 16]);
        anna.arm().await;
        anna.drive(0.5, 0.0, || stand.car().state.speed > 1.0).await;
        stand.car().turns_braked = 0;
        stand.say(&Control::Ordered { signed: order.clone(), is_answered: true }).await;
        anna.drive(0.5, 0.0, || count(&stand, "order: repeated") == 1).await;
        assert_eq!(stand.answer(EVA, &order).await, Outcome::Repeated);
        anna.drive_for(0.5, 0.0, 300).await;
        assert_eq!(stand.car().turns_braked, 0);
        assert!(!stand.run.is_finished());
    });
}

#[test]
fn no_order_ends_the_process_of_a_machine_that_moves() {
    tried(async || {
        let stand = Stand::start(Car { is_brakeless: true, ..Car::default() }, grey()).await;
        stand.car().state.speed = 5.0;
        sleep(Duration::from_millis(500)).await;
        for _ in 0..6 {
            stand.stop.notify_one();
            sleep(Duration::from_millis(500)).await;
            assert!(!stand.run.is_finished());
        }
        stand.car().is_brakeless = false;
        let ends = async {
            while !stand.run.is_finished() {
                sleep(TURN).await;
            }
        };
        timeout(LONG, ends).await.expect("it stands");
        assert_eq!(stand.car().state.speed, 0.0);
        stand.run.join().unwrap().unwrap();
    });
}

/// Like a camera that is unplugged and plugged in again: a clip's file is truncated while it is
/// read, and restored.
#[tokio::test(flavor = "multi_thread")]
async fn a_clip_that_goes_is_seen_with_again_once_it_is_back() {
    let clip = std::env::temp_dir().join(format!("tautline-goes-{}.mp4", std::process::id()));
    let made = Process::new("ffmpeg")
        .args(["-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=640x96:rate=30"])
        // More than ffmpeg reads ahead.
        .args(["-frames:v", "30", "-c:v", "libx264", "-qp", "1", "-g", "1", "-pix_fmt", "yuv420p"])
        .arg(&clip)
        .status()
        .expect("needs ffmpeg: ./setup ffmpeg");
    assert!(made.success());
    let bytes = std::fs::read(&clip).unwrap();
    let path = clip.clone();
    let open = move || Ok(Box::new(ClipSensor::open(&path)?) as Box<dyn Sensor>);
    let mut stand = Stand::start(Car::default(), Box::new(open)).await;
    let mut anna = Operator::start(ANNA);
    stand.introduce(&anna, [1; 16]).await;
    anna.respond([1; 16]);
    anna.see(20).await;
    std::fs::write(&clip, []).unwrap();
    let ended = async {
        let mut turns_unseen = 0;
        while turns_unseen < 100 {
            let before = anna.pictures;
            anna.command(0.0, 0.0);
            anna.newest();
            turns_unseen = if anna.pictures == before { turns_unseen + 1 } else { 0 };
            sleep(TURN).await;
        }
    };
    timeout(LONG, ended).await.expect("an empty clip gives no pictures");
    std::fs::write(&clip, &bytes).unwrap();
    anna.see(20).await;
    assert!(!stand.run.is_finished());
    std::fs::remove_file(&clip).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_camera_that_fails_or_panics_is_opened_again() {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = opened.clone();
    let open = move || match count.fetch_add(1, Ordering::Relaxed) {
        0 => Ok(Box::new(Grey { left: 3, ending: Ending::Fails }) as Box<dyn Sensor>),
        1 => Ok(Box::new(Grey { left: 3, ending: Ending::Panics }) as Box<dyn Sensor>),
        2 => Err(anyhow!("unplugged")),
        3 => Ok(Box::new(Grey { left: 3, ending: Ending::Ends }) as Box<dyn Sensor>),
        _ => Ok(Box::new(Grey { left: usize::MAX, ending: Ending::Ends }) as Box<dyn Sensor>),
    };
    let mut stand = Stand::start(Car::default(), Box::new(open)).await;
    let mut anna = Operator::start(ANNA);
    stand.introduce(&anna, [1; 16]).await;
    anna.respond([1; 16]);
    anna.drive(0.0, 0.0, || opened.load(Ordering::Relaxed) == 5).await;
    // Slices of the last one arrive.
    anna.see(20).await;
    assert!(!stand.run.is_finished());
    let values = stand.latest.snapshot();
    let failures = values.values().iter().find(|value| value.name.starts_with("camera"));
    assert_eq!(failures.map(|value| value.number), Some(4.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metrics_port_that_is_taken_is_tried_again() {
    let address = free_port(Ipv4Addr::LOCALHOST.into()).unwrap();
    let taken = std::net::TcpListener::bind(address).unwrap();
    let stand = Stand::start_with(Car::default(), grey(), Some(address)).await;
    sleep(Duration::from_millis(300)).await;
    assert!(!stand.run.is_finished());
    drop(taken);
    let reached = async {
        while tokio::net::TcpStream::connect(address).await.is_err() {
            sleep(TURN).await;
        }
    };
    timeout(LONG, reached).await.unwrap();
}

/// Returns an order to a vehicle to end its drive, created `ago` before now.
fn signed(supervisor: u8, vehicle: u8, ago: Duration) -> Vec<u8> {
    let (own, clock) = (identity(supervisor), Clock::start());
    let now = Duration::from_millis(clock.unix_nanos(clock.now()) / 1_000_000);
    let (made_at, until) = (now - ago, now - ago + Duration::from_secs(60));
    let (supervisor, vehicle) = (own.public(), identity(vehicle).public());
    Order { supervisor, vehicle, made_at, until }.sign(&own).as_bytes().to_vec()
}
