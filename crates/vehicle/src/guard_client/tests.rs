use tautline_guard::act::Deed;
use tautline_guard::config::Config;
use tautline_guard::{Guard, Input};

use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn proposal(guard_client: &GuardClient, now: u64) -> Proposal {
    guard_client.proposal(&lock(&guard_client.proposed), Troubles::NONE, at(now))
}

/// Returns the guard's newest tick, as on a picture that was sent.
fn seen(guard_client: &GuardClient) -> u32 {
    let (ticks, tick) = (guard_client.ticks(), guard_client.ticks().newest());
    ticks.note_capture(tick, true);
    ticks.note_sent(tick);
    tick
}

/// Returns settings that require no dead-man input.
fn config() -> Config {
    let mut config = Config::car();
    config.presence.dead_man_required = Some(false);
    config
}

fn command(sequence: u64) -> message::Command {
    message::Command { sequence, console: 9, throttle: 0.5, ..message::Command::default() }
}

#[test]
fn the_newest_command_is_proposed_with_age_and_clock_error() {
    let guard_client = GuardClient::with(5);
    assert_eq!(proposal(&guard_client, 0), Proposal { source: at(0), ..Proposal::default() });
    guard_client.handle_new_session(None);
    assert_eq!(proposal(&guard_client, 0).session.map(Session::get), Some(5));
    let sent_at = Some((at(1_000), Duration::from_millis(7)));
    guard_client.handle_command(&command(3), sent_at);
    guard_client.handle_command(&command(2), Some((at(1_500), Duration::ZERO)));
    let proposed = proposal(&guard_client, 1_040).command.unwrap();
    assert_eq!((proposed.sequence, proposed.age), (3, Some(Duration::from_millis(47))));
    assert_eq!(proposed.controls.throttle, 0.5);
    guard_client.handle_new_session(None);
    let after = proposal(&guard_client, 1_050);
    assert_eq!((after.session.map(Session::get), after.command), (Some(6), None));
}

#[test]
fn an_emergency_stop_stays_proposed_however_late_it_came() {
    let guard_client = GuardClient::with(1);
    guard_client.handle_new_session(None);
    guard_client.handle_command(&command(9), None);
    let stop = message::Command { emergency_stop: true, ..command(4) };
    guard_client.handle_command(&stop, None);
    let first = proposal(&guard_client, 0).emergency_stop;
    assert!(first.is_some());
    guard_client.handle_command(&command(10), None);
    assert_eq!(proposal(&guard_client, 0).emergency_stop, first);
    guard_client.handle_command(&stop, None);
    assert_ne!(proposal(&guard_client, 0).emergency_stop, first, "another press");
    let numbered = message::Command { emergency_stop_number: 77, ..command(11) };
    guard_client.handle_command(&numbered, None);
    assert_eq!(proposal(&guard_client, 0).emergency_stop, ActNumber::new(77));
}

/// The guard itself performs the handover between two consoles, given what this vehicle
/// proposes.
#[test]
fn only_a_named_successor_takes_over_without_a_stop() {
    for is_named in [true, false] {
        let guard_client = GuardClient::with(1);
        guard_client.handle_new_session(None);
        let mut guard = Guard::new(config(), Tick::new(70).unwrap());
        let mut follow: Follow = Box::new(|_| Vec::new());
        let (mut sequence, mut now, mut speed) = (0, 0, 0.0_f32);
        let mut modes = Vec::new();
        for turn in 0..120 {
            now += 10;
            let sent_at = Some((at(now), Duration::from_millis(20)));
            let cited = seen(&guard_client);
            let mut say = |command: message::Command| {
                sequence += 1;
                let command = message::Command { sequence, cited, ..command };
                guard_client.handle_command(&command, sent_at);
            };
            let act = |number, deed| Some(message::Act { number, stop: 0, deed });
            let first = message::Command {
                console: 9,
                throttle: if turn < 30 { 0.0 } else { 0.4 },
                act: (turn >= 10).then(|| act(1, message::Deed::Arm)).flatten(),
                successor: if is_named && turn >= 50 { 8 } else { 0 },
                ..message::Command::default()
            };
            let second = message::Command {
                console: 8,
                throttle: 0.6,
                act: (turn >= 60).then(|| act(1, message::Deed::TakeOver)).flatten(),
                successor: 8,
                ..message::Command::default()
            };
            if turn >= 50 {
                say(second);
            }
            // After the handover, the operator stops sending the first console's commands.
            if !is_named || turn < 65 {
                say(first);
            }
            let proposal = proposal(&guard_client, now);
            let machine = MachineState { measured_at: at(now), speed, ..MachineState::default() };
            let input =
                Input { proposal: Some(proposal), machine: Some(machine), ..Input::default() };
            let output = guard.step(&input, at(now));
            speed = (speed + 4.2 * output.control.controls.throttle * 0.01).max(0.0);
            guard_client.hear(StatusFrame::of(&output.status), &mut follow, at(now));
            modes.push(output.status.mode);
        }
        let heard = guard_client.heard(at(now)).unwrap();
        let status = heard.status();
        assert!(modes[35..].iter().all(|mode| mode.is_driving()), "{is_named}: {modes:?}");
        let holder = status.holder.map(tautline_guard::identity::Console::get);
        assert_eq!(holder, Some(if is_named { 8 } else { 9 }));
        let throttle = status.applied.throttle;
        assert!((throttle > 0.5) == is_named, "{is_named}: {throttle}");
    }
}

