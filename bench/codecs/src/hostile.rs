//! Every codec under mutated messages, in a separate process.
//!
//! The parent restarts itself for a codec. The child writes one letter per message. The parent thus
//! knows at which message it died, and starts the next child after it.

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::codec::Codec;
use crate::codec::list::{self, Entry};
use crate::guarded::Guarded;
use crate::memory;
use crate::normal::Cloud;

/// Numbers of messages by outcome. Each message counts once; one that no count has was not tried.
#[derive(Clone, Default, Debug)]
pub(crate) struct Counts {
    /// Messages that at least one read method accepted.
    pub(crate) read: u64,
    /// Messages that every read method refused.
    pub(crate) refused: u64,
    pub(crate) panicked: u64,
    pub(crate) aborted: u64,
    /// Messages during which the child died of a memory fault.
    pub(crate) segfaults: u64,
    /// Messages of some kB for which the codec requested over 64 MiB at once.
    pub(crate) greedy: u64,
    /// Messages of some kB that took over 50 ms of CPU time.
    pub(crate) slow: u64,
    /// Messages whose reading did not end within five seconds; the child was killed.
    pub(crate) hung: u64,
}

impl Counts {
    /// Returns whether every message was read or refused: no crash, no excessive request, no slow
    /// message.
    pub(crate) fn clean(&self) -> bool {
        let Self { panicked, aborted, segfaults, greedy, slow, hung, .. } = self;
        panicked + aborted + segfaults + greedy + slow + hung == 0
    }
}

/// Passes `count` mutated messages to the codec with this name, in child processes. It stops
/// earlier after [`SLOW_MAX`] slow messages in one child, [`HUNG_MAX`] that hung, or [`DEATHS_MAX`]
/// deaths.
pub(crate) fn run(name: &str, seed: u64, count: u64) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut next = 0;
    let mut deaths = 0;
    while next < count {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["hostile-child", name, &seed.to_string(), &next.to_string(), &count.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start a process for the codec")?;
        let (letters, end) = listen(&mut child)?;
        for letter in &letters {
            match letter {
                b'.' => counts.read += 1,
                b'e' => counts.refused += 1,
                b'p' => counts.panicked += 1,
                b'a' => counts.aborted += 1,
                b'g' => counts.greedy += 1,
                b's' => counts.slow += 1,
                _ => bail!("{name}: the process says {letter}"),
            }
        }
        next += letters.len() as u64;
        if next >= count {
            break;
        }
        match end {
            End::TooSlow => break,
            End::Silent => counts.hung += 1,
            End::Itself => death(&mut child, &mut counts)?,
        }
        if counts.hung == HUNG_MAX {
            break;
        }
        next += 1;
        deaths += 1;
        if deaths == DEATHS_MAX {
            break;
        }
    }
    Ok(counts)
}

/// A reason why a child's output ended.
enum End {
    Itself,
    /// No output for too long; it was killed.
    Silent,
    /// Slow too often; it was killed.
    TooSlow,
}

/// Reads the letters of outcomes until the child ends, or is killed because it is silent or slow.
fn listen(child: &mut Child) -> Result<(Vec<u8>, End)> {
    let mut pipe = child.stdout.take().context("no pipe")?;
    let (sender, receiver) = std::sync::mpsc::sync_channel(64);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length) = pipe.read(&mut buffer) {
            if length == 0 || sender.send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut letters = Vec::new();
    loop {
        let end = match receiver.recv_timeout(MESSAGE_TIMEOUT) {
            Ok(some) => {
                letters.extend(some);
                if letters.iter().filter(|letter| **letter == b's').count() < SLOW_MAX {
                    continue;
                }
                End::TooSlow
            }
            Err(RecvTimeoutError::Disconnected) => return Ok((letters, End::Itself)),
            Err(RecvTimeoutError::Timeout) => End::Silent,
        };
        child.kill()?;
        child.wait()?;
        return Ok((letters, end));
    }
}

fn death(child: &mut Child, counts: &mut Counts) -> Result<()> {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait()?;
    match status.signal() {
        Some(libc::SIGSEGV | libc::SIGBUS) => counts.segfaults += 1,
        Some(libc::SIGABRT) => counts.aborted += 1,
        _ => bail!("the process ended with {status}"),
    }
    Ok(())
}

