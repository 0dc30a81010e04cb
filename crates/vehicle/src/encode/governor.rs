use std::time::Duration;

use tautline_units::{Bitrate, ByteCount, Instant};
use tautline_video::{Layout, Reduction, stamp};

/// Controller of the picture rate and picture size, by the link budget.
///
/// Every `interval`th picture of the source is coded: as many as the budget pays for at the
/// [acceptable quantizer](QUANTIZER_ACCEPTABLE), and at least [`RATE_WHOLE`] per second. If the
/// budget does not pay for that rate, pictures are reduced by integer factors. At the smallest size
/// the rate falls to [`RATE_LEAST`]; below that, pictures become coarser. A picture is not begun
/// while earlier ones keep the links busy. None is larger than the links carry within [`SEND_MAX`].
/// Pure: the state of the links and the time are arguments.
///
/// A rate that the budget does not pay for during [`SHORT_FOR`] is lowered. It rises once the
/// budget pays [amply](AMPLE) for the next higher rate during [`AMPLE_FOR`]. A picture needs fewer
/// bytes at a higher rate, so the two rules do not undo each other. The size changes in the same
/// manner. The bytes needed at the next larger size are known only by trial, so each failed trial
/// doubles the wait before the next.
#[derive(Clone, Debug)]
pub struct Governor {
    /// True if the rate and the scale follow the budget, and not only the bytes per picture.
    follows: bool,
    /// Pictures per second of the source.
    source: f64,
    /// True if the source's strips arrive one after another, and not all at once.
    gives_rows: bool,
    /// Picture interval: one of this many pictures is coded.
    interval: u32,
    /// Greatest factor by which pictures may be reduced; `reduction` is the current one.
    reduction_max: usize,
    reduction: usize,
    /// Time for which the budget must pay for the next larger size before it is used; `enlarged_at`
    /// is the instant of the latest enlargement.
    enlarge_after: Duration,
    enlarged_at: Option<Instant>,
    /// Newest budget of the links for video in bit/s; 0 while nothing may be sent.
    granted: f64,
    /// Smoothed granted rate in bit/s, which determines the picture rate.
    budget: f64,
    /// Smoothed size in bytes of a picture at the acceptable quantizer; `None` before the first.
    need: Option<f64>,
    short_since: Option<Instant>,
    ample_since: Option<Instant>,
    large_since: Option<Instant>,
    /// Instant at which the links will have sent everything handed over, at the budget of that
    /// time.
    busy_until: Instant,
    /// Number of the picture begun last; `None` before the first.
    taken: Option<u32>,
    /// Time from the picture begun last to the next coded one; `size` is the size allowed for the
    /// picture begun last, all strips together.
    time: Duration,
    size: ByteCount,
    /// Rate in bit/s from which `size` was computed.
    sized_by: f64,
    /// Instant of the session's first picture at a granted rate; `begun_at` is that of its first
    /// coded picture. Both are `None` before it.
    granted_at: Option<Instant>,
    begun_at: Option<Instant>,
    /// Rate in bit/s that the links have shown to carry in this session; 0 before they have.
    shown: f64,
    paused_at: Instant,
    seen_at: Instant,
}

/// Decision about a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taking {
    /// Code it.
    Taken,
    /// Skip it: the screen cannot keep up with the picture rate.
    LeftOutForScreen,
    /// Skip it: the links carry fewer pictures at a better quality.
    LeftOutForLinks,
    /// Skip it: earlier pictures still keep the links busy, or the links of a new session have not
    /// yet shown a rate.
    Waits,
    /// Skip it: nothing may be sent.
    Paused,
}

impl Governor {
    /// Creates a governor for a source of `pictures_per_second`, with nothing known of the links.
    pub fn new(pictures_per_second: f64) -> Self {
        let source = pictures_per_second.max(1.0);
        Self {
            follows: true,
            source,
            gives_rows: true,
            interval: 1,
            reduction_max: 1,
            reduction: 1,
            enlarge_after: AMPLE_FOR,
            enlarged_at: None,
            granted: 0.0,
            budget: 0.0,
            need: None,
            short_since: None,
            ample_since: None,
            large_since: None,
            busy_until: Instant::ZERO,
            taken: None,
            time: Duration::from_secs_f64(1.0 / source),
            size: ByteCount::ZERO,
            sized_by: 0.0,
            granted_at: None,
            begun_at: None,
            shown: 0.0,
            paused_at: Instant::ZERO,
            seen_at: Instant::ZERO,
        }
    }

