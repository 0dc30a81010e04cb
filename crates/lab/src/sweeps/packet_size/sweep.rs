//! Sweeps of packet sizes over modelled links, with real sessions.

use anyhow::Result;
use tautline_scenario::traffic::Media;
use tautline_sim::link::{Config, Pair};
use tautline_units::{Bitrate, ByteCount, Duration};

use super::{Bins, Round, Size, Trial};
use crate::relayed::{Carriage, LATEST, MESSAGE_BYTES, Observed, Sent, Setup};
use crate::workers;

/// Parameters of a sweep, with the same rounds for every size.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Link from the vehicle to the switchboard; up is from the vehicle.
    pub vehicle_link: Pair,
    /// Link from the operator to the switchboard; up is from the operator.
    pub operator_link: Pair,
    /// Configuration of both sessions, except for the size.
    pub transport: tautline_transport::Config,
    /// Media units per second.
    pub units_per_second: u64,
    /// Maximum rate of the media source, if its budget is higher.
    pub rate_max: Bitrate,
    /// Deadline of a media unit.
    pub media_deadline: Duration,
    /// Size of a message, in either direction.
    pub message_bytes: ByteCount,
    /// Kinds of messages counted.
    pub ways: Ways,
    /// Runs per size, each with another seed; the same for every size.
    pub rounds: u64,
    /// Length of a round, warm-up of 3 s included.
    pub length: Duration,
    /// Seed of every random number.
    pub seed: u64,
}

/// Definition of the three kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// As in the paper: datagrams from each end to the switchboard, and messages from the operator
    /// to the vehicle.
    Legs,
    /// As an operator perceives it: media units one way, commands the other way, and the time from
    /// a command to the arrival of the first media unit sent after the command arrived.
    Control,
}

impl Sweep {
    /// Returns a sweep over one link, with a wired operator.
    pub fn over(vehicle_link: Pair, rounds: u64, length: Duration, seed: u64) -> Self {
        Self {
            vehicle_link,
            operator_link: wired(),
            transport: tautline_transport::Config::default(),
            units_per_second: 360,
            rate_max: Bitrate::from_mbps(8),
            media_deadline: Duration::from_millis(200),
            message_bytes: MESSAGE_BYTES,
            ways: Ways::Control,
            rounds,
            length,
            seed,
        }
    }

    /// Tries `sizes` in turn; `progress` receives the number of finished rounds and the total.
    ///
    /// # Errors
    /// For an invalid size, session or link configuration.
    pub fn trials(&self, sizes: &[Size], progress: impl Fn(u64, u64, &str)) -> Result<Vec<Trial>> {
        let rounds = |size: &Size| {
            let size = *size;
            (0..self.rounds).map(move |number| (size, number)).collect::<Vec<_>>()
        };
        let jobs: Vec<(Size, u64)> = sizes.iter().flat_map(rounds).collect();
        let work = |(size, number): &(Size, u64)| {
            let observed = self.setup(*size, self.seed.wrapping_mul(1000) + number).run()?;
            Ok(self.ways.round(&observed))
        };
        let told = |done: usize, _: &Round| progress(done as u64, jobs.len() as u64, "rounds");
        let mut done = workers::each(workers::count(), &jobs, work, told)?.into_iter();
        let trial = |size: &Size| {
            let rounds = done.by_ref().take(self.rounds as usize).collect();
            Trial { size: *size, rounds }
        };
        Ok(sizes.iter().map(trial).collect())
    }

    fn setup(&self, size: Size, seed: u64) -> Setup {
        let carriage = |bytes: ByteCount| {
            let config =
                tautline_transport::Config { datagram_bytes_max: bytes, ..self.transport.clone() };
            Carriage::Session(Box::new(config))
        };
        Setup {
            vehicle_link: self.vehicle_link.clone(),
            operator_link: self.operator_link.clone(),
            vehicle: carriage(size.up),
            operator: carriage(size.down),
            media: Media {
                deadline: self.media_deadline,
                bytes_min: MESSAGE_BYTES,
                ..Media::slices(self.units_per_second, self.rate_max)
            },
            message_bytes: self.message_bytes,
            message_interval: MESSAGE_INTERVAL,
            length: self.length,
            seed,
        }
    }
}

