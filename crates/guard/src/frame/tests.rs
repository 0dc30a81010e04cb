use core::time::Duration;

use proptest::prelude::*;
use std::vec::Vec;

use super::*;
use crate::act::{Act, Answer, Blocker, Deed, Outcome};
use crate::description::{
    self, Action, ActionForm, ActionRule, ActionStop, Axis, AxisForm, AxisRule, AxisStop, Entry,
    Item, Name, Reading, Revision, Text, Unit, ValueForm, ValueInfo,
};
use crate::identity::{ActNumber, Console, Session, Stop, Tick};
use crate::{
    Answered, Axes, Cause, Controls, Fault, Gear, MachineState, Mode, Motion, Notice, Place,
    Position, Reported, Request, Twist, Why,
};

/// Axes with these numbers, by axis.
fn axes<const N: usize>(numbers: [(usize, f32); N]) -> Axes {
    let mut axes = Axes::NONE;
    for (axis, number) in numbers {
        axes.0[axis] = number;
    }
    axes
}

fn full_proposal() -> Proposal {
    Proposal {
        source: Instant::from_nanos(0x0102_0304_0506_0708),
        session: Session::new(9),
        troubles: Troubles::of(Trouble::Recorder),
        command: Some(Command {
            sequence: 77,
            console: Console::new(0xC0FFEE).unwrap(),
            successor: Console::new(0xBEEF),
            controls: Controls {
                steering: -0.5,
                throttle: 0.25,
                brake: 0.0,
                gear: Gear::Reverse,
                parking_brake: false,
                twist: Twist { forward: 1.25, sideways: -0.5, yaw_rate: 0.75 },
                axes: axes([(0, 0.5), (15, -2.0)]),
                actions: [1, 3, 6, 31].into_iter().collect(),
            },
            dead_man: DeadMan::Held,
            absences: Absences::of(Absence::FocusLost),
            cited: Tick::new(4711),
            age: Some(Duration::from_millis(85)),
        }),
        emergency_stop: ActNumber::new(3),
        act: Some(Act {
            console: Console::new(0xC0FFEE).unwrap(),
            number: ActNumber::new(4).unwrap(),
            deed: Deed::Reset(Stop::new(12).unwrap()),
            age: None,
        }),
    }
}

fn full_machine() -> MachineState {
    MachineState {
        measured_at: Instant::from_millis(1_234),
        speed: 8.5,
        sideways_speed: 0.25,
        yaw_rate: -0.5,
        steering_angle: -0.125,
        gear: Gear::Drive,
        position: Some(Position { x: 100.5, y: -20.25, heading: 1.5 }),
        place: Some(Place { latitude: 52.26456, longitude: 10.52637, height: 74.5 }),
        faults: [Fault::Steering, Fault::Other].into_iter().collect(),
        notices: [Notice::ParkingBrake].into_iter().collect(),
        axes: axes([(1, 0.625)]),
        actions: [5, 8].into_iter().collect(),
        answered: Some(Answered { number: 7, is_accepted: false }),
        description: Revision::new(0xDE5C_0001),
        told: Reported::from_numbers(core::array::from_fn(|at| Some(0.5 + at as f32))),
    }
}

fn full_control() -> Control {
    Control {
        source: Instant::from_millis(99),
        mode: Mode::Manoeuvre,
        controls: Controls {
            steering: 0.125,
            throttle: 0.0,
            brake: 0.5,
            parking_brake: true,
            twist: Twist { forward: -0.25, sideways: 0.125, yaw_rate: 1.5 },
            axes: axes([(1, 0.75)]),
            actions: [5, 9].into_iter().collect(),
            ..Controls::default()
        },
        request: Some(Request { number: 7, action: 31 }),
    }
}

