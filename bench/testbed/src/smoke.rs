//! Smoke test: every transport that this machine supports passes packets over its loopback
//! interface.

use std::fs;
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;

use crate::cell::{Cell, Load};
use crate::end::{self, Listener};
use crate::measures::Measures;
use crate::place::{End, Place};
use crate::schedule::Schedule;
use crate::transport::{Kind, Transport};

/// Sends for a second by every supported transport, and prints which are not supported.
///
/// # Errors
/// If one does not deliver.
pub(crate) fn run() -> Result<()> {
    let transports = Transport::value_variants();
    let runs: Vec<_> = transports
        .iter()
        .copied()
        .enumerate()
        .map(|(number, transport)| match missing(transport) {
            Some(why) => Err(why),
            None => Ok(thread::spawn(move || pass(transport, Place::Loopback(number as u8 + 1)))),
        })
        .collect();
    for (transport, run) in transports.iter().zip(runs) {
        match run {
            Err(why) => println!("{transport:16} left out: {why}"),
            Ok(run) => {
                let passed = run.join().map_err(|_| anyhow!("{transport} panicked"))?;
                println!("{transport:16} {}", passed.with_context(|| transport.to_string())?);
            }
        }
    }
    println!("left out: losses, delays and all that needs them; `make transports` has them");
    Ok(())
}

/// Returns the reason why this machine does not support a transport, or `None` if it does.
fn missing(transport: Transport) -> Option<String> {
    if let Some(name) = transport.congestion_control() {
        let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
        let has = fs::read_to_string(file).unwrap_or_default();
        if !has.split_whitespace().any(|one| one == name) {
            return Some(format!("the kernel has no TCP {name}"));
        }
    }
    if matches!(transport.kind(), Kind::Session | Kind::Quic) {
        return None;
    }
    transport.open(End::Sender).err().map(|error| format!("the kernel has none of it ({error})"))
}

/// Sends for a second by a transport and returns its result in words.
///
/// # Errors
/// If it does not deliver.
fn pass(transport: Transport, place: Place) -> Result<String> {
    let cell = Cell {
        transport,
        load: Load::Constant(RATE_KBYTE_PER_S),
        loss_percent: 0.0,
        rtt_ms: 0,
        seed: 1,
        seconds: 1,
        air: None,
    };
    let listener = Listener::open(&cell, place)?;
    let receiver = thread::spawn(move || listener.run());
    let sent = end::send(&cell, &Schedule::constant(RATE_KBYTE_PER_S, 1), place)?;
    let received = receiver.join().map_err(|_| anyhow!("the receiver panicked"))??;
    let measures = Measures::of(&received.log).context("not two packets came")?;
    let (counter, own) = sent.counters.own(transport);
    // On a busy machine many packets are late, and Tautline drops late ones.
    ensure!(measures.received * 2 >= sent.packets, "{measures:?} of {}", sent.packets);
    // DCCP's interface and MPTCP's second link exist only in the guest.
    let counted = own * 10 >= measures.received * 9;
    let in_guest = matches!(transport, Transport::Dccp | Transport::DccpPartial | Transport::Mptcp);
    ensure!(counted || in_guest, "{counter}: {own}");
    Ok(format!("{} of {} packets came", measures.received, sent.packets))
}

/// A low rate, so that a machine that runs other tests can sustain it.
const RATE_KBYTE_PER_S: u32 = 100;

#[cfg(test)]
mod tests {
    #[test]
    fn every_transport_that_this_machine_has_passes_packets() {
        super::run().unwrap();
    }
}
