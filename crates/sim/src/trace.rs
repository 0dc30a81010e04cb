//! Recorded capacity in the Mahimahi packet-delivery format.

use std::time::Duration;

use tautline_units::{Bitrate, ByteCount};

/// Bytes that one line of a trace can carry: Mahimahi's packet (data/README.md).
pub const OPPORTUNITY_BYTES: ByteCount = ByteCount::new(1500);

/// Longest trace accepted: one day. Recordings last minutes; a longer one is a unit mistake.
pub const PERIOD_MAX: Duration = Duration::from_secs(86_400);

/// Time by which a period may exceed the last line's time, even if no gap in the trace is as long.
pub const REST_MAX: Duration = Duration::from_secs(1);

/// Maximum number of lines, about 50 MB of text: a bound on memory. A longer trace is refused.
pub const LINES_MAX: usize = 8_000_000;

/// A looped recording of a link's delivery opportunities.
///
/// One line of text per opportunity: whole milliseconds since the start, never decreasing. A line
/// repeats where several packets fit into one millisecond. Empty lines and lines that begin with
/// `#` are skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    times_ms: Vec<u32>,
    period_ms: u32,
}

/// A fault in a trace's text, or in the period requested for the trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line is not a whole number of milliseconds.
    #[error("line {line}: {text:?} is not a whole number of milliseconds")]
    NotANumber {
        /// Number of the faulty line, from 1.
        line: usize,
        /// Beginning of the faulty line's text.
        text: String,
    },
    /// A line goes back in time.
    #[error("line {line}: {millis} ms comes after {previous} ms; times must not decrease")]
    Decreases {
        /// Number of the faulty line, from 1.
        line: usize,
        /// Time in the faulty line, ms.
        millis: u32,
        /// Time in the line before the faulty one, ms.
        previous: u32,
    },
    /// A line lies beyond [`PERIOD_MAX`].
    #[error("line {line}: {millis} ms is more than a day")]
    TooLong {
        /// Number of the faulty line, from 1.
        line: usize,
        /// Time in the faulty line, ms.
        millis: u64,
    },
    /// There are more lines than [`LINES_MAX`].
    #[error("more than {LINES_MAX} lines")]
    TooManyLines,
    /// There is no line with a time.
    #[error("no line with a time")]
    Empty,
    /// The period is zero, ends before the last line, or is longer than a day.
    #[error("a period of {period_ms} ms does not fit a trace that ends at {last_ms} ms")]
    Period {
        /// The requested period, or the last time if none was requested, ms.
        period_ms: u64,
        /// Time in the last line of the trace, ms.
        last_ms: u32,
    },
    /// The period exceeds the last line's time by more than [`REST_MAX`] and more than any gap in
    /// the trace.
    #[error(
        "a period of {period_ms} ms goes on for {} ms after the trace ends, which has no gap of more than {gap_ms} ms: \
         what was not recorded is no silence",
        .period_ms - u64::from(*.last_ms)
    )]
    Unrecorded {
        /// The requested period, ms.
        period_ms: u64,
        /// Time in the last line of the trace, ms.
        last_ms: u32,
        /// The longest gap between the times of two lines, or before the first, ms.
        gap_ms: u32,
    },
}

impl Trace {
    /// Parses a trace from the bytes of a Mahimahi file.
    ///
    /// The trace repeats after `period`; `None` takes the last line's time, as Mahimahi does. An
    /// opportunity at the very end of the period equals one at its start. A recording may end in an
    /// outage of up to [`REST_MAX`], or as long as the longest gap in it.
    ///
    /// # Errors
    /// [`Error`], with the line counted from 1. No input panics.
    pub fn parse(text: &[u8], period: Option<Duration>) -> Result<Self, Error> {
        let mut times_ms = Vec::new();
        let mut previous = 0_u32;
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line_number = index + 1;
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let millis = parse_millis(line, line_number)?;
            if millis < previous {
                return Err(Error::Decreases { line: line_number, millis, previous });
            }
            if times_ms.len() == LINES_MAX {
                return Err(Error::TooManyLines);
            }
            previous = millis;
            times_ms.push(millis);
        }
        if times_ms.is_empty() {
            return Err(Error::Empty);
        }
        Self::from_times(times_ms, previous, period)
    }

    fn from_times(
        mut times_ms: Vec<u32>,
        last_ms: u32,
        period: Option<Duration>,
    ) -> Result<Self, Error> {
        let asked =
            period.map_or(u64::from(last_ms), |p| u64::try_from(p.as_millis()).unwrap_or(u64::MAX));
        let wrong = Error::Period { period_ms: asked, last_ms };
        let period_ms = u32::try_from(asked).map_err(|_| wrong.clone())?;
        if period_ms == 0 || period_ms < last_ms || asked > millis_max() {
            return Err(wrong);
        }
        let gap_ms = gap_max(&times_ms);
        if period_ms - last_ms > gap_ms.max(REST_MAX.as_millis() as u32) {
            return Err(Error::Unrecorded { period_ms: asked, last_ms, gap_ms });
        }
        let inside = times_ms.partition_point(|time| *time < period_ms);
        let at_the_end = times_ms.len() - inside;
        for time in &mut times_ms[inside..] {
            *time = 0;
        }
        times_ms.rotate_right(at_the_end);
        Ok(Self { times_ms, period_ms })
    }

    /// Returns the times of the opportunities within one period, in milliseconds, never decreasing.
    pub fn times_ms(&self) -> &[u32] {
        &self.times_ms
    }

    /// Returns the period of the loop; never zero.
    pub fn period(&self) -> Duration {
        Duration::from_millis(u64::from(self.period_ms))
    }

    /// Returns the mean rate over one period.
    pub fn bitrate_mean(&self) -> Bitrate {
        let bytes = ByteCount::new(self.times_ms.len() as u64 * OPPORTUNITY_BYTES.get());
        Bitrate::of(bytes, self.period())
    }

    /// Returns the instant of opportunity `index` in loop `cycle`, in nanoseconds. Saturates at the
    /// end of the clock's range.
    pub(crate) fn nanos_at(&self, cycle: u64, index: usize) -> u64 {
        let millis = cycle
            .saturating_mul(u64::from(self.period_ms))
            .saturating_add(u64::from(self.times_ms[index]));
        millis.saturating_mul(NANOS_PER_MS)
    }

    /// Returns the first opportunity at or after `nanos`: loop and index.
    pub(crate) fn first_from(&self, nanos: u64) -> (u64, usize) {
        let millis = nanos.div_ceil(NANOS_PER_MS);
        let period = u64::from(self.period_ms);
        let (cycle, rest) = (millis / period, millis % period);
        let index = self.times_ms.partition_point(|time| u64::from(*time) < rest);
        if index == self.times_ms.len() { (cycle + 1, 0) } else { (cycle, index) }
    }
}

