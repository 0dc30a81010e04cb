use std::collections::VecDeque;

use tautline_video::v4l2::{Code, Fraction};

use super::*;

/// Scripted device: it delivers the listed pictures, each of uniform grey, and errors, and then it
/// is unplugged.
struct Trace {
    modes: Vec<Mode>,
    /// Size that the driver sets in place of the requested one.
    size: Option<[u32; 2]>,
    padding: usize,
    taken: VecDeque<Result<(u8, Taken), io::Error>>,
    set: Option<Set>,
    streams: bool,
}

impl Trace {
    fn of(code: Code, size: [u32; 2], taken: &[(u8, Taken)]) -> Self {
        let modes = vec![Mode { code, size, interval: Fraction::new(1, 30) }];
        let taken = taken.iter().copied().map(Ok).collect();
        Self { modes, size: None, padding: 0, taken, set: None, streams: false }
    }

    fn open(self) -> anyhow::Result<DeviceSensor> {
        DeviceSensor::of(Box::new(self), Path::new("/dev/video7"), &Wanted::default(), 60.0)
    }
}

impl Device for Trace {
    fn name(&self) -> &str {
        "trace"
    }

    fn modes(&mut self) -> io::Result<Vec<Mode>> {
        Ok(self.modes.clone())
    }

    fn set(&mut self, mode: &Mode) -> io::Result<Set> {
        let mode = Mode { size: self.size.unwrap_or(mode.size), ..*mode };
        let packed = mode.code.pixels().map_or(0, |format| format.row_bytes(mode.size[0] as usize));
        let set = Set { mode, stride: packed + self.padding, is_full_range: false };
        self.set = Some(set);
        Ok(set)
    }

    fn start(&mut self) -> io::Result<()> {
        self.streams = true;
        Ok(())
    }

    fn take(&mut self, _timeout: Duration, bytes: &mut Vec<u8>) -> io::Result<Taken> {
        assert!(self.streams);
        let unplugged = || Err(Errno::NODEV.into());
        let (grey, taken) = self.taken.pop_front().unwrap_or_else(unplugged)?;
        let Set { mode, stride, .. } = self.set.unwrap();
        let rows = mode.size[1] as usize;
        let count = match mode.code {
            Code::Nv12 | Code::I420 => stride * rows * 3 / 2,
            Code::Yuyv | Code::Uyvy | Code::Grey => stride * rows,
            Code::Mjpeg | Code::Other(_) => 2_000,
        };
        bytes.clear();
        bytes.resize(if taken.is_damaged { count / 2 } else { count }, grey);
        Ok(taken)
    }
}

fn taken(ago: Option<Duration>, is_of_start: bool, is_damaged: bool) -> Taken {
    let at = ago.map(|ago| Clock::monotonic() - ago);
    Taken { at, is_of_start, is_damaged, left_out: 0, sequence: 0 }
}

fn luma(sensor: &mut DeviceSensor, strip: usize) -> Vec<u8> {
    let layout = sensor.layout();
    let mut rows = Picture::new(layout.width(), layout.strip_rows(strip).len()).unwrap();
    sensor.read(strip, &mut rows);
    rows.luma().to_vec()
}

#[test]
fn exposure_and_transfer_count_as_age() {
    let ago = Some(Duration::from_millis(40));
    let told = [taken(ago, true, false), taken(ago, false, false), taken(None, false, false)];
    let pictures = told.map(|taken| (90, taken));
    let mut sensor = Trace::of(Code::Yuyv, [640, 480], &pictures).open().unwrap();
    let ages = [0; 3].map(|_| {
        assert!(sensor.next_picture().unwrap());
        sensor.age().as_millis()
    });
    assert!((40..5_000).contains(&ages[0]), "{ages:?}");
    assert!(ages[1] >= 73, "the end of a picture of 33 ms: {ages:?}");
    assert!((33..5_000).contains(&ages[2]), "where the driver reports none: {ages:?}");
}

