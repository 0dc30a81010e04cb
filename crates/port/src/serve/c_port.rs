//! The machine's side in C (`c/tautline.c`) compared with the one in Rust: the same bytes for
//! random frames, and the same controls for random silences.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tautline_guard::description::{
    Action, ActionForm, ActionRule, ActionStop, Axis, AxisForm, AxisRule, AxisStop, Counts, Entry,
    Reading, Revision, Text, Unit, ValueForm, ValueInfo,
};
use tautline_guard::frame::{self, Description, Value, encode};
use tautline_guard::{Actions, Faults, Gear, Mode, Notices, Place, Position, Reported};
use tautline_net::datagram::Server;

use super::*;

/// The C program under test, driven by lines.
struct Port {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    _folder: tempfile::TempDir,
}

impl Port {
    /// Builds the program as a firmware's compiler would, with all warnings as errors, and with
    /// checks for undefined behaviour and invalid memory.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (program, sources) = (folder.path().join("harness"), sources());
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-g"]);
        compiler.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
        compiler.arg("-o").arg(&program);
        compiler.args([sources.join("harness.c"), sources.join("tautline.c")]).arg("-lm");
        assert!(compiler.status().expect("./setup c++").success());
        let mut harness = Command::new(&program);
        let harness = harness.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = harness.spawn().unwrap();
        let commands = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, commands, answers, _folder: folder }
    }

    fn say(&mut self, command: &str) {
        writeln!(self.commands, "{command}").unwrap();
    }

    fn read(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the C program has failed: {:?}", self.process.wait());
        line
    }

    fn ask(&mut self, command: &str) -> String {
        self.say(command);
        self.read()
    }
}

fn sources() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../c")
}

