use std::num::NonZeroU64;

use proptest::prelude::*;
use tautline_guard::Gear;
use tautline_video::AccessUnit;

use super::super::wire::Message;
use super::*;

fn hub() -> (Hub, mpsc::Receiver<Request>) {
    let (sender, receiver) = mpsc::channel(8);
    (Hub::new("car-1", sender, || 1_000_000), receiver)
}

fn head(strip: u8, kind: SliceKind) -> SliceHead {
    SliceHead {
        strip,
        kind,
        picture: 7,
        history: None,
        is_corrupt: false,
        captured_unix_micros: 9,
        encoded_after: Duration::from_micros(3_500),
        handed_on_after: Duration::from_secs(5_000),
        tick: 0x0102_0304,
    }
}

fn show(hub: &Hub, head: SliceHead, bytes: &[u8]) {
    hub.show_slice(head, head.message(AccessUnit::from(bytes)));
}

#[test]
fn a_viewer_sees_a_strip_from_its_first_idr_on() {
    let (hub, _requests) = hub();
    let (mut messages, _joined) = hub.attach();
    let hello = messages.try_recv().unwrap();
    assert_eq!(Message::read(&hello), Message::Hello { picture: None });
    assert_eq!(hub.take_feedback().keyframe_strips, ALL_STRIPS);
    show(&hub, head(2, SliceKind::Predicted), &[1]);
    assert!(messages.try_recv().is_err());
    assert_eq!(hub.take_feedback().keyframe_strips, 1 << 2);
    show(&hub, head(2, SliceKind::Idr), &[1]);
    show(&hub, head(2, SliceKind::Predicted), &[2]);
    let message = messages.try_recv().unwrap();
    assert_eq!(message[..4], [1, 2, 0, 0]);
    // More than an hour does not fit.
    assert_eq!(message[16..], [0, 0, 0x0D, 0xAC, 255, 255, 255, 255, 1, 2, 3, 4, 1]);
    assert_eq!(messages.try_recv().unwrap()[28..], [2]);
}

#[test]
fn a_slice_message_has_its_history_and_corruption() {
    let message = |history, is_corrupt| {
        let head = SliceHead { history, is_corrupt, ..head(0, SliceKind::Predicted) };
        head.message(AccessUnit::from([1].as_slice()))
    };
    assert_eq!(message(None, false)[2..4], [1, 0]);
    assert_eq!(message(Some(5), true)[2..4], [0x81, 6]);
    assert_eq!(message(Some(254), false)[2..4], [1, 255]);
}

#[test]
fn a_slow_viewer_loses_a_strip_until_its_next_idr() {
    let (hub, _requests) = hub();
    let (_messages, _joined) = hub.attach();
    for _ in 0..=MESSAGES_MAX {
        show(&hub, head(1, SliceKind::Idr), &[0]);
    }
    assert!(hub.slices_dropped.load(Ordering::Relaxed) >= 1);
    assert_eq!(hub.take_feedback().keyframe_strips & 2, 2);
}

#[test]
fn a_hello_that_finds_no_room_goes_before_the_next_slice() {
    let (hub, _requests) = hub();
    let (mut messages, _joined) = hub.attach();
    (0..MESSAGES_MAX).for_each(|_| show(&hub, head(1, SliceKind::Idr), &[0]));
    hub.set_picture(&Layout::of(640, 480).unwrap(), "avc1.42C01F");
    while messages.try_recv().is_ok() {}
    show(&hub, head(1, SliceKind::Predicted), &[0]);
    assert!(messages.try_recv().is_err(), "each strip begins anew");
    show(&hub, head(1, SliceKind::Idr), &[0]);
    let told = [messages.try_recv().unwrap(), messages.try_recv().unwrap()];
    assert_eq!(
        told.map(|bytes| Message::read(&bytes)),
        [
            Message::Hello { picture: Some((640, 480)) },
            Message::Slice { strip: 1, kind: SliceKind::Idr },
        ]
    );
}

