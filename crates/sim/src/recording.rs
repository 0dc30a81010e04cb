//! Recorded round trips, read from ping files.

mod columns;
mod error;
mod ping;
mod read;

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use tautline_units::Instant;

pub use columns::Columns;
pub use error::{Error, LINES_MAX};
use ping::Ping;

/// Longest recording accepted, pauses removed: one day.
pub const PERIOD_MAX: Duration = Duration::from_secs(86_400);

/// Maximum file size in bytes after decompression, beyond which a file is refused.
pub const BYTES_MAX: u64 = 1 << 28;

/// A looped recording of round trips over time.
///
/// The input is comma-separated text whose first line has the column names. Round trips are in
/// milliseconds; an empty or negative one means lost. Empty lines and lines that begin with `#` are
/// skipped. Round trips are in the column `rtt_ms`, or in the one that [`Columns::operator`] names.
/// If there is a column `operator`, only the rows of that operator are used. The time column is
/// named from `t_` to `_ms` or `_s`, and its values must increase; without one, lines are
/// [`Columns::interval`] apart. Pauses of more than ten times the usual interval are removed.
///
/// On an idle link, a round trip is either the path's own delay or a wait. The samples are
/// therefore split into:
/// - *losses*: from half-way to the last sample before, to half-way to the first one after;
/// - *holds*: samples that came back together although they were sent apart (the later one by less
///   than a quarter of the time between them) waited for one moment. Nothing leaves from half-way
///   to the sample before until that moment. The duration of a draining burst is kept; any longer
///   backlog was the recorder's own traffic;
/// - everything else: the path's own round trip, interpolated linearly between the samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Samples of the path's own round trip, in order of time; at least one.
    samples: Vec<Sample>,
    lost: Arc<[(u64, u64)]>,
    held: Arc<[(u64, u64)]>,
    period: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    at: u64,
    rtt: u64,
}

impl Recording {
    /// Parses a recording from the decompressed bytes of a file.
    ///
    /// # Errors
    /// [`Error`], with the line counted from 1. No input panics.
    pub fn parse(text: &[u8], columns: Columns<'_>) -> Result<Self, Error> {
        let pings = read::pings(text, columns)?;
        let usual = usual_interval(&pings).unwrap_or(columns.interval_nanos()).max(1);
        let pings = without_pauses(pings, usual)?;
        let period = pings.last().ok_or(Error::Empty)?.at.saturating_add(usual);
        let answered: Vec<Sample> = pings
            .iter()
            .filter_map(|ping| ping.rtt.map(|rtt| Sample { at: ping.at, rtt }))
            .collect();
        if answered.is_empty() {
            return Err(Error::Empty);
        }
        let lost = losses(&pings, period);
        let (samples, held) = holds(&answered, period);
        Ok(Self { samples, lost: lost.into(), held: held.into(), period })
    }

    /// Returns the period of the loop; never zero.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// Returns the share of the time in which all packets are lost.
    pub fn lost_share(&self) -> f64 {
        total(&self.lost) as f64 / self.period as f64
    }

    /// Returns the share of the time in which all packets are held.
    pub fn held_share(&self) -> f64 {
        total(&self.held) as f64 / self.period as f64
    }

    /// Returns the path's own round trip at `at` in the loop, without waits. O(log samples).
    pub fn round_trip(&self, at: Instant) -> Duration {
        Duration::from_nanos(self.rtt_at(at.as_nanos()))
    }

    pub(crate) fn period_nanos(&self) -> u64 {
        self.period
    }

    pub(crate) fn rtt_at(&self, at: u64) -> u64 {
        let at = at % self.period;
        let after = self.samples.partition_point(|sample| sample.at <= at);
        match (after.checked_sub(1).map(|before| self.samples[before]), self.samples.get(after)) {
            (Some(before), Some(after)) => {
                let share = (at - before.at) as f64 / (after.at - before.at) as f64;
                let rtt = before.rtt as f64 + (after.rtt as f64 - before.rtt as f64) * share;
                rtt as u64
            }
            (Some(only), None) => only.rtt,
            (None, after) => after.map_or(0, |after| after.rtt),
        }
    }

    /// Returns the losing intervals within one period: disjoint and in order.
    pub(crate) fn lost(&self) -> &Arc<[(u64, u64)]> {
        &self.lost
    }

    /// Returns the holding intervals within one period: disjoint and in order.
    pub(crate) fn held(&self) -> &Arc<[(u64, u64)]> {
        &self.held
    }
}

