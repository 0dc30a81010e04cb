//! Frames over virtual CAN interfaces, in a network namespace of the test.
//!
//! The kernel needs CAN, `vcan` and user namespaces. `cargo test` reports this test as ignored;
//! `make unit` runs it if `unshare -rn ip link add type vcan` succeeds, and otherwise logs that it
//! does not.
#![allow(clippy::unwrap_used, reason = "a network that cannot be set up has failed")]

use std::process::Command;
use std::time::Duration;

use tautline_net::can_bus::{Accepted, Address, Bus, Received, Sent, Waker, wait};

#[test]
#[ignore = "needs vcan in a user namespace; make unit runs it where there is one"]
fn frames_cross_a_bus_that_goes_and_comes() {
    let myself = std::env::current_exe().unwrap();
    let mut inside = Command::new("unshare");
    inside.arg("-rn").arg(myself).args(["--ignored", "--exact", INSIDE, "--nocapture"]);
    let output = inside.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}\n{errors}");
}

const INSIDE: &str = "inside_bus_goes_and_comes";

#[test]
#[ignore = "runs in a network of its own"]
fn inside_bus_goes_and_comes() {
    let address = Address::Interface("vcan7".into());
    let accepted = [
        Accepted { id: 0x2E4, is_extended: false },
        Accepted { id: 0x18FF_50E5, is_extended: true },
    ];
    assert!(Bus::open(&address, &accepted).is_err(), "there is none yet");
    ip("link add dev vcan7 mtu 72 type vcan");
    let error = Bus::open(&address, &accepted).unwrap_err();
    assert!(error.to_string().contains("Network is down"), "{error}");
    ip("link set vcan7 up");
    let mut car = Bus::open(&address, &[]).unwrap();
    let mut adapter = Bus::open(&address, &accepted).unwrap();
    // Another identifier, the same one of 29 bits, and a request are left out.
    for word in [0x123_u32, 0x2E4 | 1 << 31, 0x2E4 | 1 << 30] {
        assert_eq!(car.send(&classic(word)).unwrap(), Sent::Accepted);
    }
    let mut fd = [5; Bus::BYTES_MAX];
    fd[..8].copy_from_slice(&[0xE5, 0x50, 0xFF, 0x98, 64, 5, 0, 0]);
    for frame in [&classic(0x2E4)[..], &fd] {
        assert_eq!(car.send(frame).unwrap(), Sent::Accepted);
        let mut buffer = [0; Bus::BYTES_MAX];
        let Received::Frame { length, age } = received(&mut adapter, &mut buffer).unwrap() else {
            panic!("no frame")
        };
        assert_eq!(&buffer[..length], frame);
        assert!(age < Duration::from_secs(5), "{age:?}");
    }
    std::thread::sleep(Duration::from_millis(50));
    car.send(&classic(0x2E4)).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let waited = adapter.receive(&mut [0; Bus::BYTES_MAX]).unwrap();
    let Some(Received::Frame { age, .. }) = waited else { panic!("{waited:?}") };
    assert!(age >= Duration::from_millis(50), "{age:?} by the kernel's stamp");
    ip("link set vcan7 down");
    let error = received(&mut adapter, &mut [0; Bus::BYTES_MAX]).unwrap_err();
    assert!(error.to_string().contains("Network is down"), "{error}");
    assert!(adapter.send(&classic(0x2E4)).is_err());
    ip("link set vcan7 up");
    let mut adapter = Bus::open(&address, &accepted).unwrap();
    ip("link delete vcan7");
    assert!(received(&mut adapter, &mut [0; Bus::BYTES_MAX]).is_err(), "it is gone");
}

/// Returns a frame of three bytes.
fn classic(word: u32) -> [u8; 16] {
    let mut frame = [0; 16];
    frame[..4].copy_from_slice(&word.to_le_bytes());
    let data = if word & 1 << 30 == 0 { 3 } else { 0 };
    frame[4] = data as u8;
    frame[8..8 + data].fill(7);
    frame
}

/// Returns what the bus receives within ten seconds.
fn received(bus: &mut Bus, buffer: &mut [u8; Bus::BYTES_MAX]) -> std::io::Result<Received> {
    let waker = Waker::new().unwrap();
    for _ in 0..100 {
        wait(Some(bus), &waker, Duration::from_millis(100));
        if let Some(received) = bus.receive(buffer)? {
            return Ok(received);
        }
    }
    panic!("nothing was received");
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}