#[test]
fn a_damaged_picture_is_lost_and_an_unplugged_camera_reported() {
    let whole = |grey| (grey, taken(None, true, false));
    let pictures = [whole(50), (60, taken(None, true, true)), whole(70)];
    let mut sensor = Trace::of(Code::Nv12, [640, 362], &pictures).open().unwrap();
    assert_eq!(sensor.layout().shown(), (640, 362));
    assert!(sensor.next_picture().unwrap());
    assert!(luma(&mut sensor, 5).iter().all(|value| *value == 50));
    assert_eq!(sensor.trouble(), None);
    let lost = sensor.next_picture().unwrap_err();
    assert!(matches!(lost, Error::PictureLost { .. }), "{lost}");
    assert_eq!(sensor.trouble(), Some(lost.to_string().as_str()));
    assert!(sensor.next_picture().unwrap());
    assert!(luma(&mut sensor, 5).iter().all(|value| *value == 70));
    let error = sensor.next_picture().unwrap_err().to_string();
    assert_eq!(error, "the camera /dev/video7 was unplugged");
    assert_eq!(sensor.losses(), Losses { damaged: 1, ..Losses::default() });
}

/// Short and corrupt pictures come from a loose cable, or from a JPEG encoder short of memory. The
/// device stays open, however long they last.
#[test]
fn short_and_corrupt_pictures_never_end_a_source() {
    for code in [Code::Mjpeg, Code::Yuyv] {
        let short = vec![(9, taken(None, true, code == Code::Yuyv)); 400];
        let mut sensor = Trace::of(code, [640, 480], &short).open().unwrap();
        for _ in 0..400 {
            let lost = sensor.next_picture().unwrap_err();
            let Error::PictureLost { reason } = &lost else { panic!("{lost}") };
            assert!(
                reason.starts_with("the camera /dev/video7 delivered a damaged picture: "),
                "{reason}"
            );
        }
        assert_eq!(sensor.losses().damaged, 400);
    }
}

#[test]
fn a_device_that_reports_30_errors_in_a_row_is_given_up() {
    let error = || Err(Errno::IO.into());
    let whole = || Ok((50, taken(None, true, false)));
    let trace = Trace::of(Code::Yuyv, [640, 480], &[]);
    let some = (0..20).map(|_| error()).chain([whole()]);
    let taken = some.chain((0..ERRORS_MAX).map(|_| error())).collect();
    let mut sensor = Trace { taken, ..trace }.open().unwrap();
    let mut lost = 0;
    let end = loop {
        match sensor.next_picture() {
            Err(Error::PictureLost { .. }) => lost += 1,
            Ok(_) => assert_eq!(lost, 20),
            Err(end) => break end.to_string(),
        }
    };
    assert_eq!(lost, 20 + ERRORS_MAX - 1);
    assert!(end.contains("reports an error: ") && end.ends_with("30 times in a row"), "{end}");
}

/// V4L2 drivers number their captures. A gap in these numbers is a loss before the picture arrived
/// at this program.
#[test]
fn gaps_in_the_driver_s_numbers_are_counted_as_the_camera_s() {
    let of = |sequence, left_out| (9, Taken { sequence, left_out, ..taken(None, true, false) });
    // A gap of two, one of them skipped here; then the driver restarts its count; then the count
    // wraps.
    let pictures = [of(5, 0), of(6, 0), of(9, 1), of(0, 0), of(u32::MAX, 0), of(1, 0)];
    let mut sensor = Trace::of(Code::Yuyv, [640, 480], &pictures).open().unwrap();
    let numbers = pictures.map(|_| {
        assert!(sensor.next_picture().unwrap());
        sensor.sequence()
    });
    assert_eq!(numbers[..3], [None, Some(6), Some(9)]);
    let losses = sensor.losses();
    assert_eq!((losses.missed, losses.superseded), (1 + 1, 1));
    let still = [of(0, 0); 5];
    let mut sensor = Trace::of(Code::Yuyv, [640, 480], &still).open().unwrap();
    assert!(still.iter().all(|_| sensor.next_picture().unwrap() && sensor.sequence().is_none()));
}

