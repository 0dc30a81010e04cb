//! CPU time of relays per datagram: `tautline relay` and coturn, one after the other in one run.
//!
//! Both ends are in this process. The relay is a separate process, whose user and system time the
//! kernel reports. The added delay is the delay of each datagram minus the delay of the same
//! datagram without a relay.

mod relay;
mod tautline;
mod turn;

use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::relay::{Relay, socket};

/// Measure the CPU time of relays for 8 Gbit of datagrams.
#[derive(Parser)]
struct Arguments {
    /// Tautline's binary, a release build
    #[arg(long, default_value = "target/release/tautline")]
    tautline: PathBuf,
    /// Gigabits to carry
    #[arg(long, default_value_t = 8.0)]
    gigabits: f64,
    /// UDP payload of a datagram in bytes
    #[arg(long, default_value_t = 1200)]
    bytes: usize,
    /// Datagrams per second; at the default, all are sent before a relay's timeout for silent ends,
    /// 30 s
    #[arg(long, default_value_t = 30_000)]
    rate: u32,
    /// Datagrams sent together
    #[arg(long, default_value_t = 8)]
    burst: u32,
    /// Fail unless Tautline's relay takes at most 8 s of CPU time, and every datagram arrives
    #[arg(long)]
    strict: bool,
}

/// Results of one relay.
struct Figures {
    /// CPU seconds that the relay's process used; 0 for the direct connection.
    seconds_of_processor: f64,
    received: u64,
    delays: Vec<Duration>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!((BYTES_MIN..=1_400).contains(&arguments.bytes), "--bytes takes {BYTES_MIN} to 1400");
    ensure!(arguments.rate > 0 && arguments.burst > 0, "--rate and --burst take 1 and more");
    let count = (arguments.gigabits * 1e9 / 8.0 / arguments.bytes as f64).ceil() as u64;
    println!("{count} datagrams of {} bytes, {} a second", arguments.bytes, arguments.rate);
    println!("{:<16}{:>10}{:>12}{:>12}{:>12}", "relay", "CPU s", "lost", "p50 us", "p99 us");
    let tautline = || tautline::start(&arguments.tautline);
    let starts: [&dyn Fn() -> Result<Relay>; 3] = [&direct, &tautline, &turn::start];
    let mut direct = None;
    // Start each one just before its turn: a relay drops silent ends.
    for start in starts {
        let relay = match start() {
            Ok(relay) => relay,
            Err(error) => {
                println!("left out: {error:#}");
                continue;
            }
        };
        let name = relay.name;
        let figures = carry(relay, count, &arguments)?;
        let lost = count - figures.received;
        let [p50, p99] = [0.5, 0.99].map(|share| quantile(&figures.delays, share));
        let (p50_direct, p99_direct) = *direct.get_or_insert((p50, p99));
        let added = |delay: f64, direct: f64| delay - if name == DIRECT { 0.0 } else { direct };
        println!(
            "{name:<16}{:>10.2}{lost:>12}{:>12.0}{:>12.0}",
            figures.seconds_of_processor,
            added(p50, p50_direct),
            added(p99, p99_direct)
        );
        let holds = figures.seconds_of_processor <= SECONDS_MAX && lost == 0;
        ensure!(!arguments.strict || name != tautline::NAME || holds, "the bar does not hold");
    }
    println!("delays: of {DIRECT} as they are, of the others what they add to it");
    Ok(())
}

