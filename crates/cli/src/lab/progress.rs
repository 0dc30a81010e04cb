//! Progress of a long run, on standard error.

use std::cell::Cell;
use std::io::{IsTerminal, Write as _, stderr};
use std::time::Duration;

use tautline_lab::experiment::Progress;
use tautline_net::clock::Clock;
use tautline_units::Instant;

/// Display of a run's progress: on a terminal a line that is overwritten, elsewhere a new line
/// every 10 s.
pub(super) struct Line {
    key: &'static str,
    clock: Clock,
    terminal: bool,
    shown: Cell<Instant>,
}

impl Line {
    /// Returns the display of the experiment `key`, which begins now.
    pub(super) fn new(key: &'static str) -> Self {
        let terminal = stderr().is_terminal();
        Self { key, clock: Clock::start(), terminal, shown: Cell::new(Instant::ZERO) }
    }

    /// Shows the progress, unless it was shown or the display began within 0.1 s on a terminal, or
    /// 10 s elsewhere.
    pub(super) fn show(&self, progress: Progress<'_>) {
        let now = self.clock.now();
        let pause = if self.terminal { TERMINAL_PAUSE } else { LOG_PAUSE };
        if now.since(self.shown.get()) < pause {
            return;
        }
        self.shown.set(now);
        let words = words(self.key, progress, now.since(Instant::ZERO));
        // Errors are ignored: the run continues without this line.
        let _ = if self.terminal {
            write!(stderr(), "\r\x1b[K{words}")
        } else {
            writeln!(stderr(), "{words}")
        };
    }

    /// Removes the line from a terminal; does nothing elsewhere.
    pub(super) fn clear(&self) {
        if self.terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

fn words(key: &str, progress: Progress<'_>, elapsed: Duration) -> String {
    let Progress { done, total, what } = progress;
    let percent = (done * 100).checked_div(total).unwrap_or(0);
    let left = match done {
        0 => String::new(),
        _ => {
            let all = elapsed.as_secs_f64() * total as f64 / done as f64;
            format!(", about {:.0} s left", (all - elapsed.as_secs_f64()).max(0.0))
        }
    };
    format!("{key}: {percent:3} %, {:.0} s{left}: {what}", elapsed.as_secs_f64())
}

const TERMINAL_PAUSE: Duration = Duration::from_millis(100);
const LOG_PAUSE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_in_proportion() {
        let progress = |done| Progress { done, total: 4, what: "k = 32" };
        let elapsed = Duration::from_secs(30);
        assert_eq!(words("fig", progress(0), elapsed), "fig:   0 %, 30 s: k = 32");
        assert_eq!(words("fig", progress(1), elapsed), "fig:  25 %, 30 s, about 90 s left: k = 32");
        let empty = Progress { done: 0, total: 0, what: "" };
        assert_eq!(words("fig", empty, Duration::ZERO), "fig:   0 %, 0 s: ");
    }
}
