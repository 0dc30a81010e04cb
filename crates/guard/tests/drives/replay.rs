use std::sync::OnceLock;

use crate::world::Rng;

/// Replay of commands recorded from a page in Chromium, in stretches from random positions. Each
/// stretch keeps the order of the recording, so that correlated delays stay correlated.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    rng: Rng,
    rows: &'static [Row],
    page: Page,
    due_ms: u64,
    under_way: Vec<Sent>,
    newest: Option<Sent>,
    /// Capture time of the newest cited picture.
    picture_at_ms: u64,
    /// Values at each millisecond from [`BEGIN_MS`] on.
    ages: Vec<Worst>,
}

/// Difference of a page from the recorded one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Page {
    /// Factor of the interval between two commands.
    pub(crate) interval_times: u64,
    /// Age of the pictures as a percentage of the recorded one.
    pub(crate) picture_percent: u64,
}

impl Page {
    pub(crate) const AS_RECORDED: Self = Self { interval_times: 1, picture_percent: 100 };
}

/// One recorded command.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Interval from the previous command.
    interval_ms: u64,
    /// Time from sending until the vehicle proposed the command.
    way_ms: u64,
    /// Age of the cited picture when the command was sent.
    picture_ms: u64,
}

/// A command in transit, for a verdict independent of the guard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) sequence: u64,
    pub(crate) comes_at_ms: u64,
    /// Capture time of the cited picture.
    pub(crate) picture_at_ms: u64,
}

/// Greatest age of the newest cited picture, and longest time without a command, in a span of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Worst {
    pub(crate) picture_ms: u64,
    pub(crate) silence_ms: u64,
}

impl Replay {
    /// Creates a replay of stretches drawn from `rng`.
    pub(crate) fn new(rng: Rng, page: Page) -> Self {
        Self {
            rng,
            rows: &[],
            page,
            due_ms: BEGIN_MS + 500,
            under_way: Vec::new(),
            newest: None,
            picture_at_ms: 0,
            ages: Vec::new(),
        }
    }

    /// Returns the transit time of a command sent at `now_ms` and the age of its picture, if a
    /// command is due.
    pub(crate) fn send(&mut self, now_ms: u64) -> Option<(u64, u64)> {
        if now_ms < self.due_ms {
            return None;
        }
        let row = self.next();
        let following = *self.rows.first().unwrap_or(&row);
        self.due_ms = now_ms + following.interval_ms * self.page.interval_times;
        Some((row.way_ms, row.picture_ms * self.page.picture_percent / 100))
    }

    /// Records a command in transit.
    pub(crate) fn note(&mut self, sent: Sent) {
        self.under_way.push(sent);
    }

    /// Processes the commands that arrived until `now_ms`, and records the values at that time.
    pub(crate) fn look(&mut self, now_ms: u64) {
        while let Some(at) = self.under_way.iter().position(|sent| sent.comes_at_ms <= now_ms) {
            let sent = self.under_way.swap_remove(at);
            if self.newest.is_none_or(|newest| newest.sequence < sent.sequence) {
                self.newest = Some(sent);
                self.picture_at_ms = self.picture_at_ms.max(sent.picture_at_ms);
            }
        }
        let came_at_ms = self.newest.map_or(0, |newest| newest.comes_at_ms);
        self.ages.push(Worst {
            picture_ms: now_ms - self.picture_at_ms,
            silence_ms: now_ms - came_at_ms,
        });
    }

    /// Returns the greatest values recorded from `from_ms` until `until_ms`.
    pub(crate) fn worst(&self, from_ms: u64, until_ms: u64) -> Worst {
        let ages = self.ages.iter().skip((from_ms - BEGIN_MS) as usize);
        ages.take((until_ms - from_ms) as usize).fold(
            Worst { picture_ms: 0, silence_ms: 0 },
            |worst, age| Worst {
                picture_ms: worst.picture_ms.max(age.picture_ms),
                silence_ms: worst.silence_ms.max(age.silence_ms),
            },
        )
    }

    /// Returns the next command; after the end of a stretch, the first of another one.
    fn next(&mut self) -> Row {
        if self.rows.is_empty() {
            let stints = stints();
            let count = stints.iter().map(|stint| stint.len() as u64).sum::<u64>();
            let mut at = (self.rng.next() % count) as usize;
            let holds = |stint: &&&'static [Row]| {
                let is_in = at < stint.len();
                at -= if is_in { 0 } else { stint.len() };
                is_in
            };
            let stint = *stints.iter().find(holds).expect("less than all of them");
            let rows = ROWS_MIN + (self.rng.next() % ROWS_SPAN) as usize;
            self.rows = &stint[at..(at + rows).min(stint.len())];
        }
        let (row, rest) = self.rows.split_first().expect("at least one");
        self.rows = rest;
        *row
    }
}

/// Returns the recorded commands, one slice for each uninterrupted part of the recording, without
/// the first command of each part.
fn stints() -> &'static [&'static [Row]] {
    static STINTS: OnceLock<Vec<&'static [Row]>> = OnceLock::new();
    STINTS.get_or_init(|| {
        let stints = RECORDED.split("stint\n").skip(1);
        stints.map(|stint| &*stint.lines().skip(1).map(row).collect::<Vec<_>>().leak()).collect()
    })
}

fn row(line: &str) -> Row {
    let mut numbers = line.split(',').map(|number| number.parse().expect("a number"));
    let mut next = || numbers.next().expect("three numbers");
    Row { interval_ms: next(), way_ms: next(), picture_ms: next() }
}

pub(crate) const RECORDED: &str = include_str!("recorded.csv");
/// Time in ms at which a drive begins.
pub(crate) const BEGIN_MS: u64 = 1_000;
/// Minimum number of commands in a stretch: half a second.
const ROWS_MIN: usize = 25;
/// Number of commands by which a stretch may exceed the minimum: four seconds.
const ROWS_SPAN: u64 = 200;