/// Runs as the child: reads the seed's messages `from..to`, and writes the outcome of each.
pub(crate) fn child(name: &str, seed: u64, from: u64, to: u64) -> Result<()> {
    std::panic::set_hook(Box::new(|_| {}));
    memory::limit(MEMORY_MAX);
    let entry =
        list::all().into_iter().find(|entry| entry.name == name).context("no such codec")?;
    let (mut codec, originals) = fresh(&entry);
    let mut out = std::io::stdout().lock();
    for index in from..to {
        let mut random = Random::of(seed, index);
        let original = &originals[random.below(originals.len())];
        let message = Guarded::of(&mutated(original, &mut random));
        memory::forget_largest();
        let started = memory::cpu_time();
        let caught =
            catch_unwind(AssertUnwindSafe(|| read_all_ways(codec.as_mut(), message.bytes())));
        let letter = match caught {
            Ok(Verdict::Itself(letter)) => letter,
            _ if memory::cpu_time() - started > Duration::from_millis(50) => b's',
            _ if memory::largest() > GREED => b'g',
            Err(_) => b'p',
            Ok(Verdict::Refused) => b'e',
            Ok(Verdict::Read) => b'.',
        };
        if letter == b'p' || letter == b'a' {
            codec = fresh(&entry).0;
        }
        out.write_all(&[letter])?;
        out.flush()?;
    }
    Ok(())
}

/// Returns a codec that has encoded messages of 3, 40 and 200 points, and these messages.
fn fresh(entry: &Entry) -> (Box<dyn Codec>, [Vec<u8>; 3]) {
    let mut codec = (entry.make)();
    let originals = [3, 40, 200].map(|points| codec.encode(&Cloud::of(points)).to_vec());
    (codec, originals)
}

/// Outcome of reading some bytes.
enum Verdict {
    Read,
    Refused,
    /// Letter of a codec that measures its memory and time itself.
    Itself(u8),
}

/// Reads the bytes by every read method; returns `Read` if any accepts them. A codec with its own
/// runtime does so itself and returns a letter.
fn read_all_ways(codec: &mut dyn Codec, bytes: &[u8]) -> Verdict {
    if let Some(letter) = codec.judge_itself(bytes) {
        return Verdict::Itself(letter);
    }
    let guid = codec.guid(bytes).is_ok();
    let y = codec.middle_y(bytes).is_ok();
    let sum = codec.sum(bytes).is_ok();
    let any = codec.decode(bytes).is_ok() || guid || y || sum;
    if any { Verdict::Read } else { Verdict::Refused }
}

/// Applies one to four mutations: bits, bytes, extreme numbers, truncation or extension, moved
/// parts.
fn mutated(original: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            break;
        }
        // Lengths and counts are mostly at the start or at the end.
        let reach = if random.below(2) == 0 { bytes.len() } else { bytes.len().min(96) };
        let at = match random.below(4) {
            0 => bytes.len() - 1 - random.below(reach),
            _ => random.below(reach),
        };
        match random.below(8) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.next() as u8,
            3 | 4 => {
                let number = EDGES[random.below(EDGES.len())].to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)];
                for (byte, edge) in bytes[at..].iter_mut().zip(&number[..width]) {
                    *byte = *edge;
                }
            }
            5 => bytes.truncate(at),
            6 => bytes.extend((0..random.below(64)).map(|_| 0xFF)),
            _ => {
                let from = random.below(bytes.len());
                let length = random.below(32).min(bytes.len() - from).min(bytes.len() - at);
                bytes.copy_within(from..from + length, at);
            }
        }
    }
    bytes
}

/// A SplitMix64 generator: good enough for mutations, and the same everywhere.
struct Random(u64);

impl Random {
    fn of(seed: u64, index: u64) -> Self {
        Self(seed ^ index.wrapping_mul(0xD1B5_4A32_D192_ED03))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

const EDGES: [u64; 10] = [
    0,
    1,
    0x7F,
    0xFF,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    0x8000_0000,
    0x7FFF_FFFF_FFFF_FFFF,
    u64::MAX,
    0x00FF_FFFF,
];
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);
const DEATHS_MAX: u64 = 100;
const HUNG_MAX: u64 = 3;
const SLOW_MAX: usize = 12;
const GREED: usize = 64 << 20;
const MEMORY_MAX: u64 = 4 << 30;