const NANOS_PER_MS: u64 = 1_000_000;

const fn millis_max() -> u64 {
    PERIOD_MAX.as_secs() * 1_000
}

/// Returns the longest gap between two opportunities, or before the first.
fn gap_max(times_ms: &[u32]) -> u32 {
    let gaps = times_ms.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.chain(times_ms.first().copied()).max().unwrap_or(0)
}

fn parse_millis(line: &[u8], line_number: usize) -> Result<u32, Error> {
    let number = std::str::from_utf8(line).ok().and_then(|text| text.parse::<u64>().ok());
    let Some(millis) = number else {
        let shown = &line[..line.len().min(40)];
        let text = String::from_utf8_lossy(shown).into_owned();
        return Err(Error::NotANumber { line: line_number, text });
    };
    match u32::try_from(millis) {
        Ok(short) if millis <= millis_max() => Ok(short),
        _ => Err(Error::TooLong { line: line_number, millis }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_trace_has_the_rate_of_its_lines() {
        let trace = Trace::parse(b"0\n1\n1\n# note\n\n3\r\n4\n", None).expect("well formed");
        assert_eq!(trace.times_ms(), [0, 0, 1, 1, 3]);
        assert_eq!(trace.period(), Duration::from_millis(4));
        assert_eq!(trace.bitrate_mean(), Bitrate::from_mbps(15));
    }

    #[test]
    fn a_period_may_end_in_an_outage() {
        let trace = Trace::parse(b"0\n10\n", Some(Duration::from_millis(30))).expect("well formed");
        assert_eq!(trace.first_from(10_000_001), (1, 0));
        assert_eq!(trace.nanos_at(1, 0), 30_000_000);
    }

    #[test]
    fn a_period_longer_than_its_recording_is_refused() {
        let parse = |seconds| Trace::parse(b"0\n10\n9000\n", Some(Duration::from_secs(seconds)));
        assert!(parse(17).is_ok(), "as long as the longest gap");
        let refused = parse(60).expect_err("51 s were not recorded").to_string();
        assert_eq!(
            refused,
            "a period of 60000 ms goes on for 51000 ms after the trace ends, which has no gap of more than 8990 ms: \
             what was not recorded is no silence"
        );
    }

    #[test]
    fn errors_name_their_line() {
        let text = |bytes: &[u8]| Trace::parse(bytes, None).expect_err("malformed").to_string();
        assert_eq!(text(b"1\nx\n"), "line 2: \"x\" is not a whole number of milliseconds");
        assert_eq!(text(b"5\n4\n"), "line 2: 4 ms comes after 5 ms; times must not decrease");
        assert_eq!(text(b"5\n99999999999\n"), "line 2: 99999999999 ms is more than a day");
        assert_eq!(text(b"\n"), "no line with a time");
        assert_eq!(text(b"0\n0\n"), "a period of 0 ms does not fit a trace that ends at 0 ms");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, period: Option<u32>) {
            let period = period.map(|ms| Duration::from_millis(u64::from(ms)));
            let _ = Trace::parse(&bytes, period);
        }

        #[test]
        fn the_first_chance_from_a_time_is_the_first(
            mut times in proptest::collection::vec(0_u32..50, 1..20), at in 0_u64..200_000_000,
        ) {
            times.sort_unstable();
            let text = times.iter().map(|t| format!("{t}\n")).collect::<String>();
            let trace = Trace::parse(text.as_bytes(), Some(Duration::from_millis(50)))
                .expect("well formed");
            let (cycle, index) = trace.first_from(at);
            prop_assert!(trace.nanos_at(cycle, index) >= at);
            let before = match (cycle, index) {
                (0, 0) => return Ok(()),
                (_, 0) => (cycle - 1, times.len() - 1),
                _ => (cycle, index - 1),
            };
            prop_assert!(trace.nanos_at(before.0, before.1) < at);
        }
    }
}