/// Pseudorandom numbers (SplitMix64), the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    /// Returns a number between `-most` and `most`, and sometimes any bits.
    fn number(&mut self, most: f32) -> f32 {
        match self.below(8) {
            0 => f32::from_bits(self.next() as u32),
            1 => f32::NAN,
            _ => most * (self.below(2_001) as f32 / 1_000.0 - 1.0),
        }
    }

    fn bits(&mut self, count: u32) -> u32 {
        self.next() as u32 & ((1 << count) - 1)
    }

    fn text<const N: usize>(&mut self, least: u64) -> Text<N> {
        let length = least + self.below(N as u64 + 1 - least);
        let letters = (0..length).map(|_| char::from(b'a' + self.below(26) as u8));
        Text::new(&letters.collect::<String>()).unwrap()
    }

    fn axes(&mut self) -> Axes {
        Axes([(); 16].map(|()| self.number(3.0))).sane()
    }

    fn controls(&mut self) -> Controls {
        Controls {
            steering: self.number(1.0),
            throttle: self.number(1.0),
            brake: self.number(1.0),
            gear: if self.below(2) == 0 { Gear::Drive } else { Gear::Reverse },
            parking_brake: self.below(4) == 0,
            twist: Twist {
                forward: self.number(2.0),
                sideways: self.number(2.0),
                yaw_rate: self.number(2.0),
            },
            axes: self.axes(),
            actions: Actions::from_bits(self.next() as u32),
        }
    }

    fn control(&mut self, source: Instant) -> Control {
        let number = self.below(4) as u32;
        let request = Request { number, action: self.below(32) as u8 };
        Control {
            source,
            mode: Mode::from_number(self.below(5) as u8).unwrap(),
            controls: self.controls(),
            request: (number > 0).then_some(request),
        }
    }

    fn machine(&mut self) -> MachineState {
        let number = self.below(3) as u32;
        let answered = Answered { number, is_accepted: self.below(2) == 0 };
        MachineState {
            measured_at: Instant::from_nanos(self.next()),
            speed: self.number(9.0),
            sideways_speed: self.number(9.0),
            yaw_rate: self.number(9.0),
            steering_angle: self.number(1.0),
            gear: if self.below(2) == 0 { Gear::Drive } else { Gear::Reverse },
            position: Some(Position {
                x: self.number(9.0),
                y: self.number(9.0),
                heading: self.number(9.0),
            }),
            place: Some(Place {
                latitude: f64::from_bits(self.next()),
                longitude: f64::from_bits(self.next()),
                height: self.number(9.0),
            }),
            faults: Faults::known(self.bits(9)),
            notices: Notices::known(self.bits(4)),
            axes: self.axes(),
            actions: Actions::from_bits(self.next() as u32),
            answered: (number > 0).then_some(answered),
            description: Revision::new(self.next() as u32),
            told: Reported::from_numbers([(); Reported::COUNT].map(|()| Some(self.number(9.0)))),
        }
    }

    fn axis(&mut self) -> Item {
        let on_stop = match self.below(4) {
            0 => AxisStop::Hold,
            1 => AxisStop::Zero,
            2 => AxisStop::Value(0.25),
            _ => AxisStop::Release,
        };
        let rate = 0.01 + self.below(1_000) as f32 / 100.0;
        let rule = AxisRule { form: AxisForm::Position, low: -0.5, high: 2.0, rate, on_stop };
        Item::Axis(Axis { name: self.text(1), unit: self.text(0), rule })
    }

    fn action(&mut self) -> Item {
        let form = ActionForm::from_number(self.below(3) as u8).unwrap();
        let on_stop = ActionStop::from_number(self.below(3) as u8).unwrap();
        let rule = ActionRule { form, on_stop, is_allowed_held: self.below(2) == 0 };
        Item::Action(Action { name: self.text(1), rule })
    }

    fn value(&mut self) -> Item {
        let (name, unit) = (self.text(1), self.text(0));
        let (range, warning) = ([-9.0, 9.0], [f32::NAN, 7.0]);
        let (form, alarm) = (ValueForm::Number, [f32::NAN, 8.0]);
        Item::Value(ValueInfo { name, unit, form, range, warning, alarm })
    }

    /// Returns a description with some axes, actions and values.
    fn items(&mut self) -> Vec<Item> {
        let (axes, actions, values) = (self.below(17), self.below(33), self.below(65));
        let mut items: Vec<Item> = (0..axes).map(|_| self.axis()).collect();
        items.extend((0..actions).map(|_| self.action()));
        items.extend((0..values).map(|_| self.value()));
        items
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Returns the numbers as words, floats by their bits.
fn words(numbers: impl IntoIterator<Item = f32>) -> String {
    numbers.into_iter().fold(String::new(), |mut text, number| {
        write!(text, " {:x}", number.to_bits()).unwrap();
        text
    })
}

fn machine_words(machine: &MachineState) -> String {
    let Position { x, y, heading } = machine.position.unwrap();
    let Place { latitude, longitude, height } = machine.place.unwrap();
    let MachineState { speed, sideways_speed, yaw_rate, steering_angle, .. } = *machine;
    let told = machine.told.numbers().map(|number| number.unwrap_or(f32::NAN));
    let answered = machine.answered.map_or((0, 0), |it| (it.number, 2 - u8::from(it.is_accepted)));
    let head = words([speed, sideways_speed, yaw_rate, steering_angle]);
    let sets = (machine.gear.number(), machine.notices.bits(), machine.faults.bits());
    let position = words([x, y, heading]);
    let place = (latitude.to_bits(), longitude.to_bits(), height.to_bits());
    let (axes, actions) = (words(machine.axes.0), machine.actions.bits());
    let description = Revision::to_wire(machine.description);
    format!(
        "{head} {:x} {:x} {:x}{position} {:x} {:x} {:x}{axes} {actions:x} {:x} {:x} {description:x}{}",
        sets.0,
        sets.1,
        sets.2,
        place.0,
        place.1,
        place.2,
        answered.0,
        answered.1,
        words(told),
    )
}

fn entry_words(item: &Item) -> String {
    let name = hex(item.name().as_str().as_bytes());
    // An empty text is a word without digits.
    let text = |unit: &Unit| match unit.as_str() {
        "" => "-".to_owned(),
        unit => hex(unit.as_bytes()),
    };
    let nan = f32::NAN;
    match item {
        Item::Axis(Axis { unit, rule, .. }) => {
            let (on_stop, stop) = match rule.on_stop {
                AxisStop::Hold => (0, 0.0),
                AxisStop::Zero => (1, 0.0),
                AxisStop::Value(value) => (2, value),
                AxisStop::Release => (3, 0.0),
            };
            let numbers = words([rule.low, rule.high, rule.rate, stop, nan, nan, nan, nan]);
            format!("0 {:x} {on_stop:x} 0 {name} {}{numbers}", rule.form.number(), text(unit))
        }
        Item::Action(Action { rule, .. }) => {
            let (form, on_stop) = (rule.form.number(), rule.on_stop.number());
            let (held, numbers) = (u8::from(rule.is_allowed_held), words([0.0; 4]));
            format!("1 {form:x} {on_stop:x} {held:x} {name} -{numbers}{}", words([nan; 4]))
        }
        Item::Value(ValueInfo { unit, form, range, warning, alarm, .. }) => {
            let numbers = words([range[0], range[1], 0.0, 0.0, warning[0], warning[1]]);
            let (form, alarm) = (form.number(), words(*alarm));
            format!("2 {form:x} 0 0 {name} {}{numbers}{alarm}", text(unit))
        }
    }
}

/// Tells the program a description, and returns the lines of its encoded entries.
fn described(port: &mut Port, items: &[Item], counter: u16, now: u64) -> Vec<String> {
    port.say("forget");
    for item in items {
        port.say(&format!("entry {}", entry_words(item)));
    }
    port.say(&format!("describe {counter:x} {now:x}"));
    items.iter().map(|_| port.read()).collect()
}

/// Numbers of a control as the program prints them.
fn numbers_of(line: &str) -> Vec<u64> {
    line.split_whitespace().map(|word| u64::from_str_radix(word, 16).unwrap()).collect()
}

/// Checks the program's controls: numbers that both sides compute may differ in their last digits.
fn is_same(printed: &[u64], mode: Mode, controls: &Controls, request: Option<Request>) {
    let float = |at: usize| f32::from_bits(printed[at] as u32);
    let is_near = |a: f32, b: f32| a == b || (a - b).abs() < 2e-5 || a.is_nan() && b.is_nan();
    let Controls { steering, throttle, brake, twist, axes, .. } = *controls;
    let exact = [u64::from(mode.number()), u64::from(steering.to_bits())];
    assert_eq!(printed[..2], exact, "mode and steering");
    assert_eq!((float(2), float(3)), (throttle, brake));
    let gear = [u64::from(controls.gear.number()), u64::from(controls.parking_brake)];
    assert_eq!(printed[4..6], gear, "gear and parking brake");
    for (at, wanted) in (6..).zip([twist.forward, twist.sideways, twist.yaw_rate]) {
        assert!(is_near(float(at), wanted), "twist: {} and {wanted}", float(at));
    }
    for (at, wanted) in (9..).zip(axes.0) {
        assert!(is_near(float(at), wanted), "axis {}: {} and {wanted}", at - 9, float(at));
    }
    let request = request.map_or((0, 0), |request| (request.number, request.action));
    let rest = [u64::from(controls.actions.bits()), request.0.into(), request.1.into()];
    assert_eq!(printed[25..], rest, "actions and request");
}

#[test]
fn the_c_port_sends_the_bytes_of_rust() {
    let (mut port, mut random) = (Port::start(), Random(1));
    for _ in 0..2_000 {
        let (machine, counter) = (random.machine(), random.next() as u16);
        let now = machine.measured_at.as_nanos();
        let sent = port.ask(&format!("machine {counter:x} {now:x}{}", machine_words(&machine)));
        assert_eq!(sent.trim_end(), hex(&encode(&machine, counter)), "{machine:?}");
    }
    for _ in 0..2_000 {
        let reading = match random.below(2) {
            0 => Reading::Number(random.number(100.0)),
            _ => Reading::Text(random.text(0)),
        };
        let (source, counter) = (Instant::from_nanos(random.next()), random.next() as u16);
        let revision = Revision::new(random.next() as u32 | 1).unwrap();
        let value = Value { source, revision, index: random.below(64) as u8, reading };
        let (form, number, text) = match reading {
            Reading::Number(number) => (0, number, String::new()),
            Reading::Text(text) => (1, 0.0, hex(text.as_str().as_bytes())),
        };
        let (now, revision, index) = (source.as_nanos(), revision.get(), value.index);
        let sent = port.ask(&format!(
            "value {counter:x} {now:x} {revision:x} {index:x} {form}{} {text}",
            words([number])
        ));
        assert_eq!(sent.trim_end(), hex(&encode(&value, counter)), "{value:?}");
    }
    for _ in 0..40 {
        let (items, now) = (random.items(), random.next());
        let sent = described(&mut port, &items, 7, now);
        let kinds = |kind: fn(&Item) -> bool| items.iter().filter(|item| kind(item)).count() as u8;
        let counts = Counts {
            axes: kinds(|item| matches!(item, Item::Axis(_))),
            actions: kinds(|item| matches!(item, Item::Action(_))),
            values: kinds(|item| matches!(item, Item::Value(_))),
        };
        let firsts = [0, counts.axes, counts.axes + counts.actions];
        for (at, (item, sent)) in items.iter().zip(sent).enumerate() {
            let first = firsts.into_iter().filter(|first| usize::from(*first) <= at).max().unwrap();
            let revision = frame::revision(&items).unwrap();
            let entry = Entry { revision, counts, index: at as u8 - first, item: *item };
            let frame = Description { source: Instant::from_nanos(now), entry };
            assert_eq!(sent.trim_end(), hex(&encode(&frame, 7 + at as u16)), "{entry:?}");
        }
    }
}

#[test]
fn the_c_port_reads_and_refuses_as_rust_does() {
    let (mut port, mut random) = (Port::start(), Random(2));
    let mut receiver = Receiver::<Control>::default();
    let (mut counter, mut accepted, mut refused) = (0_u16, 0, 0);
    for _ in 0..10_000 {
        counter = counter.wrapping_add(random.below(13) as u16);
        let source = Instant::from_nanos(random.next());
        let control = random.control(source);
        let mut bytes = encode(&control, counter).to_vec();
        match random.below(6) {
            0 => bytes.truncate(random.below(121) as usize),
            1 => bytes[random.below(120) as usize] ^= 1 << random.below(8),
            2 => {
                let at = 12 + random.below(108) as usize;
                bytes[at] = random.next() as u8;
                // A valid checksum, so that the fields are judged.
                let crc = crc_of(&bytes);
                bytes[8..12].copy_from_slice(&crc.to_be_bytes());
            }
            3 => bytes.push(0),
            _ => {}
        }
        let printed = numbers_of(&port.ask(&format!("decode {}", hex(&bytes))));
        match receiver.receive(&bytes) {
            Ok(control) => {
                accepted += 1;
                assert_eq!(printed[..2], [0, control.source.as_nanos()]);
                is_same(&printed[2..], control.mode, &control.controls, control.request);
            }
            Err(error) => {
                refused += 1;
                let number = match error {
                    frame::Error::Length { .. } => 1,
                    frame::Error::DataId { .. } => 2,
                    frame::Error::Crc { .. } => 3,
                    frame::Error::Repeated { .. } => 4,
                    frame::Error::WrongSequence { .. } => 5,
                    frame::Error::Value { .. } => 6,
                    error => panic!("{error}"),
                };
                assert_eq!(printed[0], number, "{error}");
            }
        }
    }
    assert!(accepted > 2_000 && refused > 2_000, "{accepted} accepted, {refused} refused");
}

fn crc_of(frame: &[u8]) -> u32 {
    let rest = frame[..8].iter().chain(&frame[12..]);
    !rest.fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0xC8DF_352F } else { 0 }
        })
    })
}

