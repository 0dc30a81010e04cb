use std::collections::{BTreeMap, VecDeque};
use std::process::Command;
use std::time::Duration;

use axum::body::Bytes;
use proptest::prelude::*;
use tautline_blackbox::mcap::{Message, Record, Records};
use tautline_message::StripReport;
use tautline_transport::channel::Descriptor;
use tautline_units::{ByteCount, Instant};
use tautline_video::avc::{Config, LossRecovery, StripEncoder};
use tautline_video::openh264::StripDecoder;
use tautline_video::{Decoder, Encoder, Picture, Refresh, Slice};

use super::film::{Counters, HELD_MAX};
use super::*;
use crate::downlink::Downlink;

#[test]
fn recorded_slices_are_on_disk_when_the_recorder_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(PICTURES), "older").unwrap();
    let mut recorder = Recorder::create(folder.path()).unwrap();
    recorder.record(Entry {
        picture: 3,
        strip: 5,
        kind: SliceKind::Idr,
        captured_at: Instant::from_millis(1),
        encoded_at: Instant::from_millis(4),
        shown_at: Instant::from_millis(9),
        is_clean: true,
        bytes: Bytes::from_static(&[0, 0, 0, 1, 0x67]),
    });
    assert_eq!(recorder.dropped(), Dropped::default());
    drop(recorder);
    assert_eq!(fs::read(folder.path().join("strip-5.h264")).unwrap(), [0, 0, 0, 1, 0x67]);
    let index = fs::read_to_string(folder.path().join(INDEX)).unwrap();
    assert_eq!(index, format!("{INDEX_HEAD}\n3,5,idr,1000,4000,9000,5,1\n"));
    assert!(!folder.path().join(PICTURES).exists());
}

#[test]
fn units_of_other_channels_are_on_disk_with_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(folder.path()).unwrap();
    let descriptor = |topic: &str| {
        let schema = b"a schema".to_vec();
        let (topic, schema_name) = (topic.to_owned(), "Scan".to_owned());
        std::sync::Arc::new(Descriptor { topic, schema_name, schema, ..Descriptor::default() })
    };
    let mut record = |topic, came_at, bytes: &[u8]| {
        let descriptor = descriptor(topic);
        recorder.record_unit(Unit {
            descriptor,
            sent_at: came_at - 3,
            came_at,
            bytes: bytes.into(),
        });
    };
    record("/scan", 10, b"one");
    record("/battery", 11, b"two");
    record("/scan", 12, b"three");
    assert_eq!(recorder.dropped(), Dropped::default());
    drop(recorder);
    let bytes = fs::read(folder.path().join(CHANNELS)).unwrap();
    let records: Vec<Record<'_>> =
        Records::new(&bytes).unwrap().map(|(_, record)| record.unwrap()).collect();
    let message = |channel, sequence, at, data: &'static [u8]| {
        Record::Message(Message { channel, sequence, at, published_at: at - 3, data })
    };
    let expected = [
        Record::Header { profile: "" },
        Record::Schema,
        Record::Channel { id: 1, topic: "/scan", message_encoding: "" },
        message(1, 0, 10, b"one"),
        Record::Schema,
        Record::Channel { id: 2, topic: "/battery", message_encoding: "" },
        message(2, 0, 11, b"two"),
        message(1, 1, 12, b"three"),
        Record::DataEnd,
        Record::Footer,
    ];
    assert_eq!(records, expected);
}

const WIDTH: usize = 64;
/// Height of the pictures. Their strips are one and two rows of macroblocks high, in turn.
const HEIGHT: usize = 144;
const FIRST: u32 = 1_000;

/// Fate of one strip's slice of a picture on its way to the recorder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Comes,
    Lost,
    /// The vehicle did not encode the strip of this picture, for lack of time.
    NeverCoded,
}

/// The encoders of a vehicle's six strips, and the slices that an operator shows.
struct Drive {
    layout: Layout,
    encoders: Vec<StripEncoder>,
    /// Recent pictures of each strip, with the encoder's numbers.
    coded: Vec<VecDeque<(u32, u64)>>,
    downlink: Downlink,
    entries: Vec<Entry>,
}

