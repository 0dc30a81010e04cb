//! The vehicle's part in a packet-size probe: it follows the operator's questions.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tautline_message::{ProbeAnswer, ProbeQuestion};
use tautline_units::{ByteCount, Instant};

/// Follower of an operator's probe, while its questions arrive and commands are fresh.
///
/// A requested size holds for its hold time only, so an operator that disappears leaves no odd size
/// behind. If the newest command gets too old or the transport refuses telemetry meanwhile, the
/// configured size is restored at once, until the probe has ended.
#[derive(Debug)]
pub struct Probe {
    configured: ByteCount,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Latest requested datagram size, and the end of its hold time; `None` without a probe.
    asked: Option<(ByteCount, Instant)>,
    /// Numbers of the newest questions with their arrival times.
    arrivals: VecDeque<(u64, Instant)>,
    refusal: Option<String>,
    /// Value of [`Health::control_refused`] at the probe's first call of [`Probe::turn`], with
    /// which later values are compared; `None` before.
    refused_before: Option<u64>,
    answered_at: Instant,
}

/// State of commands and telemetry, which a probe must not harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Age of the newest command; `None` unless commands move the machine.
    pub command_age: Option<Duration>,
    /// Time without a command after which the guard stops the machine.
    pub command_timeout: Duration,
    /// Total of the units that the transport refused, on all channels but video.
    pub control_refused: u64,
}

/// Result of one call of [`Probe::turn`]: the datagram size to use, and the answer that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Largest datagram to send from now on.
    pub datagram_bytes_max: ByteCount,
    /// Answer to send to the operator; `None` if none is due.
    pub answer: Option<ProbeAnswer>,
}

impl Probe {
    /// Creates a follower without a probe. `configured` is the datagram size without one.
    pub fn new(configured: ByteCount) -> Self {
        Self { configured, state: Mutex::default() }
    }

    /// Records the size that a question of the operator requests until its hold time is over, and
    /// the arrival of the question at `now`; one without a size ends the probe.
    pub fn handle_question(&self, question: &ProbeQuestion, now: Instant) {
        let mut state = self.state();
        let Some(bytes) = question.datagram_bytes else {
            // A hold time that has passed lets the next turn end the probe.
            let over = state.asked.map(|_| (self.configured, Instant::ZERO));
            *state = State { asked: over, ..State::default() };
            return;
        };
        state.asked = Some((bytes, now + question.hold));
        if state.arrivals.len() == ARRIVALS_MAX {
            state.arrivals.pop_front();
        }
        state.arrivals.push_back((question.sequence, now));
    }

    /// Forgets the questions of an earlier session.
    pub fn handle_new_session(&self) {
        *self.state() = State::default();
    }