/// Returns the bytes of a file, decompressed if they are gzip.
///
/// # Errors
/// The error of the decompression; [`io::ErrorKind::FileTooLarge`] beyond [`BYTES_MAX`].
pub fn decompressed(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    let text = if bytes.starts_with(&GZIP_MAGIC) {
        let mut text = Vec::new();
        flate2::read::MultiGzDecoder::new(&bytes[..]).take(BYTES_MAX + 1).read_to_end(&mut text)?;
        text
    } else {
        bytes
    };
    if text.len() as u64 > BYTES_MAX { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

fn usual_interval(pings: &[Ping]) -> Option<u64> {
    let mut gaps: Vec<u64> = pings.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    let middle = gaps.len() / 2;
    (!gaps.is_empty()).then(|| *gaps.select_nth_unstable(middle).1)
}

/// Returns the pings without the pauses, that is with the runs between pauses moved together;
/// `usual` is the usual interval in ns.
fn without_pauses(mut pings: Vec<Ping>, usual: u64) -> Result<Vec<Ping>, Error> {
    let (mut cut, mut previous) = (pings.first().map_or(0, |ping| ping.at), 0);
    for ping in &mut pings {
        let gap = (ping.at - cut).saturating_sub(previous);
        if gap > usual.saturating_mul(PAUSE) {
            cut += gap - usual;
        }
        ping.at -= cut;
        previous = ping.at;
        if u128::from(ping.at) > PERIOD_MAX.as_nanos() {
            return Err(Error::TooLong { line: ping.line });
        }
    }
    Ok(pings)
}

/// Multiple of the usual interval above which a gap is a pause, which is shortened to one interval.
const PAUSE: u64 = 10;

fn losses(pings: &[Ping], period: u64) -> Vec<(u64, u64)> {
    let mut lost = Vec::new();
    let mut start = None;
    for (index, ping) in pings.iter().enumerate() {
        let middle = index.checked_sub(1).map_or(0, |before| pings[before].at.midpoint(ping.at));
        match (ping.rtt, start) {
            (None, None) => start = Some(middle),
            (Some(_), Some(from)) => {
                lost.push((from, middle));
                start = None;
            }
            (None, Some(_)) | (Some(_), None) => {}
        }
    }
    lost.extend(start.map(|from| (from, period)));
    lost
}

/// Separates waits from the path's own round trip: returns the samples of the latter, at least one,
/// and the intervals in ns in which packets were held.
fn holds(answered: &[Sample], period: u64) -> (Vec<Sample>, Vec<(u64, u64)>) {
    let groups = together(answered);
    let quick = lower_quartile(answered);
    let mut free = vec![true; answered.len()];
    for (first, last) in &groups {
        free[*first..*last].fill(false);
        // The last of a group found the link open, unless it waited itself.
        let apart = answered[*last].at - answered[*last - 1].at;
        free[*last] = answered[*last].rtt <= apart.saturating_add(2 * quick);
    }
    let mut own: Vec<Sample> =
        answered.iter().zip(&free).filter(|(_, free)| **free).map(|(sample, _)| *sample).collect();
    if own.is_empty() {
        own.push(Sample { at: 0, rtt: quick });
    }
    let (mut held, mut open_until) = (Vec::new(), 0);
    for (first, last) in groups {
        let waited = if free[last] { &answered[first..last] } else { &answered[first..=last] };
        let end = answered[last];
        let next = own.partition_point(|sample| sample.at < end.at).min(own.len() - 1);
        let path = own[next].rtt.min(end.rtt);
        let left = |sample: &Sample| (sample.at + sample.rtt).saturating_sub(path);
        let mut to = waited.last().map_or(0, left);
        if free[last] {
            to = to.min(end.at);
        }
        let drained = to.saturating_sub(waited.iter().map(left).min().unwrap_or(to));
        let before = first.checked_sub(1).map_or(0, |before| answered[before].at);
        let from = before.midpoint(answered[first].at).max(open_until);
        let to = to.min(period);
        if from < to {
            held.push((from, to));
            open_until = to + drained;
        }
    }
    (own, held)
}

/// Returns the groups of samples that came back together: first and last index of each.
fn together(answered: &[Sample]) -> Vec<(usize, usize)> {
    let mut groups: Vec<(usize, usize)> = Vec::new();
    for index in 1..answered.len() {
        let (one, next) = (answered[index - 1], answered[index]);
        if (next.at + next.rtt).saturating_sub(one.at + one.rtt) > (next.at - one.at) / 4 {
            continue;
        }
        match groups.last_mut() {
            Some((_, last)) if *last == index - 1 => *last = index,
            _ => groups.push((index - 1, index)),
        }
    }
    groups
}

fn lower_quartile(answered: &[Sample]) -> u64 {
    let mut rtts: Vec<u64> = answered.iter().map(|sample| sample.rtt).collect();
    let quarter = rtts.len() / 4;
    *rtts.select_nth_unstable(quarter).1
}

fn total(intervals: &[(u64, u64)]) -> u64 {
    intervals.iter().map(|(from, to)| to - from).sum()
}

#[cfg(test)]
mod tests;
