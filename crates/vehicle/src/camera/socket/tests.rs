use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;

use super::*;

/// Returns the header of a grey picture of `width` by 48 pixels with this number, captured `before`
/// now.
fn head(number: u32, width: u32, before: Duration) -> Vec<u8> {
    let mut bytes = vec![0; Header::BYTES];
    bytes[..4].copy_from_slice(b"TPIC");
    bytes[5] = 1;
    bytes[8..12].copy_from_slice(b"GREY");
    for (at, value) in [(12, width), (16, 48), (20, width), (24, width * 48), (28, number)] {
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
    let captured = (Clock::monotonic() - before).as_nanos() as u64;
    bytes[32..40].copy_from_slice(&captured.to_be_bytes());
    bytes[40..44].copy_from_slice(&25.0_f32.to_be_bytes());
    bytes[47] = 1;
    bytes
}

fn picture(number: u32, shade: u8) -> Vec<u8> {
    [head(number, 64, Duration::ZERO), vec![shade; 64 * 48]].concat()
}

fn old_picture(number: u32, before: Duration) -> Vec<u8> {
    [head(number, 64, before), vec![33; 64 * 48]].concat()
}

/// Connects once the socket is there.
fn connect(path: &Path) -> UnixStream {
    for _ in 0..5_000 {
        if let Ok(stream) = UnixStream::connect(path) {
            return stream;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("nobody listens at {}", path.display());
}

/// Opens a sensor for a program that writes `first`; the program's end is returned too.
fn opened(path: &Path, first: Vec<u8>) -> (anyhow::Result<SocketSensor>, UnixStream) {
    let at = path.to_owned();
    let program = std::thread::spawn(move || {
        let mut stream = connect(&at);
        stream.write_all(&first).unwrap();
        stream
    });
    (SocketSensor::open(path, 30.0), program.join().unwrap())
}

fn shade(sensor: &mut SocketSensor) -> u8 {
    let rows = sensor.layout().strip_rows(0);
    let mut strip = Picture::new(64, rows.len()).unwrap();
    sensor.read(0, &mut strip);
    strip.luma()[70]
}

/// Returns the reason for which the sensor ends; pictures are taken before.
fn end(sensor: &mut SocketSensor) -> String {
    loop {
        match sensor.next_picture() {
            Ok(_) | Err(Error::PictureLost { .. }) => {}
            Err(error) => return error.to_string(),
        }
    }
}

#[test]
fn pictures_of_a_program_are_read_with_their_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("camera.sock");
    let (sensor, mut program) = opened(&path, picture(1, 50));
    let mut sensor = sensor.unwrap();
    assert_eq!((sensor.layout().shown(), sensor.pictures_per_second()), ((64, 48), 25.0));
    assert!(sensor.next_picture().unwrap());
    assert_eq!(shade(&mut sensor), 50);
    program.write_all(&picture(2, 100)).unwrap();
    assert!(sensor.next_picture().unwrap());
    assert_eq!((shade(&mut sensor), sensor.sequence()), (100, Some(2)));
    assert!(sensor.age() < Duration::from_secs(2) && sensor.trouble().is_none());
    program.write_all(&old_picture(5, Duration::from_millis(90))).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    assert!(matches!(sensor.next_picture(), Err(Error::PictureLost { .. })), "before the last one");
    program.write_all(&picture(6, 120)).unwrap();
    assert!(sensor.next_picture().unwrap());
    assert_eq!((sensor.losses().missed, sensor.losses().misdated), (2, 1));
}

#[test]
fn an_old_or_future_picture_is_refused_and_never_looks_fresh() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("camera.sock");
    let (sensor, mut program) = opened(&path, old_picture(1, Duration::from_secs(3)));
    let mut sensor = sensor.unwrap();
    assert!(matches!(sensor.next_picture(), Err(Error::PictureLost { .. })));
    assert!(sensor.trouble().unwrap().contains("in the past"), "{:?}", sensor.trouble());
    let mut ahead = picture(2, 40);
    ahead[32..40].copy_from_slice(
        &((Clock::monotonic() + Duration::from_secs(1)).as_nanos() as u64).to_be_bytes(),
    );
    program.write_all(&ahead).unwrap();
    assert!(matches!(sensor.next_picture(), Err(Error::PictureLost { .. })));
    assert!(sensor.trouble().unwrap().contains("in the future"));
    // A time of the end makes the picture older by an interval of 40 ms.
    let mut of_end = picture(3, 70);
    of_end[7] = 2;
    program.write_all(&of_end).unwrap();
    let refused = sensor.next_picture();
    assert!(refused.is_err(), "the clock of the one before was ahead");
    let mut of_end = picture(4, 70);
    of_end[7] = 2;
    program.write_all(&of_end).unwrap();
    assert!(sensor.next_picture().unwrap());
    assert!(sensor.age() >= Duration::from_millis(40));
    assert_eq!((shade(&mut sensor), sensor.losses().misdated), (70, 3));
}

#[test]
fn the_newest_picture_is_taken_and_others_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("camera.sock");
    let (sensor, mut program) = opened(&path, picture(1, 10));
    let mut sensor = sensor.unwrap();
    (2..=9).for_each(|number| program.write_all(&picture(number, number as u8 * 10)).unwrap());
    let mut taken = 0;
    while sensor.losses().superseded + taken < 9 {
        assert!(sensor.next_picture().unwrap());
        taken += 1;
    }
    assert_eq!((shade(&mut sensor), sensor.losses().missed), (90, 0));
}

