//! Tests of commands with false send times, and of a flood of commands.

use proptest::prelude::*;
use tautline_guard::config::Config;
use tautline_guard::identity::Tick;
use tautline_guard::{Guard, Input};

use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn proposal(guard_client: &GuardClient, now: u64) -> Proposal {
    guard_client.proposal(&lock(&guard_client.proposed), Troubles::NONE, at(now))
}

fn command(sequence: u64) -> message::Command {
    message::Command { sequence, console: 9, throttle: 0.5, ..message::Command::default() }
}

proptest! {
    /// With a clock offset known to within 5 ms: no date makes a command look younger than it is,
    /// and a command from the future is never fresh, however long it waits.
    #[test]
    fn no_date_of_a_command_makes_it_fresh(
        date in prop_oneof![any::<u64>(), 0..40_000_000_000_u64],
        waited in 0..60_000_u64,
    ) {
        let guard_client = GuardClient::with(5);
        guard_client.handle_new_session(None);
        let (came, error) = (at(10_000), Duration::from_millis(5));
        let command = message::Command { sent_at: Instant::from_nanos(date), ..command(3) };
        guard_client.handle_bytes(&command.encode(), |sent_at| Some((sent_at, error)), came).unwrap();
        let proposed = proposal(&guard_client, 10_000 + waited).command.unwrap();
        let is_ahead = date > (came + error).as_nanos();
        prop_assert_eq!(proposed.age.is_none(), is_ahead);
        prop_assert_eq!(guard_client.ahead_count(), u64::from(is_ahead));
        let least = (at(10_000 + waited).as_nanos() as i128 - i128::from(date)).max(0) as u128;
        prop_assert!(proposed.age.is_none_or(|age| age.as_nanos() >= least));
    }
}

/// From a wrong clock to the guard's status, end to end.
#[test]
fn an_operator_whose_clock_is_ahead_drives_nothing() {
    for ahead in [Duration::from_millis(25), Duration::from_secs(3_600), Duration::MAX] {
        let guard_client = GuardClient::with(1);
        guard_client.handle_new_session(None);
        let mut guard = Guard::new(Config::car(), Tick::new(70).unwrap());
        let mut follow: Follow = Box::new(|_| Vec::new());
        let ticks = guard_client.ticks();
        for turn in 1..=100_u64 {
            ticks.note_capture(ticks.newest(), true);
            ticks.note_sent(ticks.newest());
            let now = at(10_000 + 10 * turn);
            let act = message::Act { number: 1, stop: 0, deed: message::Deed::Arm };
            let said = message::Command {
                sequence: turn,
                sent_at: now + ahead,
                console: 9,
                throttle: if turn < 30 { 0.0 } else { 0.5 },
                cited: ticks.newest(),
                act: Some(act),
                ..message::Command::default()
            };
            let here = |sent_at| Some((sent_at, Duration::from_millis(20)));
            guard_client.handle_bytes(&said.encode(), here, now).unwrap();
            let machine = MachineState { measured_at: now, ..MachineState::default() };
            let proposal =
                guard_client.proposal(&lock(&guard_client.proposed), Troubles::NONE, now);
            let input =
                Input { proposal: Some(proposal), machine: Some(machine), ..Input::default() };
            let output = guard.step(&input, now);
            assert_eq!(output.control.controls.throttle, 0.0, "{ahead:?}, turn {turn}");
            guard_client.hear(StatusFrame::of(&output.status), &mut follow, now);
        }
        assert_eq!(guard_client.ahead_count(), 100);
    }
}

/// From the bytes of a flooding peer to the guard's answer, end to end.
#[test]
fn a_flood_of_commands_delays_neither_a_stop_nor_an_act() {
    for per_step in [1, 54, 500_u64] {
        let guard_client = GuardClient::with(1);
        guard_client.handle_new_session(None);
        let mut guard = Guard::new(Config::car(), Tick::new(70).unwrap());
        let mut follow: Follow = Box::new(|_| Vec::new());
        let act = message::Act { number: 1, stop: 0, deed: message::Deed::Park };
        let (mut sequence, mut answers) = (0, (0, 0));
        for step in 1..=20_u64 {
            let now = at(1_000 + 10 * step);
            for place in 0..per_step {
                sequence += 1;
                let is_marked = step == 10 && place == per_step / 2;
                let said = message::Command {
                    sequence,
                    sent_at: now,
                    console: 9,
                    act: is_marked.then_some(act),
                    emergency_stop_number: if is_marked { 77 } else { 0 },
                    ..message::Command::default()
                };
                let here = |sent_at| Some((sent_at, Duration::from_millis(5)));
                guard_client.handle_bytes(&said.encode(), here, now).unwrap();
            }
            lock(&guard_client.proposed).is_read = true;
            let proposal =
                guard_client.proposal(&lock(&guard_client.proposed), Troubles::NONE, now);
            let machine = MachineState { measured_at: now, ..MachineState::default() };
            let input =
                Input { proposal: Some(proposal), machine: Some(machine), ..Input::default() };
            let status = guard.step(&input, now).status;
            guard_client.hear(StatusFrame::of(&status), &mut follow, now);
            if status.emergency_stop == ActNumber::new(77) && answers.0 == 0 {
                answers.0 = step;
            }
            if status.answer.is_some() && answers.1 == 0 {
                answers.1 = step;
            }
        }
        // The stop takes effect in the same step, and the act in the next.
        assert_eq!(answers, (10, 11), "of {per_step} each 10 ms");
        assert_eq!(guard_client.overtaken_count(), 20 * (per_step - 1));
    }
}
