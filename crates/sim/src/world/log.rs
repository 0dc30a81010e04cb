use std::fmt::{self, Write};
use std::net::SocketAddr;

use tautline_units::Instant;

use super::direction::Direction;
use crate::link::Drop;

/// Log of a world's events, line by line, with a digest over all of it.
///
/// The digest covers every line and every datagram's bytes. By default the log keeps the first
/// [`Log::LINES_KEPT_MAX`] lines. The digest always covers all, at a tenth of the cost.
#[derive(Clone, PartialEq, Eq)]
pub struct Log {
    digest: u64,
    lines: Vec<String>,
    lines_max: usize,
    lines_total: u64,
    scratch: String,
}

/// Event of a datagram's passage for the log: taken by a link or dropped, arrived, or without a
/// route.
#[derive(Clone, Copy, Debug)]
pub(super) enum Passage {
    Taken { link: usize, direction: Direction, fate: Result<(), Drop> },
    Arrived { link: usize, direction: Direction },
    NoRoute { node: usize, remote: SocketAddr },
}

impl Log {
    /// Default limit on kept lines: at most a quarter of a gigabyte.
    pub const LINES_KEPT_MAX: usize = 1_000_000;

    pub(super) fn new(seed: u64) -> Self {
        let mut log = Self {
            digest: 0,
            lines: Vec::new(),
            lines_max: Self::LINES_KEPT_MAX,
            lines_total: 0,
            scratch: String::new(),
        };
        log.line(Instant::ZERO, format_args!("SIM_SEED={seed}"));
        log
    }

    /// Limits the kept lines to `lines_max` from now on. Zero suits long runs that need only the
    /// digest.
    pub fn keep(&mut self, lines_max: usize) {
        self.lines_max = lines_max;
        self.lines.truncate(lines_max);
    }

    /// Returns the lines kept, oldest first.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Returns the number of lines written so far, kept or not.
    pub fn lines_total(&self) -> u64 {
        self.lines_total
    }

    /// Returns a 64-bit digest of all lines and all datagrams. It is not cryptographic.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Writes a line of `now` and `what`; beyond the limit on kept lines it enters only the digest.
    pub fn line(&mut self, now: Instant, what: fmt::Arguments<'_>) {
        let mut line = std::mem::take(&mut self.scratch);
        line.clear();
        // Writing into a string does not fail.
        let _ = write!(line, "{now:?} {what}");
        self.mix(digest_of(line.as_bytes()));
        self.lines_total += 1;
        if self.lines.len() < self.lines_max {
            self.lines.push(line.clone());
        }
        self.scratch = line;
    }

    /// Writes a line about a datagram of `bytes` bytes whose [`digest_of`] is `digest`.
    pub(super) fn datagram(&mut self, now: Instant, passage: Passage, bytes: usize, digest: u64) {
        let (kind, place) = match passage {
            Passage::Taken { link, direction, fate } => {
                let fate = fate.map_or_else(|reason| 1 + reason as u64, |()| 0);
                (fate << 2 | direction as u64, link)
            }
            Passage::Arrived { link, direction } => (1 << 32 | direction as u64, link),
            Passage::NoRoute { node, .. } => (1 << 33, node),
        };
        self.mix(now.as_nanos());
        self.mix(kind << 16 ^ place as u64);
        self.mix(digest);
        self.lines_total += 1;
        if self.lines.len() < self.lines_max {
            self.lines.push(format!("{now:?} {} #{digest:016x}", Told { passage, bytes }));
        }
    }

    fn mix(&mut self, word: u64) {
        self.digest = mixed(self.digest, word);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines, digest {:016x}", self.lines_total, self.digest)
    }
}

struct Told {
    passage: Passage,
    bytes: usize,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes;
        match self.passage {
            Passage::Taken { link, direction, fate } => {
                let fate = fate.map_or_else(|reason| reason.into(), |()| "goes");
                write!(f, "link {link} {direction:?} takes {bytes} B: {fate}")
            }
            Passage::Arrived { link, direction } => {
                write!(f, "link {link} {direction:?} arrives {bytes} B")
            }
            Passage::NoRoute { node, remote } => {
                write!(f, "node {node} sends {bytes} B to {remote}: no route")
            }
        }
    }
}

/// Returns a 64-bit digest of the bytes and their count, in four lanes of eight bytes so that the
/// multiplications overlap.
pub(super) fn digest_of(bytes: &[u8]) -> u64 {
    let mut lanes = [1, 2, 3, bytes.len() as u64];
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = mixed(*lane, u64::from_le_bytes(*word));
        }
    }
    for word in rest.chunks(8) {
        let mut padded = [0; 8];
        padded[..word.len()].copy_from_slice(word);
        lanes[0] = mixed(lanes[0], u64::from_le_bytes(padded));
    }
    lanes.into_iter().fold(0, mixed)
}

/// Returns `state` with `word` mixed in: each bit reaches the upper half immediately, and the lower
/// half with the next word.
fn mixed(state: u64, word: u64) -> u64 {
    // The bits of the golden ratio, odd.
    (state.rotate_left(29) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_datagram_counts() {
        let mut datagram: Vec<u8> = (0..77).collect();
        let whole = digest_of(&datagram);
        for bit in 0..77 * 8 {
            datagram[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(digest_of(&datagram), whole, "bit {bit}");
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
        assert_ne!(digest_of(&datagram[..76]), whole);
        assert_ne!(digest_of(&[0; 7]), digest_of(&[0; 8]));
    }

    #[test]
    fn the_digest_is_the_same_whether_lines_are_kept_or_not() {
        let run = |lines_max| {
            let mut log = Log::new(1);
            log.keep(lines_max);
            for fate in [Ok(()), Err(Drop::Queue), Err(Drop::Cut)] {
                let passage = Passage::Taken { link: 1, direction: Direction::Up, fate };
                log.datagram(Instant::from_millis(1), passage, 3, digest_of(b"abc"));
            }
            log.line(Instant::from_millis(2), format_args!("a line"));
            log
        };
        let (kept, not) = (run(10), run(0));
        assert_eq!(kept.digest(), not.digest());
        assert_eq!((kept.lines_total(), not.lines_total()), (5, 5));
        assert_eq!((kept.lines().len(), not.lines().len()), (5, 0));
        assert!(kept.lines()[2].starts_with("1.000000ms link 1 Up takes 3 B: queue #"));
    }
}