#[test]
fn another_size_no_picture_and_no_program_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("camera.sock");
    let (sensor, mut program) = opened(&path, picture(1, 10));
    let mut sensor = sensor.unwrap();
    program.write_all(&[head(2, 80, Duration::ZERO), vec![0; 80 * 48]].concat()).unwrap();
    let reason = end(&mut sensor);
    assert!(reason.contains("80x48"), "{reason}");
    drop(sensor);
    assert!(!path.exists());
    let error = opened(&path, vec![7; 64]).0.unwrap_err().to_string();
    assert!(error.contains("no picture begins here"), "{error}");
    let error = SocketSensor::open(&path, 30.0).unwrap_err().to_string();
    assert!(error.contains("no program delivers pictures"), "{error}");
}

/// A picture taken before the garbage that follows it hides the reason for no longer than itself.
#[test]
fn an_end_a_stall_and_garbage_end_the_sensor_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("camera.sock");
    let (sensor, program) = opened(&path, picture(1, 10));
    drop(program);
    let reason = end(&mut sensor.unwrap());
    assert!(reason.contains("no program delivers"), "{reason}");
    let (sensor, _stalls) = opened(&path, picture(1, 10));
    let reason = end(&mut sensor.unwrap());
    assert!(reason.contains("delivers no picture for 2 s"), "{reason}");
    let (sensor, _garbage) = opened(&path, [picture(1, 10), vec![7; 640]].concat());
    let reason = end(&mut sensor.unwrap());
    assert!(reason.contains("no picture begins here"), "{reason}");
}

/// One byte now and then never completes a picture, and must not keep the sensor's thread.
#[test]
fn a_program_that_trickles_is_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("camera.sock");
    let (sensor, mut program) = opened(&path, picture(1, 10));
    let (closed, is_closed) = mpsc::channel();
    std::thread::spawn(move || {
        let bytes = picture(2, 20);
        for byte in bytes.chunks(1) {
            if program.write_all(byte).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        closed.send(()).unwrap();
    });
    let mut sensor = sensor.unwrap();
    let begun = Clock::monotonic();
    let reason = end(&mut sensor);
    drop(sensor);
    assert!(Clock::age_of_monotonic(begun) < Duration::from_secs(6), "{reason}");
    assert!(is_closed.recv_timeout(Duration::from_secs(5)).is_ok());
}

#[test]
fn one_program_at_a_time_is_read_and_others_are_turned_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("camera.sock");
    let (sensor, mut program) = opened(&path, picture(1, 10));
    let mut sensor = sensor.unwrap();
    let mut other = connect(&path);
    let mut rest = [0; 8];
    other.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    match other.read(&mut rest) {
        Ok(count) => assert_eq!(count, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    assert!(sensor.next_picture().unwrap());
    program.write_all(&picture(2, 90)).unwrap();
    assert!(sensor.next_picture().unwrap());
    assert_eq!(shade(&mut sensor), 90);
    // The next one is let in once the first has gone.
    drop(program);
    let mut next = connect(&path);
    for number in 0..100 {
        if next.write_all(&picture(number, 200)).is_err() {
            next = connect(&path);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(sensor.next_picture().unwrap());
    assert_eq!(shade(&mut sensor), 200);
}

#[test]
fn only_a_socket_left_behind_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("camera.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let inlet = Inlet::open(&path).unwrap();
    let refused = format!("{:#}", Inlet::open(&path).unwrap_err());
    assert!(refused.starts_with("cannot listen at unix:"), "{refused}");
    drop(inlet);
    assert!(Inlet::open(&path).is_ok());
    std::fs::write(&path, "a letter").unwrap();
    assert!(Inlet::open(&path).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
}