    /// Creates a governor that codes every picture that the screen takes, at any budget above zero.
    pub fn every_picture() -> Self {
        Self { follows: false, ..Self::new(60.0) }
    }

    /// Sets the source's picture rate, whether its strips arrive one after another, and its layout,
    /// also when another source was opened. Reduction and picture interval are limited to what the
    /// source allows.
    pub fn set_source(&mut self, pictures_per_second: f64, gives_rows: bool, layout: &Layout) {
        self.source = pictures_per_second.max(1.0);
        self.gives_rows = gives_rows;
        self.time = Duration::from_secs_f64(1.0 / self.source);
        let fits = |factor: &usize| {
            let reduced = Reduction::new(layout, *factor);
            reduced.is_ok_and(|reduced| reduced.layout().shown().0 >= stamp::WIDTH)
        };
        self.reduction_max =
            if self.follows { (1..=REDUCTION_MAX).take_while(fits).last().unwrap_or(1) } else { 1 };
        self.reduce(self.reduction.min(self.reduction_max));
        self.interval = self.interval.min(*self.intervals().last().unwrap_or(&1));
    }

    /// Starts a new session: what was observed of the links is forgotten, nothing may be sent
    /// before the next budget, and the size of the pictures and their need of bytes are kept.
    pub fn handle_new_session(&mut self) {
        let Self { follows, gives_rows, need, reduction, reduction_max, .. } = *self;
        let new = Self::new(self.source);
        *self = Self { follows, gives_rows, need, reduction, reduction_max, ..new };
    }

    /// Sets the total rate for all slices. After 250 ms or more at a rate of zero, the smoothed
    /// rate and the waits for a change of rate begin anew.
    pub fn set_budget(&mut self, budget: Bitrate, now: Instant) {
        let was_paused = self.granted == 0.0;
        self.granted = budget.as_f64();
        match (was_paused, self.granted == 0.0) {
            (false, true) => self.paused_at = now,
            // After a long pause, earlier observations of the links are outdated.
            (true, false) if now.since(self.paused_at) >= PAUSE_LONG => {
                self.budget = self.rate(now);
                (self.short_since, self.ample_since) = (None, None);
            }
            (true, false | true) | (false, false) => {}
        }
    }

    /// Records a rate that the links have shown to carry at least, which needs no probing.
    pub fn note_shown(&mut self, shown: Bitrate) {
        self.shown = self.shown.max(shown.as_f64());
    }

    /// Records the size that a picture would have at the acceptable quantizer, in a moving mean.
    pub fn note_need(&mut self, bytes: ByteCount) {
        let bytes = bytes.get() as f64;
        self.need = Some(match self.need {
            Some(need) => need + (bytes - need) * NEED_SHARE,
            None => bytes,
        });
    }

    /// Adds the send time of a slice that was handed over to the backlog of the links, which is at
    /// most [`BUSY_MAX`]. No effect while no rate is known.
    pub fn note_slice(&mut self, bytes: ByteCount, now: Instant) {
        // The momentary budget left by a burst does not show how long the burst takes.
        let rate = match self.bursts() || self.granted == 0.0 {
            true => self.sized_by,
            false => self.rate(now),
        };
        if rate > 0.0 {
            let time = (bytes.get() as f64 * 8.0 / rate).min(BUSY_MAX.as_secs_f64());
            let until = self.busy_until.max(now) + Duration::from_secs_f64(time);
            self.busy_until = until.min(now + BUSY_MAX);
        }
    }

