//! In the guest: the wireless network between the two namespaces. It reads packets from a TUN
//! device in each namespace. Packets that pass the model of `tautline-sim` are written to the other
//! device.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use tautline_sim::wireless::{Counters, Disturbance, Medium, Power, Side};
use tautline_units::{ByteCount, Instant};

use crate::clock;
use crate::packet::Packet;

/// A wireless network as in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Air {
    pub(crate) power: Power,
    /// True if a constant-rate flow of another sender shares it.
    pub(crate) disturbed: bool,
}

/// Counters of the packets towards the receiver, other senders' packets excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    /// Packets offered to the network.
    pub(crate) pushed: u64,
    /// Packets dropped at the access point's full queue.
    pub(crate) dropped_queue: u64,
    /// Packets lost in the air.
    pub(crate) lost: u64,
    pub(crate) damaged: u64,
    pub(crate) arrived: u64,
}

/// Carries packets between the devices of the sending and the receiving end, until `end` is closed.
pub(crate) fn carry(air: Air, seed: u64, devices: [File; 2], end: &File) -> Result<Told> {
    clock::wake_exactly();
    let begin = clock::now();
    let now = || Instant::from_nanos(clock::now() - begin);
    let mut config = air.power.config();
    config.disturbance = air.disturbed.then(disturbance);
    let mut medium = Medium::new(config, seed);
    let mut buffer = [0; PACKET_BYTES_MAX];
    loop {
        let left = medium.next_event().map(|at| at.since(now()));
        let timeout = left.map(Timespec::try_from).transpose()?;
        let [a, b] = &devices;
        let mut fds = [
            PollFd::new(a, PollFlags::IN),
            PollFd::new(b, PollFlags::IN),
            PollFd::new(end, PollFlags::IN),
        ];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !fds[2].revents().is_empty() {
            return Ok(told(medium.counters(Side::AccessPoint)));
        }
        // Deliver packets that have arrived before reading new ones.
        while let Some(arrival) = medium.pop(now()) {
            let mut packet: Vec<u8> = arrival.payload;
            if let Some(bit) = arrival.damaged_bit {
                packet[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
            let mut to = match arrival.from {
                Side::AccessPoint => b,
                Side::Station => a,
            };
            // The kernel rejects a packet with a damaged header, which is then lost.
            let _ = to.write(&packet);
        }
        for (mut device, from) in [(a, Side::AccessPoint), (b, Side::Station)] {
            while let Some(length) = read(&mut device, &mut buffer)? {
                let packet = buffer[..length].to_vec();
                medium.push(from, ByteCount::of(&packet), packet, now());
            }
        }
    }
}

/// Reads one packet and returns its length, or `None` if none is waiting.
fn read(device: &mut &File, buffer: &mut [u8]) -> Result<Option<usize>> {
    match device.read(buffer) {
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error).context("the device gives no packets"),
    }
}

fn told(counters: Counters) -> Told {
    let Counters { pushed, dropped_queue, lost, damaged, arrived } = counters;
    Told { pushed, dropped_queue, lost, damaged, arrived }
}

/// Returns the paper's disturbing flow. The paper does not state its rate; this is the highest of
/// Table 2.
fn disturbance() -> Disturbance {
    Disturbance {
        bytes: ByteCount::new((Packet::BYTES + HEADERS_BYTES) as u64),
        interval: Duration::from_micros(664),
    }
}

const PACKET_BYTES_MAX: usize = 2048;
/// Bytes of IP and UDP headers.
const HEADERS_BYTES: usize = 28;
