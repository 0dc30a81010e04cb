use std::collections::VecDeque;
use std::sync::OnceLock;

use tautline_guard::identity::Tick;

/// A part of what was recorded of a page in Chromium: its commands, one by one, as they were sent.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    rows: &'static [Row],
    due_ms: u64,
    /// Of the newest ticks: when they were issued.
    issued: VecDeque<(u64, Tick)>,
    sent: Vec<Sent>,
}

/// One command.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// From the one before.
    interval_ms: u64,
    /// Until the vehicle proposed it.
    way_ms: u64,
    /// From the stamp of the picture that it cites.
    picture_ms: u64,
}

/// What became of one: for a verdict that asks no guard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) comes_at_ms: u64,
    pub(crate) cited: Tick,
    pub(crate) issued_at_ms: u64,
}

/// How old the newest picture cited was, and how long no command came, at the worst of some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Worst {
    pub(crate) picture_ms: u64,
    pub(crate) silence_ms: u64,
}

impl Replay {
    /// Returns a part that begins at `now_ms`, at the command that `number` draws.
    pub(crate) fn new(number: u64, now_ms: u64) -> Self {
        let starts = starts();
        let rows = starts[(number % starts.len() as u64) as usize];
        Self { rows, due_ms: now_ms + 500, issued: VecDeque::new(), sent: Vec::new() }
    }

    /// Takes note that a tick is issued.
    pub(crate) fn issue(&mut self, tick: Tick, now_ms: u64) {
        self.issued.push_back((now_ms, tick));
        if self.issued.len() > TICKS_KEPT {
            self.issued.pop_front();
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the next command that is sent until `now_ms`.
    pub(crate) fn send(&mut self, now_ms: u64) -> Option<Sent> {
        let (row, rest) = self.rows.split_first()?;
        if now_ms < self.due_ms {
            return None;
        }
        self.rows = rest;
        self.due_ms = now_ms + rest.first().map_or(0, |next| next.interval_ms);
        let stamped_at = now_ms.saturating_sub(row.picture_ms);
        let issued = self.issued.iter().rev().find(|(at, _)| *at <= stamped_at);
        let (issued_at_ms, cited) = *issued.or(self.issued.front())?;
        let sent = Sent { comes_at_ms: now_ms + row.way_ms, cited, issued_at_ms };
        self.sent.push(sent);
        Some(sent)
    }

    /// Returns what was worst from `from_ms` until `until_ms`.
    pub(crate) fn worst(&self, from_ms: u64, until_ms: u64) -> Worst {
        let at = |now_ms: u64| {
            let came = self.sent.iter().filter(|sent| sent.comes_at_ms <= now_ms);
            let picture = came.clone().map(|sent| sent.issued_at_ms).max().unwrap_or(0);
            let command = came.map(|sent| sent.comes_at_ms).max().unwrap_or(0);
            (now_ms - picture, now_ms - command)
        };
        let times = (from_ms..=until_ms).map(at);
        times.fold(Worst { picture_ms: 0, silence_ms: 0 }, |worst, (picture_ms, silence_ms)| {
            Worst {
                picture_ms: worst.picture_ms.max(picture_ms),
                silence_ms: worst.silence_ms.max(silence_ms),
            }
        })
    }
}

/// Returns what begins at each command after which the same stint goes on for long enough.
fn starts() -> &'static [&'static [Row]] {
    static STARTS: OnceLock<Vec<&'static [Row]>> = OnceLock::new();
    STARTS.get_or_init(|| {
        let stints = RECORDED.split("stint\n").skip(1).map(|stint| {
            let rows: Vec<Row> = stint.lines().map(row).collect();
            &*rows.leak()
        });
        let is_long =
            |rows: &&[Row]| rows.iter().map(|row| row.interval_ms).sum::<u64>() > LEAST_MS;
        let parts = |rows: &'static [Row]| {
            (0..rows.len()).map(move |at| &rows[at..(at + ROWS_MAX).min(rows.len())])
        };
        stints.flat_map(parts).filter(is_long).collect()
    })
}

fn row(line: &str) -> Row {
    let mut numbers = line.split(',').map(|number| number.parse().expect("a number"));
    let mut next = || numbers.next().expect("three numbers");
    Row { interval_ms: next(), way_ms: next(), picture_ms: next() }
}

pub(crate) const RECORDED: &str = include_str!("recorded.csv");
/// A drive is armed after two seconds.
const LEAST_MS: u64 = 5_000;
/// Ten seconds of commands.
const ROWS_MAX: usize = 500;
/// Three seconds.
const TICKS_KEPT: usize = 300;