#[test]
fn an_act_is_proposed_until_another_comes() {
    let guard_client = GuardClient::with(1);
    guard_client.handle_new_session(None);
    let act = message::Act { number: 3, stop: 0, deed: message::Deed::Arm };
    let armed = message::Command { act: Some(act), ..command(1) };
    guard_client.handle_command(&armed, Some((at(0), Duration::ZERO)));
    guard_client.handle_command(&command(2), Some((at(20), Duration::ZERO)));
    let proposed = proposal(&guard_client, 50).act.unwrap();
    assert_eq!((proposed.deed, proposed.number.get()), (Deed::Arm, 3));
    assert_eq!(proposed.age, Some(Duration::from_millis(50)));
}

#[test]
fn a_vehicle_asked_to_end_proposes_no_session() {
    let guard_client = GuardClient::with(1);
    guard_client.handle_new_session(None);
    guard_client.handle_command(&command(1), None);
    guard_client.end();
    let proposed = proposal(&guard_client, 50);
    assert_eq!((proposed.session, proposed.command), (None, None));
    let stop = message::Command { emergency_stop_number: 5, ..command(2) };
    guard_client.handle_command(&stop, None);
    assert_eq!(proposal(&guard_client, 60).emergency_stop, ActNumber::new(5), "a stop counts");
}

#[test]
fn an_ended_drive_proposes_only_an_emergency_stop() {
    let guard_client = GuardClient::with(1);
    guard_client.handle_new_session(None);
    guard_client.handle_command(&command(1), None);
    guard_client.end_drive("eva");
    let act = message::Act { number: 3, stop: 0, deed: message::Deed::Arm };
    guard_client.handle_command(&message::Command { act: Some(act), ..command(2) }, None);
    assert_eq!(proposal(&guard_client, 50), Proposal { source: at(50), ..Proposal::default() });
    assert_eq!(guard_client.ended_by().as_deref(), Some("eva"));
    guard_client.handle_command(&message::Command { emergency_stop_number: 5, ..command(3) }, None);
    assert_eq!(proposal(&guard_client, 60).emergency_stop, ActNumber::new(5));
    guard_client.handle_new_session(None);
    guard_client.handle_command(&command(1), None);
    let after = proposal(&guard_client, 70);
    assert_eq!((after.session.map(Session::get), after.command.is_some()), (Some(2), true));
    assert_eq!(guard_client.ended_by(), None);
}

#[test]
fn state_behind_a_poisoned_lock_is_still_used() {
    let guard_client = Arc::new(GuardClient::with(1));
    let panicking = guard_client.clone();
    let panicked = std::thread::spawn(move || {
        let _held = panicking.proposed.lock().unwrap();
        panic!("with the lock");
    });
    assert!(panicked.join().is_err() && guard_client.proposed.is_poisoned());
    let stop = message::Command { emergency_stop_number: 5, ..command(2) };
    guard_client.handle_command(&stop, None);
    let newest = try_lock(&guard_client.proposed).map(|proposed| proposed.emergency_stop);
    assert_eq!(newest, Some(ActNumber::new(5)));
}

