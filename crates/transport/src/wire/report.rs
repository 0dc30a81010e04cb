use tautline_units::{ByteCount, Duration, Instant};

use super::datagram::LinkNumber;
use super::field::{put_u48, take, take_u48};
use super::kind::KIND_REPORT;
use super::malformed::Malformed;
use super::marks::Marks;

/// A report of what has arrived on one link; by default sent every 10 ms while media arrives, and
/// every 100 ms otherwise.
///
/// ```text
///  0               1          9           15          21          27        29       30
/// +-------+-------+----------+-----------+-----------+-----------+---------+--------+-----
/// |   4   | link  | taken at | highest   | datagrams | bytes     | age     | length | map ..
/// +-------+-------+----------+-----------+-----------+-----------+---------+--------+-----
/// ```
///
/// Counts are totals since the session began, so that a lost report costs nothing. `taken at` is
/// the reporter's clock in nanoseconds and orders reports. `age` is the time between the arrival of
/// the highest number and the report, in units of 10 us; 65535 means that long or longer. The map
/// has `length` bytes, 96 at most. Bit b (from the least) of byte i tells whether number
/// `highest - 1 - (8 i + b)` arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Link that the report covers.
    pub link: LinkNumber,
    /// Time of the counts, on the reporter's clock.
    pub taken_at: Instant,
    /// Highest packet number that arrived, below 2^48.
    pub highest: u64,
    /// Number of authentic datagrams that arrived, without duplicates.
    pub datagrams: u64,
    /// Bytes of the datagrams that arrived, including headers.
    pub bytes: ByteCount,
    /// Time from the arrival of the highest number to `taken_at`; `None` for 0.65 s and more.
    pub age: Option<Duration>,
    /// Map of the arrivals below the highest number.
    pub recent: Recent,
    /// Mark counts; `None` while no datagram has arrived marked.
    pub marks: Option<Marks>,
}

/// Map of the arrivals just below the highest number: 768 numbers at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recent {
    length: u8,
    map: [u8; Self::BYTES_MAX],
}

impl Recent {
    /// Maximum bytes of the map: 150 ms at 10 Mbit/s in packets of 250 bytes, which covers
    /// reordering.
    pub const BYTES_MAX: usize = 96;
    /// Maximum bytes of the map in a report with [`Marks`]: both fit the smallest datagrams.
    pub const BYTES_MAX_MARKED: usize = Self::BYTES_MAX - Marks::BYTES;

    /// Returns the map of at least the `count` numbers below the highest, as far as it has room.
    /// `arrived` returns whether the number `back` below the highest arrived, with `back` from 1
    /// on.
    pub fn of(count: u64, arrived: impl Fn(u64) -> bool) -> Self {
        let length = count.div_ceil(8).min(Self::BYTES_MAX as u64) as u8;
        let mut map = [0; Self::BYTES_MAX];
        for (byte, back) in map.iter_mut().zip((1..).step_by(8)).take(usize::from(length)) {
            *byte = (0..8).fold(0, |bits, bit| bits | u8::from(arrived(back + bit)) << bit);
        }
        Self { length, map }
    }

    /// Returns how many numbers below the highest the map covers.
    pub fn len(&self) -> u64 {
        u64::from(self.length) * 8
    }

    /// Returns whether the map covers no numbers.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns whether the number `back` below the highest arrived; `None` if the map does not
    /// cover it.
    pub fn arrived(&self, back: u64) -> Option<bool> {
        let at = back.checked_sub(1).filter(|at| *at < self.len())?;
        Some(self.map[(at / 8) as usize] >> (at % 8) & 1 == 1)
    }
}

impl Report {
    /// Length of the packet on the wire, in bytes, without the map and the mark counts.
    pub const BYTES: usize = 30;

    /// Returns the length of the packet on the wire, in bytes, with the map and the mark counts.
    pub fn bytes_on_wire(&self) -> usize {
        let marks = if self.marks.is_some() { Marks::BYTES } else { 0 };
        Self::BYTES + usize::from(self.recent.length) + marks
    }

    /// Appends the report to `out` as a packet, with its map and mark counts.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(KIND_REPORT << 4 | self.link.get());
        out.extend_from_slice(&self.taken_at.as_nanos().to_be_bytes());
        put_u48(out, self.highest);
        put_u48(out, self.datagrams);
        put_u48(out, self.bytes.get());
        let steps = self.age.map_or(u128::MAX, |age| age.as_nanos() / AGE_STEP_NANOS);
        out.extend_from_slice(&steps.min(u128::from(AGE_UNKNOWN)).to_be_bytes()[14..]);
        out.push(self.recent.length);
        out.extend_from_slice(&self.recent.map[..usize::from(self.recent.length)]);
        if let Some(marks) = self.marks {
            marks.write(out);
        }
    }

    /// Reads the packet up to the end of the map; the mark counts follow it.
    pub(super) fn parse(rest: &mut &[u8]) -> Result<Self, Malformed> {
        let [head] = take(rest)?;
        let link = LinkNumber::new(head & 0x0f).ok_or(Malformed("unknown link"))?;
        let taken_at = Instant::from_nanos(u64::from_be_bytes(take(rest)?));
        let highest = take_u48(rest)?;
        let datagrams = take_u48(rest)?;
        let bytes = ByteCount::new(take_u48(rest)?);
        let steps = u16::from_be_bytes(take(rest)?);
        let age = (steps != AGE_UNKNOWN)
            .then(|| Duration::from_nanos(u64::from(steps) * AGE_STEP_NANOS as u64));
        let [length] = take(rest)?;
        let count = usize::from(length);
        if count > Recent::BYTES_MAX || count > rest.len() {
            return Err(Malformed("a report's map is too long"));
        }
        let (bits, tail) = rest.split_at(count);
        *rest = tail;
        let mut map = [0; Recent::BYTES_MAX];
        map[..count].copy_from_slice(bits);
        let recent = Recent { length, map };
        Ok(Self { link, taken_at, highest, datagrams, bytes, age, recent, marks: None })
    }
}

const AGE_STEP_NANOS: u128 = 10_000;
const AGE_UNKNOWN: u16 = u16::MAX;
