//! `tautline probe mtu`: packet sizes over a running session.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use tautline_lab::record;
use tautline_lab::sweeps::packet_size::{Bins, Recommendation, Round, Size, Trial};
use tautline_net::metrics::STATUS_HEAD;
use tautline_operator::probe::{Delays, Measured, Outcome, PATH, Step};
use tautline_units::ByteCount;

use crate::lab::mtu::tell;
use crate::{local, stop};

/// Sweep packet sizes over a running session: delay bins, and the recommended size
///
/// Asks a running operator to use another largest datagram for a limited time, and to have the
/// vehicle do the same. First it tries every size from the vehicle, then every size to it, with the
/// best of the former. The session continues, driven or not, and restores its own sizes afterwards.
/// That also holds if this command is interrupted: it then prints the results of the complete
/// rounds.
///
/// "vehicle only" are the session's media units. "operator only" are questions sent like commands,
/// 20 per second. "end to end" is the time from a question to the arrival of the first slice
/// captured after the question arrived. The vehicle restores its own size at once when commands are
/// late or telemetry no longer fits. Such a step is repeated, and its size is excluded after three
/// failures. Writes the bins as CSV, and plots, into a folder. Takes 6 minutes with the defaults.
#[derive(Debug, Args)]
pub(crate) struct Mtu {
    /// Address of the operator's console
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    operator: SocketAddr,
    /// Datagram sizes in bytes, 150 to 1500, without the headers of IP and UDP
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "150,200,300,400,600,900,1200,1500",
        value_parser = clap::value_parser!(u16).range(150..=1500)
    )]
    sizes: Vec<u16>,
    /// Size in bytes to the vehicle while those from it are tried
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1200,
        value_parser = clap::value_parser!(u16).range(150..=1500)
    )]
    down: u16,
    /// Rounds over all sizes, so that each size meets several states of the links
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 4,
        value_parser = clap::value_parser!(u64).range(1..=100)
    )]
    rounds: u64,
    /// Measuring time per step in seconds; 2.5 s are added for sizes to take effect and for late
    /// answers
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 3,
        value_parser = clap::value_parser!(u64).range(1..=60)
    )]
    seconds: u64,
    /// Folder for the results
    #[arg(long, value_name = "FOLDER", default_value = "lab/mtu-live")]
    out: PathBuf,
}

/// Sweep of one direction, with the results so far.
struct Sweep {
    /// Name of the direction: "up" or "down".
    direction: &'static str,
    trials: Vec<Trial>,
    /// Sizes that failed three times and are no longer tried.
    left_out: Vec<Size>,
}