/// Frames that come late, in bursts, or not at all, from guards that restart, and a program that
/// pauses: in each turn both sides give the same controls.
#[test]
fn the_c_port_follows_and_brakes_as_rust_does() {
    let (mut port, mut random) = (Port::start(), Random(3));
    let (mut followed, mut alone) = (0, 0);
    const TURNS: u64 = 1_000;
    for drive in 0..60 {
        // In some drives few frames arrive, and the first of them late.
        let is_sparse = drive % 6 == 5;
        let items = random.items();
        described(&mut port, &items, 0, 0);
        port.say("start");
        let start = Instant::from_millis(1_000 + random.below(1_000));
        let mut follower = Follower::new(Settings::default(), items, start);
        let (mut now, mut offset) = (start, 5_000_000_000_u64);
        let (mut counter, mut answered, mut silent_turns, mut mode) = (0, None, 0, Mode::Held);
        let mut state = MachineState { speed: 1.0, ..MachineState::default() };
        for turn in 0..TURNS {
            // Short turns in a silence find the instant at which it counts.
            now += match random.below(40) {
                0 => Duration::from_millis(random.below(200)),
                _ if silent_turns > 0 && !is_sparse => {
                    Duration::from_micros(300 + random.below(1_200))
                }
                _ => Duration::from_micros(9_000 + random.below(2_000)),
            };
            if silent_turns == 0 && (is_sparse || random.below(20) == 0) {
                // Mostly a few frames, sometimes so long that it may be another process.
                silent_turns = match random.below(30) {
                    0 => 90 + random.below(200),
                    _ if is_sparse => 15 + random.below(30),
                    _ => random.below(60),
                };
            }
            if random.below(150) == 0 {
                // A restarted guard has another clock and counter.
                offset = random.below(9_000_000_000);
                counter = random.next() as u16;
            }
            let mut newest = None;
            let frames = if silent_turns > 1 { 0 } else { 1 + random.below(8) / 7 };
            for _ in 0..frames {
                counter = counter.wrapping_add(1);
                let late = match is_sparse {
                    true if turn < 100 || random.below(4) == 0 => 25_000 + random.below(600),
                    true => random.below(600),
                    false => random.below(12_000) + 18_000 * random.below(2),
                };
                let late = Duration::from_micros(late);
                // The guard's clock is slow by 180 ppm.
                let nanos = (now - late).as_nanos();
                let source = Instant::from_nanos(nanos - nanos / 5_555 + offset);
                let bytes = encode(&random.control(source), counter);
                port.say(&format!("receive {}", hex(&bytes)));
                newest = follower.receiver.receive(&bytes).ok().or(newest);
            }
            silent_turns = silent_turns.saturating_sub(1);
            if turn == TURNS - 10 {
                port.say(&format!("end {:x}", now.as_nanos()));
                follower.end(now);
            }
            if random.below(10) == 0 {
                state.speed = [0.0, 0.04, 1.0, f32::NAN][random.below(4) as usize];
                state.yaw_rate = [0.0, 0.2, f32::NAN][random.below(3) as usize];
                state.sideways_speed = [0.0, f32::NAN, 0.1][random.below(3) as usize];
            }
            if newest.is_some() {
                mode = Mode::Held;
            }
            follower.take(newest, now);
            let controls = follower.controls(&state, now);
            let is_followed = follower.follows(now);
            let request = follower.request.filter(|_| is_followed);
            if let Some(Request { number, action }) = request
                && answered.is_none_or(|answered: Answered| answered.number != number)
            {
                answered = Some(Answered { number, is_accepted: action % 2 == 1 });
            }
            let motion = words([state.speed, state.sideways_speed, state.yaw_rate]);
            let line = port.ask(&format!("turn {:x}{motion}", now.as_nanos()));
            let printed = numbers_of(&line);
            let told = follower.told(state, now).notices.bits();
            let reply = answered.map_or((0, 0), |it| (it.number, 2 - u32::from(it.is_accepted)));
            let may_leave = follower.may_leave(&state, now);
            let wanted = [is_followed.into(), told, reply.0, reply.1, may_leave.into()];
            assert_eq!(printed[..5], wanted.map(u64::from), "turn {turn}");
            let mode = Mode::from_number(printed[5] as u8).unwrap_or(mode);
            is_same(&printed[5..], mode, &controls, request);
            followed += u32::from(is_followed);
            alone += u32::from(!is_followed);
        }
        let left = follower.stopped(&follower.applied, &Axes::NONE, f32::INFINITY);
        let printed = numbers_of(&port.ask("leave"));
        let controls = Controls { throttle: 0.0, brake: 1.0, twist: Twist::ZERO, ..left };
        is_same(&printed, Mode::from_number(printed[0] as u8).unwrap(), &controls, None);
    }
    assert!(followed > 20_000 && alone > 20_000, "{followed} followed, {alone} alone");
}

