use std::time::Duration;

use tautline_units::{Bitrate, ByteCount, Instant};
use tautline_video::{Layout, Reduction, stamp};

/// The plan of how often a picture is coded, and how large, by what the links carry.
///
/// Of the source's pictures every `interval`th is coded: as often as the budget pays for pictures at the
/// [acceptable quantizer](QUANTIZER_ACCEPTABLE), and no more seldom than [`RATE_WHOLE`]. Below that they are coded
/// smaller, by whole factors, and of the smallest fewer, down to [`RATE_LEAST`]; below that they become
/// coarser. A picture is not begun while those before it keep the links busy, and none is larger than the links
/// carry in [`SEND_MAX`]. Pure: what is known goes in, with the time.
///
/// A rate that does not do for [`SHORT_FOR`] is left; the next higher one must have had [amply](AMPLE) what
/// it needs for [`AMPLE_FOR`]. What a picture needs falls with the rate's rise, so that neither undoes the other.
/// A size is left likewise; what pictures of the next larger one need is known by experience alone, so that each time
/// that one did not do it is waited for twice as long.
#[derive(Clone, Debug)]
pub struct Governor {
    /// Whether anything follows the budget but the pictures' size.
    follows: bool,
    /// Pictures a second of the source.
    source: f64,
    /// Whether its strips come one after the other.
    gives_rows: bool,
    /// Every so many of its pictures one is coded.
    interval: u32,
    /// How many times smaller than the source's pictures are, at most, and at present.
    reduction_max: usize,
    reduction: usize,
    /// How long the next larger size must have been paid for, and since when it has been.
    enlarge_after: Duration,
    enlarged_at: Option<Instant>,
    /// bit/s, as granted.
    granted: f64,
    /// The same, smoothed: by this the rate is chosen.
    budget: f64,
    /// Bytes that a picture takes at the acceptable quantizer, smoothed; `None` before one was coded.
    need: Option<f64>,
    short_since: Option<Instant>,
    ample_since: Option<Instant>,
    large_since: Option<Instant>,
    /// When the links will have carried what was handed over, at the budget of the time.
    busy_until: Instant,
    /// The picture that was begun last.
    taken: Option<u32>,
    /// The time until the next one, and what it may take.
    time: Duration,
    size: ByteCount,
    /// bit/s, of which that was made.
    sized_by: f64,
    /// When the session was granted something, and its first picture was begun.
    granted_at: Option<Instant>,
    begun_at: Option<Instant>,
    /// bit/s that the links have shown in this session that they carry.
    shown: f64,
    paused_at: Instant,
    seen_at: Instant,
}

/// What becomes of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taking {
    /// It is coded.
    Taken,
    /// It is left out for the screen, which cannot keep up with so many.
    LeftOutForScreen,
    /// It is left out for the links, which carry better pictures if they are fewer.
    LeftOutForLinks,
    /// Those before it still keep the links busy.
    Waits,
    /// Nothing may be sent.
    Paused,
}

impl Governor {
    /// Makes a plan for a source of so many pictures a second, of whose links nothing is known.
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

    /// Makes one that has every picture coded that the screen takes, whatever the budget.
    pub fn every_picture() -> Self {
        Self { follows: false, ..Self::new(60.0) }
    }

    /// Takes the source's pictures a second, whether its strips come one after the other, and how its pictures are
    /// laid out; another source may have been opened.
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

    /// Takes note of a new session, over links of which nothing is known.
    pub fn handle_new_session(&mut self) {
        let Self { follows, gives_rows, need, reduction, reduction_max, .. } = *self;
        let new = Self::new(self.source);
        *self = Self { follows, gives_rows, need, reduction, reduction_max, ..new };
    }

    /// Takes the rate that all slices together may take.
    pub fn set_budget(&mut self, budget: Bitrate, now: Instant) {
        let was_paused = self.granted == 0.0;
        self.granted = budget.as_f64();
        match (was_paused, self.granted == 0.0) {
            (false, true) => self.paused_at = now,
            // What was known before a long pause is not.
            (true, false) if now.since(self.paused_at) >= PAUSE_LONG => {
                self.budget = self.rate(now);
                (self.short_since, self.ample_since) = (None, None);
            }
            (true, false | true) | (false, false) => {}
        }
    }

    /// Takes note of what the links have shown that they carry at least: so much need not be tried out.
    pub fn note_shown(&mut self, shown: Bitrate) {
        self.shown = self.shown.max(shown.as_f64());
    }

    /// Takes what a picture would have taken at the acceptable quantizer.
    pub fn note_need(&mut self, bytes: ByteCount) {
        let bytes = bytes.get() as f64;
        self.need = Some(match self.need {
            Some(need) => need + (bytes - need) * NEED_SHARE,
            None => bytes,
        });
    }