impl Mtu {
    /// Sweeps both directions, writes and prints the bins, and recommends a size.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let head = local::get(self.operator, "/status").await?;
        let who = head.strip_prefix(STATUS_HEAD).ok_or_else(|| local::stranger(self.operator))?;
        let at = self.operator;
        ensure!(who.starts_with("operator"), "a vehicle is at {at}: probe from its operator");
        record::create(&self.out)?;
        let up = self.sizes.iter().map(|up| size(*up, self.down));
        let mut sweep = Sweep::new("up", up);
        let whole = self.go_over(&mut sweep).await?;
        let best = sweep.tell(&self.out, "from the vehicle", |size| size.up.get() as f64)?;
        if whole {
            let down = self.sizes.iter().map(|down| size(best.size.up.get(), *down));
            let mut sweep = Sweep::new("down", down);
            self.go_over(&mut sweep).await?;
            sweep.tell(&self.out, "to the vehicle", |size| size.down.get() as f64)?;
        }
        tell!("{}", self.out.display());
        Ok(())
    }

    /// Tries all sizes, round by round. Returns false if the person interrupted it; then only
    /// complete rounds, but at least one, stay in `sweep`.
    async fn go_over(&self, sweep: &mut Sweep) -> anyhow::Result<bool> {
        for round in 0..self.rounds {
            for index in 0..sweep.trials.len() {
                let size = sweep.trials[index].size;
                if sweep.left_out.contains(&size) {
                    continue;
                }
                let direction = sweep.direction;
                note!("{direction}, round {} of {}: {size}", round + 1, self.rounds);
                let outcome = tokio::select! {
                    // The operator notices the closed connection and restores the sizes.
                    () = stop::asked() => {
                        note!("interrupted: the session gets its own sizes back");
                        sweep.keep_whole(round);
                        return Ok(false);
                    }
                    outcome = self.try_again(size, sweep.is_begun()) => outcome?,
                };
                match outcome {
                    Outcome::Measured(measured) => {
                        note!("  {}", words(size, &measured));
                        sweep.trials[index].rounds.push(round_of(&measured));
                    }
                    Outcome::Stopped(why) => {
                        note!("  left out after {TRIES} tries: {why}");
                        sweep.left_out.push(size);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Measures one size; repeats a step that was stopped early, up to three tries. Repeats it also
    /// if a probe that has `begun` meets an error, such as a session missing for a moment.
    async fn try_again(&self, size: Size, begun: bool) -> anyhow::Result<Outcome> {
        let mut tries = 1;
        loop {
            let why = match self.step(size).await {
                Ok(Outcome::Stopped(why)) => why,
                Err(error) if begun && tries < TRIES => error.to_string(),
                ended => return ended,
            };
            if tries == TRIES {
                return Ok(Outcome::Stopped(why));
            }
            note!("  again: {why}");
            tries += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn step(&self, size: Size) -> anyhow::Result<Outcome> {
        let bytes = |bytes: ByteCount| u16::try_from(bytes.get());
        let step = Step {
            up_bytes: bytes(size.up)?,
            down_bytes: bytes(size.down)?,
            settle_ms: SETTLE_MS,
            measure_ms: self.seconds * 1_000,
        };
        let answer_timeout = Duration::from_millis(step.settle_ms + step.measure_ms) + PAUSE * 5;
        let json = local::post(self.operator, PATH, &serde_json::to_string(&step)?, answer_timeout)
            .await?;
        serde_json::from_str(&json).map_err(|_| local::stranger(self.operator))
    }
}

impl Sweep {
    fn new(direction: &'static str, sizes: impl Iterator<Item = Size>) -> Self {
        let trials = sizes.map(|size| Trial { size, rounds: Vec::new() }).collect();
        Self { direction, trials, left_out: Vec::new() }
    }

    fn is_begun(&self) -> bool {
        self.trials.iter().any(|trial| !trial.rounds.is_empty())
    }

    /// Discards what was measured after the first `rounds` rounds, but keeps at least one.
    fn keep_whole(&mut self, rounds: u64) {
        let whole = usize::try_from(rounds).unwrap_or(usize::MAX).max(1);
        self.trials.iter_mut().for_each(|trial| trial.rounds.truncate(whole));
    }

    fn tell(
        mut self,
        out: &Path,
        words: &str,
        at: fn(Size) -> f64,
    ) -> anyhow::Result<Recommendation> {
        self.trials.retain(|t| !t.rounds.is_empty() && !self.left_out.contains(&t.size));
        ensure!(!self.trials.is_empty(), "no step was measured to its end");
        tell(out, self.direction, words, &self.trials, at)
    }
}

/// Returns the results of a step in one line: for media units, for questions and from end to end
/// each, the median and 95th percentile of the delays in milliseconds and how many of how many were
/// lost. Then the error of the clocks, and the datagram sizes in use from and to the vehicle,
/// marked if less than requested.
fn words(size: Size, measured: &Measured) -> String {
    let row = |leg: &Delays| {
        let mut delays = leg.delays_ms.clone();
        delays.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = ((delays.len() as f64 * share).ceil() as usize).saturating_sub(1);
            delays.get(place).map_or("-".to_owned(), |delay| format!("{delay:.0}"))
        };
        let sent = delays.len() as u64 + leg.lost;
        format!("{}/{} ms, {} of {sent} lost", at(0.5), at(0.95), leg.lost)
    };
    let less =
        |asked: ByteCount, used: u64| if used < asked.get() { " (no more pass)" } else { "" };
    format!(
        "vehicle {}; operator {}; end to end {}; clocks to {:.1} ms; in use {}{} and {}{} B",
        row(&measured.vehicle),
        row(&measured.operator),
        row(&measured.end_to_end),
        measured.clock_error_ms,
        measured.up_bytes_used,
        less(size.up, measured.up_bytes_used),
        measured.down_bytes_used,
        less(size.down, measured.down_bytes_used),
    )
}

fn round_of(measured: &Measured) -> Round {
    Round {
        vehicle: bins(&measured.vehicle),
        operator: bins(&measured.operator),
        end_to_end: bins(&measured.end_to_end),
        wire: ByteCount::new(measured.wire_bytes),
        payload: ByteCount::new(measured.payload_bytes),
    }
}

fn bins(leg: &Delays) -> Bins {
    let mut bins = Bins::default();
    for delay in &leg.delays_ms {
        bins.arrive(Duration::from_secs_f64((delay / 1e3).clamp(0.0, 3_600.0)));
    }
    bins.lose(leg.lost);
    bins
}

fn size(up: impl Into<u64>, down: impl Into<u64>) -> Size {
    Size { up: ByteCount::new(up.into()), down: ByteCount::new(down.into()) }
}

/// Maximum number of tries of a step, after which its size is left out: a link's stall ends by
/// then; a size that does not work still fails.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// Time in milliseconds before a step measures: longer than a question takes to the vehicle and
/// into effect, and the queue of packets of the former size to drain.
const SETTLE_MS: u64 = 1_500;

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        let vehicle = Delays { delays_ms: vec![30.0, 10.0, 260.0, 20.0], lost: 1 };
        Measured {
            vehicle,
            wire_bytes: 100,
            payload_bytes: 80,
            up_bytes_used: 1_452,
            down_bytes_used: 1_200,
            ..Measured::default()
        }
    }

    #[test]
    fn a_step_is_counted_in_the_papers_bins() {
        let round = round_of(&measured());
        assert_eq!(round.vehicle.shares(), Some([0.6, 0.6, 0.8, 0.8]));
        assert_eq!((round.vehicle.lost_share(), round.operator.sent()), (Some(0.2), 0));
        assert!((round.overhead_share().unwrap() - 0.2).abs() < 1e-9);
    }

    #[test]
    fn a_step_says_what_passes_where_it_is_less_than_asked_for() {
        let line = words(size(1_500_u64, 1_200_u64), &measured());
        assert!(line.starts_with("vehicle 20/260 ms, 1 of 5 lost; operator -/- ms"), "{line}");
        assert!(line.ends_with("in use 1452 (no more pass) and 1200 B"), "{line}");
    }

    #[test]
    fn of_an_interrupted_sweep_the_whole_rounds_are_kept() {
        let mut sweep = Sweep::new("up", [400_u64, 800].map(|up| size(up, 400_u64)).into_iter());
        sweep.trials[0].rounds = vec![round_of(&measured()); 3];
        sweep.trials[1].rounds = vec![round_of(&measured()); 2];
        sweep.keep_whole(2);
        assert_eq!(sweep.trials[0].rounds.len(), 2);
        sweep.keep_whole(0);
        assert_eq!(sweep.trials[1].rounds.len(), 1, "better than nothing");
    }
}