#[test]
fn time_limits_that_contradict_the_guards_budget_are_named() {
    let guard_client = GuardClient::with(1);
    let set = tautline_transport::Config::default();
    let late = tautline_transport::Config { media_deadline: Duration::from_millis(300), ..set };
    assert_eq!(guard_client.contradiction(&late), None, "the guard has not spoken");
    assert_eq!(guard_client.media_deadline(late.media_deadline), late.media_deadline);
    let mut guard = Guard::new(Config::car(), Tick::new(70).unwrap());
    let status = guard.step(&Input::default(), at(10)).status;
    let mut follow: Follow = Box::new(|_| Vec::new());
    guard_client.hear(StatusFrame::of(&status), &mut follow, at(11));
    assert_eq!(guard_client.contradiction(&tautline_transport::Config::default()), None);
    let said = guard_client.contradiction(&late).unwrap();
    assert!(said.contains("transport.media_deadline_ms = 300"), "{said}");
    assert!(said.contains("200, the guard's latency.picture_age_max_ms"), "{said}");
    assert_eq!(guard_client.media_deadline(late.media_deadline), Duration::from_millis(200));
    let late = tautline_transport::Config {
        command_deadline: Duration::from_millis(251),
        ..tautline_transport::Config::default()
    };
    assert!(guard_client.contradiction(&late).unwrap().contains("latency.command_age_max_ms"));
}

#[test]
fn one_running_thread_does_not_hide_a_hung_process() {
    let guard_client = GuardClient::with(1);
    assert!(!guard_client.hangs(at(60_000)), "it has not begun");
    guard_client.handle_life(at(60_000));
    assert!(!guard_client.hangs(at(61_000)));
    assert!(guard_client.hangs(at(61_001)));
    guard_client.handle_life(at(61_002));
    assert!(!guard_client.hangs(at(61_003)));
}

#[test]
fn pictures_bear_the_last_tick_and_silence_is_not_standstill() {
    let guard_client = GuardClient::with(1);
    let mut guard = Guard::new(Config::car(), Tick::new(70).unwrap());
    let machine = MachineState { measured_at: at(5), ..MachineState::default() };
    let input = Input { machine: Some(machine), ..Input::default() };
    let mut follow: Follow = Box::new(|_| vec![Extra { name: "cones", value: 2.0, unit: "" }]);
    let status = guard.step(&input, at(10)).status;
    guard_client.hear(StatusFrame::of(&status), &mut follow, at(11));
    assert_eq!(guard_client.ticks().newest(), 70);
    assert!(guard_client.stands(at(20)) && guard_client.is_held(at(20)));
    assert_eq!(guard_client.heard(at(20)).unwrap().extras.len(), 1);
    assert!(!guard_client.stands(at(520)) && guard_client.heard(at(520)).is_none());
}

#[test]
fn a_machine_is_unreachable_only_after_silence_not_in_motion() {
    let guard_client = GuardClient::with(1);
    assert!(guard_client.is_out_of_reach(at(1)), "never heard");
    let mut guard = Guard::new(Config::car(), Tick::new(70).unwrap());
    let mut follow: Follow = Box::new(|_| Vec::new());
    let mut step = |guard: &mut Guard, machine: bool, now: u64| {
        let moving = MachineState { measured_at: at(now), speed: 5.0, ..MachineState::default() };
        let input = Input { machine: machine.then_some(moving), ..Input::default() };
        let status = guard.step(&input, at(now)).status;
        guard_client.hear(StatusFrame::of(&status), &mut follow, at(now));
    };
    for now in (31_000..91_000).step_by(10) {
        step(&mut guard, true, now);
        assert!(!guard_client.is_held(at(now)) && !guard_client.is_out_of_reach(at(now)), "{now}");
    }
    // The guard continues, and restarts, without a state of the machine.
    for now in (91_000..120_000).step_by(10) {
        step(&mut guard, false, now);
        assert!(!guard_client.is_out_of_reach(at(now)), "{now}");
    }
    let mut anew = Guard::new(Config::car(), Tick::new(9_000).unwrap());
    step(&mut anew, false, 120_000);
    assert!(
        !guard_client.is_out_of_reach(at(120_980)) && guard_client.is_out_of_reach(at(120_991))
    );
    step(&mut anew, true, 121_000);
    assert!(!guard_client.is_out_of_reach(at(121_000)));
}