    /// Decides on a picture of the source that begins now; the screen keeps up with one in
    /// `screen_interval`.
    pub fn take(&mut self, picture: u32, screen_interval: u32, now: Instant) -> Taking {
        if self.follows {
            self.choose(now);
        }
        let since = self.taken.map_or(u32::MAX, |taken| picture.wrapping_sub(taken));
        if since < screen_interval {
            return Taking::LeftOutForScreen;
        }
        if since < self.interval {
            return Taking::LeftOutForLinks;
        }
        if self.granted == 0.0 {
            return Taking::Paused;
        }
        if self.is_busy(now) || self.follows && !self.begins(now) {
            return Taking::Waits;
        }
        self.taken = Some(picture);
        self.time =
            Duration::from_secs_f64(f64::from(self.interval.max(screen_interval)) / self.source);
        (self.size, self.sized_by) = (self.size_now(now), self.rate(now));
        Taking::Taken
    }

    /// Returns whether pictures of this session have begun or may begin now. The first picture
    /// waits until the links have shown their capacity, which determines the initial size and rate,
    /// or until [`SHOWN_WITHIN`] has passed.
    fn begins(&mut self, now: Instant) -> bool {
        if self.begun_at.is_some() {
            return true;
        }
        let granted_at = *self.granted_at.get_or_insert(now);
        if self.shown == 0.0 && now.since(granted_at) < SHOWN_WITHIN {
            return false;
        }
        let shown = if self.shown > 0.0 { self.shown } else { SHOWN_UNKNOWN };
        let steps = REDUCED_BELOW.iter().filter(|below| shown < **below).count();
        self.reduce((1 + steps).min(self.reduction_max));
        if self.shown * SHOWN_SHARE < THICK {
            let rate = if steps < REDUCED_BELOW.len() { RATE_FIRST } else { RATE_LEAST };
            let most = (self.source / rate + 1e-6) as u32;
            let intervals = self.intervals();
            self.interval = intervals.into_iter().rfind(|step| *step <= most).unwrap_or(1);
        }
        self.begun_at = Some(now);
        true
    }

    /// Returns the size allowed for the current picture when its next strip is coded; `None` if
    /// that strip would be late or cannot be sent.
    ///
    /// For strips in bursts, the grant at the start of the picture holds for all its strips: each
    /// strip finds the links busy with earlier ones. Otherwise the current budget applies.
    pub fn size(&self, now: Instant) -> Option<ByteCount> {
        if self.granted == 0.0 || self.waits(STRIP_WAIT_MAX, now) {
            return None;
        }
        Some(if self.bursts() { self.size } else { self.size_now(now) })
    }

    /// Returns whether strips come in bursts: all at once, or with frame decimation. False if the
    /// picture rate does not follow the budget.
    fn bursts(&self) -> bool {
        self.follows && (self.interval > 1 || !self.gives_rows)
    }

    fn size_now(&self, now: Instant) -> ByteCount {
        let most = if self.follows { SEND_MAX } else { Duration::MAX };
        // A burst leaves the links empty before the next one begins.
        let share = BURST_SHARE - (BURST_SHARE - BURST_SHARE_THIN) * self.thinness();
        let time = if self.bursts() { self.time.mul_f64(share) } else { self.time };
        Bitrate::from_bps(self.rate(now) as u64) * time.min(most)
    }

    /// Returns the picture interval: one of this many pictures of the source is coded.
    pub fn interval(&self) -> u32 {
        self.interval
    }

    /// Returns the factor by which pictures are reduced, in width and in height.
    pub fn reduction(&self) -> usize {
        self.reduction
    }

    /// Returns the rate of coded pictures, per second.
    pub fn picture_rate(&self) -> f64 {
        self.source / f64::from(self.interval)
    }

    /// Returns the smoothed size of a picture at the acceptable quantizer; zero before the first.
    pub fn need(&self) -> ByteCount {
        ByteCount::new(self.need.unwrap_or(0.0) as u64)
    }

    /// Returns whether no picture is begun because earlier ones keep low-rate links busy for longer
    /// than [`PICTURE_WAIT_MAX`].
    pub fn is_busy(&self, now: Instant) -> bool {
        self.waits(PICTURE_WAIT_MAX, now)
    }

    /// Returns whether the data handed over keeps low-rate links busy for longer than `most`. On
    /// fast links, the backlog of a dip drains right after it.
    fn waits(&self, most: Duration, now: Instant) -> bool {
        self.follows && self.rate(now) < THICK && self.busy_until.since(now) > most
    }