    /// Takes note of a slice that was handed over.
    pub fn note_slice(&mut self, bytes: ByteCount, now: Instant) {
        // What a burst leaves of the budget of the moment says nothing of how long it takes.
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

    /// Returns what becomes of a picture of the source that begins now, of which the screen keeps up with one in
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

    /// Returns whether pictures of this session have begun: the first waits until links have shown what they carry, which
    /// says how large and how many the first are, or until it is clear that they will not.
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

    /// Returns what the picture begun last may take, as its next strip is coded; `None` if that strip would not
    /// be sent in time, or at all.
    ///
    /// Strips that come all at once, or seldom, find the links busy with those before them: what was granted when
    /// their picture began holds for all of them. Otherwise the budget of the moment does.
    pub fn size(&self, now: Instant) -> Option<ByteCount> {
        if self.granted == 0.0 || self.waits(STRIP_WAIT_MAX, now) {
            return None;
        }
        Some(if self.bursts() { self.size } else { self.size_now(now) })
    }

    /// Returns whether strips come all at once, or seldom.
    fn bursts(&self) -> bool {
        self.follows && (self.interval > 1 || !self.gives_rows)
    }

    fn size_now(&self, now: Instant) -> ByteCount {
        let most = if self.follows { SEND_MAX } else { Duration::MAX };
        // Nothing of a burst is left in the links when the next one comes.
        let share = BURST_SHARE - (BURST_SHARE - BURST_SHARE_THIN) * self.thinness();
        let time = if self.bursts() { self.time.mul_f64(share) } else { self.time };
        Bitrate::from_bps(self.rate(now) as u64) * time.min(most)
    }

    /// Returns the picture interval: every so many of the source's pictures one is coded.
    pub fn interval(&self) -> u32 {
        self.interval
    }

    /// Returns how many times smaller than the source's pictures are, in width and in height.
    pub fn reduction(&self) -> usize {
        self.reduction
    }

    /// Returns the pictures a second that are coded.
    pub fn picture_rate(&self) -> f64 {
        self.source / f64::from(self.interval)
    }

    /// Returns what a picture takes at the acceptable quantizer.
    pub fn need(&self) -> ByteCount {
        ByteCount::new(self.need.unwrap_or(0.0) as u64)
    }

    /// Returns whether no picture is begun, for those before still keep the links busy.
    pub fn is_busy(&self, now: Instant) -> bool {
        self.waits(PICTURE_WAIT_MAX, now)
    }

    /// Returns whether what was handed over keeps links that are thin busy for longer. What a dip of thick ones made
    /// wait is gone a moment after it.
    fn waits(&self, most: Duration, now: Instant) -> bool {
        self.follows && self.rate(now) < THICK && self.busy_until.since(now) > most
    }

    /// Returns the most that a session's first pictures take: links of which nothing is known are tried out.
    fn ramp(&self, now: Instant) -> f64 {
        let since = self.begun_at.map_or(Duration::ZERO, |begun_at| now.since(begun_at));
        let doublings = since.as_secs_f64() / RAMP_DOUBLING.as_secs_f64();
        // Up to what the links have shown there is little to be found out, and beyond it much.
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

    /// Returns what a session begins with: half of what thin links have shown, for headers and repair take the rest.
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

    /// Returns how thin the links are: 0 from [`THIN`] on, up to 1.
    fn thinness(&self) -> f64 {
        (1.0 - self.granted / THIN).clamp(0.0, 1.0)
    }

    /// Returns whether headers are little beside what pictures get at this interval.
    fn pays_for_headers(&self, interval: u32) -> bool {
        self.source / f64::from(interval) * HEADERS_BITS <= self.budget * HEADERS_SHARE
    }

    /// Returns what share of what more or larger pictures need must be paid for before there are such.
    fn ample(&self) -> f64 {
        AMPLE + (AMPLE_THIN - AMPLE) * self.thinness()
    }

    /// Returns the intervals that may be chosen, ascending.
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

    /// Returns the share of what pictures need at this interval that the budget pays for.
    fn paid(&self, interval: u32) -> f64 {
        self.paid_for(self.need, interval)
    }

    fn paid_for(&self, need: Option<f64>, interval: u32) -> f64 {
        let Some(need) = need else { return 1.0 };
        let more = self.source / f64::from(interval) - self.picture_rate();
        // More slices have more headers, of which the budget has taken off those of today alone.
        let budget = self.budget - more.max(0.0) * HEADERS_BITS;
        budget / (need.max(1.0) * 8.0 * self.source / f64::from(interval))
    }

    fn choose(&mut self, now: Instant) {
        let elapsed = now.since(self.seen_at).as_secs_f64();
        self.seen_at = self.seen_at.max(now);
        let share = 1.0 - (-elapsed / BUDGET_MEMORY.as_secs_f64()).exp();
        self.budget += (self.rate(now) - self.budget) * share;
        // While links are tried out, and found to carry more each moment, there is nothing to wait for.
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

    /// Makes pictures smaller, as often as they were or as the budget pays for.
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

    /// Returns the interval at which pictures of the next larger size would be coded, if the budget amply pays for that.
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

/// Returns how many times fewer bytes a picture is taken to need that is so many times smaller.
fn needs(reduction: usize) -> f64 {
    (reduction as f64).powf(NEED_BY_SIZE)
}

/// A coarser one is worse than fewer pictures, down to the least rate: docs/budget.md has the table.
pub const QUANTIZER_ACCEPTABLE: f64 = 38.0;
/// Pictures a second, however little the links carry, and one more now and then for one that is held.
const RATE_LEAST: f64 = 5.5;
/// Of pictures that can be made smaller: fewer of them are worse than smaller ones.
const RATE_WHOLE: f64 = 7.4;
/// So many larger ones must be paid for before pictures become larger.
const RATE_ENLARGED: f64 = 10.0;
/// A third of 1280 pixels still has room for the stamp.
const REDUCTION_MAX: usize = 3;
/// bit/s: a session over links that have shown less begins with pictures of half the size, and of a third.
const REDUCED_BELOW: [f64; 2] = [800e3, 350e3];
/// Links that show nothing are taken for such.
const SHOWN_UNKNOWN: f64 = 500e3;
/// And with so many a second, until more is known.
const RATE_FIRST: f64 = 12.0;
/// Links show what they carry a round trip after the first answer; one that shows nothing is not waited for.
const SHOWN_WITHIN: Duration = Duration::from_millis(150);
/// Half the width and height are taken to need 2.6 times fewer bytes at the same quantizer. Where that is wrong, the
/// wait before a larger size makes up for it.
const NEED_BY_SIZE: f64 = 1.4;
const ENLARGE_AFTER_MAX: Duration = Duration::from_secs(60);
/// Intervals between the pictures that are coded: of 60 a second 30, 20, 15, 10, 7.5 and 5.
const STEPS: [u32; 7] = [1, 2, 3, 4, 6, 8, 12];
/// A picture is on its way for no longer, so that its last slice is not too old: half of what a picture has.
const SEND_MAX: Duration = Duration::from_millis(80);
/// The share of the time between two pictures in which one that comes all at once is sent.
const BURST_SHARE: f64 = 0.75;
/// Of thin links, of which it is known less well what they carry.
const BURST_SHARE_THIN: f64 = 0.55;
/// While the links are busy for longer, no picture is begun.
const PICTURE_WAIT_MAX: Duration = Duration::from_millis(30);
/// While they are busy for longer, no strip is coded: it would not be in time.
const STRIP_WAIT_MAX: Duration = Duration::from_millis(120);
/// A budget below this leaves some of it, the more the less it is: of a thin link a datagram is a long time, and what
/// it carries is known less well.
const THIN: f64 = 600e3;
const HEADROOM: f64 = 0.4;
/// Links that carry so much keep no picture waiting.
const THICK: f64 = 2e6;
/// What was handed over counts for no longer: it is too old by then.
const BUSY_MAX: Duration = Duration::from_secs(1);
/// Of a new session: what the thinnest link bears.
const RAMP_FIRST: f64 = 200e3;
/// Of what thick links have shown that they carry, so much is sent at once: it may be more than they do for long.
const SHOWN_SHARE: f64 = 0.5;
/// Three round trips of a mobile link: what is too much shows before the next step.
const RAMP_DOUBLING: Duration = Duration::from_millis(150);
/// Beyond what links have shown each step lasts so many times longer: what one too much leaves waiting takes seconds.
const BEYOND_SHOWN: f64 = 3.0;
/// As long a session's links are new: a session over thick ones has its full rate by then.
const TRIAL: Duration = Duration::from_secs(3);
const BUDGET_MEMORY: Duration = Duration::from_millis(300);
const NEED_SHARE: f64 = 0.05;
/// As long as a link may be without an answer before it counts as silent.
const PAUSE_LONG: Duration = Duration::from_millis(250);
/// A link that stalls for less changes nothing.
const SHORT_FOR: Duration = Duration::from_millis(400);
const AMPLE: f64 = 1.3;
/// Of thin links, whose budget swings and where one picture too many makes several late.
const AMPLE_THIN: f64 = 2.2;
const AMPLE_FOR: Duration = Duration::from_secs(3);
/// Of six slices: a slice's own header, a unit's prefix, a datagram's.
const HEADERS_BITS: f64 = 6.0 * 67.0 * 8.0;
/// Of a budget, that headers may take besides where more pictures are chosen: beyond, each says little more.
const HEADERS_SHARE: f64 = 0.125;

#[cfg(test)]
mod tests;