fn join(hub: &Hub, id: u64) -> Joined {
    hub.join(ConsoleId(NonZeroU64::new(id).unwrap()), visitor(id)).unwrap()
}

fn visitor(number: u64) -> Visitor {
    let address = IpAddr::from([10, 0, 0, number as u8]);
    Visitor { browser: Browser(number), right: Right::Drive, address }
}

/// Joins a console that may only watch.
fn watch(hub: &Hub, id: u64) -> Result<Joined, Refused> {
    let visitor = Visitor { right: Right::Watch, ..visitor(id) };
    hub.join(ConsoleId(NonZeroU64::new(id).unwrap()), visitor)
}

/// Returns the latest role message of a console.
fn standing(joined: &mut Joined) -> serde_json::Value {
    serde_json::from_slice(&joined.standing.borrow_and_update()[1..]).unwrap()
}

fn command() -> Vec<u8> {
    let command = Command {
        sequence: 0,
        sent_at: tautline_units::Instant::ZERO,
        steering: 0.0,
        throttle: 0.5,
        brake: 0.0,
        gear: Gear::Drive,
        emergency_stop: false,
        console: 99,
        ..Command::default()
    };
    [&[kind::COMMAND], &command.encode()[..]].concat()
}

/// Returns the numbers of the consoles whose commands were received.
fn commanding(requests: &mut mpsc::Receiver<Request>) -> Vec<u64> {
    std::iter::from_fn(|| requests.try_recv().ok())
        .map(|request| match request {
            Request::Command(command) => command.console,
            other => panic!("{other:?} was not asked for"),
        })
        .collect()
}

fn takes(joined: &mut Joined) -> Vec<Message> {
    std::iter::from_fn(|| joined.messages.try_recv().ok())
        .map(|bytes| Message::read(&bytes))
        .collect()
}

#[test]
fn a_second_console_sees_the_driver_and_cannot_command() {
    let (hub, mut requests) = hub();
    let (mut first, mut second) = (join(&hub, 1), join(&hub, 2));
    assert_eq!(standing(&mut first)["role"], "drives");
    let told = standing(&mut second);
    assert_eq!((&told["role"], &told["holder"]["address"]), (&"waits".into(), &"10.0.0.1".into()));
    hub.handle(second.number, &command());
    hub.handle(first.number, &command());
    assert_eq!(commanding(&mut requests), [1], "each command says of which console it is");
    assert_eq!(hub.requests_refused.load(Ordering::Relaxed), 1);
    let stop = Command { emergency_stop_number: 5, ..Command::default() };
    hub.handle(second.number, &tagged(kind::COMMAND, &stop.encode()));
    assert_eq!(commanding(&mut requests), [2], "a stop counts from everybody");
    takes(&mut first);
    takes(&mut second);
    show(&hub, head(1, SliceKind::Idr), &[0]);
    hub.show_telemetry(&[7], false, 0);
    assert_eq!(takes(&mut first).len(), 2);
    assert_eq!(takes(&mut second), [Message::Other(kind::TELEMETRY)]);
}

#[test]
fn each_console_sees_the_driving_operator_and_other_watchers() {
    let hub = hub().0.of("anna", "3f2a");
    let (mut first, mut second) = (join(&hub, 1), join(&hub, 2));
    let third = join(&hub, 3);
    let told = standing(&mut second);
    assert_eq!(told["operator"], serde_json::json!({ "name": "anna", "key": "3f2a" }));
    assert_eq!(told["watching"], serde_json::json!(["10.0.0.3"]), "neither who drives nor itself");
    assert_eq!(standing(&mut first)["watching"], serde_json::json!(["10.0.0.2", "10.0.0.3"]));
    hub.leave(third.number);
    assert_eq!(standing(&mut second)["watching"], serde_json::json!([]));
    assert_eq!(standing(&mut first)["watching"], serde_json::json!(["10.0.0.2"]));
    hub.leave(first.number);
    let told = standing(&mut second);
    assert_eq!(
        (&told["holder"], &told["watching"]),
        (&serde_json::Value::Null, &serde_json::json!([]))
    );
}