fn full_description() -> Description {
    let rule = AxisRule {
        form: AxisForm::Position,
        low: -0.5,
        high: 1.25,
        rate: 0.25,
        on_stop: AxisStop::Value(0.125),
    };
    let (name, unit) = (Name::new("boom").unwrap(), Unit::new("rad").unwrap());
    let item = Item::Axis(Axis { name, unit, rule });
    let counts = description::Counts { axes: 2, actions: 3, values: 4 };
    let entry = Entry { revision: Revision::new(0xDE5C_0001).unwrap(), counts, index: 1, item };
    Description { source: Instant::from_millis(99), entry }
}

fn horn() -> Item {
    let rule = ActionRule {
        form: ActionForm::Momentary,
        on_stop: ActionStop::Keep,
        is_allowed_held: true,
    };
    Item::Action(Action { name: Name::new("Hupe, laut: über 90 dB").unwrap(), rule })
}

fn battery() -> Item {
    Item::Value(ValueInfo {
        name: Name::new("battery").unwrap(),
        unit: Unit::new("V").unwrap(),
        form: ValueForm::Number,
        range: [0.0, 60.0],
        warning: [44.0, f32::NAN],
        alarm: [42.0, f32::NAN],
    })
}

fn full_value() -> Value {
    let reading = Reading::Text(Text::new("docked, charging at 5 A").unwrap());
    let revision = Revision::new(0xDE5C_0001).unwrap();
    Value { source: Instant::from_millis(99), revision, index: 3, reading }
}

fn full_fact() -> Fact {
    let text = "{\"supply\":{\"volts\":48.5}}";
    Fact::new(About::Machine, text, Instant::from_millis(99)).unwrap()
}

fn full_status() -> Status {
    Status {
        source: Instant::from_millis(99),
        tick: Tick::new(5000).unwrap(),
        mode: Mode::Limited,
        why: Why::new(Cause::LoopAge, 260.0, 200.0),
        stop: Stop::new(12).unwrap(),
        is_latched: true,
        emergency_stop: ActNumber::new(3),
        answer: Some(Answer {
            console: Console::new(0xC0FFEE).unwrap(),
            number: ActNumber::new(4).unwrap(),
            outcome: Outcome::Refused(Blocker::OtherStop),
        }),
        blockers: [Blocker::Latched, Blocker::Moving].into_iter().collect(),
        holder: Console::new(0xC0FFEE),
        session: Session::new(9),
        loop_age: Some(Duration::from_millis(260)),
        command_age: None,
        speed_bound: 11.5,
        sideways_speed_bound: 0.5,
        yaw_rate_bound: 1.5,
        motion: Motion::Omni,
        countdown: Some((Cause::PictureAge, Duration::from_millis(240))),
        limits: [crate::envelope::Limit::Speed].into_iter().collect(),
        counts: Counts { commands_stale: 1, ticks_refused: 2, acts_refused: 3 },
        applied: full_control().controls,
        machine: Some((full_machine(), Duration::from_millis(10))),
        black_box: BlackBox::DiskFull,
        budget: Budget {
            picture_age_max: Duration::from_millis(200),
            command_age_max: Duration::from_millis(250),
            deceleration_begin: 1.5,
            deceleration: 4.0,
            jerk: 5.0,
            yaw_deceleration: 2.5,
            speed_max: 15.0,
            reverse_speed_max: 4.0,
            sideways_speed_max: 0.75,
            yaw_rate_max: 1.25,
            command_timeout: Some(Duration::from_millis(300)),
        },
    }
}

