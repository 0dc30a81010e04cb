//! Measures of a run.

use std::collections::BTreeMap;

use tautline_scenario::measure::{millis, quantile, within};
use tautline_transport::rate::Cause;
use tautline_units::{Duration, Instant};

use super::bottleneck::Bottleneck;
use super::shared::{BIN, DEADLINE, HEADERS, Session, Trail, WARM_UP};

/// Measures of one run after its warm-up of 20 s. Those of media, queueing and causes cover all
/// sessions of the run together.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    /// Shares of the link's capacity used by the first session and by the other flow: bytes that
    /// entered the queue, headers and repair packets included.
    pub shares: [f64; 2],
    /// Jain's index of the two flows' shares: 1 for equal shares, 1/2 if one has everything.
    pub jain: f64,
    /// Payload of each session's units that arrived complete and in time, Mbit/s.
    pub in_time_mbps: Vec<f64>,
    /// Share of the offered media units that were not in time.
    pub missed: f64,
    /// Share of the sessions' datagrams that the link dropped.
    pub dropped: f64,
    /// Queueing delay of the sessions' datagrams that were not dropped: 50, 95, 99 and 100 %, ms.
    pub waiting_ms: [f64; 4],
    /// Time from the second session's start until the two sessions' rates, over 2 s, stay within 20
    /// % of each other for 5 s, in s. `None` if that never happens, or the other flow is not a
    /// session.
    pub alike_after_s: Option<f64>,
    /// Share of the time in which the two sessions' rates, over 2 s, are within 20 % of each other;
    /// `None` if the other flow is not a session.
    pub alike: Option<f64>,
    /// Limiting causes of the sessions' rates, as shares of the time.
    pub causes: BTreeMap<Cause, f64>,
    /// Share of the link's capacity used by each flow, per second, from the start.
    pub by_second: [Vec<f64>; 2],
    /// Digest of all events, equal for equal runs.
    pub digest: u64,
}

/// Computes the measures of a run of length `length`. Those of shares, units and packets leave out
/// the time before [`WARM_UP`].
pub(super) fn of(trail: &Trail, bottleneck: &Bottleneck, length: Duration) -> Measures {
    let time = Instant::ZERO + WARM_UP..Instant::ZERO + length;
    let seconds = time.end.since(time.start).as_secs_f64();
    let capacity = (bottleneck.rate * BIN).get() as f64;
    let warm = (WARM_UP.as_nanos() / BIN.as_nanos()) as usize;
    let share = |bins: &[u64]| bins.iter().sum::<u64>() as f64 / (capacity * bins.len() as f64);
    let shares = [0, 1].map(|flow| share(&trail.carried[flow][warm..]));
    let (mut waited, mut dropped) = (Vec::new(), 0_u64);
    let passages = trail.sessions.iter().flat_map(|session| &session.passages);
    for passage in passages.filter(|passage| time.contains(&passage.at)) {
        match passage.arrived {
            Some(arrived) => {
                let own = bottleneck.delay + bottleneck.time_of(passage.bytes + HEADERS);
                waited.push(millis(arrived.since(passage.at).saturating_sub(own)));
            }
            None => dropped += 1,
        }
    }
    let given = waited.len() as u64 + dropped;
    let media: Vec<[f64; 3]> = trail.sessions.iter().map(|session| media(session, &time)).collect();
    let sum = |at: usize| media.iter().map(|of| of[at]).sum::<f64>();
    let alike = (trail.sessions.len() == 2).then(|| alike(&trail.carried));
    let begun = (trail.begun.since(Instant::ZERO).as_nanos() / BIN.as_nanos()) as usize;
    Measures {
        shares,
        jain: jain(shares),
        in_time_mbps: media.iter().map(|of| of[0] * 8.0 / 1e6 / seconds).collect(),
        missed: sum(2) / sum(1),
        dropped: dropped as f64 / given.max(1) as f64,
        waiting_ms: [0.5, 0.95, 0.99, 1.0].map(|q| quantile(&mut waited, q)),
        alike_after_s: alike.as_ref().and_then(|alike| alike_after(alike, begun)),
        alike: alike.map(|alike| share_of(&alike[warm..])),
        causes: causes(&trail.sessions),
        by_second: trail.carried.each_ref().map(|bins| bins.chunks_exact(10).map(share).collect()),
        digest: trail.digest,
    }
}