#[test]
fn a_moving_vehicle_is_handed_over_with_consent() {
    let (hub, mut requests) = hub();
    let (mut first, mut second) = (join(&hub, 1), join(&hub, 2));
    let holding = hub.holding();
    hub.handle(second.number, &[kind::ASK, 1]);
    assert_eq!(standing(&mut second)["role"], "asks");
    let asked = standing(&mut first)["request"].clone();
    assert_eq!(asked["address"], "10.0.0.2");
    let number = asked["number"].as_u64().unwrap() as u32;
    let answer = |agrees| [&[kind::ANSWER], &number.to_be_bytes()[..], &[agrees]].concat();
    hub.handle(second.number, &answer(1));
    let console = holding.borrow().console;
    assert_eq!(console, Some(ConsoleId(NonZeroU64::MIN)), "the second one has no say yet");
    hub.take_feedback();
    hub.handle(first.number, &answer(1));
    let (lost, won) = (standing(&mut first), standing(&mut second));
    assert_eq!((&lost["role"], &lost["reason"]), (&"waits".into(), &"consent".into()));
    assert_eq!(won["role"], "drives");
    assert!(holding.has_changed().unwrap());
    assert_eq!(hub.take_feedback().keyframe_strips, ALL_STRIPS);
    for joined in [&first, &second] {
        hub.handle(joined.number, &command());
    }
    assert_eq!(commanding(&mut requests), [2]);
}

#[test]
fn a_driven_vehicle_is_handed_over_by_its_guard() {
    let (hub, mut requests) = hub();
    let (mut first, mut second) = (join(&hub, 1), join(&hub, 2));
    let id = |number| NonZeroU64::new(number).map(ConsoleId);
    let show_all = |kind| {
        (0..Layout::STRIP_COUNT as u8).for_each(|strip| show(&hub, head(strip, kind), &[0]));
    };
    show_all(SliceKind::Idr);
    hub.show_telemetry(&[7], false, 1);
    hub.handle(second.number, &[kind::ASK, 1]);
    hub.take_feedback();
    let number = standing(&mut first)["request"]["number"].as_u64().unwrap() as u32;
    let yes = [&[kind::ANSWER], &number.to_be_bytes()[..], &[1]].concat();
    hub.handle(first.number, &yes);
    let (gives, takes_over) = (standing(&mut first), standing(&mut second));
    assert_eq!(
        (&gives["role"], &gives["agreed"]["address"]),
        (&"drives".into(), &"10.0.0.2".into())
    );
    assert_eq!(takes_over["role"], "succeeds");
    assert_eq!(*hub.holding().borrow(), Holding { console: id(1), successor: id(2) });
    assert_eq!(hub.take_feedback().keyframe_strips, 0, "who drives sees no burst");
    show_all(SliceKind::Predicted);
    assert_eq!(hub.take_feedback().keyframe_strips, 1, "one strip after the other");
    show(&hub, head(0, SliceKind::Idr), &[0]);
    show_all(SliceKind::Predicted);
    assert_eq!(hub.take_feedback().keyframe_strips, 1 << 1);
    show_all(SliceKind::Idr);
    takes(&mut first);
    takes(&mut second);
    for joined in [&first, &second] {
        hub.handle(joined.number, &command());
    }
    assert_eq!(commanding(&mut requests), [1, 2], "the vehicle knows what of the second's counts");
    // Answers again, by the driver and by one that does not drive.
    hub.handle(first.number, &yes);
    hub.handle(second.number, &yes);
    takes(&mut first);
    takes(&mut second);
    show_all(SliceKind::Predicted);
    let slices = |joined: &mut Joined| {
        let is_slice = |message: &Message| matches!(message, Message::Slice { .. });
        takes(joined).iter().filter(|message| is_slice(message)).count()
    };
    assert_eq!([slices(&mut first), slices(&mut second)], [Layout::STRIP_COUNT; 2]);
    hub.show_telemetry(&[7], false, 1);
    assert_eq!(*hub.holding().borrow(), Holding { console: id(1), successor: id(2) });
    hub.show_telemetry(&[7], false, 2);
    assert_eq!(*hub.holding().borrow(), Holding { console: id(2), successor: None });
    assert_eq!(hub.take_feedback(), VideoFeedback::default(), "its pictures go on");
    assert_eq!(standing(&mut second)["reason"], "consent");
    assert_eq!(standing(&mut first)["role"], "waits");
}