impl Drive {
    fn new(loss_recovery: LossRecovery, joinable: bool) -> Self {
        let layout = Layout::of(WIDTH, HEIGHT).unwrap();
        let encoder = |strip| {
            let height = layout.strip_rows(strip).len();
            let (cropped, pictures_per_second) = ([0, 0], 60);
            let width = WIDTH;
            let config =
                Config { width, height, cropped, pictures_per_second, loss_recovery, joinable };
            StripEncoder::new(config).unwrap()
        };
        Self {
            layout,
            encoders: (0..Layout::STRIP_COUNT).map(encoder).collect(),
            coded: vec![VecDeque::new(); Layout::STRIP_COUNT],
            downlink: Downlink::new(Duration::from_millis(30)),
            entries: Vec::new(),
        }
    }

    /// Encodes and handles picture `number`, with the `fate` of each strip, and returns it as the
    /// encoders reconstruct it. The vehicle receives the operator's reports with every fourth
    /// picture.
    fn picture(&mut self, number: u32, mut fate: impl FnMut(usize) -> Fate) -> Picture {
        let (source, picture) = (scene(number), FIRST.wrapping_add(number));
        let now = Instant::from_millis(1_000 + u64::from(number) * 16);
        let (refresh, reports) = (self.downlink.keyframe_strips(), self.downlink.reports(now));
        let mut own = Picture::new(WIDTH, HEIGHT).unwrap();
        for (strip, encoder) in self.encoders.iter_mut().enumerate() {
            let rows = self.layout.strip_rows(strip);
            let fate = fate(strip);
            if fate != Fate::NeverCoded {
                let idr = number.is_multiple_of(8) && refresh >> strip & 1 == 1;
                let report = reports[strip].filter(|_| number.is_multiple_of(4));
                let asked = request(idr, report, &self.coded[strip], encoder);
                self.coded[strip].push_front((picture, encoder.next_picture()));
                self.coded[strip].truncate(32);
                let source = source.rows(rows.clone()).unwrap();
                let encoded = encoder.encode(&source, ByteCount::new(400), asked).unwrap();
                let slice = Slice {
                    picture,
                    strip: strip as u8,
                    kind: encoded.kind,
                    history: encoded.history,
                    motion: encoded.motion,
                    captured_at: now,
                    encoded_at: now,
                    tick: 0,
                    bytes: encoded.bytes,
                };
                if fate == Fate::Comes {
                    let entries = &mut self.entries;
                    self.downlink.handle_slice(slice, now, now, |shown| {
                        entries.push(entry(shown.slice, shown.is_clean));
                    });
                }
            }
            own.place(rows.start, &encoder.reconstruction()).unwrap();
        }
        let entries = &mut self.entries;
        self.downlink.handle_timeout(now, |shown| entries.push(entry(shown.slice, shown.is_clean)));
        own
    }

    /// Returns every picture as decoded from the shown slices, by its number, counted from the
    /// first.
    fn shown(&self) -> BTreeMap<u32, Picture> {
        let mut slices = BTreeMap::<u32, Vec<&Entry>>::new();
        for entry in &self.entries {
            slices.entry(entry.picture.wrapping_sub(FIRST)).or_default().push(entry);
        }
        let mut decoders: Vec<_> =
            self.encoders.iter().map(|_| StripDecoder::new().unwrap()).collect();
        let mut screen = Picture::new(WIDTH, HEIGHT).unwrap();
        let (luma, cb, cr) = screen.planes_mut();
        [luma, cb, cr].into_iter().for_each(|plane| plane.fill(128));
        let shown = slices.into_iter().map(|(picture, entries)| {
            for entry in entries {
                let strip = usize::from(entry.strip);
                let decoded = decoders[strip].decode(&entry.bytes).unwrap().unwrap();
                screen.place(self.layout.strip_rows(strip).start, &decoded).unwrap();
            }
            (picture, screen.clone())
        });
        shown.collect()
    }