#[test]
fn an_impossible_timestamp_is_replaced_and_counted() {
    let ahead = Taken {
        at: Some(Clock::monotonic() + Duration::from_secs(20)),
        ..taken(None, true, false)
    };
    let mut sensor = Trace::of(Code::Yuyv, [640, 480], &[(9, ahead)]).open().unwrap();
    assert!(sensor.next_picture().unwrap());
    assert!(sensor.age() >= Duration::from_millis(33), "{:?}", sensor.age());
    assert_eq!(sensor.losses().misdated, 1);
    let trouble = sensor.trouble().unwrap();
    assert!(trouble.contains("is not possible (19.9") || trouble.contains("(20.0"), "{trouble}");
}

#[test]
fn grey_and_uyvy_are_seen() {
    for code in [Code::Grey, Code::Uyvy] {
        let pictures = [(90, taken(None, true, false))];
        let mut sensor = Trace::of(code, [640, 400], &pictures).open().unwrap();
        assert!(sensor.next_picture().unwrap());
        assert!(luma(&mut sensor, 3).iter().all(|value| *value == 90), "{code}");
    }
}

#[test]
fn the_size_that_the_driver_returns_is_used() {
    let pictures = [(80, taken(None, true, false))];
    let trace = Trace::of(Code::Nv12, [1280, 720], &pictures);
    let mut sensor = Trace { size: Some([800, 600]), padding: 64, ..trace }.open().unwrap();
    assert_eq!(sensor.layout().shown(), (800, 600));
    assert!(sensor.next_picture().unwrap());
    assert!(luma(&mut sensor, 0).iter().all(|value| *value == 80));
    let trace = Trace::of(Code::Nv12, [1280, 720], &[]);
    let error = Trace { size: Some([801, 600]), ..trace }.open().err().unwrap().to_string();
    assert!(error.ends_with("delivers nv12 801x600@30: its sides are not both even"), "{error}");
}

#[test]
fn a_missing_mode_is_reported_with_the_available_ones() {
    let refused = |wanted: &str, code, size| {
        let trace = Box::new(Trace::of(code, size, &[]));
        let wanted = wanted.parse().unwrap();
        let opened = DeviceSensor::of(trace, Path::new("/dev/video7"), &wanted, 30.0);
        opened.err().unwrap().to_string()
    };
    assert_eq!(
        refused("mjpeg 640x480", Code::Yuyv, [640, 480]),
        "/dev/video7 has no mode \"mjpeg 640x480\"; its modes are: yuyv 640x480@30"
    );
    assert_eq!(
        refused("", Code::Other(*b"H264"), [1920, 1080]),
        "/dev/video7 has no usable mode; its modes are: h264 1920x1080@30 (H.264 is not decoded here yet)"
    );
    assert_eq!(
        refused("", Code::Mjpeg, [853, 481]),
        "/dev/video7 has no usable mode; its modes are: mjpeg 853x481@30 (its sides are not both even)"
    );
}

#[test]
fn a_missing_device_is_reported_by_its_path() {
    let path = Path::new("/no/such/camera");
    let error = DeviceSensor::open(path, &Wanted::default(), 30.0).err().unwrap();
    assert!(error.to_string().starts_with("there is no camera /no/such/camera"), "{error:#}");
}

#[test]
#[ignore = "needs a camera at /dev/video0 (v4l2loopback or vivid makes one)"]
fn a_device_of_this_machine_gives_pictures() {
    let path = Path::new("/dev/video0");
    let mut sensor = DeviceSensor::open(path, &Wanted::default(), 30.0).unwrap();
    for _ in 0..5 {
        assert!(sensor.next_picture().unwrap());
        assert!(sensor.age() < Duration::from_secs(1));
    }
}