#[test]
fn at_standstill_a_requesting_console_drives_at_once() {
    let (hub, _requests) = hub();
    let (mut first, mut second) = (join(&hub, 1), join(&hub, 2));
    hub.show_telemetry(&[7], true, 0);
    hub.show_telemetry(&[7], false, 0);
    hub.handle(second.number, &[kind::ASK, 1]);
    assert_eq!(standing(&mut second)["role"], "asks", "it moves again");
    hub.show_telemetry(&[7], true, 0);
    assert_eq!(standing(&mut second)["role"], "drives");
    assert_eq!(standing(&mut first)["reason"], "standstill");
    hub.handle(first.number, &[kind::ASK, 1]);
    assert_eq!(standing(&mut first)["role"], "drives");
}

#[test]
fn a_page_that_is_gone_costs_nothing() {
    let (hub, _requests) = hub();
    let first = join(&hub, 1);
    let holding = hub.holding();
    hub.take_feedback();
    hub.leave(first.number);
    assert_eq!(*holding.borrow(), Holding::default());
    for _ in 0..=MESSAGES_MAX {
        show(&hub, head(1, SliceKind::Predicted), &[0]);
        show(&hub, head(1, SliceKind::Idr), &[0]);
    }
    assert_eq!(hub.take_feedback(), VideoFeedback::default(), "nothing is asked for");
    assert_eq!(hub.slices_dropped.load(Ordering::Relaxed), 0);
}

#[test]
fn a_page_that_connects_anew_keeps_what_it_held() {
    let (hub, _requests) = hub();
    let (first, mut second) = (join(&hub, 1), join(&hub, 2));
    hub.take_feedback();
    let mut again = join(&hub, 1);
    assert!(first.standing.has_changed().is_err(), "its former connection ends");
    assert_eq!(standing(&mut again)["role"], "drives");
    assert_eq!(hub.take_feedback().keyframe_strips, ALL_STRIPS);
    hub.leave(first.number);
    assert_eq!(standing(&mut again)["role"], "drives", "that place was left before");
    hub.leave(again.number);
    assert_eq!(standing(&mut second)["holder"], serde_json::Value::Null);
    assert_eq!(standing(&mut second)["role"], "waits", "nobody drives who has not asked");
}

#[test]
fn the_number_of_consoles_is_limited() {
    let (hub, _requests) = hub();
    let joined: Vec<Joined> = (1..=CONSOLES_MAX as u64).map(|id| join(&hub, id)).collect();
    let id = |number| ConsoleId(NonZeroU64::new(number).unwrap());
    assert_eq!(hub.join(id(99), visitor(99)).unwrap_err(), Refused::Full);
    hub.leave(joined[3].number);
    assert!(hub.join(id(99), visitor(99)).is_ok());
}

/// Every console knows the number of the driving console, because the vehicle reports which console
/// its guard lets drive.
#[test]
fn the_driving_consoles_number_admits_no_other_browser() {
    let (hub, _requests) = hub();
    let mut first = join(&hub, 1);
    let id = ConsoleId(NonZeroU64::new(1).unwrap());
    assert_eq!(hub.join(id, visitor(2)).unwrap_err(), Refused::Taken);
    assert_eq!(standing(&mut first)["role"], "drives");
    hub.leave(first.number);
    assert!(hub.join(id, visitor(2)).is_ok(), "nobody has it any more");
}