    /// Returns the upper limit of the rate at `now` in bit/s. It grows from the start of a session,
    /// because links of unknown capacity are probed.
    fn ramp(&self, now: Instant) -> f64 {
        let since = self.begun_at.map_or(Duration::ZERO, |begun_at| now.since(begun_at));
        let doublings = since.as_secs_f64() / RAMP_DOUBLING.as_secs_f64();
        // Growth is fast up to the rate that the links have shown, and slow beyond it.
        let first = self.first();
        let known = (self.shown / first).log2().clamp(0.0, doublings);
        let beyond = match self.shown > 0.0 {
            true => (doublings - known) / BEYOND_SHOWN,
            false => doublings - known,
        };
        let tried = first * (known + beyond).min(30.0).exp2();
        let shown = self.shown * SHOWN_SHARE;
        if shown < THICK { tried } else { tried.max(shown) }
    }

    /// Returns the initial rate of a session in bit/s: half of the rate that the links have shown,
    /// at most [`RAMP_FIRST`], which also applies before they have shown any. Headers and repair
    /// need the rest.
    fn first(&self) -> f64 {
        match self.shown > 0.0 {
            true => RAMP_FIRST.min(self.shown * SHOWN_SHARE),
            false => RAMP_FIRST,
        }
    }

    fn rate(&self, now: Instant) -> f64 {
        if !self.follows {
            return self.granted;
        }
        (self.granted * (1.0 - HEADROOM * self.thinness())).min(self.ramp(now))
    }

    /// Returns how far the grant lies below [`THIN`]: 0 at [`THIN`] or more, up to 1.
    fn thinness(&self) -> f64 {
        (1.0 - self.granted / THIN).clamp(0.0, 1.0)
    }

    /// Returns whether headers take at most [`HEADERS_SHARE`] of the budget at this interval.
    fn pays_for_headers(&self, interval: u32) -> bool {
        self.source / f64::from(interval) * HEADERS_BITS <= self.budget * HEADERS_SHARE
    }

    /// Returns the ratio of budget to need required before the rate or the size rises.
    fn ample(&self) -> f64 {
        AMPLE + (AMPLE_THIN - AMPLE) * self.thinness()
    }

    /// Returns the picture intervals to choose from at the current size, ascending. They leave at
    /// least [`RATE_WHOLE`] pictures per second, or [`RATE_LEAST`] if the size cannot be reduced
    /// further, unless the source has fewer.
    fn intervals(&self) -> Vec<u32> {
        let least = if self.reduction < self.reduction_max { RATE_WHOLE } else { RATE_LEAST };
        let most = ((self.source / least + 1e-6) as u32).max(1);
        let steps = STEPS.into_iter().filter(|step| *step <= most);
        let mut steps: Vec<u32> = steps.collect();
        if steps.last().is_some_and(|last| self.source / f64::from(*last) > least * 1.2) {
            steps.push(most);
        }
        steps
    }

    /// Returns the ratio of the budget to the need at this interval; 1 if the need is unknown.
    fn paid(&self, interval: u32) -> f64 {
        self.paid_for(self.need, interval)
    }

    fn paid_for(&self, need: Option<f64>, interval: u32) -> f64 {
        let Some(need) = need else { return 1.0 };
        let more = self.source / f64::from(interval) - self.picture_rate();
        // The budget already excludes the headers of the current slices only; additional slices add
        // headers.
        let budget = self.budget - more.max(0.0) * HEADERS_BITS;
        budget / (need.max(1.0) * 8.0 * self.source / f64::from(interval))
    }