    /// Returns the pictures file of a recording of all shown slices.
    fn record(&self) -> Option<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(folder.path()).unwrap();
        self.entries.iter().for_each(|entry| recorder.record(entry.clone()));
        assert_eq!(recorder.dropped(), Dropped::default());
        drop(recorder);
        fs::read(folder.path().join(PICTURES)).ok()
    }
}

/// Returns the request to a strip's next picture that follows from the operator's report, whose
/// clean picture is acknowledged to the encoder.
fn request(
    idr: bool,
    report: Option<StripReport>,
    coded: &VecDeque<(u32, u64)>,
    encoder: &mut StripEncoder,
) -> Refresh {
    let clean = report.and_then(|it| Some(it.newest.wrapping_sub(it.clean_before?.into())));
    if let Some((_, number)) = coded.iter().find(|(picture, _)| Some(*picture) == clean) {
        encoder.acknowledge(*number);
    }
    match report {
        _ if idr => Refresh::Idr,
        Some(report) if report.is_corrupt() => Refresh::Recover,
        Some(_) | None => Refresh::No,
    }
}

fn entry(slice: Slice, is_clean: bool) -> Entry {
    let Slice { picture, strip, kind, captured_at, encoded_at, bytes, .. } = slice;
    let bytes = Bytes::copy_from_slice(&bytes);
    Entry { picture, strip, kind, captured_at, encoded_at, shown_at: encoded_at, is_clean, bytes }
}

/// Returns a texture, which moves right and down with each `number`.
fn scene(number: u32) -> Picture {
    let mut picture = Picture::new(WIDTH, HEIGHT).unwrap();
    let (luma, cb, _) = picture.planes_mut();
    for (at, value) in luma.iter_mut().enumerate() {
        let (x, y) =
            (at % WIDTH + 1_000 - 2 * number as usize, at / WIDTH + 1_000 - number as usize);
        *value = (60 + ((x / 3 * 37) ^ (y / 2 * 11)) % 90) as u8;
    }
    cb.fill(100 + (number % 40) as u8);
    picture
}

/// Returns the access units of a pictures file. Each begins with a sequence parameter set, or with
/// a slice of macroblock 0 that follows another slice.
fn access_units(stream: &[u8]) -> Vec<&[u8]> {
    let starts =
        (0..stream.len().saturating_sub(5)).filter(|at| stream[*at..].starts_with(&[0, 0, 0, 1]));
    let mut begins = Vec::new();
    let mut before = 0;
    for at in starts {
        let (kind, first) = (stream[at + 4] & 0x1F, stream[at + 5] >> 7 == 1);
        if kind == 7 || (matches!(kind, 1 | 5) && first && before != 8) {
            begins.push(at);
        }
        before = kind;
    }
    let ends = begins.iter().copied().skip(1).chain([stream.len()]);
    begins.iter().zip(ends).map(|(begin, end)| &stream[*begin..end]).collect()
}