/// A decoded frame equals the encoded one, with all fields set and with none.
#[test]
fn frames_come_back_as_they_went() {
    fn comes_back<F: Frame + PartialEq + core::fmt::Debug>(frame: F) {
        let (read, counter) = decode::<F>(encode(&frame, 513).as_ref()).unwrap();
        assert_eq!((read, counter), (frame, 513));
    }
    comes_back(full_proposal());
    comes_back(Proposal::default());
    comes_back(full_control());
    comes_back(Control::default());
    comes_back(full_machine());
    comes_back(MachineState::default());
    comes_back(full_fact());
    comes_back(full_description());
    comes_back(full_value());
    comes_back(Value { reading: Reading::Number(-48.5), ..full_value() });
    comes_back(Fact::new(About::Vehicle, "", Instant::ZERO).unwrap());
    comes_back(
        Fact::new(About::Vehicle, &"x".repeat(Fact::TEXT_BYTES_MAX), Instant::ZERO).unwrap(),
    );
    comes_back(full_status());
    let machine = None;
    let silent = Status { answer: None, countdown: None, machine, ..full_status() };
    comes_back(silent);
}

#[test]
fn a_state_of_the_machine_that_is_old_says_nothing_of_now() {
    let aged = |millis| Status {
        machine: Some((full_machine(), Duration::from_millis(millis))),
        ..full_status()
    };
    assert_eq!(aged(299).fresh_machine(), Some(&full_machine()));
    assert_eq!(aged(300).fresh_machine(), None);
    assert_eq!(Status { machine: None, ..full_status() }.fresh_machine(), None);
}

/// The vectors of docs/guard.md equal the encoded frames.
#[test]
fn the_vectors_of_the_docs_are_sent_byte_by_byte() {
    let doc = include_str!("../../../../docs/guard.md");
    let vector = |name: &str| {
        let (_, rest) = doc.split_once(&std::format!("Vector `{name}`")).expect("docs have it");
        let (_, rest) = rest.split_once("```hex\n").expect("bytes follow");
        let (bytes, _) = rest.split_once("```").expect("the bytes end");
        let digits: Vec<u8> = bytes.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16);
        digits.chunks(2).map(|pair| byte(pair).unwrap()).collect::<Vec<u8>>()
    };
    assert_eq!(vector("proposal"), encode(&full_proposal(), 1));
    assert_eq!(vector("status"), encode(&full_status(), 2));
    assert_eq!(vector("control"), encode(&full_control(), 3));
    assert_eq!(vector("machine"), encode(&full_machine(), 4));
    assert_eq!(vector("description"), encode(&full_description(), 6));
    assert_eq!(vector("value"), encode(&full_value(), 7));
    // The vector of a fact ends where its zero padding begins.
    let (fact, zeros) = (vector("fact"), [0; Fact::BYTES]);
    let whole = [&fact[..], &zeros[fact.len()..]].concat();
    assert_eq!(whole, encode(&full_fact(), 5));
    assert_eq!(decode(&whole), Ok((full_fact(), 5)));
    assert_eq!(decode(&vector("proposal")), Ok((full_proposal(), 1)));
    assert_eq!(decode(&vector("machine")), Ok((full_machine(), 4)));
}

/// Each item comes back bit by bit. NaN is not equal to itself, so bytes are compared.
#[test]
fn each_kind_of_entry_comes_back() {
    for item in [full_description().entry.item, horn(), battery()] {
        let entry = Entry { index: 0, item, ..full_description().entry };
        let bytes = encode(&Description { entry, ..full_description() }, 1);
        let (read, counter) = decode::<Description>(&bytes).unwrap();
        assert_eq!((encode(&read, counter), read.entry.item.name()), (bytes, item.name()));
    }
}