/// Returns bytes in time, units offered and units missed, for units sent within `time`.
fn media(session: &Session, time: &std::ops::Range<Instant>) -> [f64; 3] {
    let (mut bytes, mut offered, mut missed) = (0, 0_u64, 0_u64);
    for unit in within(&session.units, time.clone()) {
        offered += 1;
        match unit.on_time(DEADLINE) {
            Some(_) => bytes += unit.offered.bytes.get(),
            None => missed += 1,
        }
    }
    [bytes, offered, missed].map(|count| count as f64)
}

/// Returns Jain's index of two shares, (a + b)^2 / (2 (a^2 + b^2)); NaN if both are 0.
fn jain([a, b]: [f64; 2]) -> f64 {
    (a + b).powi(2) / (2.0 * (a * a + b * b))
}

/// Returns, for each [`BIN`], whether the rates over the [`SPAN`] ending there are within 20 % of
/// each other and above 0.
fn alike(carried: &[Vec<u64>; 2]) -> Vec<bool> {
    let spans = |flow: usize| {
        (1..=carried[flow].len())
            .map(move |end| carried[flow][end.saturating_sub(SPAN)..end].iter().sum::<u64>() as f64)
    };
    spans(0).zip(spans(1)).map(|(a, b)| a.min(b) >= ALIKE * a.max(b) && a.min(b) > 0.0).collect()
}

/// Returns the time in s from bin `begun` to the first bin from which the rates are alike for
/// [`LASTING`] bins; `None` if there is none.
fn alike_after(alike: &[bool], begun: usize) -> Option<f64> {
    let after = alike.get(begun..)?;
    let at = after.windows(LASTING).position(|lasting| lasting.iter().all(|alike| *alike))?;
    Some((BIN * at as u32).as_secs_f64())
}

fn share_of(bins: &[bool]) -> f64 {
    bins.iter().filter(|alike| **alike).count() as f64 / bins.len() as f64
}

fn causes(sessions: &[Session]) -> BTreeMap<Cause, f64> {
    let mut counts: BTreeMap<Cause, u64> = BTreeMap::new();
    for (cause, count) in sessions.iter().flat_map(|session| &session.causes) {
        *counts.entry(*cause).or_default() += count;
    }
    let all: u64 = counts.values().sum();
    counts.into_iter().map(|(cause, count)| (cause, count as f64 / all as f64)).collect()
}

/// Span over which rates are compared, in units of [`BIN`]: 2 s.
const SPAN: usize = 20;
/// Span for which rates must stay alike, in units of [`BIN`]: 5 s.
const LASTING: usize = 50;
/// Least ratio of the lower rate to the higher one at which two flows count as alike.
const ALIKE: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equals_and_a_half_for_one_alone() {
        assert_eq!(jain([0.4, 0.4]), 1.0);
        assert_eq!(jain([0.7, 0.0]), 0.5);
        assert!((jain([0.6, 0.3]) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn two_are_alike_when_the_less_has_four_fifths_for_five_seconds() {
        // The second starts after 1 s, has half the rate for 4 s, then the same rate.
        let first = vec![100; 200];
        let second = [vec![0; 10], vec![50; 40], vec![100; 150]].concat();
        let alike = alike(&[first.clone(), second]);
        // 12 of 20 bins at full rate and 8 at half are four fifths.
        assert_eq!(alike_after(&alike, 10), Some(5.1));
        assert_eq!(share_of(&alike), 139.0 / 200.0);
        let never = self::alike(&[first, vec![70; 200]]);
        assert_eq!(alike_after(&never, 0), None);
    }
}