    /// Returns the datagram size to use at `now` and the answer that is due; `None` without a
    /// probe. When a probe ends or its hold time passes, one more result restores the configured
    /// size.
    pub fn turn(&self, health: Health, now: Instant) -> Option<Turn> {
        let mut state = self.state();
        let (bytes, until) = state.asked?;
        if now > until {
            *state = State::default();
            return Some(Turn { datagram_bytes_max: self.configured, answer: None });
        }
        let before = *state.refused_before.get_or_insert(health.control_refused);
        if state.refusal.is_none() {
            state.refusal = objection(health, before);
        }
        let answer = (now.since(state.answered_at) >= ANSWER_INTERVAL).then(|| ProbeAnswer {
            arrivals: state.arrivals.iter().copied().collect(),
            refusal: state.refusal.clone(),
        });
        if answer.is_some() {
            state.answered_at = now;
        }
        let datagram_bytes_max = if state.refusal.is_some() { self.configured } else { bytes };
        Some(Turn { datagram_bytes_max, answer })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns why the probe must end: a command that is older than two thirds of the guard's timeout,
/// or refused telemetry. `None` if it may continue.
fn objection(health: Health, refused_before: u64) -> Option<String> {
    let refused = health.control_refused.saturating_sub(refused_before);
    let late = health.command_timeout * 2 / 3;
    match health.command_age {
        Some(age) if age > late => Some(format!(
            "the newest command was {} ms old (limit {} ms)",
            age.as_millis(),
            late.as_millis()
        )),
        Some(_) | None if refused > 0 => {
            Some(format!("the vehicle's transport refused {refused} telemetry units"))
        }
        Some(_) | None => None,
    }
}

/// Maximum number of questions' arrivals kept for the answers, 1.5 s of them, so that each is in
/// several answers; beyond it the oldest is dropped.
const ARRIVALS_MAX: usize = 32;
const ANSWER_INTERVAL: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIGURED: ByteCount = ByteCount::new(1_200);

    fn probe() -> Probe {
        Probe::new(CONFIGURED)
    }

    fn ask(probe: &Probe, sequence: u64, bytes: u64, at: u64) {
        let datagram_bytes = Some(ByteCount::new(bytes));
        let hold = Duration::from_millis(1_000);
        let question = ProbeQuestion { sequence, datagram_bytes, hold };
        probe.handle_question(&question, Instant::from_millis(at));
    }

    #[test]
    fn a_size_holds_for_its_time_and_not_longer() {
        let probe = probe();
        let turn = |at| probe.turn(Health::default(), Instant::from_millis(at));
        assert_eq!(turn(900), None);
        ask(&probe, 7, 400, 1_000);
        let first = turn(1_050).unwrap();
        assert_eq!(first.datagram_bytes_max, ByteCount::new(400));
        let arrivals = vec![(7, Instant::from_millis(1_000))];
        assert_eq!(first.answer, Some(ProbeAnswer { arrivals, refusal: None }));
        assert_eq!(turn(1_100).unwrap().answer, None, "not at every turn");
        assert_eq!(turn(2_000).unwrap().datagram_bytes_max, ByteCount::new(400));
        assert_eq!(turn(2_001).unwrap().datagram_bytes_max, CONFIGURED);
        assert_eq!(turn(2_050), None);
    }

    #[test]
    fn a_probe_that_is_ended_gives_the_configured_size_back_at_once() {
        let probe = probe();
        ask(&probe, 1, 400, 1_000);
        let end = ProbeQuestion { sequence: 2, datagram_bytes: None, hold: Duration::ZERO };
        probe.handle_question(&end, Instant::from_millis(1_010));
        let turn = |at| probe.turn(Health::default(), Instant::from_millis(at));
        assert_eq!(turn(1_050), Some(Turn { datagram_bytes_max: CONFIGURED, answer: None }));
        assert_eq!(turn(1_100), None);
    }

    #[test]
    fn late_commands_and_refused_telemetry_end_a_probe() {
        let fresh = Health {
            command_age: Some(Duration::from_millis(200)),
            command_timeout: Duration::from_millis(300),
            control_refused: 3,
        };
        let late = Health { command_age: Some(Duration::from_millis(201)), ..fresh };
        let refused = Health { control_refused: 4, ..fresh };
        let late_for_its_guard = Health { command_timeout: Duration::from_millis(299), ..fresh };
        for bad in [late, refused, late_for_its_guard] {
            let probe = probe();
            let turn = |health, at| probe.turn(health, Instant::from_millis(at)).unwrap();
            ask(&probe, 1, 150, 1_000);
            assert_eq!(turn(fresh, 1_050).datagram_bytes_max, ByteCount::new(150));
            let turned = turn(bad, 1_300);
            assert_eq!(turned.datagram_bytes_max, CONFIGURED);
            assert!(turned.answer.unwrap().refusal.is_some());
            ask(&probe, 2, 150, 1_400);
            assert_eq!(turn(fresh, 1_450).datagram_bytes_max, CONFIGURED, "it stays so");
            let end = ProbeQuestion { sequence: 3, datagram_bytes: None, hold: Duration::ZERO };
            probe.handle_question(&end, Instant::from_millis(1_500));
            ask(&probe, 4, 600, 1_600);
            assert_eq!(turn(fresh, 1_650).datagram_bytes_max, ByteCount::new(600));
        }
    }

    #[test]
    fn the_newest_questions_are_kept() {
        let probe = probe();
        (0..100).for_each(|sequence| ask(&probe, sequence, 400, 1_000 + sequence));
        let answer = probe.turn(Health::default(), Instant::from_millis(1_200)).unwrap().answer;
        let arrivals = answer.unwrap().arrivals;
        assert_eq!((arrivals.len(), arrivals[31]), (32, (99, Instant::from_millis(1_099))));
    }
}