#[test]
fn an_entry_that_is_none_is_named_by_its_place() {
    let with = |item: Item, changes: &[(usize, u8)]| {
        let entry = Entry { index: 0, item, ..full_description().entry };
        let mut bytes = encode(&Description { entry, ..full_description() }, 1).to_vec();
        changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        let error = decode::<Description>(&sealed(bytes)).err()?;
        let Error::Value { at } = error else { panic!("{error}") };
        Some(at)
    };
    let boom = full_description().entry.item;
    assert_eq!(with(boom, &[]), None);
    assert_eq!(with(boom, &[(20, 0), (21, 0), (22, 0), (23, 0)]), Some(20), "no revision");
    assert_eq!(with(boom, &[(24, 17)]), Some(24), "17 axes");
    assert_eq!(with(boom, &[(27, 3)]), Some(27), "a kind");
    assert_eq!(with(boom, &[(28, 2)]), Some(28), "beyond the number of axes");
    assert_eq!(with(boom, &[(29, 2)]), Some(29), "a form");
    assert_eq!(with(boom, &[(30, 4)]), Some(30), "what a stop does");
    assert_eq!(with(boom, &[(32, 0)]), Some(32), "an empty name with a rest");
    assert_eq!(with(boom, &[(60, 7)]), Some(56), "a unit with something behind it");
    assert_eq!(with(boom, &[(76, 0xFF)]), Some(27), "a rate below 0");
    assert_eq!(with(horn(), &[(31, 2)]), Some(31), "a flag");
    assert_eq!(with(battery(), &[(29, 1)]), Some(27), "a text with limits");
}

#[test]
fn a_value_is_a_number_or_a_text_with_its_length() {
    let with = |reading: Reading, at: usize, byte: u8| {
        let mut bytes = encode(&Value { reading, ..full_value() }, 1).to_vec();
        bytes[at] = byte;
        decode::<Value>(&sealed(bytes))
    };
    let (number, text) = (Reading::Number(1.5), full_value().reading);
    assert_eq!(with(number, 24, 64), Err(Error::Value { at: 24 }));
    assert_eq!(with(number, 25, 2), Err(Error::Value { at: 25 }));
    assert_eq!(with(number, 30, 1), Err(Error::Value { at: 30 }));
    assert_eq!(with(text, 30, 5), Err(Error::Value { at: 30 }));
    assert_eq!(with(text, 94, 5), Err(Error::Value { at: 31 }));
    assert_eq!(with(text, 25, 0), Err(Error::Value { at: 30 }), "a number with a text");
}

#[test]
fn a_revision_depends_on_every_item_and_their_order() {
    let boom = full_description().entry.item;
    assert_eq!(revision([]), None);
    let all = [boom, horn(), battery()];
    let other = [boom, boom, horn(), battery()];
    let revisions = [revision(&all), revision(&all[..2]), revision(&all[1..]), revision(&other)];
    for (at, revision) in revisions.iter().enumerate() {
        assert!(revision.is_some() && !revisions[..at].contains(revision));
    }
    // The CRC of the entries' bytes as they are sent.
    let sent = |index: u8, item: Item| {
        let entry = Entry { index, item, ..full_description().entry };
        encode(&Description { entry, ..full_description() }, 1)[27..].to_vec()
    };
    let bytes = [sent(0, boom), sent(0, horn()), sent(0, battery())].concat();
    assert_eq!(revision(&all).map(Revision::get), Some(crc::p4(&[&bytes])));
}

/// The names of values and bits in frames.toml are those of the code, in the same order.
#[test]
fn the_description_of_the_frames_names_each_value_and_bit() {
    use crate::{Fault, Member, envelope::Limit};

    let toml = include_str!("../../frames.toml");
    let named = |list: &str| -> Vec<&str> {
        let (_, rest) = toml.split_once(&std::format!("\n{list} = [")).expect(list);
        let (names, _) = rest.split_once(']').unwrap();
        names.split('"').skip(1).step_by(2).collect()
    };
    fn words<E: Member>() -> Vec<std::string::String> {
        let spaced = |name: std::string::String| {
            let mut words = std::string::String::new();
            for letter in name.chars() {
                if letter.is_uppercase() && !words.is_empty() {
                    words.push(' ');
                }
                words.extend(letter.to_lowercase());
            }
            words
        };
        E::ALL.iter().map(|member| spaced(std::format!("{member:?}"))).collect()
    }
    assert_eq!(named("mode"), words::<Mode>());
    assert_eq!(named("gear"), words::<Gear>());
    assert_eq!(named("dead_man"), words::<DeadMan>());
    assert_eq!(named("motion"), words::<Motion>());
    assert_eq!(named("black_box"), words::<BlackBox>());
    assert_eq!(named("about"), words::<About>());
    assert_eq!(named("reading"), words::<ValueForm>());
    assert_eq!(named("troubles"), words::<Trouble>());
    assert_eq!(named("absences"), words::<Absence>());
    assert_eq!(named("notices"), words::<Notice>());
    assert_eq!(named("faults"), words::<Fault>());
    assert_eq!(named("limits"), words::<Limit>());
    assert_eq!(named("blockers"), words::<Blocker>());
}

