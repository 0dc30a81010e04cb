//! Measurement of the emulator's lateness on this machine.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};

use super::Emulator;
use super::config::Config;
use super::status::Status;
use crate::clock::Clock;

/// Measures the lateness of the emulator on this machine, under the load of a drive.
///
/// It relays the models of `config` between its own sockets on the loopback interface, which takes
/// `length` plus half a second. On each link [`UP_PER_SECOND`] datagrams of [`UP_BYTES`] bytes go
/// up every second, and every eighth that arrives is answered with [`DOWN_BYTES`] bytes. Sender,
/// emulator and far end are threads of this process. The measured value is the difference between a
/// datagram's send time by its model and the time at which the kernel accepted it.
///
/// # Errors
/// Those of [`Emulator::bind`]; when the loopback interface fails or no datagram arrived.
pub fn check(config: &Config, length: Duration) -> anyhow::Result<Status> {
    let far_end = loopback().context("cannot listen on the loopback interface")?;
    let target = far_end.local_addr().context("a bound socket has an address")?;
    let emulator = Emulator::bind(on_loopback(config, target))?;
    let listen = emulator.listen_addresses();
    let stop = Arc::new(AtomicBool::new(false));
    let relay = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || emulator.run(&stop))
    };
    let answers = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || answer(&far_end, &stop))
    };
    let sent = send(&listen, length);
    std::thread::sleep(LINGER);
    stop.store(true, Ordering::Relaxed);
    let status = relay.join().map_err(|_| anyhow!("the relay's thread failed"))??;
    answers.join().map_err(|_| anyhow!("the far end's thread failed"))?;
    sent.context("cannot send on the loopback interface")?;
    ensure!(status.lateness.count > 0, "nothing passed the models within {length:?}");
    Ok(status)
}

/// Datagrams up per second and link: 3.4 Mbit/s, so that four links carry a good picture.
pub const UP_PER_SECOND: u32 = 350;

/// Size of a datagram up in bytes.
pub const UP_BYTES: usize = 1_200;

/// Size of an answer in bytes, as of a report or a command.
pub const DOWN_BYTES: usize = 100;

const UP_TO_ONE_DOWN: u64 = 8;

/// Time after the last datagram in which the others may still arrive: longer than the delay in most
/// models.
const LINGER: Duration = Duration::from_millis(500);

/// Interval at which the far end checks the stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Returns `config` with loopback addresses for every link and without a control channel.
fn on_loopback(config: &Config, target: SocketAddr) -> Config {
    let mut config = Config { control: None, ..config.clone() };
    for link in &mut config.links {
        link.listen = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        link.target = Some(target);
    }
    config
}

fn loopback() -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_read_timeout(Some(LOOK_EVERY))?;
    Ok(socket)
}

/// Sends datagrams to the addresses of `listen` in turn for `length`, [`UP_PER_SECOND`] to each at
/// even intervals; sends at once those that a delay has made late.
fn send(listen: &[SocketAddr], length: Duration) -> std::io::Result<()> {
    let (socket, clock) = (loopback()?, Clock::start());
    let start = clock.now();
    let step = Duration::from_secs(1) / UP_PER_SECOND / u32::try_from(listen.len()).unwrap_or(1);
    let datagram = [0; UP_BYTES];
    let mut due = start;
    for address in listen.iter().cycle() {
        if due.since(start) >= length {
            break;
        }
        clock.sleep_until(due);
        match socket.send_to(&datagram, address) {
            Ok(_) => {}
            // A full buffer is the machine's own limit: the next datagram may fit.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        due += step;
    }
    Ok(())
}

fn answer(socket: &UdpSocket, stop: &AtomicBool) {
    let mut buffer = [0; UP_BYTES];
    let mut received = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let Ok((_, from)) = socket.recv_from(&mut buffer) else { continue };
        received += 1;
        if received.is_multiple_of(UP_TO_ONE_DOWN) {
            // A lost answer does not affect the measurement.
            let _ = socket.send_to(&buffer[..DOWN_BYTES], from);
        }
    }
}
