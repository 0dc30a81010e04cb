use std::collections::BTreeMap;
use std::io;
use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use serde_json::Value;
use tautline_guard::Mode;

use super::worker::Previous;
use super::*;
use crate::film::Sink;
use crate::recording::End;
use crate::rehearsal::Rehearsal;
use crate::{Recording, Topic, drives, replay};

/// Files by drive and part.
type Files = Arc<Mutex<BTreeMap<(u32, u32), Vec<u8>>>>;

/// A disk in memory with a limited size for each part.
struct Memory {
    files: Files,
    drive: u32,
    room: fn(u32) -> usize,
}

struct Part {
    files: Files,
    name: (u32, u32),
    room: usize,
}

impl Memory {
    fn new(room: fn(u32) -> usize) -> (Self, Files) {
        let files = Files::default();
        (Self { files: Arc::clone(&files), drive: 0, room }, files)
    }
}

impl Disk for Memory {
    type File = Part;

    fn look(&mut self) -> io::Result<()> {
        match (self.room)(0) {
            0 => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, _after: u32) -> io::Result<u32> {
        self.drive += 1;
        Ok(self.drive)
    }

    fn create(&mut self, part: u32) -> io::Result<Part> {
        let name = (self.drive, part);
        self.files.lock().unwrap().insert(name, Vec::new());
        Ok(Part { files: Arc::clone(&self.files), name, room: (self.room)(part) })
    }

    fn discard(&mut self, part: u32) {
        self.files.lock().unwrap().remove(&(self.drive, part));
    }

    fn previous(&mut self) -> Option<Previous> {
        None
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut files = self.files.lock().unwrap();
        let file = files.get_mut(&self.name).unwrap();
        if file.len() + bytes.len() > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        file.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Part {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn config() -> Config {
    Config { before_s: 1, after_s: 2, ..Config::default() }
}

fn signer() -> Signer {
    Signer::from_seed(&[7; 32])
}

/// Runs `act` and then the worker, both on this thread; returns the health at the end.
fn record<D: Disk>(
    disk: D,
    config: Config,
    act: impl FnOnce(&mut Recorder, &mut Rehearsal),
) -> Health {
    let (mut recorder, end) = Recorder::pair(100_000);
    act(&mut recorder, &mut Rehearsal::new());
    recorder.items = None;
    let worker = Worker::new(disk, config, signer(), UNIX_NANOS, Arc::clone(&end.shared));
    worker.run(&end.items);
    end.done.send(()).unwrap();
    recorder.health()
}

/// Records a drive with one stop, and the time after it.
fn one_drive(recorder: &mut Recorder, rehearsal: &mut Rehearsal) {
    let mut step = |guard: &mut Guard, input: &Input, now| recorder.step(guard, input, now);
    rehearsal.drive(1, 1_500, &mut step);
    rehearsal.steps(700, &mut step);
}

fn topics(recording: &Recording, topic: Topic) -> Vec<Value> {
    let of = recording.records().iter().filter(|record| record.topic == topic);
    of.map(|record| recording.body(record)).collect()
}

fn text<'a>(body: &'a Value, member: &str) -> &'a str {
    body[member].as_str().unwrap_or_default()
}

#[test]
fn a_drive_is_recorded_in_full_around_its_stop_and_replays() {
    let (disk, files) = Memory::new(|_| usize::MAX);
    record(disk, config(), |recorder, rehearsal| {
        recorder.tell(Fact::Vehicle, r#"{"identification":"W0L000051T2123456"}"#, rehearsal.now);
        one_drive(recorder, rehearsal);
    });
    let files = files.lock().unwrap();
    assert_eq!(files.keys().copied().collect::<Vec<_>>(), [(1, 1)]);
    let recording = Recording::parse(files[&(1, 1)].clone());
    let verdict = recording.verdict();
    assert_eq!((&verdict.end, verdict.key.as_deref()), (&End::Closed, Some(&*signer().public())));
    assert_eq!(verdict.sealed + 1, verdict.records, "all but the last seal are sealed");

    let drive = topics(&recording, Topic::Drive);
    assert_eq!([text(&drive[0], "event"), text(&drive[1], "event")], ["begin", "end"]);
    assert_eq!(text(&drive[1], "why"), "the machine was held");
    assert_eq!(text(&drive[0], "utc"), "2026-11-22 23:45:06.010Z");
    let vehicle = topics(&recording, Topic::Fact(Fact::Vehicle));
    assert_eq!(vehicle[0]["fact"]["identification"], "W0L000051T2123456");

    let transitions = topics(&recording, Topic::Transition);
    let told: Vec<_> = transitions.iter().map(|body| text(&body["transition"], "cause")).collect();
    assert_eq!(told, ["Arm", "Throttle", "ProposalTimeout", "Standstill"]);
    assert_eq!(transitions[2]["machine"]["place"]["latitude"], 51.480_73);
    assert_eq!(transitions[2]["machine"]["place"]["height"], Value::Null);
    let told = &transitions[2]["machine"]["told"];
    assert!(told["acceleration_along"].is_number(), "{told}");
    assert_eq!(told["charge"], Value::Null);

    let steps = topics(&recording, Topic::Step);
    let ticks: Vec<_> = steps.iter().map(|body| body["tick"].as_u64().unwrap()).collect();
    assert!(ticks.windows(2).all(|pair| pair[0] + 1 == pair[1]), "without a gap");
    let stopped_at = transitions[2]["tick"].as_u64().unwrap();
    let held_at = transitions[3]["tick"].as_u64().unwrap();
    assert!(ticks[0] + 100 <= stopped_at && held_at + 200 <= *ticks.last().unwrap());
    let samples = topics(&recording, Topic::Sample).len();
    assert!((100..200).contains(&samples), "{samples} of 15 s, ten a second");

    let replayed = replay(&recording);
    assert_eq!((replayed.difference, replayed.gaps), (None, 0));
    assert_eq!(replayed.same, steps.len() as u64);
}

#[test]
fn facts_are_logged_on_change_and_a_configured_vin_wins() {
    let told = |vin: Option<&str>| {
        let (disk, files) = Memory::new(|_| usize::MAX);
        let config = Config { vin: vin.map(str::to_owned), ..config() };
        let start = vin.map(|vin| json!({ "identification": vin }).to_string());
        record(disk, config, |recorder, rehearsal| {
            // As `Recorder::start` does.
            start.iter().for_each(|text| recorder.tell(Fact::Vehicle, text, Instant::ZERO));
            recorder.tell(Fact::Vehicle, r#"{"identification":"the machine's"}"#, rehearsal.now);
            recorder.tell(Fact::Machine, "no object", rehearsal.now);
            one_drive(recorder, rehearsal);
            for volts in [48, 48, 47] {
                let text = json!({ "supply": { "volts": volts } }).to_string();
                recorder.tell(Fact::Machine, &text, rehearsal.now);
            }
            let mut step = |guard: &mut Guard, input: &Input, now| recorder.step(guard, input, now);
            rehearsal.drive(2, 1_500, &mut step);
        });
        let first = Recording::parse(files.lock().unwrap()[&(1, 1)].clone());
        let facts = |fact| topics(&first, Topic::Fact(fact));
        (facts(Fact::Vehicle), facts(Fact::Machine))
    };
    let (vehicle, machine) = told(Some("W0L000051T2123456"));
    assert_eq!(vehicle.len(), 1);
    assert_eq!(vehicle[0]["fact"]["identification"], "W0L000051T2123456");
    assert_eq!(machine[0]["fact"]["text"], "no object");
    let (vehicle, _) = told(None);
    assert_eq!(vehicle[0]["fact"]["identification"], "the machine's");
}

#[test]
fn everything_can_be_recorded_in_full() {
    let (disk, files) = Memory::new(|_| usize::MAX);
    record(disk, Config { between_stops_ms: 0, ..config() }, one_drive);
    let recording = Recording::parse(files.lock().unwrap()[&(1, 1)].clone());
    let steps = topics(&recording, Topic::Step);
    assert!(steps.len() > 2_000 && topics(&recording, Topic::Sample).is_empty());
    let replayed = replay(&recording);
    assert_eq!((replayed.difference, replayed.same), (None, steps.len() as u64));
}

#[test]
fn the_steps_before_a_late_second_stop_are_recorded() {
    let (disk, files) = Memory::new(|_| usize::MAX);
    record(disk, Config { before_s: 3, after_s: 30, ..config() }, |recorder, rehearsal| {
        let mut step = |guard: &mut Guard, input: &Input, now| recorder.step(guard, input, now);
        rehearsal.drive(1, 300, &mut step);
        rehearsal.drive(2, 4_500, &mut step);
    });
    let recording = Recording::parse(files.lock().unwrap()[&(1, 1)].clone());
    let transitions = topics(&recording, Topic::Transition);
    let stops: Vec<_> =
        transitions.iter().filter(|body| body["transition"]["to"] == "Manoeuvre").collect();
    let steps = topics(&recording, Topic::Step);
    let ticks: Vec<_> = steps.iter().map(|body| body["tick"].as_u64().unwrap()).collect();
    assert_eq!(stops.len(), 2);
    for stop in stops {
        let stop = stop["tick"].as_u64().unwrap();
        let first = if stop < 1_500 { 0 } else { stop - 300 };
        let around =
            (first.max(1_000)..=stop + 100).filter(|tick| ticks.contains(tick)).count() as u64;
        assert_eq!(around, stop + 101 - first.max(1_000), "stop at {stop}");
    }
    assert!(!topics(&recording, Topic::Sample).is_empty(), "less between them");
    let replayed = replay(&recording);
    assert_eq!((replayed.difference, replayed.same), (None, steps.len() as u64));
    assert_eq!(replayed.gaps, 1);
}

#[test]
fn a_disk_that_stalls_stops_no_step_and_its_drops_are_counted() {
    /// A part that signals each sync, and waits until it may continue.
    struct Stalling(Part, SyncSender<()>, Arc<Mutex<Receiver<()>>>);

    impl Write for Stalling {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Stalling {
        fn sync(&mut self) -> io::Result<()> {
            let _ = self.1.try_send(());
            let _ = self.2.lock().unwrap().recv();
            Ok(())
        }
    }

    struct Stalls(Memory, SyncSender<()>, Arc<Mutex<Receiver<()>>>);

    impl Disk for Stalls {
        type File = Stalling;

        fn look(&mut self) -> io::Result<()> {
            self.0.look()
        }

        fn begin(&mut self, after: u32) -> io::Result<u32> {
            self.0.begin(after)
        }

        fn create(&mut self, part: u32) -> io::Result<Stalling> {
            Ok(Stalling(self.0.create(part)?, self.1.clone(), Arc::clone(&self.2)))
        }

        fn discard(&mut self, part: u32) {
            self.0.discard(part);
        }

        fn previous(&mut self) -> Option<Previous> {
            None
        }
    }

    let (memory, files) = Memory::new(|_| usize::MAX);
    let (asks, asked) = sync_channel(1);
    let (go_on, may_go_on) = channel();
    let disk = Stalls(memory, asks, Arc::new(Mutex::new(may_go_on)));
    let config = Config { between_stops_ms: 0, after_s: 600, ..config() };
    let mut recorder = Recorder::start_on(disk, config, signer(), UNIX_NANOS, 2_000).unwrap();
    let mut rehearsal = Rehearsal::new();
    let mut drive = |recorder: &mut Recorder, act, waits: bool| {
        let mut dropped = recorder.health().dropped;
        let mut step = |guard: &mut Guard, input: &Input, now| {
            let output = recorder.step(guard, input, now);
            // A working disk keeps up with one step per 10 ms; here they come at once.
            while waits && recorder.health().dropped > dropped {
                let _ = recorder.done.recv_timeout(Duration::from_millis(5));
                dropped = recorder.health().dropped;
            }
            output
        };
        rehearsal.drive(act, 500, &mut step);
    };
    // Arming begins a drive, whose first signature stalls. The queue has room for one drive and not
    // for two; the guard continues to step.
    drive(&mut recorder, 1, false);
    asked.recv().unwrap();
    drive(&mut recorder, 2, false);
    let health = recorder.health();
    assert!(health.dropped >= 300, "{health:?}");
    assert_eq!(health.trouble, Some(Trouble::DiskBehind));
    // From now on nothing stalls, and recording resumes with a snapshot.
    drop(go_on);
    drive(&mut recorder, 3, true);
    recorder.items = None;
    recorder.done.recv_timeout(Duration::from_secs(120)).expect("it comes to its end");
    let recording = Recording::parse(files.lock().unwrap()[&(1, 1)].clone());
    assert_eq!(recording.verdict().end, End::Closed);
    let replayed = replay(&recording);
    assert_eq!(replayed.difference, None);
    assert!(replayed.gaps > 0 && replayed.same > 300, "{replayed:?}");
    let end = topics(&recording, Topic::Drive).pop().unwrap();
    assert!(end["dropped"].as_u64().unwrap() >= 300);
}

#[test]
fn a_full_disk_is_reported_and_recording_resumes_in_a_new_part() {
    let (disk, files) = Memory::new(|part| if part < 3 { 60_000 } else { usize::MAX });
    let (mut recorder, end) = Recorder::pair(100_000);
    one_drive(&mut recorder, &mut Rehearsal::new());
    recorder.items = None;
    let config = Config { between_stops_ms: 0, ..config() };
    let mut worker = Worker::new(disk, config, signer(), UNIX_NANOS, Arc::clone(&end.shared));
    let mut told = Vec::new();
    for item in &end.items {
        if let Item::Step(taken) = item {
            worker.handle_step(taken);
        }
        let trouble = recorder.health().trouble;
        if told.last() != Some(&trouble) {
            told.push(trouble);
        }
    }
    let full = Some(Trouble::DiskFull);
    assert_eq!(told, [None, full, None, full, None]);
    let files = files.lock().unwrap();
    assert_eq!(files.keys().copied().collect::<Vec<_>>(), [(1, 1), (1, 2), (1, 3)]);
    for ((_, part), bytes) in files.iter() {
        let recording = Recording::parse(bytes.clone());
        let end = if *part < 3 { End::Open } else { End::Closed };
        assert_eq!(recording.verdict().end, end, "part {part}");
        assert_eq!(replay(&recording).difference, None);
        let begin = &topics(&recording, Topic::Drive)[0];
        assert_eq!(
            begin["previous"]["part"].as_u64(),
            part.checked_sub(1).filter(|n| *n > 0).map(u64::from)
        );
    }
    end.done.send(()).unwrap();
}

#[test]
fn a_full_disk_is_reported_before_a_drive_begins() {
    /// A disk without room for this number of checks.
    struct Tight(Memory, u32);

    impl Disk for Tight {
        type File = Part;

        fn look(&mut self) -> io::Result<()> {
            self.1 = self.1.saturating_sub(1);
            if self.1 > 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }

        fn begin(&mut self, after: u32) -> io::Result<u32> {
            self.0.begin(after)
        }

        fn create(&mut self, part: u32) -> io::Result<Part> {
            self.0.create(part)
        }

        fn discard(&mut self, part: u32) {
            self.0.discard(part);
        }

        fn previous(&mut self) -> Option<Previous> {
            None
        }
    }

    let (disk, files) = Memory::new(|_| usize::MAX);
    let (mut recorder, end) = Recorder::pair(100_000);
    let mut rehearsal = Rehearsal::new();
    rehearsal.steps(1_500, &mut |guard, input, now| recorder.step(guard, input, now));
    recorder.items = None;
    let disk = Tight(disk, 3);
    let mut worker = Worker::new(disk, config(), signer(), UNIX_NANOS, Arc::clone(&end.shared));
    let mut told = Vec::new();
    for (count, item) in end.items.iter().enumerate() {
        if let Item::Step(taken) = item {
            worker.handle_step(taken);
        }
        let trouble = recorder.health().trouble;
        if told.last().is_none_or(|(_, last)| *last != trouble) {
            told.push((count, trouble));
        }
    }
    assert_eq!(told, [(0, Some(Trouble::DiskFull)), (1_000, None)]);
    assert!(files.lock().unwrap().is_empty());
    end.done.send(()).unwrap();
}

#[test]
fn a_folder_that_is_gone_is_found_before_a_drive_begins() {
    let place = tempfile::tempdir().unwrap();
    let config = Config { folder: place.path().join("blackbox"), ..config() };
    let mut folder = Folder::open(&config).unwrap();
    assert!(folder.look().is_ok());
    std::fs::remove_dir_all(&config.folder).unwrap();
    assert_eq!(folder.look().unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_part_that_a_full_disk_refuses_is_discarded() {
    /// A disk that is full for two attempts after the first file.
    struct Filling(Memory, u32);

    impl Disk for Filling {
        type File = Part;

        fn look(&mut self) -> io::Result<()> {
            self.0.look()
        }

        fn begin(&mut self, after: u32) -> io::Result<u32> {
            self.0.begin(after)
        }

        fn create(&mut self, part: u32) -> io::Result<Part> {
            self.1 += 1;
            let room = [60_000, 10, 10].get(self.1 as usize - 1).copied();
            Ok(Part { room: room.unwrap_or(usize::MAX), ..self.0.create(part)? })
        }

        fn discard(&mut self, part: u32) {
            self.0.discard(part);
        }

        fn previous(&mut self) -> Option<Previous> {
            None
        }
    }

    let (memory, files) = Memory::new(|_| 0);
    record(Filling(memory, 0), Config { between_stops_ms: 0, ..config() }, one_drive);
    let files = files.lock().unwrap();
    assert_eq!(files.keys().copied().collect::<Vec<_>>(), [(1, 1), (1, 2)]);
    let last = Recording::parse(files[&(1, 2)].clone());
    assert_eq!((&last.verdict().end, replay(&last).difference), (&End::Closed, None));
    assert_eq!(topics(&last, Topic::Drive)[0]["previous"]["part"], 1);
}

#[test]
fn a_long_drive_is_split_into_parts_that_chain_and_replay() {
    let (disk, files) = Memory::new(|_| usize::MAX);
    let (mut recorder, end) = Recorder::pair(100_000);
    one_drive(&mut recorder, &mut Rehearsal::new());
    recorder.items = None;
    let config = Config { between_stops_ms: 0, ..config() };
    let mut worker = Worker::new(disk, config, signer(), UNIX_NANOS, Arc::clone(&end.shared));
    worker.part_bytes = 60_000;
    worker.run(&end.items);
    let files = files.lock().unwrap();
    assert!(files.len() > 3, "{}", files.len());
    let mut folder = crate::Folder::default();
    folder.take_drive(1);
    let (mut steps, mut ticks) = (0, Vec::new());
    for ((drive, part), bytes) in files.iter() {
        let recording = Recording::parse(bytes.clone());
        assert_eq!(recording.verdict().end, End::Closed, "part {part}");
        let replayed = replay(&recording);
        assert_eq!((replayed.difference, replayed.gaps), (None, 0), "part {part}");
        steps += replayed.same;
        let of = topics(&recording, Topic::Step);
        ticks.extend(of.iter().map(|body| body["tick"].as_u64().unwrap()));
        let place = crate::folder::Place { drive: *drive, part: *part };
        assert_eq!(folder.take(place, &recording), None);
    }
    assert_eq!(steps, ticks.len() as u64);
    assert!(ticks.windows(2).all(|pair| pair[0] + 1 == pair[1]), "without a gap");
    assert_eq!(folder.faults(&Ok(None)), [crate::folder::Fault::NoteMissing], "in memory");
    end.done.send(()).unwrap();
}

#[test]
fn a_recorded_step_takes_a_tenth_of_its_text() {
    let (disk, files) = Memory::new(|_| usize::MAX);
    record(disk, Config { between_stops_ms: 0, ..config() }, one_drive);
    let bytes = files.lock().unwrap()[&(1, 1)].clone();
    let recording = Recording::parse(bytes.clone());
    let steps = topics(&recording, Topic::Step).len();
    assert!(bytes.len() / steps < 320, "{} bytes for {steps} steps", bytes.len());
}

#[test]
fn a_restart_begins_a_new_drive_that_cites_the_last_signature() {
    let root = tempfile::tempdir().unwrap();
    let config = Config { folder: root.path().join("box"), ..config() };
    for _ in 0..2 {
        record(Folder::open(&config).unwrap(), config.clone(), one_drive);
    }
    let drives = drives::list(&config.folder).unwrap();
    let read = |place: usize| Recording::read(&drives[place].files[0]).unwrap();
    assert_eq!([drives[0].number, drives[1].number], [1, 2]);
    let (first, second) = (read(0), read(1));
    let previous = topics(&second, Topic::Drive)[0]["previous"].clone();
    let last = topics(&first, Topic::Seal).pop().unwrap();
    assert_eq!((&previous["drive"], &previous["head"]), (&json!(1), &last["head"]));
    assert_eq!(topics(&first, Topic::Drive)[0]["previous"], Value::Null);
    assert_eq!(previous["key"], signer().public());
}

#[test]
fn a_recorder_that_is_dropped_ends_its_drive() {
    let root = tempfile::tempdir().unwrap();
    let config = Config { folder: root.path().join("box"), ..config() };
    let mut recorder = Recorder::start(config.clone(), signer(), UNIX_NANOS).unwrap();
    let mut rehearsal = Rehearsal::new();
    let mut step = |guard: &mut Guard, input: &Input, now| recorder.step(guard, input, now);
    rehearsal.steps(30, &mut step);
    rehearsal.arm(1);
    rehearsal.steps(5, &mut step);
    assert_eq!(rehearsal.mode(), Mode::Armed);
    recorder.items = None;
    recorder.done.recv_timeout(Duration::from_secs(120)).expect("it comes to its end");
    assert_eq!(recorder.health().trouble, Some(Trouble::Ended));
    let drive = drives::list(&config.folder).unwrap().pop().unwrap();
    let recording = Recording::read(&drive.files[0]).unwrap();
    assert_eq!(recording.verdict().end, End::Closed);
    assert_eq!(text(&topics(&recording, Topic::Drive)[1], "why"), "the process ended");
}

#[test]
fn a_panicked_recorder_thread_is_reported_as_ended() {
    /// A disk whose code has a bug.
    struct Failing;

    impl Disk for Failing {
        type File = Part;

        fn look(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn begin(&mut self, _after: u32) -> io::Result<u32> {
            panic!("a bug of the disk's")
        }

        fn create(&mut self, _part: u32) -> io::Result<Part> {
            Err(io::ErrorKind::NotFound.into())
        }

        fn discard(&mut self, _part: u32) {}

        fn previous(&mut self) -> Option<Previous> {
            None
        }
    }

    let mut recorder =
        Recorder::start_on(Failing, config(), signer(), UNIX_NANOS, 100_000).unwrap();
    let mut rehearsal = Rehearsal::new();
    one_drive(&mut recorder, &mut rehearsal);
    let ended = recorder.done.recv_timeout(Duration::from_secs(120));
    assert_eq!(ended, Err(RecvTimeoutError::Disconnected));
    // An item without room after that does not count as the disk's delay.
    rehearsal.steps(1, &mut |guard, input, now| recorder.step(guard, input, now));
    assert_eq!(recorder.health().trouble, Some(Trouble::Ended));
}

#[test]
fn a_fact_too_long_is_counted_and_not_taken() {
    let (mut recorder, _end) = Recorder::pair(1);
    recorder.tell(Fact::System, &"x".repeat(FACT_BYTES_MAX + 1), Instant::ZERO);
    assert_eq!(recorder.health().dropped, 1);
}

/// 22 November 2026, 23:45:00 UTC.
const UNIX_NANOS: u64 = 1_795_391_100_000_000_000;