    fn choose(&mut self, now: Instant) {
        let elapsed = now.since(self.seen_at).as_secs_f64();
        self.seen_at = self.seen_at.max(now);
        let share = 1.0 - (-elapsed / BUDGET_MEMORY.as_secs_f64()).exp();
        self.budget += (self.rate(now) - self.budget) * share;
        // During the initial probing the shown rate grows constantly, so a larger size need not
        // wait.
        let is_new = self.begun_at.is_none_or(|begun_at| now.since(begun_at) < TRIAL);
        if is_new && self.reduction > 1 && self.shown * SHOWN_SHARE >= THICK {
            self.reduce(1);
        }
        let intervals = self.intervals();
        let is_short = self.paid(self.interval) < 1.0;
        self.short_since = is_short.then(|| self.short_since.unwrap_or(now));
        if self.short_since.is_some_and(|since| now.since(since) >= SHORT_FOR) {
            let mut longer = intervals.iter().copied().filter(|step| *step > self.interval);
            match longer.clone().find(|step| self.paid(*step) >= 1.0) {
                Some(paid) => self.set_interval(Some(paid)),
                None if self.reduction < self.reduction_max => self.shrink(now),
                None => self.set_interval(longer.next_back()),
            }
            return;
        }
        let larger = self.interval_of_larger();
        self.large_since = larger.map(|_| self.large_since.unwrap_or(now));
        if self.large_since.is_some_and(|since| now.since(since) >= self.enlarge_after) {
            self.reduce(self.reduction - 1);
            self.enlarged_at = Some(now);
            self.set_interval(larger);
            return;
        }
        let shorter = intervals.iter().copied().rfind(|step| *step < self.interval);
        let is_ample = shorter
            .is_some_and(|step| self.paid(step) >= self.ample() && self.pays_for_headers(step));
        self.ample_since = is_ample.then(|| self.ample_since.unwrap_or(now));
        let ample_for = if is_new { RAMP_DOUBLING } else { AMPLE_FOR };
        if self.ample_since.is_some_and(|since| now.since(since) >= ample_for) {
            self.set_interval(shorter);
        }
    }

    fn set_interval(&mut self, interval: Option<u32>) {
        self.interval = interval.unwrap_or(self.interval);
        (self.short_since, self.ample_since) = (None, None);
    }

    /// Reduces pictures by one more step, at the same rate or at a lower one that the budget pays
    /// for. Soon after an enlargement, also doubles the wait before the next.
    fn shrink(&mut self, now: Instant) {
        if self.enlarged_at.is_some_and(|at| now.since(at) < self.enlarge_after * 4) {
            self.enlarge_after = (self.enlarge_after * 2).min(ENLARGE_AFTER_MAX);
        }
        self.reduce(self.reduction + 1);
        let intervals = self.intervals();
        let paid =
            intervals.iter().find(|step| **step >= self.interval && self.paid(**step) >= 1.0);
        let interval = paid.or(intervals.last()).copied();
        self.set_interval(interval);
    }

    /// Returns the longest picture interval that leaves [`RATE_ENLARGED`], if pictures are reduced
    /// and the budget amply pays for the next larger size at that interval; `None` otherwise.
    fn interval_of_larger(&self) -> Option<u32> {
        let larger = self.reduction.checked_sub(1).filter(|larger| *larger > 0)?;
        let need = self.need? * needs(self.reduction) / needs(larger);
        let most = ((self.source / RATE_ENLARGED + 1e-6) as u32).max(1);
        let interval = STEPS.into_iter().rfind(|step| *step <= most)?;
        (self.paid_for(Some(need), interval) >= self.ample()).then_some(interval)
    }

    fn reduce(&mut self, reduction: usize) {
        self.need = self.need.map(|need| need * needs(self.reduction) / needs(reduction));
        self.reduction = reduction;
        self.large_since = None;
    }
}

/// Returns the assumed ratio of the bytes of a full picture to those of one reduced by this factor.
fn needs(reduction: usize) -> f64 {
    (reduction as f64).powf(NEED_BY_SIZE)
}