#[test]
fn a_fact_is_a_text_that_fits_with_nothing_behind_it() {
    let text = "x".repeat(Fact::TEXT_BYTES_MAX + 1);
    assert_eq!(Fact::new(About::Person, &text, Instant::ZERO), None);
    let sealed = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = encode(&full_fact(), 1);
        change(&mut bytes);
        let crc = crc::p4(&[&bytes[..CRC_AT], &bytes[CRC_AT + 4..]]);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
        decode::<Fact>(&bytes)
    };
    assert!(sealed(&|_| {}).is_ok());
    assert_eq!(sealed(&|bytes| bytes[20] = 9), Err(Error::Value { at: 20 }));
    assert_eq!(sealed(&|bytes| bytes[21] = 9), Err(Error::Value { at: 21 }), "too long");
    assert_eq!(sealed(&|bytes| bytes[24] = 0xFF), Err(Error::Value { at: 23 }), "no text");
    assert_eq!(sealed(&|bytes| bytes[1000] = 1), Err(Error::Value { at: 23 }), "behind it");
}

#[test]
fn the_docs_state_length_and_data_id_of_each_frame() {
    fn is_told<F: Frame>() {
        let doc = include_str!("../../../../docs/guard.md");
        let name = F::DATA_ID.to_be_bytes();
        let name = core::str::from_utf8(&name).unwrap();
        let told = std::format!("{} bytes, data id \"{name}\" = 0x{:08X}", F::BYTES, F::DATA_ID);
        assert!(doc.contains(&told), "{told}");
    }
    is_told::<Proposal>();
    is_told::<Fact>();
    is_told::<Status>();
    is_told::<Control>();
    is_told::<MachineState>();
    is_told::<Description>();
    is_told::<Value>();
}

#[test]
fn the_docs_have_a_row_for_each_optional_number() {
    let doc = include_str!("../../../../docs/guard.md");
    for (number, (name, unit)) in Reported::NAMES.iter().enumerate() {
        let at = MachineState::BYTES_LEAST + 4 * number;
        let row = std::format!("| {at} | {name} | f32 | {unit}");
        assert!(doc.contains(&row), "{row}");
    }
}

/// Replaces the optional numbers at the end of the frame's bytes by `numbers`.
fn with_numbers<F: Frame>(frame: &F, numbers: &[f32]) -> Vec<u8> {
    let mut bytes = encode(frame, 7).as_ref()[..F::BYTES_LEAST].to_vec();
    bytes.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
    sealed(bytes)
}

/// Sets the length and the CRC of these bytes.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u16;
    bytes[..2].copy_from_slice(&length.to_be_bytes());
    let crc = crc::p4(&[&bytes[..CRC_AT], &bytes[CRC_AT + 4..]]);
    bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    bytes
}