/// Asserts that a pictures file, decoded by openh264 and by ffmpeg, shows the expected pictures.
fn check(stream: &[u8], expected: &[Picture]) {
    let units = access_units(stream);
    assert_eq!(units.len(), expected.len());
    let mut decoder = StripDecoder::new().unwrap();
    for (number, (unit, expected)) in units.into_iter().zip(expected).enumerate() {
        let decoded = decoder.decode(unit).unwrap().expect("one in, one out");
        assert!(decoded == *expected, "picture {number}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(PICTURES);
    fs::write(&file, stream).unwrap();
    let ffmpeg = Command::new("ffmpeg")
        .args(["-v", "warning", "-err_detect", "explode", "-xerror", "-f", "h264", "-i"])
        .arg(&file)
        .args(["-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-"])
        .output();
    let output = ffmpeg.expect("needs ffmpeg: ./setup ffmpeg");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let planes = expected.iter().flat_map(|it| [it.luma(), it.cb(), it.cr()]);
    assert!(output.stdout == planes.collect::<Vec<_>>().concat(), "ffmpeg");
}

#[test]
fn without_loss_a_recording_shows_what_the_encoders_have() {
    for loss_recovery in [
        LossRecovery::ReferenceSelection { references: 16 },
        LossRecovery::IntraColumns { spacing: 4 },
    ] {
        let mut drive = Drive::new(loss_recovery, true);
        let own: Vec<_> = (0..40).map(|number| drive.picture(number, |_| Fate::Comes)).collect();
        check(&drive.record().unwrap(), &own);
    }
}

#[test]
fn with_losses_a_recording_shows_what_the_strips_show() {
    for (seed, loss_recovery) in [
        (1, LossRecovery::ReferenceSelection { references: 16 }),
        (2, LossRecovery::ReferenceSelection { references: 7 }),
        (3, LossRecovery::AcknowledgedReferences { references: 16 }),
        (4, LossRecovery::IntraRefreshOnLoss { period: 4 }),
        (5, LossRecovery::Idr),
    ] {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed);
        let mut drive = Drive::new(loss_recovery, true);
        for number in 0..80 {
            drive.picture(number, |strip| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                match state >> 32 & 31 {
                    // Including one strip's first IDR.
                    _ if (number, strip) == (0, 2) => Fate::Lost,
                    0 | 1 => Fate::Lost,
                    2 if number > 0 => Fate::NeverCoded,
                    _ => Fate::Comes,
                }
            });
        }
        let shown = drive.shown();
        assert!(drive.entries.iter().any(|entry| entry.kind == SliceKind::Skip));
        check(&drive.record().unwrap(), &shown.into_values().collect::<Vec<_>>());
    }
}

#[test]
fn strips_that_cannot_be_joined_are_not() {
    let mut drive = Drive::new(LossRecovery::Idr, false);
    (0..3).for_each(|number| drop(drive.picture(number, |_| Fate::Comes)));
    assert_eq!(drive.record(), None);
}

#[test]
fn a_new_session_begins_a_film_anew() {
    let mut drive = Drive::new(LossRecovery::Idr, true);
    let mut own: Vec<_> = (0..5).map(|number| drive.picture(number, |_| Fate::Comes)).collect();
    let entries = drive.entries;
    let mut drive = Drive::new(LossRecovery::ReferenceSelection { references: 3 }, true);
    own.extend((0..5).map(|number| drive.picture(number, |_| Fate::Comes)));
    drive.entries.splice(0..0, entries);
    check(&drive.record().unwrap(), &own);
}

#[test]
fn a_strip_that_stops_stops_no_other() {
    let most = HELD_MAX as u32;
    let mut drive = Drive::new(LossRecovery::Idr, true);
    (0..most + 10).for_each(|number| drop(drive.picture(number, |_| Fate::Comes)));
    let folder = tempfile::tempdir().unwrap();
    let mut film = Film::new(folder.path().join(PICTURES));
    let (stopped, others): (Vec<_>, Vec<_>) =
        drive.entries.into_iter().partition(|it| it.strip == 4 && it.picture != FIRST);
    others.into_iter().for_each(|entry| film.take(entry).unwrap());
    assert_eq!(film.counters, Counters { pictures: 10, still: 9, ..Counters::default() });
    stopped.into_iter().for_each(|entry| film.take(entry).unwrap());
    film.finish().unwrap();
    let pictures = u64::from(most) + 10;
    assert_eq!(film.counters, Counters { pictures, still: 9, late: 9, unjoined: 0 });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_entries_are_recorded_without_panic(
        entries in proptest::collection::vec(
            (any::<u8>(), prop_oneof![0u32..9, any::<u32>()], 0u8..7, 0u8..4, any::<[u8; 6]>()),
            0..60,
        ),
    ) {
        let mut drive = Drive::new(LossRecovery::ReferenceSelection { references: 2 }, true);
        (0..4).for_each(|number| drop(drive.picture(number, |_| Fate::Comes)));
        let folder = tempfile::tempdir().unwrap();
        let mut film = Film::new(folder.path().join(PICTURES));
        for (template, picture, strip, what, noise) in entries {
            let mut entry = drive.entries[usize::from(template) % drive.entries.len()].clone();
            match what {
                0 => {}
                1 => (entry.picture, entry.strip) = (FIRST.wrapping_add(picture), strip),
                2 => entry.kind = SliceKind::from_number(noise[0] % 3).unwrap(),
                _ => {
                    let mut bytes = entry.bytes.to_vec();
                    for pair in noise.chunks(2) {
                        let at = usize::from(pair[0]) % bytes.len();
                        bytes[at] = pair[1];
                    }
                    entry.bytes = bytes.into();
                }
            }
            film.take(entry).unwrap();
        }
        film.finish().unwrap();
    }
}