/// Quantizer beyond which a coarser picture is worse than a lower rate, down to the least rate:
/// docs/budget.md has the table.
pub const QUANTIZER_ACCEPTABLE: f64 = 38.0;
/// Lower bound of the rate, in pictures per second: 5, with a margin for a picture that is held now
/// and then.
const RATE_LEAST: f64 = 5.5;
/// Lower bound of the rate, in pictures per second, while pictures can be reduced: below it,
/// smaller pictures are better than fewer.
const RATE_WHOLE: f64 = 7.4;
/// Rate, in pictures per second, that the budget must pay for at the larger size before pictures
/// are enlarged.
const RATE_ENLARGED: f64 = 10.0;
/// Greatest factor by which the budget reduces pictures: a third of 1280 pixels still has room for
/// the stamp.
const REDUCTION_MAX: usize = 3;
/// Rates shown by the links, in bit/s, below which a session begins with pictures of half the width
/// and height, and of a third.
const REDUCED_BELOW: [f64; 2] = [800e3, 350e3];
/// Rate in bit/s assumed of links that have shown none.
const SHOWN_UNKNOWN: f64 = 500e3;
/// Initial picture rate, per second, unless the links have shown that they are fast.
const RATE_FIRST: f64 = 12.0;
/// Time for which a new session waits for the links' first shown rate before it begins without one;
/// the links need one round trip after the first answer.
const SHOWN_WITHIN: Duration = Duration::from_millis(150);
/// Exponent of the reduction in the bytes it saves: pictures of half the width and height are
/// assumed to need 2.6 times fewer bytes at the same quantizer. Errors are compensated by the wait
/// before an enlargement.
const NEED_BY_SIZE: f64 = 1.4;
const ENLARGE_AFTER_MAX: Duration = Duration::from_secs(60);
/// Picture intervals to choose from: of 60 pictures per second they leave 60, 30, 20, 15, 10, 7.5
/// and 5.
const STEPS: [u32; 7] = [1, 2, 3, 4, 6, 8, 12];
/// Upper bound of a picture's send time, so that its last slice is not too old: half of a picture's
/// age limit.
const SEND_MAX: Duration = Duration::from_millis(80);
/// Share of the time to the next coded picture within which a picture that is sent as a burst must
/// leave the links.
const BURST_SHARE: f64 = 0.75;
/// [`BURST_SHARE`] over low-rate links, whose capacity is known less precisely.
const BURST_SHARE_THIN: f64 = 0.55;
/// Backlog of the links above which no picture is begun.
const PICTURE_WAIT_MAX: Duration = Duration::from_millis(30);
/// Backlog of the links above which no strip is coded, because it would be late.
const STRIP_WAIT_MAX: Duration = Duration::from_millis(120);
/// Granted rate in bit/s below which a part of the budget is left unused, larger the lower the rate
/// is. On such links one datagram takes long, and the capacity is known less precisely.
const THIN: f64 = 600e3;
const HEADROOM: f64 = 0.4;
/// Rate in bit/s from which links never make a picture wait.
const THICK: f64 = 2e6;
/// Upper bound of the backlog: older data is outdated anyway.
const BUSY_MAX: Duration = Duration::from_secs(1);
/// Initial rate of a session in bit/s, which the slowest usable link carries.
const RAMP_FIRST: f64 = 200e3;
/// Share of the shown rate used at once: fast links may not sustain all of it.
const SHOWN_SHARE: f64 = 0.5;
/// Time in which the initial rate doubles: three round trips of a mobile link, so that an overload
/// shows before the next step.
const RAMP_DOUBLING: Duration = Duration::from_millis(150);
/// Factor by which the initial rate's growth is slower beyond the rate that the links have shown:
/// the backlog of one step too many lasts for seconds.
const BEYOND_SHOWN: f64 = 3.0;
/// Time for which a session's links count as new: over fast links a session has its full rate by
/// then.
const TRIAL: Duration = Duration::from_secs(3);
const BUDGET_MEMORY: Duration = Duration::from_millis(300);
const NEED_SHARE: f64 = 0.05;
/// Pause of the budget after which the smoothed budget starts anew: the time without an answer
/// after which a link counts as silent.
const PAUSE_LONG: Duration = Duration::from_millis(250);
/// Time for which the budget must fall short before the rate or the size is lowered; shorter stalls
/// of a link change nothing.
const SHORT_FOR: Duration = Duration::from_millis(400);
const AMPLE: f64 = 1.3;
/// Ratio of budget to need required before the rate or the size rises over low-rate links: their
/// budget fluctuates, and one picture too many makes several late.
const AMPLE_THIN: f64 = 2.2;
const AMPLE_FOR: Duration = Duration::from_secs(3);
/// Bits of the headers of one picture of six slices: slice header, unit prefix and datagram header
/// of each.
const HEADERS_BITS: f64 = 6.0 * 67.0 * 8.0;
/// Upper bound of the headers' share of the budget at a higher rate: beyond it, each picture
/// carries little more.
const HEADERS_SHARE: f64 = 0.125;

#[cfg(test)]
mod tests;