#[test]
fn missing_numbers_are_unknown_and_additional_ones_are_skipped() {
    fn told<F: Frame>(frame: &F, numbers: &[f32], of: impl Fn(F) -> Reported) -> (Reported, u64) {
        let mut receiver = Receiver::<F>::default();
        let read = receiver.receive(&with_numbers(frame, numbers)).unwrap();
        (of(read), receiver.skipped_count())
    }
    let known: Vec<f32> = full_machine().told.numbers().map(|number| number.unwrap()).to_vec();
    let later = [&known[..], &[9.0, f32::NAN]].concat();
    let first = |count: usize| {
        let known = known.iter().take(count).map(|number| Some(*number));
        let all: Vec<_> = known.chain(core::iter::repeat(None)).take(Reported::COUNT).collect();
        Reported::from_numbers(all.try_into().unwrap())
    };
    for count in 0..=known.len() {
        let numbers = &known[..count];
        assert_eq!(told(&full_machine(), numbers, |it| it.told), (first(count), 0));
        let of_status = |status: Status| status.machine.unwrap().0.told;
        assert_eq!(told(&full_status(), numbers, of_status), (first(count), 0));
    }
    assert_eq!(told(&full_machine(), &later, |it| it.told), (full_machine().told, 1));
    let timeout = |numbers: &[f32]| {
        let mut receiver = Receiver::<Status>::default();
        let status = receiver.receive(&with_numbers(&full_status(), numbers)).unwrap();
        assert_eq!(status.machine.unwrap().0.told, full_machine().told);
        (status.budget.command_timeout.map(|timeout| timeout.as_millis()), receiver.skipped_count())
    };
    let behind = |more: &[f32]| [&known[..], more].concat();
    assert_eq!(timeout(&known), (None, 0), "an earlier guard");
    assert_eq!(timeout(&behind(&[250.0])), (Some(250), 0));
    assert_eq!(timeout(&behind(&[250.0, 7.0])), (Some(250), 1), "a later guard");
    for odd in [f32::NAN, f32::INFINITY, -1.0, 1e9] {
        assert_eq!(timeout(&behind(&[odd])), (None, 0), "{odd}");
    }
    let odd = [f32::INFINITY; Reported::COUNT];
    assert_eq!(told(&full_machine(), &odd, |it| it.told).0, Reported::default());
}

#[test]
fn optional_numbers_are_complete_and_fit_the_longest_frame() {
    let length = |bytes: Vec<u8>| match decode::<MachineState>(&bytes) {
        Ok(_) => None,
        Err(Error::Length { bytes, .. }) => Some(bytes),
        Err(other) => panic!("{other}"),
    };
    let whole = with_numbers(&full_machine(), &[1.0, 2.0]);
    assert_eq!(length(whole.clone()), None);
    for cut in 1..4 {
        let bytes = whole.len() - cut;
        assert_eq!(length(sealed(whole[..bytes].to_vec())), Some(bytes));
    }
    let least = MachineState::BYTES_LEAST;
    assert_eq!(length(sealed(whole[..least - 4].to_vec())), Some(least - 4));
    let many = (BYTES_MAX - least) / 4 + 1;
    assert!(length(with_numbers(&full_machine(), &Vec::from_iter([0.5; 400])[..many])).is_some());
    assert_eq!(
        length(with_numbers(&full_machine(), &Vec::from_iter([0.5; 400])[..many - 1])),
        None
    );
    let longer = sealed([encode(&full_control(), 1).as_ref(), &[0; 4]].concat());
    assert!(matches!(decode::<Control>(&longer), Err(Error::Length { .. })), "it has none");
}

