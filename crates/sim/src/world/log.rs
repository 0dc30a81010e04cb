use std::fmt;

use tautline_units::Instant;

/// What happened in a world, line by line, with a digest over all of it.
///
/// The digest covers every line and every datagram's bytes. The lines themselves are kept up to
/// [`Log::LINES_KEPT_MAX`] unless told otherwise; the digest goes on.
#[derive(Clone, PartialEq, Eq)]
pub struct Log {
    digest: u64,
    lines: Vec<String>,
    lines_max: usize,
    lines_total: u64,
}

impl Log {
    /// Lines kept unless [`Log::keep`] says otherwise: a quarter of a gigabyte at most.
    pub const LINES_KEPT_MAX: usize = 1_000_000;

    pub(super) fn new(seed: u64) -> Self {
        let mut log = Self {
            digest: FNV_OFFSET,
            lines: Vec::new(),
            lines_max: Self::LINES_KEPT_MAX,
            lines_total: 0,
        };
        log.line(Instant::ZERO, format_args!("SIM_SEED={seed}"));
        log
    }

    /// Keeps at most `lines_max` lines from now on; zero for long runs where the digest will do.
    pub fn keep(&mut self, lines_max: usize) {
        self.lines_max = lines_max;
        self.lines.truncate(lines_max);
    }

    /// The lines kept, oldest first.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The lines written so far, kept or not.
    pub fn lines_total(&self) -> u64 {
        self.lines_total
    }

    /// FNV-1a, 64 bits, over all lines and all datagrams. Not for use against an adversary.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Writes a line of the caller's.
    pub fn line(&mut self, now: Instant, what: fmt::Arguments<'_>) {
        let line = format!("{now:?} {what}");
        self.digest = fnv(fnv(self.digest, line.as_bytes()), b"\n");
        self.lines_total += 1;
        if self.lines.len() < self.lines_max {
            self.lines.push(line);
        }
    }

    /// Writes a line about a datagram, whose bytes go into the digest.
    pub(super) fn datagram(&mut self, now: Instant, what: fmt::Arguments<'_>, datagram: &[u8]) {
        self.digest = fnv(self.digest, datagram);
        let own = fnv(FNV_OFFSET, datagram);
        self.line(now, format_args!("{what} #{own:016x}"));
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines, digest {:016x}", self.lines_total, self.digest)
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}