#[test]
fn a_watcher_sees_telemetry_and_all_its_messages_are_refused() {
    let (hub, mut requests) = hub();
    let mut watcher = watch(&hub, 9).unwrap();
    let told = standing(&mut watcher);
    assert_eq!((&told["role"], &told["holder"]), (&"watches".into(), &serde_json::Value::Null));
    assert_eq!(*hub.holding().borrow(), Holding::default(), "nobody drives by watching");
    let mut driver = join(&hub, 1);
    assert_eq!(standing(&mut driver)["role"], "drives");
    assert_eq!(standing(&mut driver)["watching"], serde_json::json!(["10.0.0.9"]));
    takes(&mut watcher);
    show(&hub, head(1, SliceKind::Idr), &[0]);
    // At standstill any other console would drive at once.
    hub.show_telemetry(&[7], true, 0);
    hub.show_status(&[7]);
    let seen = [Message::Other(kind::TELEMETRY), Message::Other(kind::STATUS)];
    assert_eq!(takes(&mut watcher), seen);
    let stop = Command { emergency_stop: true, emergency_stop_number: 5, ..Command::default() };
    let stop = [&[kind::COMMAND], &stop.encode()[..]].concat();
    let messages: [&[u8]; 7] = [
        &stop,
        &command(),
        &[kind::ASK, 1],
        &[kind::ANSWER, 0, 0, 0, 1, 1],
        &[kind::PICK, b'x'],
        &[kind::LEAVE],
        &[],
    ];
    for message in messages {
        hub.handle(watcher.number, message);
    }
    assert!(requests.try_recv().is_err());
    assert_eq!(hub.requests_refused.load(Ordering::Relaxed), 7);
    assert_eq!(hub.take_feedback().keyframe_strips, ALL_STRIPS, "of the driver's own pictures");
    hub.leave(driver.number);
    assert_eq!(*hub.holding().borrow(), Holding::default(), "nor when the driver is gone");
}

#[test]
fn watchers_take_no_connection_reserved_for_drivers() {
    let (hub, _requests) = hub();
    let watching: Vec<_> = (1..=WATCHING_MAX as u64).map(|id| watch(&hub, id).unwrap()).collect();
    assert_eq!(watch(&hub, 99).unwrap_err(), Refused::Full);
    let may_drive = CONSOLES_MAX - WATCHING_MAX;
    let driving: Vec<_> = (11..11 + may_drive as u64).map(|id| join(&hub, id)).collect();
    assert_eq!((watching.len(), driving.len()), (WATCHING_MAX, may_drive));
}

proptest! {
    /// No message of a watching page is forwarded or changes another console's role.
    #[test]
    fn no_message_of_a_watcher_counts(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..40)
    ) {
        let (hub, mut requests) = hub();
        let (first, watcher) = (join(&hub, 1), watch(&hub, 2).unwrap());
        hub.show_telemetry(&[7], true, 0);
        let feedback = hub.take_feedback();
        let before = *hub.holding().borrow();
        for message in messages {
            hub.handle(watcher.number, &message);
        }
        prop_assert!(requests.try_recv().is_err());
        prop_assert_eq!(*hub.holding().borrow(), before);
        prop_assert_eq!(hub.take_feedback(), VideoFeedback { keyframe_strips: 0, ..feedback });
        drop(first);
    }
}

proptest! {
    #[test]
    fn no_message_panics_or_takes_over(
        messages in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..80)), 0..40)
    ) {
        let (hub, _requests) = hub();
        let (first, second) = (join(&hub, 1), join(&hub, 2));
        for (of_second, message) in messages {
            // The first console never agrees.
            let agrees = !of_second && message.first() == Some(&kind::ANSWER);
            if !agrees {
                hub.handle(if of_second { second.number } else { first.number }, &message);
            }
        }
        prop_assert_eq!(hub.holding().borrow().console, Some(ConsoleId(NonZeroU64::MIN)));
    }
}