/// Sends `count` datagrams through the relay, ends its process, and returns the figures.
fn carry(mut relay: Relay, count: u64, arguments: &Arguments) -> Result<Figures> {
    let process = relay.process.as_ref().map(Child::id);
    let before = process.map(processor_seconds).transpose()?;
    relay.to.set_read_timeout(Some(Duration::from_secs(1)))?;
    let (begun, to) = (Instant::now(), relay.to.try_clone()?);
    let all_sent = Arc::new(AtomicBool::new(false));
    let ended = all_sent.clone();
    let receiver = std::thread::spawn(move || {
        let (mut delays, mut buffer) = (Vec::with_capacity(count as usize), [0; 2_048]);
        loop {
            let length = match to.recv(&mut buffer) {
                Ok(length) => length,
                // A second without a datagram is the end only after all were sent: this machine may
                // have stalled.
                Err(_) if !ended.load(Ordering::Relaxed) => continue,
                Err(_) => break,
            };
            // Anything else is the relay's own message.
            let stamp = buffer[..length].get(STAMP_AT..).filter(|_| length >= BYTES_MIN);
            let sent =
                stamp.and_then(|stamp| stamp.first_chunk()).map(|nanos| u64::from_be_bytes(*nanos));
            let Some(sent) = sent else { continue };
            delays.push(begun.elapsed().saturating_sub(Duration::from_nanos(sent)));
            if delays.len() as u64 == count {
                break;
            }
        }
        delays
    });
    let mut datagram = relay.head.clone();
    let start = datagram.len();
    if let [.., high, low] = &mut datagram[..] {
        // The header ends in the length of its payload.
        [*high, *low] = (arguments.bytes as u16).to_be_bytes();
    }
    datagram.resize(start + arguments.bytes, 0);
    // First byte of a session's sealed datagram.
    datagram[start] = 0x30;
    let pause = Duration::from_secs(1) * arguments.burst / arguments.rate;
    let mut due = begun;
    for number in 0..count {
        let stamp = (begun.elapsed().as_nanos() as u64).to_be_bytes();
        datagram[start + STAMP_AT..start + STAMP_AT + 8].copy_from_slice(&stamp);
        relay.from.send(&datagram).context("the relay is gone")?;
        if (number + 1) % u64::from(arguments.burst) == 0 {
            due += pause;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
    all_sent.store(true, Ordering::Relaxed);
    let delays = receiver.join().map_err(|_| anyhow::anyhow!("the receiver failed"))?;
    let after = process.map(processor_seconds).transpose()?;
    if let Some(process) = &mut relay.process {
        process.kill()?;
        process.wait()?;
    }
    let seconds_of_processor = after.unwrap_or(0.0) - before.unwrap_or(0.0);
    Ok(Figures { seconds_of_processor, received: delays.len() as u64, delays })
}

/// Returns the direct connection, without a relay.
fn direct() -> Result<Relay> {
    let (from, to) = (socket()?, socket()?);
    from.connect(to.local_addr()?)?;
    Ok(Relay { name: DIRECT, process: None, from, to, head: Vec::new() })
}

/// Returns the CPU seconds that a process has used, user and system.
fn processor_seconds(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).context("it has ended")?;
    // The name may contain blanks and parentheses; the fields after it do not.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = |index| fields.split_whitespace().nth(index)?.parse::<f64>().ok();
    let times = ticks(11).zip(ticks(12));
    let (user, system) = times.with_context(|| format!("/proc/{process}/stat has no times"))?;
    Ok((user + system) / TICKS_PER_SECOND)
}

fn quantile(delays: &[Duration], share: f64) -> f64 {
    let mut sorted = delays.to_vec();
    sorted.sort_unstable();
    let index = (sorted.len() as f64 * share) as usize;
    sorted
        .get(index.min(sorted.len().saturating_sub(1)))
        .map_or(f64::NAN, |delay| delay.as_secs_f64() * 1e6)
}

const DIRECT: &str = "none, direct";
/// Maximum CPU seconds of a relay for 8 Gbit of 1200-byte datagrams.
const SECONDS_MAX: f64 = 8.0;
/// Minimum bytes of a datagram: more than any message of a relay itself, so that the receiver can
/// tell them apart.
const BYTES_MIN: usize = 256;
/// Offset of the sending time in a datagram's payload, after a sealed datagram's header.
const STAMP_AT: usize = 16;
/// Unit of CPU time in `/proc`, in ticks per second: USER_HZ, the same on every current Linux
/// machine.
const TICKS_PER_SECOND: f64 = 100.0;