/// Returns a wired link to the switchboard over copper and fibre: 15 ms and ample capacity.
fn wired() -> Pair {
    let config = Config::of_rate(Bitrate::from_mbps(1_000));
    Pair::symmetric(config.with_delay(Duration::from_millis(15)))
}

impl Ways {
    fn round(self, observed: &Observed) -> Round {
        let (vehicle, operator, end_to_end) = match self {
            Self::Legs => (
                bins(&observed.vehicle_leg),
                bins(&observed.operator_leg),
                bins(&observed.commands),
            ),
            Self::Control => (bins(&observed.media), bins(&observed.commands), answers(observed)),
        };
        Round { vehicle, operator, end_to_end, wire: observed.wire, payload: observed.payload }
    }
}

fn bins(sent: &[Sent]) -> Bins {
    let mut bins = Bins::default();
    for sent in sent {
        match sent.delay() {
            Some(delay) => bins.arrive(delay),
            None => bins.lose(1),
        }
    }
    bins
}

/// Counts, for each command, the time until the operator has a unit that shows its effect; as lost
/// if that takes longer than [`LATEST`] or does not happen.
fn answers(observed: &Observed) -> Bins {
    let mut bins = Bins::default();
    for command in &observed.commands {
        let shown = command.arrived.and_then(|acted| {
            let after = observed.media.partition_point(|unit| unit.at < acted);
            let shown = observed.media[after..].iter().find_map(|unit| unit.arrived)?;
            Some(shown.since(command.at)).filter(|delay| *delay <= LATEST)
        });
        match shown {
            Some(delay) => bins.arrive(delay),
            None => bins.lose(1),
        }
    }
    bins
}

/// Interval of messages in either direction: commands are as frequent as an operator's hand
/// movements.
const MESSAGE_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use tautline_units::Instant;

    use super::*;

    fn sent(at: u64, arrived: Option<u64>) -> Sent {
        Sent {
            at: Instant::from_millis(at),
            bytes: ByteCount::new(60),
            arrived: arrived.map(Instant::from_millis),
        }
    }

    #[test]
    fn a_command_is_answered_by_the_first_unit_after_it_that_comes() {
        let observed = Observed {
            commands: vec![sent(0, Some(40)), sent(50, None), sent(100, Some(140))],
            media: vec![sent(39, Some(60)), sent(41, None), sent(60, Some(130))],
            ..Observed::default()
        };
        let answers = answers(&observed);
        assert_eq!((answers.sent(), answers.lost_share()), (3, Some(2.0 / 3.0)));
        assert_eq!(answers.shares().unwrap()[0], 0.0);
        assert_eq!(answers.shares().unwrap()[1], 1.0 / 3.0);
    }

    #[test]
    fn small_packets_cost_overhead_and_a_seed_repeats_its_bins() {
        let link = Config::of_rate(Bitrate::from_mbps(3)).with_delay(Duration::from_millis(20));
        let sweep = Sweep::over(Pair::symmetric(link), 1, Duration::from_secs(6), 1);
        let sizes = [150, 1_200]
            .map(|bytes| Size { up: ByteCount::new(bytes), down: ByteCount::new(bytes) });
        let trials = sweep.trials(&sizes, |_, _, _| {}).unwrap();
        let overhead = |trial: &Trial| trial.total().overhead_share().unwrap();
        assert!(overhead(&trials[0]) > overhead(&trials[1]) + 0.05);
        assert!(trials[1].total().end_to_end.shares().unwrap()[1] > 0.9);
        assert_eq!(sweep.trials(&sizes, |_, _, _| {}).unwrap(), trials);
    }
}