/// The example drives as the guard tells it, answers a request, tells what it declares, and slows
/// to a standstill once the guard is silent.
#[test]
fn the_example_in_c_is_a_machine() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("example");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-o"]);
    compiler.arg(&program).args([sources().join("example.c"), sources().join("tautline.c")]);
    assert!(compiler.arg("-lm").status().expect("./setup c++").success());
    let guard = Server::open(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let address = guard.local_address().unwrap().to_string();
    let mut example = Command::new(&program).arg(address).spawn().unwrap();

    let (clock, mut counter) = (Clock::start(), Sender::default());
    let (mut states, mut entries) = (Receiver::<MachineState>::default(), Vec::new());
    let mut described = Receiver::<Description>::default();
    let (mut fastest, mut slowing, mut answered, mut values) = (0.0_f32, 0, None, 0);
    let twist = Twist { forward: 0.5, ..Twist::ZERO };
    let controls = Controls { twist, axes: Axes([0.5; 16]), ..Controls::default() };
    let request = Some(Request { number: 9, action: 1 });
    // Half a second of the guard, then silence until the machine stands: half a second at 1 m/s².
    let end = clock.now() + Duration::from_secs(20);
    let mut heard = 0;
    let stood = loop {
        let mut buffer = [0; frame::BYTES_MAX];
        let Some((length, machine)) = guard.receive(&mut buffer) else {
            assert!(clock.now() < end, "{heard} states, fastest {fastest} m/s");
            std::thread::yield_now();
            continue;
        };
        let bytes = &buffer[..length];
        values += u32::from(frame::is_called::<Value>(bytes));
        if let Ok(description) = described.receive(bytes) {
            entries.push(description.entry);
        }
        let Ok(state) = states.receive(bytes) else { continue };
        heard += 1;
        fastest = fastest.max(state.speed);
        answered = state.answered.or(answered);
        if state.notices.contains(Notice::GuardSilent) && heard > 50 {
            slowing += u32::from(state.speed > 0.0 && state.speed < 0.5);
            if state.speed == 0.0 {
                break state;
            }
        }
        if heard < 50 {
            let control = Control { source: clock.now(), controls, request, ..Control::default() };
            guard.send(&counter.encode(&control), &machine);
        }
    };
    assert_eq!((fastest, answered), (0.5, Some(Answered { number: 9, is_accepted: true })));
    assert!(slowing > 0, "it slows before it stands");
    assert!(stood.notices.contains(Notice::ParkingBrake) && stood.axes.0[0] == 0.5, "{stood:?}");
    let names: Vec<_> = entries[..4].iter().map(|entry| entry.item.name().to_string()).collect();
    assert_eq!(names, ["pan", "horn", "dock", "battery"]);
    let items: Vec<Item> = entries[..4].iter().map(|entry| entry.item).collect();
    assert_eq!(frame::revision(&items), Some(entries[0].revision));
    assert!(stood.description == Some(entries[0].revision) && values > 0);
    // SIGTERM.
    assert!(Command::new("kill").arg(example.id().to_string()).status().unwrap().success());
    assert!(example.wait().unwrap().success(), "it ends, because the machine stands");
}

#[test]
fn the_c_port_compiles_for_a_microcontroller_and_posix() {
    let compile = |compiler: &str, target: &[&str], file: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut compiler = Command::new(compiler);
        compiler.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Os", "-c"]);
        compiler.args(target).arg("-o").arg(folder.path().join("object"));
        compiler.arg(sources().join(file)).status()
    };
    assert!(compile("cc", &[], "example.c").expect("./setup c++").success());
    let lines = std::fs::read_to_string(sources().join("tautline.h")).unwrap().lines().count();
    assert!(lines <= 400, "{lines} lines in the header");
    // `./setup arm` installs the cross compiler; `make c` requires it.
    if let Ok(status) = compile("arm-none-eabi-gcc", &["-mcpu=cortex-m4"], "tautline.c") {
        assert!(status.success());
    }
}