#[test]
fn every_fault_of_a_frame_has_its_name() {
    let mut receiver = Receiver::<Control>::default();
    let good = encode(&full_control(), 100);
    let wanted = Control::BYTES;
    assert_eq!(
        receiver.receive(&good[..wanted - 1]),
        Err(Error::Length { bytes: wanted - 1, said: wanted as u16, wanted })
    );
    assert_eq!(receiver.receive(&[]), Err(Error::Length { bytes: 0, said: 0, wanted }));
    let mut other = good;
    other[1] += 1;
    let said = wanted as u16 + 1;
    assert_eq!(receiver.receive(&other), Err(Error::Length { bytes: wanted, said, wanted }));
    let mut other = good;
    other[7] ^= 1;
    let id = Control::DATA_ID;
    assert_eq!(receiver.receive(&other), Err(Error::DataId { got: id ^ 1, wanted: id }));
    let mut other = good;
    other[30] ^= 1;
    assert!(matches!(receiver.receive(&other), Err(Error::Crc { .. })));
    assert_eq!(receiver.receive(&good), Ok(full_control()));
    assert_eq!(receiver.receive(&good), Err(Error::Repeated { counter: 100 }));
    let frame = |counter| encode(&full_control(), counter);
    assert!(receiver.receive(&frame(110)).is_ok());
    assert_eq!(receiver.missing_count(), 9);
    let wrong = Error::WrongSequence { counter: 121, last: 110 };
    assert_eq!(receiver.receive(&frame(121)), Err(wrong));
    assert!(receiver.receive(&frame(122)).is_ok(), "the next is checked against it");
    let back = Error::WrongSequence { counter: 121, last: 122 };
    assert_eq!(receiver.receive(&frame(121)), Err(back));
    assert_eq!(receiver.refused_count(), 8);
}

#[test]
fn counters_go_around() {
    let mut receiver = Receiver::<Control>::default();
    for counter in [u16::MAX - 1, u16::MAX, 0, 1] {
        assert!(receiver.receive(&encode(&full_control(), counter)).is_ok(), "{counter}");
    }
    assert_eq!(receiver.missing_count(), 0);
}

#[test]
fn a_value_that_is_none_is_named_by_its_place() {
    let with = |at: usize, byte: u8| {
        let mut bytes = encode(&full_control(), 1);
        bytes[at] = byte;
        let crc = crc::p4(&[&bytes[..CRC_AT], &bytes[CRC_AT + 4..]]);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
        decode::<Control>(&bytes)
    };
    assert_eq!(with(20, 9), Err(Error::Value { at: 20 }));
    assert_eq!(with(33, 2), Err(Error::Value { at: 33 }), "a gear");
    assert_eq!(with(34, 2), Err(Error::Value { at: 34 }), "a parking brake");
    assert_eq!(with(119, 32), Err(Error::Value { at: 119 }), "an action");
    assert_eq!(with(118, 0), Err(Error::Value { at: 119 }), "an action without a request");
}