/// A disk with limited space. Of a write that does not fit it accepts a part.
#[derive(Clone)]
struct Small {
    bytes: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
    room: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl std::io::Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.bytes.lock().unwrap();
        let room = self.room.load(Ordering::Relaxed).saturating_sub(all.len());
        match room.min(bytes.len()) {
            0 if !bytes.is_empty() => Err(ErrorKind::StorageFull.into()),
            fits => {
                all.extend(&bytes[..fits]);
                Ok(fits)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl output::Sheet for Small {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.bytes.lock().unwrap().truncate(length as usize);
        Ok(())
    }
}

fn unit(number: u64) -> Unit {
    let descriptor = Arc::new(Descriptor { topic: "/scan".to_owned(), ..Descriptor::default() });
    Unit { descriptor, sent_at: number, came_at: number, bytes: vec![7; 1_000] }
}

/// Waits until `is_it` holds for the recorder, and fails after a minute.
fn wait(recorder: &Recorder, is_it: impl Fn(&Recorder) -> bool) {
    let clock = Clock::start();
    while !is_it(recorder) {
        assert!(clock.now() < Instant::from_millis(60_000), "{recorder:?}");
        std::thread::yield_now();
    }
}

#[test]
fn after_a_full_disk_recording_resumes_with_complete_entries() {
    let small = Small { bytes: Arc::default(), room: Arc::new(100_500.into()) };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| Output::new(File::create(folder.path().join(name)).unwrap());
    let strips = (0..Layout::STRIP_COUNT).map(|strip| file(&strip.to_string())).collect();
    let log = Log::begin(Output::new(small.clone())).unwrap();
    let film = Film::new(folder.path().join(PICTURES));
    let files = Files::begin(strips, file("index"), film, log).unwrap();
    let mut recorder = Recorder::start(files).unwrap();
    (0..200).for_each(|number| recorder.record_unit(unit(number)));
    wait(&recorder, |recorder| recorder.trouble() == Some(Trouble::Full));
    recorder.record_unit(unit(200));
    wait(&recorder, |recorder| recorder.dropped().units[Trouble::Full as usize] > 0);
    small.room.store(usize::MAX, Ordering::Relaxed);
    wait(&recorder, |recorder| recorder.trouble().is_none());
    let lost = recorder.dropped().units[Trouble::Full as usize];
    recorder.record_unit(unit(201));
    assert_eq!(recorder.dropped(), Dropped { units: [0, lost, 0], ..Dropped::default() });
    drop(recorder);
    let bytes = small.bytes.lock().unwrap();
    let records: Vec<Record<'_>> =
        Records::new(&bytes).unwrap().map(|(_, record)| record.unwrap()).collect();
    let is_unit = |record: &&Record<'_>| matches!(record, Record::Message(_));
    assert_eq!(records.iter().filter(is_unit).count() as u64, 202 - lost);
    assert_eq!(records.last(), Some(&Record::Footer));
}

#[test]
fn a_full_device_is_reported_as_full() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join(CHANNELS)).unwrap();
    let mut recorder = Recorder::create(folder.path()).unwrap();
    recorder.record_unit(unit(0));
    wait(&recorder, |recorder| recorder.trouble() == Some(Trouble::Full));
}