#[test]
fn only_the_driving_console_picks_and_releases_a_vehicle() {
    let (hub, mut requests) = hub();
    let (first, mut second) = (join(&hub, 1), join(&hub, 2));
    let pick = [&[kind::PICK], "Käfer 7".as_bytes()].concat();
    for message in [&pick[..], &[kind::LEAVE]] {
        hub.handle(second.number, message);
    }
    assert!(requests.try_recv().is_err(), "who watches has no say");
    assert_eq!(hub.requests_refused.load(Ordering::Relaxed), 2);
    hub.handle(first.number, &pick);
    hub.handle(first.number, &[kind::LEAVE]);
    assert!(matches!(requests.try_recv(), Ok(Request::Pick(name)) if name == "Käfer 7"));
    assert!(matches!(requests.try_recv(), Ok(Request::Leave)));
    let too_long = [&[kind::PICK], &[b'x'; NAME_BYTES_MAX + 1][..]].concat();
    for message in [&[kind::PICK][..], &[kind::PICK, 0xFF], &too_long[..], &[kind::LEAVE, 0]] {
        hub.handle(first.number, message);
    }
    assert_eq!(hub.messages_malformed.load(Ordering::Relaxed), 4);
    assert!(requests.try_recv().is_err());
    takes(&mut second);
    hub.show_fleet("{}");
    assert_eq!(takes(&mut second), [Message::Other(kind::FLEET)], "but sees the list");
    let mut late = join(&hub, 3);
    let told = takes(&mut late);
    assert_eq!(told, [Message::Hello { picture: None }, Message::Other(kind::FLEET)]);
}

#[test]
fn the_last_decoder_report_of_a_page_counts() {
    let (hub, _requests) = hub();
    let (first, watcher) = (join(&hub, 1), watch(&hub, 2).unwrap());
    assert_eq!(hub.decoder(), None);
    hub.handle(watcher.number, &[kind::DECODER, 0]);
    assert_eq!(hub.decoder(), None, "it decodes nothing");
    for (by, told) in [(1, Decoder::Processor), (2, Decoder::Unknown), (0, Decoder::Hardware)] {
        hub.handle(first.number, &[kind::DECODER, by]);
        assert_eq!(hub.decoder(), Some(told));
    }
    for wrong in [&[kind::DECODER][..], &[kind::DECODER, 3], &[kind::DECODER, 0, 0]] {
        hub.handle(first.number, wrong);
    }
    assert_eq!(hub.messages_malformed.load(Ordering::Relaxed), 3);
    assert_eq!(hub.decoder(), Some(Decoder::Hardware));
}

#[test]
fn a_newly_picked_vehicle_begins_without_a_picture() {
    let (hub, _requests) = hub();
    let (mut first, mut second) = (join(&hub, 1), join(&hub, 2));
    hub.set_picture(&Layout::of(640, 480).unwrap(), "avc1.42C01F");
    hub.show_telemetry(&[7], false, 1);
    takes(&mut first);
    hub.set_vehicle("");
    assert_eq!(takes(&mut first), [Message::Hello { picture: None }]);
    hub.handle(second.number, &[kind::ASK, 1]);
    assert_eq!(standing(&mut second)["role"], "drives");
    hub.set_vehicle("mule");
    hub.handle(first.number, &[kind::ASK, 1]);
    assert_eq!(standing(&mut first)["role"], "asks", "it may move");
}

#[test]
fn malformed_messages_of_the_browser_are_counted() {
    let (hub, mut requests) = hub();
    let (_messages, joined) = hub.attach();
    for message in [&[][..], &[10], &[1, 2, 3], &[2], &[3, 1], &[5], &[5, 2], &[6, 0, 0, 0, 1]] {
        hub.handle(joined.number, message);
    }
    assert_eq!(hub.messages_malformed.load(Ordering::Relaxed), 8);
    assert!(requests.try_recv().is_err());
}

#[test]
fn a_clock_ping_is_answered_with_the_operators_time() {
    let (hub, _requests) = hub();
    let (mut messages, joined) = hub.attach();
    assert!(matches!(Message::read(&messages.try_recv().unwrap()), Message::Hello { .. }));
    hub.handle(joined.number, &[3, 0, 0, 0, 0, 0, 0, 0, 5]);
    let pong = messages.try_recv().unwrap();
    assert_eq!(pong[..9], [4, 0, 0, 0, 0, 0, 0, 0, 5]);
    assert_eq!(pong[9..], 1_000_000_u64.to_be_bytes());
}
