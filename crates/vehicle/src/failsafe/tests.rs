use super::*;

fn command(sequence: u64, throttle: f32) -> Command {
    Command {
        sequence,
        sent_at: Instant::ZERO,
        steering: 0.25,
        throttle,
        brake: 0.0,
        gear: Gear::Drive,
        emergency_stop: false,
        refresh_strips: 0,
        strips: Default::default(),
        pass_over: 0,
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A failsafe that drives at 1000 ms, its newest command of that instant.
fn driving() -> Failsafe {
    let mut failsafe = Failsafe::new(Config::default());
    assert!(failsafe.handle_command(command(1, 0.0), Some(at(990)), at(1000)));
    failsafe.controls(0.0, at(1000));
    assert_eq!(failsafe.mode().0, Mode::Driving);
    failsafe
}

#[test]
fn a_car_without_an_operator_holds_its_brake() {
    let mut failsafe = Failsafe::new(Config::default());
    let controls = failsafe.controls(0.0, at(10));
    assert_eq!((controls.throttle, controls.brake), (0.0, 1.0));
}

#[test]
fn a_fresh_command_reaches_the_actuators() {
    let mut failsafe = driving();
    failsafe.handle_command(command(2, 0.7), Some(at(1010)), at(1020));
    let controls = failsafe.controls(3.0, at(1030));
    assert_eq!((controls.throttle, controls.brake, controls.steering), (0.7, 0.0, 0.25));
}

#[test]
fn silence_of_the_configured_time_brakes_to_a_stop() {
    let mut failsafe = driving();
    assert_eq!(failsafe.controls(9.0, at(1299)).brake, 0.0);
    let controls = failsafe.controls(9.0, at(1300));
    assert_eq!((controls.throttle, controls.brake), (0.0, 1.0));
    let (mode, why) = failsafe.mode();
    assert_eq!((mode, why.as_str()), (Mode::Stopping, "no fresh command for 300 ms"));
    failsafe.controls(0.0, at(3000));
    assert_eq!(failsafe.mode().0, Mode::Stopped);
}

#[test]
fn a_command_that_was_long_under_way_is_not_acted_on() {
    let mut failsafe = driving();
    assert!(!failsafe.handle_command(command(2, 1.0), Some(at(1000)), at(1251)));
    assert_eq!(failsafe.stale_count(), 1);
    assert_eq!(failsafe.controls(5.0, at(1301)).brake, 1.0);
}

#[test]
fn a_command_of_unknown_age_is_not_acted_on() {
    let mut failsafe = Failsafe::new(Config::default());
    assert!(!failsafe.handle_command(command(1, 0.0), None, at(5)));
    failsafe.controls(0.0, at(6));
    assert_eq!(failsafe.mode().0, Mode::AwaitingOperator);
}

#[test]
fn an_overtaken_or_repeated_command_is_not_acted_on() {
    let mut failsafe = driving();
    assert!(failsafe.handle_command(command(5, 0.1), Some(at(1010)), at(1020)));
    assert!(!failsafe.handle_command(command(4, 0.9), Some(at(1015)), at(1025)));
    assert!(!failsafe.handle_command(command(5, 0.9), Some(at(1015)), at(1025)));
    assert_eq!(failsafe.controls(1.0, at(1030)).throttle, 0.1);
}

#[test]
fn after_a_stop_the_pedal_must_be_let_go_first() {
    let mut failsafe = driving();
    failsafe.controls(9.0, at(1400));
    failsafe.controls(0.0, at(3000));
    failsafe.handle_command(command(2, 0.8), Some(at(3090)), at(3100));
    assert_eq!(failsafe.controls(0.0, at(3100)).brake, 1.0);
    assert_eq!(failsafe.mode().0, Mode::AwaitingRelease);
    failsafe.handle_command(command(3, 0.0), Some(at(3110)), at(3120));
    failsafe.handle_command(command(4, 0.8), Some(at(3130)), at(3140));
    // Only the newest command is seen; it presses again, so the release must show in a turn.
    assert_eq!(failsafe.controls(0.0, at(3140)).brake, 1.0);
    failsafe.handle_command(command(5, 0.0), Some(at(3150)), at(3160));
    failsafe.controls(0.0, at(3160));
    failsafe.handle_command(command(6, 0.8), Some(at(3170)), at(3180));
    assert_eq!(failsafe.controls(0.0, at(3180)).throttle, 0.8);
}

#[test]
fn commands_that_come_back_while_braking_do_not_end_the_stop() {
    let mut failsafe = driving();
    failsafe.controls(9.0, at(1400));
    failsafe.handle_command(command(2, 0.0), Some(at(1410)), at(1420));
    let controls = failsafe.controls(8.0, at(1420));
    assert_eq!((controls.brake, controls.steering), (1.0, 0.25));
    assert_eq!(failsafe.mode().0, Mode::Stopping);
}

#[test]
fn an_emergency_stop_stops_at_once_and_holds() {
    let mut failsafe = driving();
    let stop = Command { emergency_stop: true, ..command(2, 0.0) };
    failsafe.handle_command(stop, Some(at(1010)), at(1020));
    assert_eq!(failsafe.controls(9.0, at(1020)).brake, 1.0);
    failsafe.controls(0.0, at(1200));
    failsafe.handle_command(Command { sequence: 3, ..stop }, Some(at(1210)), at(1220));
    failsafe.controls(0.0, at(1220));
    assert_eq!(failsafe.mode().0, Mode::Stopped);
    failsafe.handle_command(command(4, 0.0), Some(at(1230)), at(1240));
    failsafe.controls(0.0, at(1240));
    assert_eq!(failsafe.mode().0, Mode::Driving);
}

#[test]
fn a_new_session_counts_its_commands_from_the_beginning() {
    let mut failsafe = driving();
    failsafe.handle_new_session();
    failsafe.controls(5.0, at(1100));
    assert_eq!(failsafe.mode().0, Mode::Driving);
    assert!(failsafe.handle_command(command(1, 0.0), Some(at(1100)), at(1110)));
}