/// Checks that a frame with any payload and a valid CRC is re-encoded as received, or refused.
fn is_harmless<F: Frame>(payload: &[u8], counter: u16) {
    let mut bytes = F::ZEROS;
    let all = bytes.as_mut();
    let length = payload.len().min(F::BYTES - CRC_AT - 4);
    all[CRC_AT + 4..CRC_AT + 4 + length].copy_from_slice(&payload[..length]);
    all[..2].copy_from_slice(&(F::BYTES as u16).to_be_bytes());
    all[2..4].copy_from_slice(&counter.to_be_bytes());
    all[4..8].copy_from_slice(&F::DATA_ID.to_be_bytes());
    let crc = crc::p4(&[&all[..CRC_AT], &all[CRC_AT + 4..]]);
    all[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    if let Ok((frame, counter)) = decode::<F>(bytes.as_ref()) {
        let again = encode(&frame, counter);
        let (_, same) = decode::<F>(again.as_ref()).expect("what is sent can be read");
        assert_eq!(same, counter);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_by_name(bytes in proptest::collection::vec(any::<u8>(), 0..420)) {
        prop_assert!(Receiver::<Proposal>::default().receive(&bytes).is_err());
        prop_assert!(Receiver::<Status>::default().receive(&bytes).is_err());
        prop_assert!(Receiver::<Control>::default().receive(&bytes).is_err());
        prop_assert!(Receiver::<MachineState>::default().receive(&bytes).is_err());
        prop_assert!(Receiver::<Description>::default().receive(&bytes).is_err());
        prop_assert!(Receiver::<Value>::default().receive(&bytes).is_err());
    }

    #[test]
    fn any_payload_is_read_or_refused(
        // Mostly zeros, so that sets and choices are often valid.
        payload in proptest::collection::vec(prop_oneof![4 => Just(0), 1 => any::<u8>()], 0..420),
        counter: u16,
    ) {
        is_harmless::<Proposal>(&payload, counter);
        is_harmless::<Status>(&payload, counter);
        is_harmless::<Control>(&payload, counter);
        is_harmless::<MachineState>(&payload, counter);
        is_harmless::<Description>(&payload, counter);
        is_harmless::<Value>(&payload, counter);
    }

    /// For all bit patterns, every number out of range is counted and treated as unknown.
    #[test]
    fn numbers_of_a_machine_that_cannot_be_are_not_known(
        bits in any::<[u32; 6]>(), wide in any::<[u64; 2]>(), axes in any::<[u32; 16]>(),
    ) {
        let [speed, steering_angle, x, y, heading, height] = bits.map(f32::from_bits);
        let [latitude, longitude] = wide.map(f64::from_bits);
        let told = MachineState {
            speed,
            steering_angle,
            position: Some(Position { x, y, heading }),
            place: Some(Place { latitude, longitude, height }),
            axes: Axes(axes.map(f32::from_bits)),
            ..full_machine()
        };
        let mut receiver = Receiver::<MachineState>::default();
        let read = receiver.receive(&encode(&told, 1)).unwrap();
        prop_assert!(read.speed.is_nan() || read.speed.abs() <= 150.0);
        prop_assert!(read.steering_angle.is_nan() || read.steering_angle.abs() <= 1.571);
        prop_assert!(read.position.is_none_or(|it| it.x.abs() <= 1e7 && it.y.abs() <= 1e7 && it.heading.abs() <= 1e6));
        prop_assert!(read.place.is_none_or(|it| it.latitude.abs() <= 90.0 && it.longitude.abs() <= 180.0));
        prop_assert!(read.place.is_none_or(|it| it.height.is_nan() || it.height.abs() <= 1e5));
        let bounded = [
            (f64::from(speed), 150.0), (f64::from(steering_angle), f64::from(core::f32::consts::FRAC_PI_2)),
            (f64::from(x), 1e7), (f64::from(y), 1e7), (f64::from(heading), 1e6),
            (latitude, 90.0), (longitude, 180.0), (f64::from(height), 1e5),
        ];
        let infinite = axes.iter().filter(|axis| f32::from_bits(**axis).is_infinite()).count();
        let beyond = bounded.iter().filter(|(value, most)| value.abs() > *most).count() + infinite;
        prop_assert_eq!(read.axes, Axes(axes.map(f32::from_bits)).sane());
        prop_assert_eq!(receiver.impossible_count(), beyond as u64);
    }

    #[test]
    fn a_changed_bit_is_found(at in 0..Proposal::BYTES, bit in 0u8..8) {
        let mut bytes = encode(&full_proposal(), 8);
        bytes[at] ^= 1 << bit;
        prop_assert!(decode::<Proposal>(&bytes).is_err());
    }
}

/// Prints the vectors for docs/guard.md.
#[test]
#[ignore = "prints what the docs show"]
fn print_vectors() {
    fn print(name: &str, bytes: &[u8]) {
        std::println!("Vector `{name}`\n\n```hex");
        for line in bytes.chunks(32) {
            let hex = |word: &[u8]| word.iter().map(|byte| std::format!("{byte:02x}")).collect();
            let words: Vec<std::string::String> = line.chunks(4).map(hex).collect();
            std::println!("{}", words.join(" "));
        }
        std::println!("```\n");
    }
    print("proposal", &encode(&full_proposal(), 1));
    print("status", &encode(&full_status(), 2));
    print("control", &encode(&full_control(), 3));
    print("machine", &encode(&full_machine(), 4));
    print("description", &encode(&full_description(), 6));
    print("value", &encode(&full_value(), 7));
}
